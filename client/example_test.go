package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"reflect"

	"agent/client"
	"agent/protocol"
)

// One turn, printed as it is written. A daemon is started when none runs.
func ExampleClient_Run() {
	ctx := context.Background()
	c := &client.Client{Starter: &client.Starter{}}
	defer c.Close()
	bot, err := c.Create(ctx, &protocol.Create{
		Bot: "reader", Workspace: "/home/pat/site", Model: "anthropic/claude-sonnet-4-5",
		Instructions: "Answer from the files here.",
		Tools:        []string{"read", "shell"}, Sandbox: protocol.SandboxReadOnly,
	})
	if errors.Is(err, protocol.BotExists) {
		bot, err = c.Inspect(ctx, "reader")
	}
	if err != nil {
		log.Fatal(err)
	}
	out, err := c.Run(ctx, &protocol.Submit{Bot: bot.Name, BotID: bot.ID, Prompt: "How many pages are there?"},
		func(e *protocol.Event) error { fmt.Print(e.Text()); return nil })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("\n%s\n", out.Status)
}

// A log of all bots that survives restarts of the daemon.
func ExampleClient_Follow() {
	var c client.Client
	var cursor int64 // kept from the last run
	for e, err := range c.Follow(context.Background(), "*", client.FollowOptions{After: cursor, Reconnect: true, NoDeltas: true}) {
		if err != nil {
			log.Fatal(err) // store_changed: start again from 0
		}
		if e.Kind == protocol.KindTurnFinished {
			var end protocol.TurnFinished
			if err := e.Decode(&end); err != nil {
				log.Fatal(err)
			}
			fmt.Println(e.Bot, e.Turn, end.Status)
		}
		if e.Durable {
			cursor = e.Cursor
		}
	}
}

// Refusals are told apart by their code, and facts are read from them. The
// daemon here is a few lines of the example's own, behind Client.Dial.
func ExampleClient_Do() {
	c := &client.Client{Target: client.Target{Store: "/s", Socket: "/s.sock"}, Dial: exampleDaemon}
	defer c.Close()
	_, err := c.Submit(context.Background(), &protocol.Submit{Bot: "Ada", Prompt: "Hello"})
	var refusal *protocol.Error
	if errors.Is(err, protocol.BudgetExhausted) && errors.As(err, &refusal) {
		var used int
		refusal.Fact("tokens_used", &used)
		fmt.Println(refusal.Op, "refused after", used, "tokens")
	}
	// Output: submit refused after 220 tokens
}

// exampleDaemon refuses every request for want of budget.
func exampleDaemon(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		ready, _ := protocol.AppendReady(nil, &protocol.Ready{PID: 1})
		far.Write(ready)
		lines := protocol.NewLineReader(far)
		for {
			line, err := lines.Next()
			if err != nil {
				return
			}
			r, _ := protocol.ParseRequest(line)
			far.Write(protocol.AppendError(nil, r.ID, protocol.Fail(protocol.BudgetExhausted, "").With("tokens_used", 220)))
		}
	}()
	return near, nil
}

// A program that gives a bot the rules of a folder reads it before each turn, and
// configures the bot where they are others. What it cannot read it marks.
func ExampleReadRules() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	look := func() *protocol.Rules {
		r, err := client.ReadRules(dir)
		if err != nil {
			return client.UnreadableRules(err)
		}
		return r
	}
	before := look()
	if err := os.WriteFile(filepath.Join(dir, "house.rules"), []byte(`prefix_rule(["rm"], decision="forbidden")`), 0o600); err != nil {
		log.Fatal(err)
	}
	if now := look(); !reflect.DeepEqual(now, before) {
		change := protocol.Configure{Bot: "Ada", Rules: protocol.Set(*now)}
		line, err := protocol.Append(nil, change)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
	// Output: {"bot":"Ada","rules":{"files":[{"name":"house.rules","text":"prefix_rule([\"rm\"], decision=\"forbidden\")"}]}}
}

// A tool that this program answers: bots that declare it, with the tag "notes",
// call it as they call their own.
func ExampleClient_ServeTools() {
	var c client.Client
	defer c.Close()
	keep := func(ctx context.Context, call *client.ToolCall) (client.ToolOutput, error) {
		var args struct{ Fact string }
		if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
			return client.ToolOutput{}, protocol.Fail("bad_fact", err.Error())
		}
		fmt.Println(call.Bot, "keeps", args.Fact)
		return client.ToolOutput{Text: "kept"}, nil
	}
	serve := func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.ServeTools(ctx, "notes", client.ServeOptions{}, keep)
	}
	for {
		_, err := client.Retry(context.Background(), serve) // over restarts of the daemon
		if !errors.Is(err, protocol.ToolsLost) {
			log.Fatal(err) // tools_served: another program serves them
		}
	}
}

// An approver that allows one thing: bots whose gate has the tag "ci" run the
// tests and nothing else.
func ExampleClient_ServeApprovals() {
	ctx := context.Background()
	var c client.Client
	defer c.Close()
	srv, err := c.ServeApprovals(ctx, "ci", client.ServeOptions{})
	if err != nil {
		log.Fatal(err) // approvals_served: another program serves it
	}
	defer srv.Close()
	for round, err := range srv.Rounds() {
		if err != nil {
			log.Fatal(err)
		}
		for _, call := range round.Calls {
			v := client.Deny("only `go test ./...` runs here")
			var a struct{ Command string }
			if call.Name == "shell" && call.Whole() && call.Decode(&a) == nil && a.Command == "go test ./..." {
				v = client.Allow()
			}
			if _, err := srv.Answer(ctx, call, v); err != nil && !errors.Is(err, protocol.StaleTurn) {
				log.Print(err)
			}
		}
	}
}

// Command toolserver gives a bot a tool of its own: note_down appends a line to
// outbox.txt, once a person has allowed that line. The daemon keeps the call and
// the verdict; this program does the work and need not be trusted with either.
//
//	AGENT_MODEL=anthropic/claude-sonnet-4-5 toolserver "Tell Kim the build is green."
//
// While it waits: agent approvals --pretty prints the command that answers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"agent/client"
	"agent/protocol"
)

var noteDown = protocol.ClientTool{
	Name: "note_down", Tag: "outbox", Gated: new(false), // it asks for each line itself
	Description: "Append one line to the outbox. A person allows or denies each line.",
	Parameters:  json.RawMessage(`{"type":"object","properties":{"line":{"type":"string"}},"required":["line"],"additionalProperties":false}`),
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c := &client.Client{Starter: &client.Starter{}}
	defer c.Close()
	ctx, unserved := context.WithCancelCause(ctx) // a turn whose tool nobody serves would wait for ever
	go func() {
		unserved(c.ServeTools(ctx, noteDown.Tag, client.ServeOptions{}, serve))
	}()
	if err := run(ctx, c, strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}

// serve answers one call. What a step was denied for is for the model to read.
func serve(ctx context.Context, call *client.ToolCall) (client.ToolOutput, error) {
	var args struct{ Line string }
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		return client.ToolOutput{}, err
	}
	step := protocol.Step{Step: "append", Name: "outbox/append", Arguments: json.RawMessage(call.Arguments)}
	verdict, err := call.ApproveStep(ctx, step)
	if err != nil { // interrupted, or nobody could be asked: it must not happen
		return client.ToolOutput{}, err
	}
	if verdict.Decision != protocol.Allow {
		return client.ToolOutput{Text: "Not written: " + verdict.Decision + ". " + verdict.Reason}, nil
	}
	err = write(args.Line)
	if told := call.StepResult(ctx, step.Step, err == nil, args.Line); err == nil {
		err = told
	}
	return client.ToolOutput{Text: "Written."}, err
}

func write(line string) error {
	f, err := os.OpenFile("outbox.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)
	return err
}

// run makes the bot once, and gives it the prompt.
func run(ctx context.Context, c *client.Client, prompt string) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	_, err = c.Create(ctx, &protocol.Create{
		Bot: "clerk", Workspace: folder, Model: os.Getenv("AGENT_MODEL"), Instructions: "You write lines for the outbox.",
		ClientTools: []protocol.ClientTool{noteDown}, Approve: []string{noteDown.Name}, Approver: "manual",
	})
	if err != nil && protocol.CodeOf(err) != protocol.BotExists {
		return err
	}
	out, err := c.Run(ctx, &protocol.Submit{Bot: "clerk", Prompt: prompt}, func(e *protocol.Event) error {
		if e.Kind == protocol.KindApprovalRequested {
			log.Print("waiting for you: agent approvals --pretty")
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println(out.Status, out.Text)
	return nil
}

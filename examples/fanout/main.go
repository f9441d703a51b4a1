// Command fanout looks at a folder from five sides at once. A lead reads the
// folder; five bots are forked from it, so that each begins with what the lead
// knows and the provider has in its cache; they work at the same time, and their
// answers are printed as one summary.
//
//	AGENT_MODEL=anthropic/claude-sonnet-4-5 fanout [FOLDER]
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"agent/client"
	"agent/protocol"
)

// sides are what the five are asked.
var sides = []string{
	"What does this project do? Two sentences.",
	"How is it built and tested? Name the commands.",
	"Which file should a newcomer read first, and why?",
	"Which part is most likely to break?",
	"What is missing that users would expect?",
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	folder, err := filepath.Abs(cmp.Or(append(os.Args[1:], ".")[0], "."))
	if err != nil {
		log.Fatal(err)
	}
	c := &client.Client{Starter: &client.Starter{}} // starts a daemon if none runs
	defer c.Close()
	if err := run(ctx, c, folder); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, c *client.Client, folder string) error {
	lead := "fanout-" + rand.Text()[:8]
	_, err := c.Create(ctx, &protocol.Create{
		Bot: lead, Workspace: folder, Model: os.Getenv("AGENT_MODEL"), Instructions: "Answer from the files here. Be brief.",
		Tools: []string{"shell", "read"}, Sandbox: protocol.SandboxReadOnly,
	})
	if err != nil {
		return err
	}
	defer remove(c, lead)
	out, err := c.Run(ctx, &protocol.Submit{Bot: lead, Prompt: "Look around in this folder."}, nil)
	if err != nil {
		return err
	}
	if out.Status != protocol.StatusCompleted {
		return fmt.Errorf("the lead's turn is %s: %s", out.Status, *out.Error)
	}
	handles := make([]string, len(sides))
	for i, side := range sides {
		name := fmt.Sprintf("%s-%d", lead, i+1)
		if _, err := c.Fork(ctx, &protocol.Fork{Source: lead, Bot: name, Workspace: folder}); err != nil {
			return err
		}
		defer remove(c, name)
		turn, err := c.Submit(ctx, &protocol.Submit{Bot: name, Prompt: side})
		if err != nil {
			return err
		}
		handles[i] = turn.Handle
	}
	done, err := c.Wait(ctx, &protocol.Wait{Handles: handles}) // all five; nothing polls
	if err != nil {
		return err
	}
	for i, handle := range handles {
		switch r := done.Results[handle]; {
		case r.Err != nil:
			fmt.Printf("%s\n  %v\n", sides[i], r.Err)
		case r.Turn.Status != protocol.StatusCompleted:
			fmt.Printf("%s\n  %s: %s\n", sides[i], r.Turn.Status, *r.Turn.Error)
		default:
			fmt.Printf("%s\n  %s\n", sides[i], r.Turn.Text)
		}
	}
	return nil
}

// remove deletes a bot, also one that still works: the program was ended.
func remove(c *client.Client, name string) {
	ctx := context.Background()
	if bot, err := c.Inspect(ctx, name); err == nil && bot.RunningTurn != nil {
		c.Interrupt(ctx, name, *bot.RunningTurn, "fanout ended")
		c.Wait(ctx, &protocol.Wait{Handles: []string{protocol.Handle{Bot: name, Turn: *bot.RunningTurn}.String()}})
	}
	c.Delete(ctx, name)
}

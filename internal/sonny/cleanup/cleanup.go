// Package cleanup has an agent look through the facts of memory (sonny.md 25.4). The
// agent sees facts and nothing else is in its reach: a read-only sandbox without a
// network, read, and the memory tool. What comes of its work is memory's to judge.
package cleanup

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"agent/client"
	"agent/internal/place"
	"agent/internal/sonny/lead"
	"agent/protocol"
)

// CodeFailed is of an agent that did not come to its end.
const CodeFailed protocol.Code = "cleanup_failed"

// Tool is the served tool that the agent gets.
const Tool = "memory"

// grace is how long the end of an interrupted turn is waited for.
const grace = 10 * time.Second

// Agent is what the agent is made with.
type Agent struct {
	Client       *client.Client
	Model        string // PROVIDER/MODEL
	Instructions string
	Folder       string // of memory; there
	Memory       protocol.ClientTool
}

// NewName is a name for an agent that no other had: what it saves carries it.
func NewName() string { return lead.HeadlessName("memory", strings.ToLower(rand.Text()[:6])) }

// Look makes the agent under a name, has it do what brief says, and deletes it. It gives
// its last words. cleanup_failed where its turn failed; an ended ctx ends the turn, and
// its cause is the error. Whatever the error, the agent does nothing more once Look is
// back, as far as the daemon answers.
func (a *Agent) Look(ctx context.Context, name, brief string) (words string, err error) {
	bot, err := a.Client.Create(ctx, a.create(name))
	if err != nil {
		return "", err
	}
	turn := int64(0)
	words, err = a.work(ctx, bot, brief, &turn)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err != nil && turn != 0 {
		err = errors.Join(err, a.halt(after, name, turn))
	}
	_, gone := a.Client.Delete(after, name)
	return words, errors.Join(err, gone)
}

func (a *Agent) create(name string) *protocol.Create {
	return &protocol.Create{
		Bot: name, Model: a.Model, Instructions: a.Instructions, Workspace: a.Folder,
		Tools: []string{"read"}, ClientTools: []protocol.ClientTool{a.Memory},
		Sandbox: protocol.SandboxReadOnly, Network: protocol.Set(false),
	}
}

// work has the brief done. *turn is set once there is one.
func (a *Agent) work(ctx context.Context, bot *protocol.Bot, brief string, turn *int64) (string, error) {
	submit := &protocol.Submit{Bot: bot.Name, BotID: bot.ID, Prompt: brief}
	for _, err := range a.Client.SubmitFollow(ctx, submit, func(s *protocol.Submitted) { *turn = s.Turn }) {
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", err
		}
	}
	end, err := a.Client.Result(ctx, bot.Name, *turn)
	switch {
	case err != nil:
		return "", err
	case end.Error != nil:
		why := string(*end.Error)
		if end.Detail != nil && *end.Detail != "" {
			why += ": " + *end.Detail
		}
		return "", protocol.Fail(CodeFailed, "the agent did not come to its end: "+why)
	}
	return end.Text, nil
}

// Halt ends and deletes the agents of earlier cleanups, whose program did not: nothing is
// done by one when Halt is back without an error. Such an agent is known by all that
// create gives it. It must not be called while a cleanup runs.
func Halt(ctx context.Context, c *client.Client, folder string) error {
	var left []protocol.Bot
	for b, err := range c.Bots(ctx) {
		if err != nil {
			return err
		}
		if isAgent(b, folder) {
			left = append(left, *b)
		}
	}
	for i := range left {
		b := &left[i]
		if b.RunningTurn != nil {
			if err := (&Agent{Client: c}).halt(ctx, b.Name, *b.RunningTurn); err != nil {
				return err
			}
		}
		if _, err := c.Delete(ctx, b.Name); err != nil && !errors.Is(err, protocol.BotNotFound) {
			return err
		}
	}
	return nil
}

func isAgent(b *protocol.Bot, folder string) bool {
	return strings.HasPrefix(b.Name, lead.HeadlessName("memory", "")) && lead.Headless(b) &&
		b.Sandbox == protocol.SandboxReadOnly && !b.Network && b.Workspace != nil && *b.Workspace == place.Real(folder) &&
		slices.Equal(b.Tools, []string{"read"}) && len(b.ClientTools) == 1 && b.ClientTools[0].Name == Tool
}

// halt ends a turn that still runs, and waits until it has.
func (a *Agent) halt(ctx context.Context, name string, turn int64) error {
	_, err := a.Client.Interrupt(ctx, name, turn, "the cleanup was ended")
	if errors.Is(err, protocol.NoActiveTurn) || errors.Is(err, protocol.StaleTurn) {
		return nil
	}
	if err == nil {
		_, err = a.Client.Wait(ctx, &protocol.Wait{Handles: []string{protocol.TurnHandle(name, turn).String()}})
	}
	return err
}

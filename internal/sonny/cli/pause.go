package cli

import (
	"context"
	"fmt"
	"strings"

	"agent/client"
	"agent/client/termsafe"
	"agent/internal/sonny/fault"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// pauseVerb is sonny pause: the cord that stops everything.
func (a *app) pauseVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause [REASON]", Short: "Stop everything: every turn ends, and none begins before unpause",
		RunE: func(cmd *cobra.Command, args []string) error { return a.pause(cmd, strings.Join(args, " ")) },
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "one JSON object")
	return cmd
}

func (a *app) pause(cmd *cobra.Command, reason string) error {
	c, done, err := a.cordClient(cmd)
	if err != nil {
		return err
	}
	defer done()
	p, err := pull(cmd.Context(), c, reason)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printWire(p)
	case p.Already:
		a.say("it was paused already, by %s", fault.Puller(p.By, p.ByID))
	default:
		a.say("paused: %d turns interrupted, %d processes ended; sonny unpause goes on", p.InterruptedTurns, p.EndedProcesses)
	}
	return nil
}

// pull pulls the cord in the person's name, or in that of the bot whose shell this is.
func pull(ctx context.Context, c *client.Client, reason string) (*protocol.Pause, error) {
	if c.Bot != nil {
		return c.Pause(ctx, reason)
	}
	p := &protocol.Pause{}
	return p, c.Do(ctx, protocol.OpPause, &protocol.PauseRequest{By: fault.Person, Reason: reason}, p)
}

// printWire prints a value of the protocol on one line.
func (a *app) printWire(v any) error {
	line, err := protocol.Append(nil, v)
	if err == nil {
		_, err = fmt.Fprintf(a.stdout, "%s\n", termsafe.AppendJSON(nil, line))
	}
	return err
}

// cordClient is the client that pulls the cord: in a bot's own shell the bot does.
func (a *app) cordClient(cmd *cobra.Command) (*client.Client, func(), error) {
	bot, err := client.FromBotEnv()
	if err != nil {
		return nil, nil, err
	}
	if bot != nil {
		c := bot.Client()
		return c, func() { c.Close() }, nil
	}
	_, link, err := a.reachRunning(cmd)
	if err != nil {
		return nil, nil, err
	}
	return link.Client, func() { link.Close() }, nil
}

// unpauseVerb lifts a pause. It is the person's alone.
func (a *app) unpauseVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "unpause", Short: "Lift the pause: what waits in line begins", Args: cobra.NoArgs,
		RunE: personal(func(cmd *cobra.Command, _ []string) error { return a.unpause(cmd) }),
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "one JSON object")
	return cmd
}

func (a *app) unpause(cmd *cobra.Command) error {
	_, link, err := a.reachRunning(cmd)
	if err != nil {
		return err
	}
	defer link.Close()
	was, err := link.Resume(cmd.Context())
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printWire(was)
	case was == nil:
		a.say("it was not paused")
	default:
		a.say("the pause is lifted; it was pulled by %s", fault.Puller(was.By, was.ByID))
	}
	return nil
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"agent/internal/sonny/cleanup"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/memory"
	"agent/internal/sonny/skill"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// memoryCleanupVerb is sonny memory cleanup (sonny.md 25.4).
func (a *app) memoryCleanupVerb() *cobra.Command {
	rule := false
	cmd := &cobra.Command{
		Use: "cleanup", Short: "Go through the facts: by rule, then by an agent",
		Long: "Copies every fact aside, removes what came from outside and orders agents about, and has an agent\n" +
			"that can only read and use memory merge what says the same and drop what was superseded. When more\n" +
			"than a quarter of the facts would go, all that the agent did is put back.",
		Args: cobra.NoArgs,
		RunE: personal(func(cmd *cobra.Command, _ []string) error { return a.memoryCleanup(cmd, rule) }),
	}
	cmd.Flags().BoolVar(&rule, "rule", false, "the copies and the rule alone, without an agent")
	return cmd
}

// cleaned is what came of a cleanup.
type cleaned struct {
	*memory.Ended
	CutShort *memory.Ended `json:"cut_short,omitempty"` // of an earlier one
	Words    string        `json:"words,omitempty"`     // the agent's last
}

// memoryCleanup does the rule's part whether or not an agent can be had for the rest.
func (a *app) memoryCleanup(cmd *cobra.Command, rule bool) error {
	m, err := facts()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	name := ""
	if !rule {
		name = cleanup.NewName()
	}
	c, err := m.Begin(name, func() error { return a.haltCleaners(ctx, cmd, m) })
	if err != nil {
		return err
	}
	words, failed := "", error(nil)
	if !rule && c.Facts() > 0 {
		words, failed = a.lookThrough(ctx, cmd, m, c)
	}
	ended, err := c.End()
	if ended == nil {
		return errors.Join(failed, err)
	}
	switch {
	case err == nil:
		err = failed
	case failed != nil:
		a.notice(coded(failed).Error())
	}
	if a.json {
		return a.orJSON(cleaned{ended, c.CutShort, words}, err)
	}
	a.sayCleaned(c, ended, words, rule)
	return err
}

// haltCleaners ends the agents of cleanups that were cut short. Where no daemon runs,
// they do nothing.
func (a *app) haltCleaners(ctx context.Context, cmd *cobra.Command, m *memory.Memory) error {
	w, err := a.lookAnywhere(cmd)
	if err != nil {
		return err
	}
	o := w.link()
	o.Explicit, o.Companions = true, nil
	link, err := connect.Open(ctx, o)
	if errors.Is(err, protocol.DaemonUnavailable) {
		return nil
	}
	if err != nil {
		return err
	}
	defer link.Close()
	return cleanup.Halt(ctx, link.Client, m.Folder(memory.Scope{}))
}

func (a *app) sayCleaned(c *memory.Cleanup, ended *memory.Ended, words string, rule bool) {
	if cut := c.CutShort; cut != nil {
		a.say("an earlier cleanup was cut short; what its agent had done is judged now:")
		for _, change := range cut.Changes {
			a.say("  %s", change)
		}
	}
	for _, change := range ended.Changes {
		a.say("%s", change)
	}
	a.problems(ended.Problems)
	a.say("every fact as it was: %s", ended.Copy)
	if rule {
		for _, s := range c.Suspects {
			a.say("look at %s/%s: %s", s.Scope, s.Name, s.Why)
		}
	}
	a.lines(words)
}

// lookThrough has an agent go through the facts that the rule has left.
func (a *app) lookThrough(ctx context.Context, cmd *cobra.Command, m *memory.Memory, c *memory.Cleanup) (string, error) {
	w, err := a.lookOutside(cmd, m.Folder(memory.Scope{}))
	if err != nil {
		return "", err
	}
	if !w.config.Memory.Enabled {
		return "", protocol.Fail(cleanup.CodeFailed, "memory is turned off (memory.enabled), and no agent may use it: sonny memory cleanup --rule does without one")
	}
	freshSkills(w)
	link, err := connect.Open(ctx, w.link())
	if err != nil {
		return "", err
	}
	defer link.Close()
	if err := cleanup.Halt(ctx, link.Client, m.Folder(memory.Scope{})); err != nil { // of a daemon that did not run
		return "", err
	}
	agent, err := w.cleaner(ctx, link, m)
	if err != nil {
		return "", err
	}
	return agent.Look(ctx, c.Bot, c.Brief())
}

func (w *around) cleaner(ctx context.Context, link *connect.Link, m *memory.Memory) (*cleanup.Agent, error) {
	composed, err := skill.Compose(skill.Options{
		Workspace: m.Folder(memory.Scope{}), Role: "cleanup", Texts: texts(w.config), OwnOnly: true,
	})
	if err != nil {
		return nil, err
	}
	model := cmp.Or(w.config.Memory.CleanupModel, w.config.JudgeModel, composed.Role.Model, w.config.Model)
	if model == "" {
		listed, err := models()
		if err == nil {
			model, err = lead.SuggestFrom(ctx, link.Client, link.Ready.Providers, listed)
		}
		if err != nil {
			return nil, err
		}
	}
	served := tools.For(tools.Lead, 0)
	at := slices.IndexFunc(served, func(t protocol.ClientTool) bool { return t.Name == cleanup.Tool })
	return &cleanup.Agent{
		Client: link.Client, Model: model, Instructions: composed.Text, Folder: m.Folder(memory.Scope{}), Memory: served[at],
	}, nil
}

package cli

import (
	"context"
	"errors"
	"strings"

	"agent/protocol"

	"github.com/spf13/cobra"
)

// verb is one verb of the command. declare adds its flags to the table and
// gives the function that runs it with the operands, whose number is checked.
type verb struct {
	name     string
	operands string // as usage shows them; "" when it takes none
	most     int    // how many operands it takes; -1: any number
	words    []string
	short    string
	long     string
	hidden   bool
	declare  func(*app, *table) func(context.Context, []string) error
}

// verbs are all of them, in the order of help.
func verbs() []verb {
	return []verb{
		runVerb, followVerb, forkVerb, configureVerb, lsVerb, showVerb, rmVerb, pruneVerb, eventsVerb, turnsVerb, resultVerb, waitVerb,
		interruptVerb, historyVerb, promptsVerb, artifactVerb, approvalsVerb, answerVerb, approverVerb, callsVerb, modelsVerb, companionsVerb, loginVerb, logoutVerb, statsVerb, startVerb, pauseVerb, resumeVerb, shutdownVerb, storeVerb, serveVerb,
		completionVerb, referenceVerb, helpVerb,
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{Use: "agent", SilenceErrors: true, SilenceUsage: true, Args: cobra.NoArgs}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.help(cmd) })
	a.tables = map[string]*table{}
	a.verbs = verbs()
	var names []string
	for _, v := range a.verbs {
		if !v.hidden {
			names = append(names, v.name)
		}
	}
	for _, v := range a.verbs {
		if v.name == helpVerb.name {
			v.words = names
		}
		cmd := a.command(v)
		root.AddCommand(cmd)
		if v.name == helpVerb.name {
			root.SetHelpCommand(cmd) // else cobra adds its own
		}
	}
	return root
}

// command makes cobra's command of a verb.
func (a *app) command(v verb) *cobra.Command {
	cmd := &cobra.Command{
		Use: strings.TrimSpace(v.name + " " + v.operands), Short: v.short, Long: v.long, Hidden: v.hidden,
		DisableFlagsInUseLine: true, ValidArgs: v.words,
	}
	t := newTable(v.name)
	run := v.declare(a, t)
	a.tables[v.name] = t
	cmd.SetFlagErrorFunc(flagError)
	cmd.Args = func(_ *cobra.Command, args []string) error { return v.countOperands(args) }
	cmd.RunE = func(_ *cobra.Command, args []string) error { return run(a.ctx, args) }
	if v.words == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	t.bind(cmd)
	return cmd
}

// countOperands refuses the first operand too many.
func (v verb) countOperands(args []string) error {
	switch {
	case v.most < 0 || len(args) <= v.most:
		return nil
	case v.most == 0:
		return usagef("%s takes no operand, and %s is one", v.name, args[0])
	}
	return usagef("%s takes %s, and %s is one too many", v.name, v.operands, args[v.most])
}

// flagError gives a flag's own error back, which pflag has wrapped.
func flagError(cmd *cobra.Command, err error) error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return e
	}
	return usagef("%s: %v", cmd.Name(), err)
}

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"agent/internal/sandbox"
	"agent/internal/tool"

	"github.com/spf13/cobra"
)

// Main is the agent command on the process's own arguments and streams. It
// returns the exit status (section 5).
func Main() int {
	args := os.Args[1:]
	if len(args) > 0 && tool.IsHelper(args[0]) {
		return tool.HelperMain(args) // a helper child of the daemon
	}
	if len(args) == 2 && args[0] == sandbox.HelperVerb {
		return sandbox.RunHelper(args[1], os.Stdin, os.Stdout) // the same, inside a sandbox
	}
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	return a.main(args)
}

// app is one run of the command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	ctx            context.Context // ends with a signal or with stdout

	tree   *cobra.Command
	verbs  []verb            // all of them, in the order of help
	tables map[string]*table // of every verb
	verb   string            // "" until the line named one
	plain  bool              // errors as agent: CODE: DETAIL, whatever pretty says
	pretty bool

	endsWell bool       // a signal that ends it is no failure
	undoing  sync.Mutex // held while there is what a signal must not leave behind
}

// exit ends the command with a status and nothing on stderr: what there was to
// say has been said.
type exit int

func (e exit) Error() string { return "exit" }

func (a *app) main(args []string) int {
	if len(args) > 0 && args[0] == serveVerb.name {
		a.ctx = context.Background() // the daemon has its own signals
		return a.report(a.execute(args))
	}
	ctx, done := endings(&a.undoing)
	a.ctx = ctx
	defer done()
	err := a.execute(args)
	if ended := endedBy(ctx); ended != nil && !a.endsWell {
		a.sayEnded(ended, err)
		return ended.status()
	}
	return a.report(err)
}

// execute finds the verb, checks its whole line and runs it.
func (a *app) execute(args []string) error {
	root := a.root()
	a.tree = root
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		root.SetArgs(args)
		return root.ExecuteContext(a.ctx)
	}
	if len(args) == 0 {
		return usagef("no verb was given; agent --help lists them")
	}
	if args[0] == "" || args[0][0] == '-' {
		return a.topFlags(root, args)
	}
	cmd, err := findVerb(root, args[0])
	if err != nil {
		return err
	}
	a.verb = args[0]
	a.plain = a.verb == serveVerb.name
	line, err := scan(args[1:], a.tables[cmd.Name()], func() { a.pretty = true })
	if err != nil {
		return err
	}
	if line.help {
		return a.help(cmd)
	}
	root.SetArgs(append([]string{a.verb}, line.canonical()...))
	return root.ExecuteContext(a.ctx)
}

// topFlags is a line without a verb: help or the version.
func (a *app) topFlags(root *cobra.Command, args []string) error {
	var version bool
	for _, arg := range args {
		switch arg {
		case "--pretty":
			a.pretty = true
		case "--version":
			version = true
		case "--help", "-h":
			return a.help(root)
		default:
			if arg == "" || arg[0] != '-' {
				return usagef("the verb comes first: agent %s …", arg)
			}
			return usagef("unknown flag %s: agent --help lists the verbs", flagName(arg))
		}
	}
	if !version {
		return usagef("no verb was given; agent --help lists them")
	}
	return a.printVersion()
}

// report says why the command failed, once, and gives its exit status.
func (a *app) report(err error) int {
	var silent exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &silent):
		return int(silent)
	case errors.Is(err, errOutputClosed):
		return 1
	}
	return a.say(err)
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"agent/client/termsafe"
	"agent/internal/sonny/fault"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// Version is the build's tag, set by the linker. agent and sonny ship under one.
var Version = "devel"

// The statuses of the command (sonny.md 2).
const (
	exitFailed     = 1
	exitUsage      = 2
	exitNoTerminal = 3
	exitNotSetUp   = 6
	exitNoSandbox  = 7
	exitNoDaemon   = 75
)

// exitOf is the status of each code that has one of its own.
var exitOf = map[protocol.Code]int{
	protocol.UsageError:         exitUsage,
	notATerminal:                exitNoTerminal,
	"not_set_up":                exitNotSetUp,
	protocol.SandboxUnavailable: exitNoSandbox,
	"daemon_start_failed":       exitNoDaemon,
	protocol.DaemonUnavailable:  exitNoDaemon,
}

const (
	insideABot   protocol.Code = "inside_a_bot"
	notATerminal protocol.Code = "not_a_terminal"
)

// exit ends the command with a status and nothing on stderr: what there was to say
// has been said.
type exit int

func (e exit) Error() string { return "exit" }

// Main is the sonny command on the process's own arguments and streams. It returns
// the exit status.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a := &app{stdin: os.Stdin, stdout: &written{File: os.Stdout}, stderr: os.Stderr}
	return a.main(ctx, os.Args[1:])
}

// app is one run of the command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          globals
	args           []string
	json           bool  // failures as JSON: a verb's --json
	helpless       error // why there is no help about what was named
	log            *debugLog
}

func (a *app) main(ctx context.Context, args []string) int {
	a.args = args
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.helpless
	}
	status := a.report(a.unwritten(err))
	a.log.say("end", fmt.Sprint("status ", status))
	return status
}

// report says why the command failed, once, and gives its exit status.
func (a *app) report(err error) int {
	var silent exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &silent):
		return int(silent)
	}
	e := coded(err)
	a.log.say("failed", string(e.Code))
	if a.json {
		line, _ := json.Marshal(struct {
			Error  protocol.Code `json:"error"`
			Detail string        `json:"detail"`
		}{e.Code, e.Detail})
		fmt.Fprintf(a.stderr, "%s\n", termsafe.AppendJSON(nil, line))
	} else {
		fmt.Fprintf(a.stderr, "sonny: %s\n", termsafe.OneLine(e.Error()))
	}
	if status, ok := exitOf[e.Code]; ok {
		return status
	}
	return exitFailed
}

// coded gives every failure a code, and the words that hold on a shell's line.
func coded(err error) *protocol.Error {
	return fault.Verb.Told(err)
}

// usagef is a line that is wrong, before anything was touched.
func usagef(format string, args ...any) *protocol.Error {
	return protocol.Fail(protocol.UsageError, fmt.Sprintf(format, args...))
}

// person refuses what only the person may do where the command runs in a bot's own
// shell (sonny.md 2).
func person(what string) error {
	if os.Getenv("AGENT_BOT") == "" {
		return nil
	}
	return protocol.Fail(insideABot, what+" is the person's to do, and this is the shell of bot "+os.Getenv("AGENT_BOT"))
}

// personal is a verb's RunE that only the person may run.
func personal(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := person(cmd.CommandPath()); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

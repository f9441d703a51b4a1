package cli

import (
	"errors"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
)

// loginVerb and logoutVerb hand over to agent, which has the sign-in (sonny.md 19.2).
func (a *app) loginVerb() *cobra.Command {
	return a.handed("login", "Sign in with a ChatGPT plan: agent login does it", "[flags of agent login]")
}

func (a *app) logoutVerb() *cobra.Command {
	return a.handed("logout", "Forget the ChatGPT sign-in: agent logout does it", "")
}

func (a *app) handed(verb, short, more string) *cobra.Command {
	return &cobra.Command{
		Use: strings.TrimSpace(verb + " chatgpt " + more), Short: short, DisableFlagParsing: true,
		RunE: personal(func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			if len(args) == 0 || args[0] != "chatgpt" {
				return usagef("sonny %s knows one word: sonny %s chatgpt", verb, verb)
			}
			return a.handOver(cmd, append([]string{verb}, args...))
		}),
	}
}

// handOver runs agent in this program's place: its streams, its status.
func (a *app) handOver(cmd *cobra.Command, args []string) error {
	path, err := agentProgram()
	if err != nil {
		return err
	}
	run := exec.CommandContext(cmd.Context(), path, args...)
	run.Stdin, run.Stdout, run.Stderr = a.stdin, a.lent(), a.stderr
	err = run.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		if code := ended.ExitCode(); code > 0 {
			return exit(code)
		}
		return exit(exitFailed)
	}
	return err
}

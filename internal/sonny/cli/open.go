package cli

import (
	"os"

	"agent/protocol"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// open opens the screen (sonny.md 3.2).
func (a *app) open(cmd *cobra.Command, args []string) error {
	if err := person("the screen"); err != nil {
		return err
	}
	if _, err := openingOf(cmd, args); err != nil {
		return err
	}
	if !isTerminal(a.stdin) || !isTerminal(a.stdout) {
		return protocol.Fail(notATerminal, "the screen needs a terminal on its input and output; sonny exec runs a prompt without one")
	}
	return nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

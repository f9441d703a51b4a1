package cli

import (
	"fmt"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/keys"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// keysVerb prints the key map in force (sonny.md 15).
func (a *app) keysVerb() *cobra.Command {
	var asTOML bool
	cmd := &cobra.Command{
		Use:   "keys [--toml]",
		Short: "Print the key map",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.lookToShow(cmd)
			if err != nil {
				return err
			}
			return a.keys(w.config.TUI.Keys, asTOML)
		},
	}
	cmd.Flags().BoolVar(&asTOML, "toml", false, "as the [tui.keys] of a config")
	return cmd
}

// keys prints the map, and says what is wrong with the person's own bindings. Where one
// conflicts, what is printed are the defaults, and the verb fails.
func (a *app) keys(own map[string][]string, asTOML bool) error {
	m, faults := keys.New(own)
	write := m.WriteTable
	if asTOML {
		write = m.WriteTOML
	}
	if err := write(a.stdout); err != nil {
		return err
	}
	return a.faults(faults)
}

// faults tells of all but the first conflict, which it returns.
func (a *app) faults(faults []*protocol.Error) error {
	var first error
	for _, f := range faults {
		if first == nil && f.Code == keys.KeymapConflict {
			first = f
			continue
		}
		fmt.Fprintf(a.stderr, "sonny: %s\n", termsafe.OneLine(f.Error()))
	}
	return first
}

package cli

import (
	"agent/internal/place"
	"agent/internal/sonny/lead"

	"github.com/spf13/cobra"
)

// homeVerb opens the person's own agent, in their home folder (sonny.md 3.6).
func (a *app) homeVerb() *cobra.Command {
	return &cobra.Command{
		Use: "home [-- PROMPT]", Short: "Your own agent: what runs, what waits, and messages to the others",
		Args: cobra.ArbitraryArgs,
		RunE: personal(func(cmd *cobra.Command, args []string) error {
			o, err := openingOf(cmd, args)
			switch {
			case err != nil:
				return err
			case o.folder != "":
				return usagef("sonny home takes no folder: it works in your home folder")
			}
			if o.folder, err = place.Home(); err != nil {
				return err
			}
			return a.show(cmd, o, lead.KindHome)
		}),
	}
}

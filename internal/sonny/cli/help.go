package cli

import (
	_ "embed"
	"fmt"
	"strings"

	"agent/client/termsafe"

	"github.com/spf13/cobra"
)

//go:embed remedies.txt
var remediesText string

// remedy is what to do about an error.
type remedy struct {
	Code   string `json:"code"`
	Remedy string `json:"remedy"`
}

// remedies are those of all codes that sonny tells of, in the order of help.
func remedies() (all []remedy) {
	for line := range strings.Lines(remediesText) {
		code, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		all = append(all, remedy{code, what})
	}
	return all
}

// helpVerb is sonny help: of a command, or of a topic.
func (a *app) helpVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "help [COMMAND | errors [CODE]]", Short: "Help about a command; errors: what to do about each error",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "errors" {
				return a.helpErrors(args[1:])
			}
			of, rest, err := cmd.Root().Find(args)
			if err != nil || of == nil || len(rest) > 0 && of == cmd.Root() {
				return usagef("there is no help about %q; sonny help lists the commands", strings.Join(args, " "))
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "of errors: one JSON list")
	return cmd
}

func (a *app) helpErrors(codes []string) error {
	var shown []remedy
	for _, r := range remedies() {
		if len(codes) == 0 || codes[0] == r.Code {
			shown = append(shown, r)
		}
	}
	switch {
	case len(codes) > 1:
		return usagef("sonny help errors takes one code, or none for all")
	case len(shown) == 0:
		return usagef("there is no remedy written for %q; docs/TROUBLESHOOTING.md has the daemon's codes", codes[0])
	case a.json:
		return a.printJSON(shown)
	}
	for _, r := range shown {
		fmt.Fprintf(a.stdout, "%s\n    %s\n", termsafe.OneLine(r.Code), termsafe.OneLine(r.Remedy))
	}
	return nil
}

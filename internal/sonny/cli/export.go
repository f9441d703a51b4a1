package cli

import (
	"bufio"
	"io"

	"agent/client/termsafe"
	"agent/internal/sonny/export"

	"github.com/spf13/cobra"
)

// exportCommand is sonny sessions export.
func (a *app) exportCommand() *cobra.Command {
	var format, tools string
	cmd := &cobra.Command{
		Use: "export SESSION", Short: "Print what was said, as Markdown or as JSON lines", Args: cobra.ExactArgs(1),
		Long: "Prints a session's history as it is stored, the oldest first. What the daemon redacted stays\nredacted; keys are not in it.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd, args[0], format, tools) },
	}
	cmd.Flags().StringVar(&format, "format", "md", "md, or json: an object a line")
	cmd.Flags().StringVar(&tools, "tools", "summary", "what of tool calls: none, summary (a line each) or full")
	return cmd
}

func (a *app) export(cmd *cobra.Command, word, format, tools string) error {
	o := export.Options{Format: export.Format(format), Tools: export.Tools(tools)}
	if err := o.Check(); err != nil {
		return err
	}
	_, link, f, _, err := a.one(cmd, word)
	if err != nil {
		return err
	}
	defer link.Close()
	out := bufio.NewWriter(a.stdout)
	var to io.Writer = out
	if o.Format == export.Markdown && isTerminal(a.stdout) {
		to = termsafe.NewWriter(out)
	}
	if err := export.Write(cmd.Context(), to, link.Client, f.Record.Name, o); err != nil {
		return err
	}
	return out.Flush()
}

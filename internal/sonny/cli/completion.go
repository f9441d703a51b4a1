package cli

import (
	"github.com/spf13/cobra"
)

// completionVerb prints a shell's completion script, to be sourced from its start file.
func (a *app) completionVerb() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "A shell's completion script", ValidArgs: []string{"bash", "zsh", "fish"},
		Args: cobra.ExactArgs(1), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			}
			return usagef("completion %s: it is bash, zsh or fish", args[0])
		},
	}
}

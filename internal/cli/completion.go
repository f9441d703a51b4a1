package cli

import (
	"context"
	_ "embed"
)

//go:embed completion.bash
var bashWords string

var shells = []string{"bash", "zsh", "fish", "powershell"}

var completionVerb = verb{
	name: "completion", operands: "bash|zsh|fish|powershell", most: 1, words: shells,
	short: "a shell's completion script",
	long: "Prints the script that completes this command's words in a shell, to be sourced\n" +
		"from its start file.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		return func(_ context.Context, operands []string) error {
			if len(operands) == 0 {
				return usagef("completion needs a shell: bash, zsh, fish or powershell")
			}
			switch operands[0] {
			case "bash":
				if err := a.write([]byte(bashWords)); err != nil {
					return err
				}
				return outputError(a.tree.GenBashCompletionV2(a.stdout, true))
			case "zsh":
				return outputError(a.tree.GenZshCompletion(a.stdout))
			case "fish":
				return outputError(a.tree.GenFishCompletion(a.stdout, true))
			case "powershell":
				return outputError(a.tree.GenPowerShellCompletionWithDesc(a.stdout))
			}
			return usagef("completion %s: it is bash, zsh, fish or powershell", operands[0])
		}
	},
}

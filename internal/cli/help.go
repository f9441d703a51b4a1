package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

var helpVerb = verb{
	name: "help", operands: "[VERB]", most: 1,
	short: "what the command, or a verb, does",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		return func(_ context.Context, operands []string) error {
			if len(operands) == 0 {
				return a.help(a.tree)
			}
			cmd, err := findVerb(a.tree, operands[0])
			if err != nil {
				return err
			}
			return a.help(cmd)
		}
	},
}

// help prints a command's help: the verbs, or a verb's flags, those of a new
// bot and of the daemon apart.
func (a *app) help(cmd *cobra.Command) error {
	var b strings.Builder
	t := a.tables[cmd.Name()]
	if t == nil {
		b.WriteString(topHelp)
		for _, v := range a.verbs {
			if !v.hidden {
				fmt.Fprintf(&b, "  %-11s %s\n", v.name, v.short)
			}
		}
		b.WriteString("\nagent VERB --help lists a verb's flags; agent --version names the build.\n")
	} else {
		usage := "agent " + cmd.Name() + " [FLAGS]"
		if _, operands, ok := strings.Cut(cmd.Use, " "); ok {
			usage += " " + operands
		}
		fmt.Fprintf(&b, "%s\n\n", usage)
		if cmd.Long != "" {
			fmt.Fprintf(&b, "%s\n", cmd.Long)
		} else {
			fmt.Fprintf(&b, "%s.\n", strings.ToUpper(cmd.Short[:1])+cmd.Short[1:])
		}
		for _, g := range groups {
			t.writeHelp(&b, g.group, g.title)
		}
	}
	return a.write([]byte(b.String()))
}

const topHelp = `agent VERB [FLAGS] [OPERANDS]

Runs bots that a model drives, over one store, through a daemon that it starts
when one is needed.

`

// writeHelp lists the flags of one group.
func (t *table) writeHelp(b *strings.Builder, g group, title string) {
	flags := t.in(g)
	if g == ofVerb {
		flags = append(flags, &flag{name: "help", usage: "this; also -h"})
	}
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, f := range flags {
		head := "  " + f.head()
		b.WriteString(head)
		if len(head) > 26 {
			b.WriteString("\n" + strings.Repeat(" ", 28))
		} else {
			b.WriteString(strings.Repeat(" ", 28-len(head)))
		}
		b.WriteString(wrap(f.full(), 72, 28) + "\n")
	}
}

// wrap breaks text between words so that no line is wider than width, and
// indents the lines after the first.
func wrap(text string, width, indent int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

package cli

import (
	"strings"

	"agent/protocol"

	"github.com/spf13/cobra"
)

// line is a verb's part of the command line, taken apart.
type line struct {
	flags    []given
	operands []string
	help     bool
}

type given struct {
	flag  *flag
	name  string // as it was written: an alias keeps its own
	value string
}

// canonical is the line again in the one form that leaves nothing to guess:
// --flag=VALUE for each flag, then -- and the operands.
func (l *line) canonical() []string {
	var args []string
	for _, g := range l.flags {
		if g.flag.toggle != nil {
			args = append(args, "--"+g.name)
		} else {
			args = append(args, "--"+g.name+"="+g.value)
		}
	}
	return append(append(args, "--"), l.operands...)
}

// scan checks a line against the rules of section 1 that hold for every verb:
// which flags there are, which take a value and how, and that none but a
// repeatable one is given twice. Values are read later. pretty is called where
// --pretty stands, so that an error after it is shown its way.
func scan(args []string, t *table, pretty func()) (*line, error) {
	l := &line{}
	seen := map[string]string{}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			l.operands = append(l.operands, args[i+1:]...)
			return l, nil
		case arg == "-h" || arg == "--help":
			l.help = true
			continue
		case arg == "" || arg == "-" || arg[0] != '-':
			l.operands = append(l.operands, arg)
			continue
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		f := t.flags[name]
		if f == nil || !strings.HasPrefix(arg, "--") {
			return nil, t.unknown(arg)
		}
		if before, ok := seen[f.name]; ok && !f.repeatable {
			return nil, twice(t.verb, before, name)
		}
		seen[f.name] = name
		switch {
		case f.toggle != nil && joined:
			return nil, usagef("--%s of %s takes no value", name, t.verb)
		case f.toggle != nil:
		case joined:
		case i+1 == len(args):
			return nil, usagef("--%s of %s needs a value: %s", name, t.verb, f.hint)
		case strings.HasPrefix(args[i+1], "--"):
			return nil, usagef("--%s of %s needs a value; one that starts with -- is written --%s=VALUE", name, t.verb, name)
		default:
			i++
			value = args[i]
		}
		if f.name == "pretty" {
			pretty()
		}
		l.flags = append(l.flags, given{f, name, value})
	}
	return l, nil
}

func twice(verb, before, name string) *protocol.Error {
	if before == name {
		return usagef("--%s of %s is given twice", name, verb)
	}
	return usagef("--%s and --%s of %s are the same flag", before, name, verb)
}

// unknown is a flag that the verb does not have.
func (t *table) unknown(arg string) *protocol.Error {
	name := flagName(arg)
	if !strings.HasPrefix(arg, "--") {
		return usagef("unknown flag %s of %s: the only short flag is -h; after -- it is an operand", name, t.verb)
	}
	known := make([]string, 0, len(t.flags))
	for _, f := range t.inOrder {
		known = append(known, f.name)
	}
	if near := nearest(strings.TrimPrefix(name, "--"), known); near != "" {
		return usagef("unknown flag %s of %s; did you mean --%s?", name, t.verb, near)
	}
	return usagef("unknown flag %s of %s; agent %s --help lists its flags", name, t.verb, t.verb)
}

// flagName is a flag without its value, which may be a secret or long.
func flagName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

// findVerb is the command of a verb.
func findVerb(root *cobra.Command, name string) (*cobra.Command, error) {
	var known []string
	for _, c := range root.Commands() {
		if c.Name() == name {
			return c, nil
		}
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	if near := nearest(name, known); near != "" {
		return nil, usagef("unknown verb %s; did you mean %s?", name, near)
	}
	return nil, usagef("unknown verb %s; agent --help lists the verbs", name)
}

// nearest is the first of the nearest known words within two edits, or "".
func nearest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := edits(word, k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// edits is how many letters must be put in, taken out, replaced or swapped
// with their neighbour to get from a to b; 3 stands for more than two.
func edits(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return min(row[len(b)], 3)
}

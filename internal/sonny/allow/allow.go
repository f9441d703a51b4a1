// Package allow is what "allow, and stop asking" does (sonny.md 9.1): the rule that is
// offered for a call, whether it would let that very call through, and the file that it
// is written to, and that the bots have the rules of the files. It asks nobody and draws
// nothing.
package allow

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"agent/client/termsafe"
	"agent/internal/rules"
	"agent/protocol"
)

// maxOffered is how many words of a command an offered rule has: enough to name what is
// done, and to what (git push origin). The person may edit them.
const maxOffered = 3

// Offer is the words of a rule that would let a script through which the rules have do
// not; nil where none is offered: the script is not plain, it is a shell's that runs
// another, its commands have no beginning in common, or the words name a program that
// runs others and nothing more.
func Offer(have *protocol.Rules, script string) []string {
	set, err := parse(have, nil)
	if err != nil {
		return nil
	}
	commands, plain := rules.Plain(script)
	spelled, same := rules.Spelled(script)
	if !plain || !same || !slices.EqualFunc(commands, spelled, slices.Equal) {
		return nil
	}
	i := slices.IndexFunc(commands, func(words []string) bool {
		return set.Decide(Text(words)).Decision != rules.Allow
	})
	if i < 0 {
		return nil
	}
	words := commands[i][:min(len(commands[i]), maxOffered)]
	if Check(have, words, script) != nil {
		return nil
	}
	return words
}

// Check is nil where a rule of these words may be written and would let the script
// through. The error says what is wrong with the words, for the person who edits them.
func Check(have *protocol.Rules, words []string, script string) error {
	if len(words) == 0 {
		return refuse("a rule has at least one word")
	}
	if why := broad(words); why != "" {
		return refuse(why)
	}
	set, err := parse(have, words)
	if err != nil {
		return refuse(err.Error())
	}
	if set.Decide(script).Decision != rules.Allow {
		return refuse(Text(words) + " does not let this call through")
	}
	return nil
}

func refuse(why string) error { return protocol.Fail(protocol.InvalidRules, why) }

// parse evaluates the person's rules, with one more where words are given.
func parse(have *protocol.Rules, words []string) (*rules.Set, error) {
	if have.Unreadable {
		return nil, fmt.Errorf("the rules are unreadable: %s", have.Reason)
	}
	files := make([]rules.File, 0, len(have.Files)+1)
	for _, f := range have.Files {
		files = append(files, rules.File{Name: f.Name, Text: f.Text})
	}
	if words != nil {
		files = append(files, rules.File{Name: "new", Text: Rule{Decision: rules.Allow.String(), Words: words}.Line()})
	}
	return rules.Parse(files)
}

// runners are programs that run what they are told to: interpreters, shells, wrappers
// and launchers (sandbox.md 8.5, sonny.md 9.1), and the wrappers that command rules look
// through (sandbox.md 8.4). A rule that names one of them alone would allow anything.
var runners = strings.Fields(`
	python python3 node perl ruby php lua bash sh zsh env sudo git osascript
	doas xargs find ssh docker podman kubectl make just npx uvx
	command builtin exec eval nohup nice time timeout stdbuf setsid`)

// broad says why a rule of these words allows more than a person can see; "" where it
// does not. After such a program an option stands for nothing that is done, but for the
// module that python's -m names.
func broad(words []string) string {
	name := path.Base(words[0])
	if !slices.ContainsFunc(runners, func(runner string) bool { return isRunner(name, runner) }) {
		return ""
	}
	if len(words) == 1 {
		return words[0] + " runs whatever it is told: a rule for it needs more words"
	}
	module := words[1] == "-m" && len(words) > 2
	if strings.HasPrefix(words[1], "-") && !module {
		return words[0] + " " + words[1] + " can run anything: it is no rule"
	}
	return ""
}

// isRunner takes a version for a part of the name: python3.12.
func isRunner(name, runner string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(name), runner)
	return ok && strings.Trim(rest, "0123456789.-") == ""
}

// Text is a command's words as a person types them.
func Text(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = termsafe.ShellWord(w)
	}
	return strings.Join(out, " ")
}

// Words reads what a person typed: the words of one command.
func Words(typed string) ([]string, error) {
	commands, ok := rules.Spelled(typed)
	if !ok || len(commands) != 1 {
		return nil, refuse("a rule is the first words of one command, without variables, redirections or patterns")
	}
	return commands[0], nil
}

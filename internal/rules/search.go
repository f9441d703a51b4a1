package rules

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// searchDepth is how many scripts may stand in one another before the search
// gives up.
const searchDepth = 16

// search is every simple command that a script may run as far as its text says
// so, in any form: what restricts must not depend on a script being plain. A
// command's words go up to the first one that is not literal. readable is false
// for a script that does not parse, or is nested too deeply to be looked into.
func search(script string, visit func(words []string)) (readable bool) {
	s := searcher{visit: visit}
	s.script(script, 0)
	return !s.unreadable
}

type searcher struct {
	visit      func(words []string)
	unreadable bool
}

func (s *searcher) script(text string, depth int) {
	if depth > searchDepth {
		s.unreadable = true
		return
	}
	file, err := parse(text)
	if err != nil || strings.ContainsAny(text, "\x00\r") || !utf8.ValidString(text) {
		s.unreadable = true
	}
	if file == nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.command(literalWords(n), depth)
			if text, ok := negated(n); ok {
				s.script(text, depth+1)
			}
		case *syntax.Redirect:
			s.unreadable = s.unreadable || endsEarlier(text, n)
		}
		return true
	})
}

// negated is the script in `!(x)` at the start of a command, which the parser
// takes for a pattern and a shell without such patterns for `! (x)`.
func negated(call *syntax.CallExpr) (text string, ok bool) {
	if len(call.Args) == 0 || len(call.Args[0].Parts) == 0 {
		return "", false
	}
	glob, ok := call.Args[0].Parts[0].(*syntax.ExtGlob)
	if !ok || glob.Op != syntax.GlobExcept {
		return "", false
	}
	return glob.Pattern.Value, true
}

// endsEarlier reports whether a shell ends a here-document of text before the
// parser does: it looks for the last line after joining continued ones, and
// inside expansions.
func endsEarlier(text string, r *syntax.Redirect) bool {
	if r.Hdoc == nil || r.Word == nil || r.Word.Lit() == "" {
		return false // none, or with a quoted end: it is taken as it is
	}
	last := unescape(r.Word.Lit(), false)
	ends := func(line string) bool { return line == last || strings.TrimLeft(line, "\t") == last }
	body := text[r.Hdoc.Pos().Offset():r.Hdoc.End().Offset()]
	lines := strings.Split(strings.ReplaceAll(body, "\\\n", ""), "\n")
	if n := len(lines) - 1; ends(lines[n]) {
		lines = lines[:n] // its own
	}
	return slices.ContainsFunc(lines, ends)
}

// command visits a command, then what it runs in turn.
func (s *searcher) command(words []string, depth int) {
	if len(words) == 0 {
		return
	}
	if depth > searchDepth {
		s.unreadable = true
		return
	}
	s.visit(words)
	if words[0] == "--" || words[0] == "-" { // eval, time and zsh skip these
		s.command(words[1:], depth+1)
	}
	name := baseName(words[0])
	if texts := scriptTexts(name, words[1:]); len(texts) > 0 {
		for _, text := range texts {
			s.script(text, depth+1)
		}
	}
	if w, ok := wrappers[name]; ok {
		for _, at := range w.commands(words) {
			s.command(words[at:], depth+1)
		}
	}
}

func baseName(program string) string {
	return program[strings.LastIndexByte(program, '/')+1:]
}

var shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "yash", "busybox"}

// scriptTexts are the arguments of a command that a shell reads as scripts.
func scriptTexts(name string, args []string) []string {
	switch {
	case name == "eval":
		return []string{strings.Join(args, " ")}
	case name == "env":
		return splitStrings(args)
	case !slices.Contains(shells, name):
		return nil
	}
	for i, a := range args {
		if !strings.HasPrefix(a, "-") || strings.HasPrefix(a, "--") || !strings.Contains(a, "c") {
			continue
		}
		return afterOptions(args[i:])
	}
	return nil
}

// afterOptions is the first argument of a shell behind its options. Those named
// o and O take an argument each, which stands behind them too and may also be
// left out: both readings are given.
func afterOptions(args []string) (texts []string) {
	more := 0
	for _, a := range args {
		if strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+") {
			if !strings.HasPrefix(a, "--") {
				more += strings.Count(a, "o") + strings.Count(a, "O")
			}
			continue
		}
		texts = append(texts, a)
		if more == 0 {
			break
		}
		more--
	}
	return texts
}

// splitStrings are the command lines that env takes as one argument, -S, which
// may stand behind other letters and be written out in part.
func splitStrings(args []string) (texts []string) {
	for i, a := range args {
		name, value, stated := strings.Cut(a, "=")
		switch {
		case len(name) > 3 && strings.HasPrefix("--split-string", name):
			if stated {
				texts = append(texts, strings.Join(append([]string{value}, args[i+1:]...), " "))
			} else {
				texts = append(texts, strings.Join(args[i+1:], " "))
			}
		case strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--"):
			if _, value, ok := strings.Cut(a, "S"); ok {
				texts = append(texts, strings.Join(append([]string{value}, args[i+1:]...), " "))
			}
		}
	}
	return texts
}

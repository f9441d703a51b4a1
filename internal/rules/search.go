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

// searchBudget bounds the work of one search beside that of reading the script
// once: a step for a word looked at behind a wrapper, and several for a script
// that is read again and for its bytes. What is over it is not readable.
const (
	searchBudget = 1_000_000
	scriptSteps  = 100
	bytesPerStep = 2
)

type searcher struct {
	visit      func(words []string)
	steps      int
	ifs        bool // what splits words may be changed by the script
	unreadable bool
}

// spend takes steps from the budget and reports whether they were left.
func (s *searcher) spend(steps int) bool {
	s.steps += steps
	s.unreadable = s.unreadable || s.spent()
	return !s.spent()
}

func (s *searcher) spent() bool { return s.steps > searchBudget }

// script looks through a script that is known. It must be one.
func (s *searcher) script(text string, depth int) {
	if depth > searchDepth {
		s.unreadable = true
		return
	}
	if ok := s.walk(text, depth); !ok || strings.ContainsAny(text, "\x00\r") || !utf8.ValidString(text) {
		s.unreadable = true
	}
}

// walk looks through a script as far as it parses; ok is false where it does not
// to its end.
func (s *searcher) walk(text string, depth int) (ok bool) {
	file, err := parse(text)
	if file == nil {
		return false
	}
	s.ifs = s.ifs || strings.Contains(text, "IFS")
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.call(n.Args, depth)
			if text, ok := negated(n); ok {
				s.script(text, depth+1)
			}
		case *syntax.TimeClause:
			s.timed(n, depth)
		case *syntax.Redirect:
			s.unreadable = s.unreadable || endsEarlier(text, n)
		}
		return true
	})
	return err == nil
}

func (s *searcher) call(args []*syntax.Word, depth int) {
	for _, words := range callWords(args, s.ifs) {
		s.command(words, depth)
	}
}

// timed looks at `time` as the program that it is in a shell without the word.
func (s *searcher) timed(clause *syntax.TimeClause, depth int) {
	if clause.Stmt == nil {
		return
	}
	if call, ok := clause.Stmt.Cmd.(*syntax.CallExpr); ok {
		program := &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: "time"}}}
		s.call(append([]*syntax.Word{program}, call.Args...), depth)
	}
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

// command visits a command, then what it runs in turn, also that of the commands
// behind wrappers. Each is looked at once, in the reading with the fewest
// wrappers.
func (s *searcher) command(words []word, depth int) {
	level := s.single(words, depth)
	if len(level) == 0 {
		return
	}
	seen := make([]bool, len(words))
	for len(level) > 0 {
		depth++
		var inner []int
		for _, at := range level {
			if seen[at] {
				continue
			}
			if seen[at] = true; !s.spend(len(words) - at) {
				return
			}
			for _, further := range s.single(words[at:], depth) {
				inner = append(inner, at+further)
			}
		}
		level = inner
	}
}

// single visits one command and the scripts in its arguments. It returns the
// places where a command that it runs may begin.
func (s *searcher) single(words []word, depth int) (inner []int) {
	known := literal(words)
	if len(known) == 0 {
		return nil
	}
	if depth > searchDepth {
		s.unreadable = true
		return nil
	}
	s.visit(known)
	if (known[0] == "--" || known[0] == "-") && len(words) > 1 { // eval, time and zsh skip these
		inner = append(inner, 1)
	}
	name := baseName(known[0])
	w, wraps := wrappers[name]
	if !wraps {
		s.scripts(name, words[1:], nil, depth)
		return inner
	}
	commands, options := w.places(words)
	s.scripts(name, words[1:], options, depth)
	return append(inner, commands...)
}

func baseName(program string) string {
	return program[strings.LastIndexByte(program, '/')+1:]
}

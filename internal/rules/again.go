package rules

import (
	"slices"
	"strings"
)

var shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "yash", "busybox"}

// scripts looks through the arguments of a command that are read as scripts.
// options are the places, from 1 on, of those that may be options though their
// text does not say so.
func (s *searcher) scripts(name string, args []word, options []int, depth int) {
	switch {
	case name == "eval":
		s.again(args, depth)
	case name == "env":
		s.splitStrings(args, depth)
		for _, i := range options {
			if s.spent() {
				return
			}
			s.split(word{}, args[i:], depth) // it may be -S
		}
	case slices.Contains(shells, name):
		s.shell(args, depth)
	}
}

// again looks through the script that words make together. One with an expansion
// in it is known in part: that part need not be a script.
func (s *searcher) again(words []word, depth int) {
	size, whole := 0, true
	for _, w := range words {
		size += len(w.script) + 1
		whole = whole && w.whole
	}
	if !s.spend(scriptSteps + size/bytesPerStep) {
		return
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.script
	}
	text := strings.Join(texts, " ")
	switch {
	case whole:
		s.script(text, depth+1)
	case depth+1 > searchDepth:
		s.unreadable = true
	default:
		s.walk(text, depth+1)
	}
}

// shell looks through the script behind -c. Up to the file of a script, what may
// be an option may be that one.
func (s *searcher) shell(args []word, depth int) {
	file := false
	for i, a := range args {
		if s.spent() {
			return
		}
		stated := a.mustBeOption() && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "c")
		if stated {
			s.firsts(args[i:], true, depth)
			return
		}
		if !file && !a.whole && a.mayBeOption() {
			s.firsts(args[i+1:], false, depth)
		}
		file = file || a.whole && !isOption(a.text) && (i == 0 || !isOption(args[i-1].text))
	}
}

func isOption(text string) bool { return strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") }

// firsts looks through the first argument of a shell behind its options. Those
// named o and O take an argument each, which stands behind them too and may also
// be left out, and an expansion may be an option or nothing: all readings are
// taken. stated says that it is a script for certain.
func (s *searcher) firsts(args []word, stated bool, depth int) {
	more := 0
	for _, a := range args {
		if s.spent() {
			return
		}
		switch {
		case isOption(a.text):
			if !strings.HasPrefix(a.text, "--") {
				more += strings.Count(a.text, "o") + strings.Count(a.text, "O")
			}
			if !a.whole {
				more++
			}
			continue
		case !a.whole && a.text == "":
			s.again([]word{a}, depth)
			continue
		}
		a.whole = a.whole && stated
		s.again([]word{a}, depth)
		if more == 0 {
			break
		}
		more--
	}
}

// splitStrings looks through the command lines that env takes as one argument,
// -S, which may stand behind other letters and be written out in part. What
// stands in it are further arguments of env.
func (s *searcher) splitStrings(args []word, depth int) {
	for i, a := range args {
		if s.spent() {
			return
		}
		name, value, stated := strings.Cut(a.text, "=")
		switch {
		case len(name) > 3 && strings.HasPrefix("--split-string", name):
			if stated {
				s.split(a.behind(value), args[i+1:], depth)
			} else {
				s.split(word{whole: a.whole}, args[i+1:], depth)
			}
		case strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--"):
			if _, value, ok := strings.Cut(a.text, "S"); ok {
				s.split(a.behind(value), args[i+1:], depth)
			}
		}
	}
}

// behind is the end of a word, from value on, which begins in its known part.
func (w word) behind(value string) word {
	known := len(w.text) - len(value)
	return word{text: value, whole: w.whole, many: w.many, script: w.script[known:]}
}

// split looks through env with its -S taken apart, and the arguments behind it.
func (s *searcher) split(value word, rest []word, depth int) {
	env := word{whole: true, script: "env"}
	s.again(append([]word{env, value}, rest...), depth)
}

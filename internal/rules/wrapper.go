package rules

import "strings"

// wrapper is a program that runs the command in its arguments.
type wrapper struct {
	valued      string // one-letter options that take the next word
	operands    int    // words of its own before the command
	assignments bool   // NAME=VALUE may come before the command
}

var wrappers = map[string]wrapper{
	"command": {}, "builtin": {}, "nohup": {}, "setsid": {}, "busybox": {},
	"exec": {valued: "a"}, "nice": {valued: "n"}, "time": {valued: "fo"},
	"env":     {valued: "uCSaPLU", assignments: true},
	"timeout": {valued: "sk", operands: 1}, "stdbuf": {valued: "ioe"},
	"sudo":  {valued: "ughpCTRDUrtca", assignments: true},
	"doas":  {valued: "uCa"},
	"xargs": {valued: "adEILnPsJRS"},
}

// mayTakeNext reports whether an option that is no single letter may take the
// next word: a long one without a value, and letters of which the last does.
func (w wrapper) mayTakeNext(option string) bool {
	if strings.HasPrefix(option, "--") {
		return !strings.Contains(option, "=")
	}
	return strings.IndexByte(w.valued, option[len(option)-1]) >= 0
}

// commands are the places where the wrapped command may begin. Of an option that
// may take the next word both readings are taken.
func (w wrapper) commands(words []string) (at []int) {
	seen := make([]bool, len(words)+2)
	var from func(i int, options bool)
	from = func(i int, options bool) {
		for ; i < len(words) && !seen[i]; i++ {
			word := words[i]
			switch {
			case options && word == "--":
				options = false
				continue // assignments may follow
			case options && len(word) > 1 && word[0] == '-':
				seen[i] = true
				if len(word) == 2 && strings.IndexByte(w.valued, word[1]) >= 0 {
					i++
				} else if w.mayTakeNext(word) {
					from(i+2, true)
				}
				continue
			case w.assignments && (word == "-" || strings.Contains(word, "=")):
				continue
			}
			seen[i] = true
			if i += w.operands; i < len(words) {
				at = append(at, i)
			}
			return
		}
	}
	from(1, true)
	return at
}

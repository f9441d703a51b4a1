// Package rules holds command rules: it reads rule files, takes a shell script
// apart into its commands, and says what the rules decide about it
// (sandbox.md 8). It runs nothing and touches no file.
package rules

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Limits of a set (sandbox.md 8.1, 8.2).
const (
	MaxFiles         = 256
	MaxBytes         = 256 << 10 // of all files' texts together
	MaxRules         = 1024      // once evaluated
	MaxJustification = 1024      // bytes
)

// Decision is what a rule, or a set, says about commands. A higher one is
// stricter and wins.
type Decision int

const (
	None Decision = iota // no rule matched
	Allow
	Prompt
	Forbidden
)

func (d Decision) String() string {
	return [...]string{"none", "allow", "prompt", "forbidden"}[d]
}

// File is a rule file's text, with its name.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Rule is one prefix rule.
type Rule struct {
	// Pattern has the words that a command must begin with; each element is the
	// alternatives of one word. The first element has exactly one.
	Pattern       [][]string
	Decision      Decision
	Justification string
	File          string
	Line          int
}

// String is the rule's pattern as people write it.
func (r *Rule) String() string {
	words := make([]string, len(r.Pattern))
	for i, alternatives := range r.Pattern {
		words[i] = strings.Join(alternatives, "|")
	}
	return strings.Join(words, " ")
}

// Set is an evaluated set of rules. It is never changed once made, and is safe
// for concurrent use.
type Set struct {
	rules []Rule
	hosts map[string][]string // the absolute paths of a program's name
}

// Rules are the set's rules in the order of the files. The caller must not
// change them.
func (s *Set) Rules() []Rule { return s.rules }

// Error is why a set is refused. Limit says that it is over a limit of its own
// (rules_limit) and not wrong (invalid_rules).
type Error struct {
	File   string // "" for the set as a whole
	Line   int    // 1-based; 0 where none can be named
	Reason string
	Limit  bool
}

func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Reason
	case e.Line == 0:
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// matches reports whether r matches a command's words. An allow rule matches
// the program that it names and no look-alike of it; a rule that restricts
// matches every program of that base name.
func (s *Set) matches(r *Rule, words []string) bool {
	if len(words) < len(r.Pattern) || !s.matchesProgram(r, words[0]) {
		return false
	}
	for i, alternatives := range r.Pattern[1:] {
		if !slices.Contains(alternatives, words[i+1]) {
			return false
		}
	}
	return true
}

func (s *Set) matchesProgram(r *Rule, program string) bool {
	named := r.Pattern[0][0]
	switch {
	case program == named:
		return true
	case r.Decision == Allow:
		return path.IsAbs(program) && path.Base(program) == named && slices.Contains(s.hosts[named], program)
	}
	return sameName(path.Base(program), path.Base(named))
}

// sameName reports whether two names start the same program: the file systems of
// macOS fold the case of letters.
func sameName(a, b string) bool {
	return a == b || runtime.GOOS == "darwin" && strings.EqualFold(a, b)
}

// restricts reports whether the set holds any prompt or forbidden rule.
func (s *Set) restricts() bool {
	return slices.ContainsFunc(s.rules, func(r Rule) bool { return r.Decision > Allow })
}

package approver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// How far a script is looked into.
const (
	maxScripts  = 8       // scripts in one another
	maxSteps    = 20_000  // commands and words looked at
	maxFound    = 1024    // words that may name a file
	maxText     = 4 << 20 // bytes of all words together
	maxFolders  = 16      // folders that a script may stand in
	maxOperands = 16      // of one interpreter
	maxVariable = 1024    // bytes of one
	maxMatches  = 4096    // names of a folder that a pattern is held against
)

// candidate is a word that may name a file which a call runs.
type candidate struct {
	word     string
	program  bool // it is the program itself
	optional bool // it may be read only: shown if it can be
	wrote    bool // this turn wrote it
	missing  bool // it is a program that is not there
}

// scripts is what a call's scripts run, as far as their text says so. It takes
// too much rather than too little: a word counts for every folder that a script
// may stand in by then.
type scripts struct {
	environ func(string) string
	folders []string // where relative paths may start
	path    []string // where programs are looked for
	vars    map[string]string
	words   []string // every word that is literal, without its quotes
	found   []candidate
	steps   int
	size    int
	// computed says that some text is run which the script does not name in one
	// place: then every word of it may.
	computed bool
	tooMuch  bool // it was not looked through to its end
}

func newScripts(cwd string, environ func(string) string) *scripts {
	return &scripts{
		environ: environ, folders: []string{cwd}, path: filepath.SplitList(environ("PATH")), vars: map[string]string{"PWD": cwd},
	}
}

// paths are the absolute paths that a word may stand for.
func (s *scripts) paths(word string) []string {
	if word == "" || strings.ContainsRune(word, 0) {
		return nil
	}
	if filepath.IsAbs(word) {
		return []string{filepath.Clean(word)}
	}
	var list []string
	for _, folder := range s.folders {
		list = append(list, filepath.Join(folder, word))
	}
	return list
}

// matching are the paths that a pattern may stand for, where only the last part
// of it is one.
func (s *scripts) matching(pattern string) (list []string) {
	name := filepath.Base(pattern)
	if !strings.ContainsAny(name, "*?[") {
		return nil
	}
	for _, path := range s.paths(pattern) {
		dir, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		names, _ := dir.Readdirnames(maxMatches)
		dir.Close()
		for _, n := range names {
			if ok, err := filepath.Match(name, n); ok && err == nil && len(list) < maxFound {
				list = append(list, filepath.Join(filepath.Dir(path), n))
			}
		}
	}
	slices.Sort(list)
	return list
}

// step counts what was looked at, and reports whether more may be.
func (s *scripts) step() bool {
	s.steps++
	s.tooMuch = s.tooMuch || s.steps > maxSteps
	return !s.tooMuch
}

// exists reports whether a word names something that is no folder.
func (s *scripts) exists(word string) bool {
	if !s.step() {
		return false
	}
	return slices.ContainsFunc(s.paths(word), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	})
}

func (s *scripts) add(c candidate) {
	if slices.Contains(s.found, c) {
		return
	}
	if s.tooMuch = s.tooMuch || len(s.found) == maxFound; !s.tooMuch {
		s.found = append(s.found, c)
	}
	for _, path := range s.matching(c.word) {
		s.add(candidate{word: path, program: c.program, optional: c.optional})
	}
}

// script looks through a script. Of one that no parser reads, every word counts.
func (s *scripts) script(text string, depth int) {
	if depth > maxScripts {
		s.tooMuch = true
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		s.crude(text)
	}
	if file == nil {
		return
	}
	before := s.computed
	s.computed = false
	defer func() { s.computed = s.computed || before }()
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.call(n, depth)
		case *syntax.DeclClause:
			s.assign(n.Args)
		case *syntax.Stmt:
			s.input(n)
		case *syntax.BinaryCmd:
			s.pipe(n)
		}
		return true
	})
	if s.computed {
		s.crude(text)
	}
}

// crude takes every word of a text for one that may be run, also behind something
// computed: "$(pwd)/x.sh".
func (s *scripts) crude(text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>\"'`{}$=", r) }) {
		for _, word := range []string{word, strings.TrimLeft(word, "/")} {
			if s.exists(word) {
				s.add(candidate{word: word})
			}
		}
	}
}

// call looks at a simple command.
func (s *scripts) call(c *syntax.CallExpr, depth int) {
	s.assign(c.Assigns)
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = s.word(w)
	}
	if runs := slices.IndexFunc(words, func(w string) bool { return isShell(w) || isInterpreter(w) || isSourcing(w) }); runs >= 0 {
		for _, w := range c.Args {
			s.inside(w)
		}
		s.computes(c.Args[runs+1:])
	}
	s.command(words, depth)
}

// computes notes that what a shell runs is computed where no text says to what: a
// loop's variable, an argument of a function.
func (s *scripts) computes(args []*syntax.Word) {
	for _, w := range args {
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.ParamExp:
				s.computed = s.computed || n.Param != nil && s.variable(n.Param.Value) == ""
			case *syntax.CmdSubst, *syntax.ProcSubst:
				s.computed = true
			}
			return true
		})
	}
}

// inside takes the words of commands within a word, whose output is to be run,
// for files that are.
func (s *scripts) inside(w *syntax.Word) {
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			s.wordsOf(n)
		case *syntax.ProcSubst:
			s.wordsOf(n)
		}
		return true
	})
}

// wordsOf takes every word below a node for a file that is run.
func (s *scripts) wordsOf(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			if word := s.word(w); s.exists(word) {
				s.add(candidate{word: word})
			}
		}
		return true
	})
}

// input looks at what a command reads: to a shell it is a script.
func (s *scripts) input(stmt *syntax.Stmt) {
	call, _ := stmt.Cmd.(*syntax.CallExpr)
	for _, r := range stmt.Redirs {
		if call != nil && s.runsInput(call) && (r.Hdoc != nil || r.Op == syntax.WordHdoc || r.Op == syntax.RdrIn && s.word(r.Word) == "") {
			s.computed = true // a script of its own, or another command's output
		}
		if r.Op != syntax.RdrIn || r.Word == nil {
			continue
		}
		s.add(candidate{word: s.word(r.Word), optional: call == nil || !s.runsInput(call)})
	}
}

// pipe looks at what is piped into a shell.
func (s *scripts) pipe(b *syntax.BinaryCmd) {
	if b.Op != syntax.Pipe && b.Op != syntax.PipeAll {
		return
	}
	syntax.Walk(b.Y, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && s.runsInput(call) {
			s.wordsOf(b.X)
			s.computed = true // what is piped may be a script that names others
		}
		return true
	})
}

// runsInput reports whether a command runs what it reads: a shell, or a bare
// interpreter, also behind other programs.
func (s *scripts) runsInput(c *syntax.CallExpr) bool {
	for i, w := range c.Args {
		word := s.word(w)
		if isShell(word) {
			return true
		}
		if isInterpreter(word) {
			rest := c.Args[i+1:]
			return len(rest) == 0 || len(rest) == 1 && s.word(rest[0]) == "-"
		}
	}
	return false
}

// assign remembers variables with literal values, and folders of PATH.
func (s *scripts) assign(list []*syntax.Assign) {
	for _, a := range list {
		if a.Name == nil || a.Value == nil {
			continue
		}
		value := s.word(a.Value)
		if len(value) > maxVariable || len(s.vars) > maxFound {
			continue
		}
		s.vars[a.Name.Value] = value
		if a.Name.Value == "PATH" {
			for _, folder := range filepath.SplitList(value) {
				s.path = append(s.path, s.paths(folder)...)
			}
			s.path = append(s.path, s.folders...) // of what is not literal in it
		}
	}
}

// word is a word without its quotes; what is computed in it, but for known
// variables, is left out.
func (s *scripts) word(w *syntax.Word) string {
	var b strings.Builder
	s.parts(&b, w.Parts, false)
	word := b.String()
	if home := s.environ("HOME"); home != "" && (word == "~" || strings.HasPrefix(word, "~/")) {
		word = home + word[1:]
	}
	s.size += len(word)
	s.tooMuch = s.tooMuch || s.size > maxText
	if s.step() && word != "" {
		s.words = append(s.words, word)
	}
	return word
}

func (s *scripts) parts(b *strings.Builder, parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		if b.Len() > maxRawText {
			return
		}
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, quoted))
		case *syntax.SglQuoted:
			b.WriteString(singleQuoted(p))
		case *syntax.DblQuoted:
			s.parts(b, p.Parts, true)
		case *syntax.ParamExp:
			if p.Param != nil {
				b.WriteString(s.variable(p.Param.Value))
			}
		}
	}
}

// singleQuoted is the text in single quotes; in $'...' escapes count.
func singleQuoted(q *syntax.SglQuoted) string {
	if !q.Dollar {
		return q.Value
	}
	text, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{q}})
	if err != nil {
		return q.Value
	}
	return text
}

func (s *scripts) variable(name string) string {
	if value, ok := s.vars[name]; ok {
		return value
	}
	return s.environ(name)
}

// unescaped is a literal without the backslashes that a shell takes away.
func unescaped(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("\\$`\"\n", text[i+1]) >= 0) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// unwrapLimit is how many levels of `bash -c TEXT` a plain script is taken out
// of (sandbox.md 8.4).
const unwrapLimit = 3

// Plain is the commands of a plain script, each as its words without quotes;
// ok is false for a script that is not plain. A script that is one command
// `bash -c TEXT` or `sh -c TEXT` and nothing else stands for TEXT.
func Plain(script string) (commands [][]string, ok bool) {
	for level := 0; ; level++ {
		commands, ok = plainCommands(script)
		if !ok || len(commands) != 1 || level == unwrapLimit {
			return commands, ok
		}
		text, wrapped := shellText(commands[0])
		if !wrapped {
			return commands, true
		}
		script = text
	}
}

// Spelled is Plain without taking anything out of a shell: the commands as the script
// itself spells them.
func Spelled(script string) (commands [][]string, ok bool) { return plainCommands(script) }

// wrapperDirs are the folders in which a shell is the system's.
var wrapperDirs = []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"}

// shellText is TEXT of the words `bash -c TEXT` or `sh -c TEXT`. A shell takes
// TEXT for options where it begins like some.
func shellText(words []string) (text string, ok bool) {
	if len(words) != 3 || words[1] != "-c" || strings.HasPrefix(words[2], "-") || strings.HasPrefix(words[2], "+") {
		return "", false
	}
	name := words[0]
	for _, dir := range wrapperDirs {
		if rest, in := strings.CutPrefix(name, dir); in {
			name = rest
			break
		}
	}
	return words[2], name == "bash" || name == "sh"
}

func plainCommands(script string) ([][]string, bool) {
	if !plainBytes(script) {
		return nil, false
	}
	file, err := parse(script)
	if err != nil || len(file.Stmts) == 0 || len(file.Last) > 0 {
		return nil, false
	}
	var commands [][]string
	for _, s := range file.Stmts {
		if !plainStatement(s, &commands) {
			return nil, false
		}
	}
	return commands, true
}

// plainBytes refuses what the parser would drop or take otherwise than a shell:
// it takes a carriage return for a line's end and leaves out NULs.
func plainBytes(script string) bool {
	return utf8.ValidString(script) && strings.IndexFunc(script, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n'
	}) < 0
}

func parse(script string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).
		Parse(strings.NewReader(script), "")
}

// plainStatement adds the commands of a statement that is plain.
func plainStatement(s *syntax.Stmt, commands *[][]string) bool {
	if len(s.Comments) > 0 || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 {
		return false
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		joins := cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt || cmd.Op == syntax.Pipe
		return joins && plainStatement(cmd.X, commands) && plainStatement(cmd.Y, commands)
	case *syntax.CallExpr:
		words, ok := plainCall(cmd)
		*commands = append(*commands, words)
		return ok
	}
	return false
}

func plainCall(call *syntax.CallExpr) ([]string, bool) {
	// The parser lets some reserved words begin a command where a shell does not.
	if len(call.Assigns) > 0 || len(call.Args) == 0 || syntax.IsKeyword(call.Args[0].Lit()) {
		return nil, false
	}
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		text, ok := plainWord(w)
		if !ok {
			return nil, false
		}
		words[i] = text
	}
	return words, words[0] != ""
}

// plainWord is a word of literal text and quoted literal text.
func plainWord(w *syntax.Word) (string, bool) {
	var text strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(p.Value, "=") || strings.IndexFunc(p.Value, special) >= 0 {
				return "", false
			}
			text.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			quoted, ok := plainQuoted(p)
			if !ok {
				return "", false
			}
			text.WriteString(quoted)
		default:
			return "", false
		}
	}
	return text.String(), true
}

// special reports whether an unquoted character may stand for something else
// than itself: a glob, a brace, a tilde, a backslash, an expansion, or what some
// locale takes for a blank.
func special(r rune) bool {
	return r > 0x7e || strings.ContainsRune("*?[]{}~\\$`", r)
}

func plainQuoted(q *syntax.DblQuoted) (string, bool) {
	if q.Dollar {
		return "", false
	}
	var text strings.Builder
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || strings.ContainsAny(lit.Value, "\\$`") {
			return "", false
		}
		text.WriteString(lit.Value)
	}
	return text.String(), true
}

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

// literalWords are a call's words without quotes, up to the first that is not
// literal.
func literalWords(call *syntax.CallExpr) (words []string) {
	for _, w := range call.Args {
		text, ok := literalParts(w.Parts, false)
		if !ok {
			break
		}
		words = append(words, text)
	}
	return words
}

func literalParts(parts []syntax.WordPart, quoted bool) (string, bool) {
	var text strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			if p.Dollar {
				text.WriteString(ansiC(p.Value))
			} else {
				text.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			inner, ok := literalParts(p.Parts, true)
			if !ok {
				return "", false
			}
			text.WriteString(inner)
		default:
			return "", false
		}
	}
	return text.String(), true
}

// unescape takes the backslashes out of literal text; between double quotes only
// those before a character that would be special there.
func unescape(s string, quoted bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var text strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		text.WriteByte(s[i])
	}
	return text.String()
}

package rules

import (
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

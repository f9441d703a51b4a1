package md

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"sync"

	"agent/internal/sonny/screen/text"
	"github.com/alecthomas/chroma/v2"
)

// The languages whose code is coloured: one definition a file, read when a message
// first names it.
//
//go:embed lexers/*.xml
var lexerFiles embed.FS

// languages maps what a fence may say to a definition.
var languages = map[string]string{
	"go": "go", "golang": "go",
	"python": "python", "py": "python", "python3": "python",
	"javascript": "javascript", "js": "javascript", "jsx": "javascript", "mjs": "javascript",
	"typescript": "javascript", "ts": "javascript", "tsx": "javascript",
	"json": "json", "jsonc": "json", "jsonl": "json", "json5": "json",
	"yaml": "yaml", "yml": "yaml",
	"toml": "toml", "ini": "toml",
	"bash": "bash", "sh": "bash", "shell": "bash", "zsh": "bash", "console": "bash",
	"diff": "diff", "patch": "diff",
	"rust": "rust", "rs": "rust",
	"c": "c", "h": "c", "cpp": "c", "c++": "c", "cc": "c", "hpp": "c",
	"html": "html", "xml": "html", "svg": "html",
	"sql": "sql", "sqlite": "sql", "postgresql": "sql", "mysql": "sql",
	"markdown": "markdown", "md": "markdown",
}

// lexers are those read so far, for all messages.
var lexers sync.Map

// lexerFor is the lexer of a language, nil for none. It blocks on nothing but the
// first reading.
func lexerFor(lang string) chroma.Lexer {
	name, ok := languages[strings.ToLower(lang)]
	if !ok {
		return nil
	}
	load, _ := lexers.LoadOrStore(name, sync.OnceValue(func() chroma.Lexer {
		l, err := chroma.NewXMLLexer(fs.FS(lexerFiles), path.Join("lexers", name+".xml"))
		if err != nil {
			return nil // a test reads every one of them
		}
		return l
	}))
	return load.(func() chroma.Lexer)()
}

// painter colours code. The lines that it coloured one by one are kept, since an
// open block is drawn again and again.
type painter struct {
	on    bool
	lines map[[2]string][]text.Span
}

// maxKept bounds how many lines are kept.
const maxKept = 4096

func newPainter(on bool) *painter { return &painter{on: on, lines: map[[2]string][]text.Span{}} }

// knows reports whether code of a language is coloured at all.
func (p *painter) knows(lang string) bool {
	if !p.on || lang == "" {
		return false
	}
	_, ok := languages[strings.ToLower(lang)]
	return ok
}

// line colours one line by itself.
func (p *painter) line(lang, line string) []text.Span {
	key := [2]string{lang, line}
	if spans, ok := p.lines[key]; ok {
		return spans
	}
	if len(p.lines) >= maxKept {
		clear(p.lines)
	}
	spans := p.whole(lang, []string{line}, len(line)+1)[0]
	p.lines[key] = spans
	return spans
}

// whole colours lines as one text, as far as they lie within limit bytes. A line
// that stays uncoloured is nil.
func (p *painter) whole(lang string, lines []string, limit int) [][]text.Span {
	out := make([][]text.Span, len(lines))
	n, size := 0, 0
	for n < len(lines) && size+len(lines[n])+1 <= limit {
		size += len(lines[n]) + 1
		n++
	}
	if n == 0 {
		return out
	}
	src := string([]rune(strings.Join(lines[:n], "\n") + "\n"))
	tokens, ok := tokenise(lang, src)
	if !ok {
		return out
	}
	for i, colours := range perLine(tokens, n) {
		out[i] = spansOf(string([]rune(lines[i])), colours)
	}
	return out
}

// stretch is a part of a line in one look, up to a byte.
type stretch struct {
	end  int
	role text.Role
	attr text.Attr
}

// tokenise gives the tokens of a text; false when they do not make up the text.
func tokenise(lang, src string) ([]chroma.Token, bool) {
	lexer := lexerFor(lang)
	if lexer == nil {
		return nil, false
	}
	it, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, src)
	if err != nil {
		return nil, false
	}
	var tokens []chroma.Token
	rest := src
	for tok := it(); tok != chroma.EOF; tok = it() {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, tok.Value); !ok {
			return nil, false
		}
		tokens = append(tokens, tok)
	}
	return tokens, rest == ""
}

// perLine gives the stretches of each of n lines.
func perLine(tokens []chroma.Token, n int) [][]stretch {
	out := make([][]stretch, n)
	at, end := 0, 0
	for _, tok := range tokens {
		role, attr := roleOf(tok.Type)
		for i, part := range strings.Split(tok.Value, "\n") {
			if i > 0 {
				at, end = at+1, 0
			}
			if part != "" && at < n {
				end += len(part)
				out[at] = append(out[at], stretch{end, role, attr})
			}
		}
	}
	return out
}

// spansOf is a line in its colours. They change between characters alone, never
// within what a terminal draws as one.
func spansOf(line string, colours []stretch) []text.Span {
	spans := make([]text.Span, 0, len(colours))
	put := func(part string, like stretch) {
		if n := len(spans); n > 0 && spans[n-1].Role == like.role && spans[n-1].Attr == like.attr {
			spans[n-1].Text += part
		} else if part != "" {
			spans = append(spans, text.Span{Text: part, Role: like.role, Attr: like.attr})
		}
	}
	if text.Printable(line) {
		from := 0
		for _, c := range colours {
			put(line[from:c.end], c)
			from = c.end
		}
		return spans
	}
	from, at, next := 0, 0, 0
	for cluster := range text.Clusters(line) {
		for next < len(colours)-1 && at >= colours[next].end {
			put(line[from:at], colours[next])
			from = at
			next++
		}
		at += len(cluster)
	}
	if next < len(colours) {
		put(line[from:], colours[next])
	}
	var out []text.Span
	for _, s := range spans {
		out = append(out, text.Outside(s.Text, s)...)
	}
	return out
}

// roleOf is the look of a class of tokens.
func roleOf(t chroma.TokenType) (text.Role, text.Attr) {
	switch {
	case t == chroma.GenericInserted:
		return text.Add, 0
	case t == chroma.GenericDeleted:
		return text.Del, 0
	case t == chroma.GenericHeading || t == chroma.GenericSubheading:
		return text.Accent, text.Bold
	case t == chroma.GenericStrong:
		return text.Code, text.Bold
	case t == chroma.GenericEmph:
		return text.Code, text.Italic
	case t.InCategory(chroma.Comment):
		return text.Dim, 0
	case t == chroma.KeywordConstant || t.InSubCategory(chroma.LiteralNumber) || t == chroma.LiteralDate:
		return text.Pace, 0
	case t == chroma.KeywordType || t == chroma.NameBuiltin || t == chroma.NameClass || t == chroma.NameAttribute:
		return text.Bot, 0
	case t.InCategory(chroma.Keyword) || t == chroma.NameTag:
		return text.Accent, 0
	case t.InSubCategory(chroma.LiteralString):
		return text.Run, 0
	case t == chroma.NameFunction || t == chroma.NameVariable:
		return text.User, 0
	}
	return text.Code, 0
}

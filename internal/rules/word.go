package rules

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// word is what the text of a script says of one word of a command. Its zero
// value is a word of which nothing is known.
type word struct {
	text  string // the word without quotes, up to the first expansion
	whole bool   // text is all of it
	many  bool   // a shell may make none or several of it; the first begins with text
	// script is the word as a shell reads it again (eval, -c): each expansion in
	// it is one that is not known.
	script string
}

// unknown is an expansion in the text of a script that is read again.
const unknown = "${_}"

// maxBraces is how many words the braces of one command are taken apart into.
const maxBraces = 256

// callWords are the words of a call as a shell without brace expansion takes
// them and, where there are braces, as one with it does.
func callWords(args []*syntax.Word, ifs bool) (readings [][]word) {
	readings = append(readings, wordsOf(args, ifs))
	if expanded, ok := withoutBraces(args); ok {
		readings = append(readings, wordsOf(expanded, ifs))
	}
	return readings
}

// withoutBraces expands braces; ok is false where there are none. Of braces that
// make too many words the rest is an expansion like any other: not known.
func withoutBraces(args []*syntax.Word) (expanded []*syntax.Word, ok bool) {
	left := maxBraces
	for _, w := range args {
		split, open := *w, braces(w)
		if left -= open; open > 0 && left < 0 {
			expanded, ok = append(expanded, unknownWords), true
			continue
		}
		if open == 0 || !syntax.SplitBraces(&split) {
			expanded = append(expanded, w)
			continue
		}
		ok = true
		for one := range expand.BracesSeq(nil, &split) {
			if left--; left < 0 {
				expanded = append(expanded, unknownWords)
				break
			}
			if !isEmpty(one) {
				expanded = append(expanded, one)
			}
		}
	}
	return expanded, ok
}

// unknownWords is a word that expands to any number of words.
var unknownWords = &syntax.Word{Parts: []syntax.WordPart{&syntax.CmdSubst{}}}

// braces is how many braces open in a word: each costs as much as a word.
func braces(w *syntax.Word) (n int) {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// isEmpty reports whether a word holds nothing, not even quotes: braces can make
// such a word, and a shell drops it.
func isEmpty(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return !ok || lit.Value != ""
	})
}

func wordsOf(args []*syntax.Word, ifs bool) []word {
	words := make([]word, len(args))
	for i, w := range args {
		r := wordReader{ifs: ifs, word: word{whole: true}}
		r.parts(w.Parts, false)
		words[i] = r.done()
	}
	return words
}

// literal is the words up to the first of which only a part is known.
func literal(words []word) (texts []string) {
	for _, w := range words {
		if !w.whole {
			break
		}
		texts = append(texts, w.text)
	}
	return texts
}

// isGlob reports whether w may stand for the names of files, or for itself.
func (w word) isGlob() bool { return w.whole && w.many }

// asNames is a glob as the names that it may stand for.
func (w word) asNames() word {
	return word{text: w.text[:strings.IndexAny(w.text, "*?[@+!")], many: true}
}

// mayVanish reports whether a shell may make no word at all of w.
func (w word) mayVanish() bool { return w.many && (w.whole || w.text == "") }

// wordReader reads one word.
type wordReader struct {
	word
	ifs          bool // the script may have changed what splits words
	text, script strings.Builder
}

func (r *wordReader) done() word {
	r.word.text, r.word.script = r.text.String(), r.script.String()
	return r.word
}

func (r *wordReader) parts(parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r.many = r.many || !quoted && hasGlob(p.Value)
			r.literal(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			if p.Dollar {
				r.literal(ansiC(p.Value))
			} else {
				r.literal(p.Value)
			}
		case *syntax.DblQuoted:
			r.parts(p.Parts, true)
		case *syntax.ExtGlob:
			r.many = true
			r.literal(p.Op.String() + p.Pattern.Value + ")")
		default:
			r.whole = false
			r.many = r.many || splits(part, quoted, r.ifs)
			r.script.WriteString(unknown)
		}
	}
}

func (r *wordReader) literal(text string) {
	if r.whole {
		r.text.WriteString(text)
	}
	r.script.WriteString(text)
}

// splits reports whether a shell may make another number of words than one of an
// expansion.
func splits(part syntax.WordPart, quoted, ifs bool) bool {
	switch p := part.(type) {
	case *syntax.ArithmExp: // digits
		return !quoted && ifs
	case *syntax.ProcSubst: // the name of a pipe
		return false
	case *syntax.ParamExp:
		return !quoted || isList(p)
	}
	return !quoted
}

// isList reports whether an expansion gives a word for each entry of a list even
// between quotes: $@, ${a[@]}, ${!name@}, what stands for one of them, or has one
// in its default.
func isList(p *syntax.ParamExp) (list bool) {
	if p.Excl || p.Param == nil {
		return true
	}
	syntax.Walk(p, func(n syntax.Node) bool {
		lit, ok := n.(*syntax.Lit)
		list = list || ok && lit.Value == "@"
		return !list
	})
	return list
}

// hasGlob reports whether unquoted text may stand for the names of files.
func hasGlob(s string) bool {
	open := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			open = true
		case ']':
			if open {
				return true
			}
		}
	}
	return false
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

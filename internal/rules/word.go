package rules

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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

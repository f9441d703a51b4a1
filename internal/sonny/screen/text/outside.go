package text

import (
	"strings"

	"agent/client/termsafe"
)

// tab is how many cells a tab takes (sonny.md 8.4).
const tab = "    "

// Outside is a line of text from outside as spans that look like like: what a
// terminal would act on is shown escaped and dim, a tab is four cells. A newline,
// which the caller should have split at, is a space.
func Outside(s string, like Span) []Span {
	if Printable(s) {
		if s == "" {
			return nil
		}
		like.Text = s
		return []Span{like}
	}
	var out []Span
	add := func(part string, escaped bool) {
		span := like
		span.Text = part
		if escaped {
			span.Role = Dim
		}
		if n := len(out); n > 0 && !escaped && out[n-1].Role == span.Role {
			out[n-1].Text += part
			return
		}
		out = append(out, span)
	}
	var plain strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			plain.WriteString(tab)
		case r == '\n':
			plain.WriteByte(' ')
		case termsafe.Prose.Escapes(r):
			if plain.Len() > 0 {
				add(plain.String(), false)
				plain.Reset()
			}
			add(termsafe.Prose.Text(string(r)), true)
		default:
			plain.WriteRune(r)
		}
	}
	if plain.Len() > 0 {
		add(plain.String(), false)
	}
	return out
}

// Printable reports whether a text is printable ASCII alone, so that each byte is a
// cell and Outside changes nothing.
func Printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Columns is how many cells a text from outside takes as Outside shows it.
func Columns(s string) int {
	if Printable(s) {
		return len(s)
	}
	w := 0
	for _, span := range Outside(s, Span{}) {
		w += Width(span.Text)
	}
	return w
}

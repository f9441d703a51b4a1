package approver

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenBytes is how many bytes are taken for a token (approvals.md 11).
const tokenBytes = 4

// tokens is the estimate of a text's tokens.
func tokens(text string) int { return (len(text) + tokenBytes - 1) / tokenBytes }

// visible is text with every character that a reader would not see, or that
// would change the order of what is seen, written out as \u{HEX}. What is no
// UTF-8 becomes U+FFFD.
func visible(text string) string {
	if isVisible(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text { // invalid bytes come as U+FFFD
		if hidden(r) {
			fmt.Fprintf(&b, `\u{%X}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isVisible reports whether visible would change nothing.
func isVisible(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0
}

// hidden reports whether a character is one that visible writes out.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	case r == 0x2028 || r == 0x2029: // a line break to some readers
		return true
	case 0xE0000 <= r && r <= 0xE0FFF, 0xFE00 <= r && r <= 0xFE0F: // tags, variation selectors: they carry bytes unseen
		return true
	case r == 0x115F || r == 0x1160 || r == 0x3164 || r == 0xFFA0 || r == 0x180B || r == 0x180C || r == 0x180D || r == 0x2800: // blank letters
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}

// clipped is a text of at most limit tokens: a longer one keeps as much of its
// head as of its tail, cut between characters, around a mark that says how much
// is missing. Secrets must be masked before: a cut could leave half of one.
func clipped(text string, limit int) string {
	if tokens(text) <= limit {
		return text
	}
	room := limit*tokenBytes - len(omission(len(text)))
	half := max(0, room/2)
	head, tail := half, len(text)-half
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + omission(tail-head) + text[tail:]
}

// omission is the mark for that many bytes.
func omission(bytes int) string {
	return fmt.Sprintf(`<truncated omitted_tokens="%d" />`, (bytes+tokenBytes-1)/tokenBytes)
}

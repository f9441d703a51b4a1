package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// What a person sees that was not written by the command itself goes through
// this filter (section 6), so that no text can move a cursor, hide or reorder
// what stands around it, or look like a line of ours.

// manner is how lenient the filter is.
type manner int

const (
	flowing manner = iota // streamed text and tool output: newline, tab and zero-width stay
	body                  // a call's lines: tab stays, newline was split off before
	single                // tables, commands, one-line views: nothing stays
)

func bidiControl(r rune) bool {
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func tagCharacter(r rune) bool { return r >= 0xe0000 && r <= 0xe007f }

func zeroWidth(r rune) bool {
	return r >= 0x200b && r <= 0x200d || r == 0x2060 || r == 0xfeff
}

// escapes reports whether a character is shown in its escaped form.
func (m manner) escapes(r rune) bool {
	switch {
	case r == '\n':
		return m != flowing
	case r == '\t':
		return m == single
	case r < ' ', r >= 0x7f && r <= 0x9f, bidiControl(r), r == 0x2028, r == 0x2029, tagCharacter(r):
		return true
	}
	return m != flowing && zeroWidth(r)
}

// appendShown appends a character as the person sees it.
func (m manner) appendShown(dst []byte, r rune) []byte {
	if !m.escapes(r) {
		return utf8.AppendRune(dst, r)
	}
	switch r {
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	}
	return fmt.Appendf(dst, `\u{%x}`, r)
}

// shown is text as the person sees it. What is no UTF-8 shows as U+FFFD.
func shown(m manner, text string) string {
	dst := make([]byte, 0, len(text))
	for _, r := range text {
		dst = m.appendShown(dst, r)
	}
	return string(dst)
}

// oneLine is text for a line of its own.
func oneLine(text string) string { return shown(single, text) }

// filter is the flowing filter over a stream: a character that ends one piece
// and begins the next is one character.
type filter struct {
	to   io.Writer
	part []byte // the beginning of a character
	buf  []byte
}

// Write takes the next piece. It keeps back at most three bytes.
func (f *filter) Write(p []byte) (int, error) {
	f.buf = f.buf[:0]
	text := p
	if len(f.part) > 0 {
		text = append(f.part, p...)
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 && !utf8.FullRune(text) {
			break
		}
		f.buf = flowing.appendShown(f.buf, r)
		text = text[size:]
	}
	f.part = append([]byte(nil), text...)
	if len(f.buf) == 0 {
		return len(p), nil
	}
	if _, err := f.to.Write(f.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush shows a beginning that no rest came to.
func (f *filter) Flush() error {
	if len(f.part) == 0 {
		return nil
	}
	f.part = nil
	_, err := f.to.Write([]byte("\uFFFD"))
	return err
}

// shellWord quotes a value as one word of a POSIX shell, or, where it holds
// what a terminal acts on, of a shell that knows $'…' (section 6).
func shellWord(value string) string {
	switch {
	case value == "":
		return "''"
	case plainWord(value):
		return value
	case !needsEscapes(value):
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(value); {
		r, size := utf8.DecodeRuneInString(value[i:])
		switch {
		case r == utf8.RuneError && size == 1 || single.escapes(r):
			for _, c := range []byte(value[i : i+size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteString(value[i : i+size])
		}
		i += size
	}
	return b.String() + "'"
}

func plainWord(value string) bool {
	for i := range len(value) {
		c := value[i]
		if !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("_-.,:/@%+=", c) >= 0) {
			return false
		}
	}
	return true
}

func needsEscapes(value string) bool {
	if !utf8.ValidString(value) {
		return true
	}
	return strings.ContainsFunc(value, single.escapes)
}

// Package termsafe shows text that came from outside on a terminal (section 6 of
// the command-line document): no text can move a cursor, restyle, hide or reorder
// what stands around it, or look like a line of the program's own.
//
// What a model, a tool, a file name or another program wrote goes through Prose
// where it flows over lines, through Block where the caller has split it into lines,
// and through Line or OneLine where it shares a line with other text:
//
//	fmt.Println("bot", termsafe.OneLine(name))
//
// Escaped characters show as \n, \r, \t or \u{X}; what is no UTF-8 shows as U+FFFD.
package termsafe

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Manner is how much of a text the filter lets through.
type Manner int

const (
	Prose Manner = iota // streamed text and tool output: newline, tab and zero-width stay
	Block               // a line of a longer text: tab stays, newline was split off before
	Line                // tables, commands, names, one-line views: nothing stays
)

func bidiControl(r rune) bool {
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func tagCharacter(r rune) bool { return r >= 0xe0000 && r <= 0xe007f }

// zeroWidth reports whether a character is there and not to be seen: also those of which
// a terminal makes a blank, and the soft hyphen.
func zeroWidth(r rune) bool {
	switch {
	case r >= 0x200b && r <= 0x200d, r >= 0x2060 && r <= 0x2064, r == 0xfeff:
		return true
	case r == 0xad, r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x180e, r == 0x3164, r == 0xffa0:
		return true
	}
	return false
}

// Acts reports whether a terminal, or who reads it, is misled by a character of a
// text that is shown as it is: controls, what reorders, separators of lines, tags.
// Newline, tab and carriage return count.
func Acts(r rune) bool {
	return r < ' ' || r >= 0x7f && r <= 0x9f || bidiControl(r) || r == 0x2028 || r == 0x2029 || tagCharacter(r)
}

// Escapes reports whether a character is shown in its escaped form.
func (m Manner) Escapes(r rune) bool {
	switch {
	case r == '\n':
		return m != Prose
	case r == '\t':
		return m == Line
	case Acts(r):
		return true
	}
	return m != Prose && zeroWidth(r)
}

// Append appends a character as a person sees it.
func (m Manner) Append(dst []byte, r rune) []byte {
	if !m.Escapes(r) {
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

// Text is a text as a person sees it.
func (m Manner) Text(text string) string {
	if m.clean(text) {
		return text
	}
	dst := make([]byte, 0, len(text)+8)
	for _, r := range text {
		dst = m.Append(dst, r)
	}
	return string(dst)
}

// clean reports whether a text shows as it is.
func (m Manner) clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, m.Escapes)
}

// OneLine is text for a line that it shares, as Line shows it.
func OneLine(text string) string { return Line.Text(text) }

// Writer is Prose over a stream: a character that ends one piece and begins the
// next is one character. It is for one goroutine.
type Writer struct {
	to   io.Writer
	part []byte // the beginning of a character
	buf  []byte
}

// NewWriter filters what is written to it on its way to another writer.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write takes the next piece. It keeps back at most three bytes.
func (f *Writer) Write(p []byte) (int, error) {
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
		f.buf = Prose.Append(f.buf, r)
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
func (f *Writer) Flush() error {
	if len(f.part) == 0 {
		return nil
	}
	f.part = nil
	_, err := f.to.Write([]byte("\uFFFD"))
	return err
}

// ShellWord quotes a value as one word of a POSIX shell, or, where it holds what a
// terminal acts on, of a shell that knows $'…'.
func ShellWord(value string) string {
	switch {
	case value == "":
		return "''"
	case plainWord(value):
		return value
	case Line.clean(value):
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(value); {
		r, size := utf8.DecodeRuneInString(value[i:])
		switch {
		case r == utf8.RuneError && size == 1 || Line.Escapes(r):
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

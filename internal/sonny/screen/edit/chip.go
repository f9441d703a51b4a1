package edit

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A paste beyond either becomes a chip (sonny.md 10.1).
const (
	chipLines = 10
	chipChars = 2000
)

// Kind says what a chip stands for.
type Kind string

// The kinds.
const (
	PasteChip   Kind = "paste"
	PictureChip Kind = "picture"
)

// Chip stands in the text for something that is not shown in full. It is one character
// to the caret and to Backspace.
type Chip struct {
	Kind  Kind   `json:"kind"`
	Label string `json:"label"`          // as it is shown, brackets included
	Text  string `json:"text,omitempty"` // of a paste: what is sent in its place
	Path  string `json:"path,omitempty"` // of a picture
}

// A chip stands in a line as one character of a private plane, which no text that comes
// in may hold.
const (
	firstChip = 0x100000
	lastChip  = 0x10fffd
)

func isChip(r rune) bool { return r >= firstChip && r <= lastChip }

func chipIndex(s string) int { return strings.IndexFunc(s, isChip) }

// clean is a text as it may stand in the composer: LF alone ends a line, and of other
// control characters only the tab is kept.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, func(r rune) bool { return !kept(r) }) < 0 {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	return strings.Map(func(r rune) rune {
		if !kept(r) {
			return -1
		}
		return r
	}, s)
}

func kept(r rune) bool {
	return r == '\n' || r == '\t' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) && !isChip(r)
}

// Paste puts a pasted text at the caret, as a chip where it is long.
func (e *Editor) Paste(s string) {
	s = clean(s)
	lines, chars := strings.Count(strings.TrimSuffix(s, "\n"), "\n")+1, utf8.RuneCountInString(s)
	switch {
	case s == "":
	case lines > chipLines:
		e.AddChip(Chip{Kind: PasteChip, Label: fmt.Sprintf("[pasted %d lines]", lines), Text: s})
	case chars > chipChars:
		e.AddChip(Chip{Kind: PasteChip, Label: fmt.Sprintf("[pasted %d characters]", chars), Text: s})
	default:
		e.change(other, e.caret, e.caret, s)
	}
}

// AddChip puts a chip at the caret.
func (e *Editor) AddChip(c Chip) { e.change(other, e.caret, e.caret, e.mark(c)) }

// mark keeps a chip and is the character that stands for it. Marks are not used twice,
// so that what was cut or undone can come back.
func (e *Editor) mark(c Chip) string {
	c.Label = strings.NewReplacer("\n", " ", "\t", " ").Replace(clean(c.Label))
	c.Text = clean(c.Text)
	r := e.next
	if e.next < lastChip {
		e.next++
	}
	e.chips[r] = c
	return string(r)
}

// Chips are those in the text, in its order.
func (e *Editor) Chips() []Chip {
	var out []Chip
	for _, l := range e.lines {
		for _, r := range l.text {
			if isChip(r) {
				out = append(out, e.chips[r])
			}
		}
	}
	return out
}

// Expand puts the text of a paste in the place of its chip: the one at the caret or
// before it, or where there is none, with last, the last in the text. It reports whether
// there was one.
func (e *Editor) Expand(last bool) bool {
	for _, at := range []Pos{e.caret, e.left(e.caret)} {
		if e.expand(at) {
			return true
		}
	}
	if !last {
		return false
	}
	for n := len(e.lines) - 1; n >= 0; n-- {
		s := e.lines[n].text
		for i := len(s); ; {
			if i = strings.LastIndexFunc(s[:i], isChip); i < 0 {
				break
			}
			if e.expand(Pos{n, i}) {
				return true
			}
		}
	}
	return false
}

// ExpandHere puts the text of a paste in the place of the chip that the caret stands on.
// It reports whether it stood on one.
func (e *Editor) ExpandHere() bool { return e.expand(e.caret) }

func (e *Editor) expand(at Pos) bool {
	r, n := utf8.DecodeRuneInString(e.lines[at.Line].text[at.Byte:])
	c, ok := e.chips[r]
	if !ok || c.Kind != PasteChip {
		return false
	}
	e.change(other, at, Pos{at.Line, at.Byte + n}, c.Text)
	return true
}

// Message is what is sent: the text with every paste in full, and the pictures in their
// order. Their places in the text hold nothing.
func (e *Editor) Message() (text string, pictures []Chip) {
	return e.Draft().Message()
}

// Pasted is a text as a paste leaves it in a message: what cannot be part of one is gone.
func Pasted(s string) string {
	e := New()
	e.Paste(s)
	text, _ := e.Message()
	return text
}

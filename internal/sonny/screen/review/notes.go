package review

import (
	"fmt"
	"strings"

	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// maxQuote bounds the line that a note quotes, in characters.
const maxQuote = 300

// Note is a remark on a line.
type Note struct {
	Path  string
	Line  int
	Side  string // "after" or "before"
	Quote string
	Text  string
}

// Message is the notes as they are sent.
func (p *View) Message() string {
	var b strings.Builder
	b.WriteString("Notes on the changes:\n")
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\n%s:%d (%s)\n> %s\n%s\n", n.Path, n.Line, n.Side, n.Quote, n.Text)
	}
	return b.String()
}

// Writing reports whether a note is being written.
func (p *View) Writing() bool { return p.writing != nil }

// Write takes a key while a note is written.
func (p *View) Write(m *keys.Map, k term.Key) {
	switch k.Name {
	case "esc":
		p.writing = nil
	case "enter":
		if words := strings.TrimSpace(p.writing.Text()); words != "" {
			p.Notes = append(p.Notes, p.noteOn(p.row, words))
		}
		p.writing = nil
	default:
		p.writing.Key(m, k.Name, k.Text)
	}
}

// noteOn is a note on a row of the diff.
func (p *View) noteOn(row int, words string) Note {
	f, at := p.laid.file, p.laid.view.At[row]
	n := Note{Path: f.Path(), Line: at.New, Side: "after", Text: words}
	if at.New == 0 {
		n.Line, n.Side = at.Old, "before"
	}
	if at.Hunk >= 0 && at.Hunk < len(f.Hunks) {
		n.Quote = text.Cut(strings.TrimSpace(f.Hunks[at.Hunk].Line(at.Old, at.New)), maxQuote, "…")
	}
	return n
}

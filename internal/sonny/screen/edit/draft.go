package edit

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Draft is a text with its chips as it is kept: for another bot, in the stash, over a
// crash. It marshals to JSON and back; the zero value is empty.
type Draft struct {
	Parts []Part `json:"parts,omitempty"`
	Caret int    `json:"caret,omitempty"` // characters and chips before it
}

// Part is a stretch of text, or a chip.
type Part struct {
	Text string `json:"text,omitempty"`
	Chip *Chip  `json:"chip,omitempty"`
}

// Draft is the text as it is now.
func (e *Editor) Draft() Draft {
	d := Draft{Caret: len([]rune(e.slice(Pos{}, e.caret)))}
	rest := e.slice(Pos{}, e.end())
	for rest != "" {
		i := chipIndex(rest)
		if i < 0 {
			d.Parts = append(d.Parts, Part{Text: rest})
			break
		}
		if i > 0 {
			d.Parts = append(d.Parts, Part{Text: rest[:i]})
		}
		c := e.chips[[]rune(rest[i : i+4])[0]]
		d.Parts = append(d.Parts, Part{Chip: &c})
		rest = rest[i+4:] // a mark is four bytes
	}
	return d
}

// SetDraft replaces the text by a draft. Its first character is plain text. It can be
// undone.
func (e *Editor) SetDraft(d Draft) {
	var b strings.Builder
	for _, p := range d.Parts {
		if p.Chip != nil {
			b.WriteString(e.mark(*p.Chip))
		} else {
			b.WriteString(clean(p.Text))
		}
	}
	s := b.String()
	e.change(other, Pos{}, e.end(), s)
	e.mode = 0
	if runes := []rune(s); d.Caret >= 0 && d.Caret < len(runes) {
		e.goTo(e.between(endOf(Pos{}, string(runes[:d.Caret]))))
	}
}

// between is the nearest place at or after p that is between two characters.
func (e *Editor) between(p Pos) Pos {
	for from, to := range pieces(e.lines[p.Line].text) {
		if from == p.Byte {
			return p
		}
		if to >= p.Byte {
			return Pos{p.Line, to}
		}
	}
	return p
}

// After is a draft with another one before it, in lines of their own.
func (d Draft) After(first Draft) Draft {
	switch {
	case d.Empty():
		return first
	case first.Empty():
		return d
	}
	parts := append(slices.Clone(first.Parts), Part{Text: "\n"})
	return Draft{Parts: append(parts, d.Parts...), Caret: first.size() + 1 + d.Caret}
}

// size is how many characters and chips there are.
func (d Draft) size() (n int) {
	for _, p := range d.Parts {
		if n++; p.Chip == nil {
			n += utf8.RuneCountInString(p.Text) - 1
		}
	}
	return n
}

// Text is a draft of words, with the caret behind them.
func Text(words string) Draft {
	d := Draft{Parts: []Part{{Text: words}}}
	d.Caret = d.size()
	return d
}

// Empty reports whether there is nothing in it.
func (d Draft) Empty() bool { return len(d.Parts) == 0 }

// Message is the draft as it is sent: see Editor.Message.
func (d Draft) Message() (text string, pictures []Chip) {
	var b strings.Builder
	for _, p := range d.Parts {
		switch {
		case p.Chip == nil:
			b.WriteString(p.Text)
		case p.Chip.Kind == PictureChip:
			pictures = append(pictures, *p.Chip)
		default:
			b.WriteString(p.Chip.Text)
		}
	}
	return b.String(), pictures
}

// Encode is the draft as it is written to a file.
func (d Draft) Encode() ([]byte, error) { return json.Marshal(d) }

// DecodeDraft reads what Encode wrote.
func DecodeDraft(b []byte) (Draft, error) {
	var d Draft
	err := json.Unmarshal(b, &d)
	return d, err
}

// Stash is drafts put aside, newest last.
type Stash struct{ drafts []Draft }

// stashMost is how many drafts are put aside; the oldest goes first.
const stashMost = 50

// Toggle puts the draft aside, or brings the newest back into an empty editor. It
// reports whether it did either.
func (s *Stash) Toggle(e *Editor) bool {
	if e.Empty() {
		return s.Back(e)
	}
	if s.drafts = append(s.drafts, e.Draft()); len(s.drafts) > stashMost {
		s.drafts = s.drafts[1:]
	}
	e.Clear()
	return true
}

// Back brings the newest draft back into an empty editor, as after a send. It reports
// whether there was one.
func (s *Stash) Back(e *Editor) bool {
	n := len(s.drafts)
	if n == 0 || !e.Empty() {
		return false
	}
	e.SetDraft(s.drafts[n-1])
	s.drafts = s.drafts[:n-1]
	return true
}

// Drafts are those put aside, the newest last, to be kept; Restore brings them back.
func (s *Stash) Drafts() []Draft { return slices.Clone(s.drafts) }

// Restore puts drafts that were kept before those that are here.
func (s *Stash) Restore(kept []Draft) {
	s.drafts = append(slices.Clone(kept), s.drafts...)
	s.drafts = s.drafts[max(0, len(s.drafts)-stashMost):]
}

// Len is how many drafts are put aside.
func (s *Stash) Len() int { return len(s.drafts) }

// navigation is a walk through what was sent.
type navigation struct {
	depth int   // how many messages back, 0 for the draft itself
	draft Draft // what was written before the walk
}

// Older shows the message sent before the one shown; sent gives the nth newest, from 0.
// The draft is kept for the way back; what was changed in a recalled message is an undo
// away. It reports whether there was one.
func (e *Editor) Older(sent func(n int) (string, bool)) bool {
	s, ok := sent(e.nav.depth)
	if !ok {
		return false
	}
	if e.nav.depth == 0 {
		e.nav.draft = e.Draft()
	}
	depth, draft := e.nav.depth+1, e.nav.draft
	e.SetText(s)
	e.nav = navigation{depth: depth, draft: draft}
	return true
}

// Newer shows the message sent after the one shown, and after the newest the draft.
func (e *Editor) Newer(sent func(n int) (string, bool)) bool {
	depth, draft := e.nav.depth-1, e.nav.draft
	if depth < 0 {
		return false
	}
	if s, ok := sent(depth - 1); depth > 0 && ok {
		e.SetText(s)
		e.nav = navigation{depth: depth, draft: draft}
		return true
	}
	e.SetDraft(draft)
	e.nav = navigation{}
	return true
}

// Sent empties the editor after a message went out, with what could be undone.
func (e *Editor) Sent() {
	kills := e.kills
	fresh := New()
	fresh.chips, fresh.next = e.chips, e.next // cuts may hold chips
	fresh.changes = e.changes + 1
	*e = *fresh
	e.kills = kills
	e.kills.still()
}

// Package window decides what a model is shown of a conversation: which items
// of the lineage, and which texts go ahead of them (runtime.md 19). It reads
// sizes, never items, and does no I/O.
package window

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds are the two envelopes of a request's input.
type Bounds struct {
	Bytes int64 // encoded items, pinned blocks and separators
	Items int64
}

// Share is a part of both envelopes, in percent.
func (b Bounds) Share(percent int64) Bounds {
	return Bounds{Bytes: b.Bytes * percent / 100, Items: b.Items * percent / 100}
}

// Span is the size of a run of items on a lineage.
type Span struct {
	Bytes int64 // of the items alone
	Items int64
}

// Fits reports whether a span with pinned blocks ahead of it, which count
// their own separators, lies within b.
func (b Bounds) Fits(s, pinned Span) bool {
	total := s.Bytes + pinned.Bytes
	if n := s.Items + pinned.Items; n > 1 {
		total += n - 1 // one comma between neighbours
	}
	return total <= b.Bytes && s.Items+pinned.Items <= b.Items
}

// Mark is a place a window may start: the first item of a turn, with the span
// from it to the head.
type Mark struct {
	Node    int64
	Ordinal int64 // the turn's
	Span    Span
}

// Start chooses where a window that no longer fits begins again. marks are
// turn starts, newest first; the first is the current turn's. It takes the
// oldest one whose span is within three quarters of both envelopes, so that
// many requests in a row share a prefix; if none is, the newest that fits at
// all. ok is false when not even the current turn fits.
func Start(b Bounds, pinned Span, marks []Mark) (start Mark, ok bool) {
	three := b.Share(75)
	for _, m := range marks {
		switch {
		case three.Fits(m.Span, pinned):
			start, ok = m, true
		case !ok && b.Fits(m.Span, pinned):
			return m, true
		default:
			return start, ok
		}
	}
	return start, ok
}

// Sender is what goes ahead of a prompt that is not the person's words
// (approvals.md 22). Neither given: the person, and nothing is added.
type Sender struct {
	Bot    string
	BotID  int64
	Origin string
}

// Text is the user text of a prompt from s.
func (s Sender) Text(prompt string) string {
	line := ""
	switch {
	case s.Bot != "":
		line = fmt.Sprintf("Message from agent %s (id %d), not from the person:", s.Bot, s.BotID)
	case s.Origin != "":
		line = fmt.Sprintf("Event from %s, not from the person:", s.Origin)
	default:
		return prompt
	}
	return line + "\n" + guard(prompt)
}

// guard puts "> " before the lines of a text that look like a sender line, so
// that only the daemon's own says who speaks.
func guard(text string) string {
	if !strings.Contains(text, "Message from agent ") && !strings.Contains(text, "Event from ") {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "Message from agent ") || strings.HasPrefix(l, "Event from ") {
			lines[i] = "> " + l
		}
	}
	return strings.Join(lines, "")
}

// NoteText is the carry-forward note as the model reads it.
func NoteText(note string) string {
	return "Your note, carried forward:\n" + note
}

// Omitted is a turn that a window leaves out.
type Omitted struct {
	Ordinal int64
	Prompt  string // its beginning; the first line is shown
}

// maxLine bounds the shown part of an omitted turn's prompt, in bytes.
const maxLine = 120

// Missing is what a window leaves out of a conversation.
type Missing struct {
	Turns, Items int64 // whole turns, and their items
	// Of the turn that a summary's cut lies inside: its ordinal and the items
	// left out of it. 0 for none.
	Turn, TurnItems int64
}

// ContextNote tells the model what is missing: how many turns and items, how
// to read them when it has the history tool, and the newest of them by
// ordinal and first line. room bounds the whole in bytes; lines that do not
// fit are counted instead, if any is shown.
func ContextNote(m Missing, history bool, list []Omitted, room int) string {
	var b strings.Builder
	last := m.Turns
	if m.Turns > 0 {
		fmt.Fprintf(&b, "Earlier parts of this conversation are not shown here: %d turns, %d messages.", m.Turns, m.Items)
	}
	if m.TurnItems > 0 {
		if m.Turns > 0 {
			b.WriteString(" Of")
		} else {
			b.WriteString("Earlier parts of this conversation are not shown here: of")
		}
		fmt.Fprintf(&b, " turn %d, %d messages after its prompt.", m.Turn, m.TurnItems)
		last = m.Turn
	}
	if history {
		fmt.Fprintf(&b, " The history tool returns them: turns 1 to %d.", last)
	}
	shown := int64(0)
	for _, o := range list {
		line := fmt.Sprintf("\n%d: %s", o.Ordinal, firstLine(o.Prompt))
		if b.Len()+len(line)+len("\n(and 18446744073709551615 older turns)") > room {
			break
		}
		b.WriteString(line)
		shown++
	}
	if rest := m.Turns - shown; shown > 0 && rest > 0 {
		fmt.Fprintf(&b, "\n(and %d older turns)", rest)
	}
	return b.String()
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimLeft(s, " \t\r\n"), "\n")
	s = strings.TrimRight(s, "\r")
	if len(s) <= maxLine {
		return strings.ToValidUTF8(s, "")
	}
	n := maxLine - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

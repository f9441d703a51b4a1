package window

import (
	"fmt"
	"strings"
)

// maxSummary bounds a summary's text, in bytes (runtime.md 21).
const maxSummary = 64 << 10

// MaxSummary is the most a summary's text may take: a third of the byte
// envelope, and never more than 64 KiB.
func (p Policy) MaxSummary() int64 { return min(p.Bounds.Bytes/3, maxSummary) }

// Holds reports whether a tail is as much as a cut is to keep: its share of
// either envelope, reduced by what the pinned blocks take.
func (p Policy) Holds(tail, pinned Span) bool {
	keep := p.Bounds.Share(p.Keep)
	return tail.Bytes >= keep.Bytes-pinned.Bytes || tail.Items >= keep.Items-pinned.Items
}

// Worth reports whether a span is large enough for a summary that is not
// forced: an eighth of what lies between the two shares, of either envelope.
// Else a context that pinned blocks fill would be summarized round by round.
func (p Policy) Worth(span Span) bool {
	between := max(p.At-p.Keep, 1)
	return span.Bytes >= p.Bounds.Bytes*between/800 || span.Items >= max(p.Bounds.Items*between/800, 1)
}

// Prompt is a covered turn's prompt that is kept as it was, up to 2 KiB.
type Prompt struct {
	Turn int64  `json:"turn"` // ordinal
	Text string `json:"text"`
}

const (
	maxPrompt   = 2 << 10
	maxPrompts  = 16 << 10 // together
	promptEntry = 32       // what an entry counts besides its text
)

// CutPrompt is as much of a prompt as is kept.
func CutPrompt(text string) string {
	if len(text) <= maxPrompt {
		return text
	}
	return cutStart(text, maxPrompt-len("…")) + "…"
}

// KeepPrompts keeps the oldest and the newest of a list in order and drops the
// middle, so that what stays counts at most 16 KiB and room bytes.
func KeepPrompts(list []Prompt, room int64) []Prompt {
	room = min(room, maxPrompts)
	first, last := 0, len(list)
	for newest := true; first < last; newest = !newest {
		i := first
		if newest {
			i = last - 1
		}
		size := int64(len(list[i].Text)) + promptEntry
		if size > room {
			break
		}
		room -= size
		if newest {
			last--
		} else {
			first++
		}
	}
	return append(append([]Prompt{}, list[:first]...), list[last:]...)
}

// PromptBytes is what kept prompts take, in bytes of text.
func PromptBytes(list []Prompt) (n int64) {
	for _, p := range list {
		n += int64(len(p.Text))
	}
	return n
}

// SummaryText is a summary as the model reads it. inside says that the newest
// covered turn is covered in part: its prompt and its rest are sent.
func SummaryText(summary string, prompts []Prompt, covered int64, inside bool) string {
	var b strings.Builder
	switch {
	case !inside:
		fmt.Fprintf(&b, "Summary of this conversation, turns 1 to %d:\n", covered)
	case covered > 1:
		fmt.Fprintf(&b, "Summary of this conversation, turns 1 to %d and the first part of turn %d:\n", covered-1, covered)
	default:
		b.WriteString("Summary of the first part of turn 1:\n")
	}
	b.WriteString(summary)
	if len(prompts) > 0 {
		b.WriteString("\n\nPrompts of these turns, word for word:")
		for _, p := range prompts {
			fmt.Fprintf(&b, "\n[turn %d] %s", p.Turn, p.Text)
		}
	}
	return b.String()
}

// SummaryRequest ends a request for a summary. The client's instructions stand
// in it unless they are the request's own.
func SummaryRequest(instructions string, limit int64) string {
	text := fmt.Sprintf("Reply with the summary alone, in at most %d bytes. Call no tool.", limit)
	if instructions == "" {
		return text
	}
	return instructions + "\n\n" + text
}

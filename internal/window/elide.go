package window

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// Policy is when a bot's context is made smaller, and by how much (runtime.md
// 20, 21).
type Policy struct {
	Bounds Bounds
	At     int64 // percent of an envelope at which room is made; 0: never
	Keep   int64 // percent of an envelope that is kept as it is; below At
	Output int64 // cap on output tokens, 0 when not known
}

// Headroom is what the output cap takes off the byte trigger: four bytes for a
// token, at most a quarter of the envelope.
func (p Policy) Headroom() int64 { return min(4*p.Output, p.Bounds.Bytes/4) }

// FullBytes reports whether a view takes so many bytes that room is to be made.
func (p Policy) FullBytes(view Span) bool {
	return p.At > 0 && view.Bytes >= p.Bounds.Bytes*p.At/100-p.Headroom()
}

// Full is FullBytes, or the same of the items.
func (p Policy) Full(view Span) bool {
	return p.FullBytes(view) || p.At > 0 && view.Items >= p.Bounds.Items*p.At/100
}

// Least is what an ordinary move of the elision floor must save, in bytes.
func (p Policy) Least() int64 { return max(p.Bounds.Bytes/16, 1) }

// Item is an item of a view with its size as it is sent.
type Item struct {
	Node  int64
	Bytes int64
}

// Floor is where the elision floor goes in an ordinary move: the newest item
// that a verbatim tail of keep bytes cannot take, and never past newest, the
// model's newest output. items come newest first. 0: the tail takes all.
func Floor(keep, newest int64, items iter.Seq[Item]) int64 {
	for it := range items {
		if keep -= it.Bytes; keep < 0 {
			return min(it.Node, newest)
		}
	}
	return 0
}

// stubEnd is how much of an output's beginning and of its end a stub shows.
const stubEnd = 256

// Stub is what stands for an old tool output: its size, how to read it whole,
// and its two ends.
func Stub(output string, node int64) string {
	head := fmt.Sprintf("[%d bytes of output, shortened here. read with artifact result/%d returns all of it.]\n", len(output), node)
	if len(output) <= 2*stubEnd {
		return head + output
	}
	return head + cutStart(output, stubEnd) + "\n[…]\n" + cutEnd(output, stubEnd)
}

// cutStart is the first n bytes of s, without a character that they part.
func cutStart(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD")
}

// cutEnd is the last n bytes of s, without a character that they part.
func cutEnd(s string, n int) string {
	at := max(len(s)-n, 0)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return strings.ToValidUTF8(s[at:], "\uFFFD")
}

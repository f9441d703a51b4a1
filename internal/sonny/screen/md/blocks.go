package md

import (
	"strings"

	"agent/internal/sonny/screen/text"
)

// Blocks is how many of the message's blocks have ended. Each keeps its number and its
// text, whatever else comes and at any width, but for a message that turns out too long
// for Markdown (Plain).
func (d *Doc) Blocks() int { return len(d.blocks) }

// Rows are the rows of the ended blocks from one (0 the first) up to another, as they
// stand in the message at a width, which is at least 8.
func (d *Doc) Rows(width, from, to int) []text.Line {
	d.layout(width)
	at := func(block int) int {
		if block <= 0 {
			return 0
		}
		return d.ends[block-1]
	}
	return d.Slice(width, at(from), at(to))
}

// Source is the text of an ended block as the model wrote it, without the blank lines
// around it.
func (d *Doc) Source(block int) string { return strings.TrimRight(d.blocks[block].src, "\n") }

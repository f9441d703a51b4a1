package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"agent/client/items"
	"agent/protocol"
)

// Search in a history is done here: the daemon keeps no text index (section
// 11).

// excerptRunes is how much of the text stands on each side of what was found.
const excerptRunes = 80

// search prints the items whose text holds the text looked for, newest first,
// and what was looked at.
func (h *history) search(ctx context.Context, l *link) error {
	s := searching{h: h, want: foldable(h.text)}
	h.nodes.Limit = protocol.Set[int64](protocol.MaxHistoryNodes)
	err := h.walk(ctx, l, func(nodes []protocol.Node) (bool, error) {
		if h.scan > 0 && s.scanned+int64(len(nodes)) > h.scan {
			nodes = nodes[:h.scan-s.scanned]
			s.more = true
		}
		if err := h.fetch(ctx, l, nodes, s.look); err != nil {
			return false, err
		}
		return !s.more, nil
	})
	if err != nil {
		return err
	}
	return h.app.write([]byte(fmt.Sprintf(`{"event":"search_end","scanned":%d,"matches":%d,"more":%t}`+"\n", s.scanned, s.matches, s.more)))
}

type searching struct {
	h                *history
	want             string
	scanned, matches int64
	more             bool
}

func (s *searching) look(n storedNode) error {
	s.scanned++
	for _, p := range items.Parts(n.item) {
		text := p.Text
		if p.Kind == items.Call {
			text = p.Name + " " + text
		}
		at, length := find(text, s.want)
		if at < 0 {
			continue
		}
		s.matches++
		line := strconv.AppendInt([]byte(`{"node":`), n.node, 10)
		line = strconv.AppendInt(append(line, `,"turn":`...), n.turn, 10)
		line = appendText(append(line, `,"type":`...), string(p.Kind))
		line = appendText(append(line, `,"excerpt":`...), excerpt(text, at, length))
		return s.h.app.write(append(line, "}\n"...))
	}
	return nil
}

// foldable is text in the case that comparisons are made in.
func foldable(text string) string { return strings.ToLower(text) }

// find is where text holds want, which is foldable, in either case: a byte
// offset and a length in text itself. Lower case may have another length, so
// the two are walked together.
func find(text, want string) (at, length int) {
	lower := foldable(text)
	i := strings.Index(lower, want)
	if i < 0 {
		return -1, 0
	}
	if len(lower) == len(text) {
		return i, len(want)
	}
	begin, end, low := -1, len(text), 0
	for pos, r := range text {
		if begin < 0 && low >= i {
			begin = pos
		}
		if low >= i+len(want) {
			end = pos
			break
		}
		low += len(foldable(string(r)))
	}
	return max(begin, 0), end - max(begin, 0)
}

// excerpt is what was found with some text around it.
func excerpt(text string, at, length int) string {
	from, to := at, at+length
	for range excerptRunes {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
		_, size = utf8.DecodeRuneInString(text[to:])
		to += size
	}
	cut := text[from:to]
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(text) {
		cut += "…"
	}
	return cut
}

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/window"
	"agent/protocol"
)

// view is what one request shows the model of a conversation: blocks made for
// it, then stored items. It holds sizes and ids, never an item.
type view struct {
	head    int64
	pinned  [][]byte   // note and context note, encoded
	nodes   []viewNode // oldest first
	bytes   int64      // of the joined items, as sent
	skipped int64      // items of the lineage left out

	instructions string
	reasoning    string
	fallbacks    bool
	tools        *toolSet
	cacheBot     int64

	start    int64 // the window's first node
	moved    bool  // the bot's window starts elsewhere now
	thinking store.Thinking
	bound    bool // thinking is to be recorded with the answer
}

// viewNode is an item of a view.
type viewNode struct {
	id       int64
	bytes    int32 // stored
	thinking int32 // left out of what is sent
	pictures bool
}

// contextNote is the text about the turns a window leaves out. It depends only
// on where the window starts, and is kept so that the prefix stays the same.
type contextNote struct {
	start      int64
	full, bare []byte
}

// plan builds the view for the next request.
func (t *task) plan() (*view, error) {
	var v *view
	err := t.e.read(t.ctx, "plan", func(c *store.Conn) (err error) {
		v, err = t.planOn(c)
		return err
	})
	return v, err
}

func (t *task) planOn(c *store.Conn) (*view, error) {
	bot, ok, err := store.BotByID(c, t.bot)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, protocol.Fail(protocol.BotNotFound, t.name)
	}
	declared, err := clientTools(&bot)
	if err != nil {
		return nil, err
	}
	v := &view{
		head: t.head, start: bot.ContextStart, instructions: bot.Instructions, reasoning: bot.Reasoning,
		fallbacks: bot.Fallbacks, cacheBot: bot.CacheBot, tools: t.e.toolSets.of(t.family, bot.Tools, declared),
	}
	if v.cacheBot == 0 {
		v.cacheBot = bot.ID
	}
	note, err := t.notePinned(c, &bot)
	if err != nil {
		return nil, err
	}
	limits := t.limits()
	pinned, span, err := t.window(c, v, note, limits)
	if err != nil {
		return nil, err
	}
	v.pinned = pinned
	if err := v.bindThinking(c, t, bot.ID); err != nil {
		return nil, err
	}
	return v, v.list(c, span)
}

// limits are the envelopes of this bot's requests.
func (t *task) limits() window.Bounds { return t.e.cfg.Limits.Context }

// notePinned is the carry-forward note as a block, nil without one.
func (t *task) notePinned(c *store.Conn, bot *store.Bot) ([]byte, error) {
	if bot.Note == 0 {
		return nil, nil
	}
	text, err := store.NoteText(c, bot.Note)
	if err != nil || text == "" {
		return nil, err
	}
	return t.codec.UserMarked(window.NoteText(text), t.e.cfg.Limits.CacheTTL), nil
}

// window settles where the view starts and what stands ahead of it. It moves
// the start only when the present one no longer fits.
func (t *task) window(c *store.Conn, v *view, note []byte, b window.Bounds) ([][]byte, window.Span, error) {
	span, err := spanFrom(c, v.start, v.head)
	if err != nil {
		return nil, span, err
	}
	for {
		full, bare, err := t.noteFor(c, v.start)
		if err != nil {
			return nil, span, err
		}
		for _, text := range [][]byte{full, bare} {
			pinned := blocks(note, text)
			if b.Fits(span, sizeOf(pinned)) {
				return pinned, span, nil
			}
		}
		if v.moved {
			return nil, span, protocol.Fail(protocol.ContextLimit, fmt.Sprintf(
				"the current turn takes %d bytes in %d items beside what goes ahead of it; the context holds %d bytes and %d items",
				span.Bytes, span.Items, b.Bytes, b.Items))
		}
		// The new start is chosen beside a whole note; where only the bare one
		// fits, the next pass finds that out.
		reserve := sizeOf(blocks(note, make([]byte, t.noteRoom())))
		mark, ok, err := t.chooseStart(c, v.head, b, reserve)
		if err != nil {
			return nil, span, err
		}
		if !ok {
			bareReserve := sizeOf(blocks(note, make([]byte, 256)))
			if mark, ok, err = t.chooseStart(c, v.head, b, bareReserve); err != nil {
				return nil, span, err
			}
		}
		if ok {
			v.start, span = mark.Node, mark.Span
		}
		v.moved = true
	}
}

// chooseStart walks from the head over turn starts.
func (t *task) chooseStart(c *store.Conn, head int64, b window.Bounds, pinned window.Span) (window.Mark, bool, error) {
	var marks []window.Mark
	var top store.Node
	var last store.Node // the node walked before, one nearer the head
	err := store.Walk(c, head, func(n store.Node) bool {
		if top.ID == 0 {
			top = n
		} else if last.Turn != 0 {
			marks = append(marks, markOf(last, top, n.TotalBytes))
			if s := marks[len(marks)-1].Span; s.Bytes > b.Bytes || s.Items > b.Items {
				last = store.Node{}
				return false
			}
		}
		last = n
		return true
	})
	if last.Turn != 0 {
		marks = append(marks, markOf(last, top, 0))
	}
	mark, ok := window.Start(b, pinned, marks)
	return mark, ok, err
}

func markOf(n, top store.Node, before int64) window.Mark {
	return window.Mark{Node: n.ID, Ordinal: n.TurnSeq,
		Span: window.Span{Bytes: top.TotalBytes - before, Items: top.Depth - n.Depth + 1}}
}

// spanFrom measures the items from start, 0 for the root, to head by their
// cumulative sizes.
func spanFrom(c *store.Conn, start, head int64) (window.Span, error) {
	top, ok, err := store.NodeByID(c, head)
	if err != nil || !ok {
		return window.Span{}, err
	}
	if start == 0 {
		return window.Span{Bytes: top.TotalBytes, Items: top.Depth}, nil
	}
	first, ok, err := store.NodeByID(c, start)
	if err != nil || !ok {
		return window.Span{}, err
	}
	weight := first.ItemBytes + first.Pictures*store.PictureWeight
	return window.Span{Bytes: top.TotalBytes - first.TotalBytes + weight, Items: top.Depth - first.Depth + 1}, nil
}

// turnRoom is the size of the current turn's own items up to head, and of what
// must go ahead of them.
func turnRoom(c *store.Conn, t *task, head int64) (own, pinned window.Span, err error) {
	var first int64
	if err = store.Walk(c, head, func(n store.Node) bool { first = n.ID; return n.Turn == 0 }); err != nil {
		return own, pinned, err
	}
	if own, err = spanFrom(c, first, head); err != nil {
		return own, pinned, err
	}
	bot, _, err := store.BotByID(c, t.bot)
	if err != nil {
		return own, pinned, err
	}
	note, err := t.notePinned(c, &bot)
	if err != nil {
		return own, pinned, err
	}
	var bare []byte
	if node, ok, err := store.NodeByID(c, first); err != nil {
		return own, pinned, err
	} else if ok && node.Parent != 0 {
		bare = make([]byte, 256)
	}
	return own, sizeOf(blocks(note, bare)), nil
}

func blocks(list ...[]byte) (out [][]byte) {
	for _, b := range list {
		if len(b) > 0 {
			out = append(out, b)
		}
	}
	return out
}

func sizeOf(list [][]byte) (s window.Span) {
	for _, b := range list {
		s.Bytes += int64(len(b))
		s.Items++
	}
	return s
}

// noteRoom bounds the context note with its listing. It depends on nothing but
// the envelope, so that the note stays the same while the window does.
func (t *task) noteRoom() int { return int(min(t.limits().Bytes/8, 16<<10)) }

// noteFor is the context note of a window that starts at a node, whole and
// without its listing; nil when nothing is left out.
func (t *task) noteFor(c *store.Conn, start int64) (full, bare []byte, err error) {
	if start == 0 {
		return nil, nil, nil
	}
	if t.note.start == start {
		return t.note.full, t.note.bare, nil
	}
	first, ok, err := store.NodeByID(c, start)
	if err != nil || !ok || first.Parent == 0 {
		return nil, nil, err
	}
	turns, items := first.TurnSeq-1, first.Depth-1
	list, err := t.omitted(c, first.Parent)
	if err != nil {
		return nil, nil, err
	}
	bot, _, err := store.BotByID(c, t.bot)
	if err != nil {
		return nil, nil, err
	}
	history := contains(bot.Effective(), "history")
	full = t.codec.User(window.ContextNote(turns, items, history, list, t.noteRoom()), nil)
	bare = t.codec.User(window.ContextNote(turns, items, history, nil, 0), nil)
	t.note = contextNote{start: start, full: full, bare: bare}
	return full, bare, nil
}

// omittedWalk bounds how far back the listing looks, in items.
const omittedWalk = 4096

// omitted lists the turns before a window, newest first.
func (t *task) omitted(c *store.Conn, from int64) ([]window.Omitted, error) {
	most := int(t.e.cfg.Limits.NoteTurns)
	if most == 0 {
		return nil, nil
	}
	type start struct{ node, turn, ordinal int64 }
	var starts []start
	err := store.WalkTurns(c, from, omittedWalk, func(node, turn, ordinal int64) bool {
		starts = append(starts, start{node, turn, ordinal})
		return len(starts) < most
	})
	if err != nil {
		return nil, err
	}
	list := make([]window.Omitted, 0, len(starts))
	for _, s := range starts {
		prompt, err := promptHead(c, t.codec, s.turn, s.node)
		if err != nil {
			return nil, err
		}
		list = append(list, window.Omitted{Ordinal: s.ordinal, Prompt: prompt})
	}
	return list, nil
}

// shownHead is how much of a prompt is read for its first line, in characters.
const shownHead = 400

// promptHead is the beginning of a turn's prompt, from its row, or from its
// node where the row keeps none.
func promptHead(c *store.Conn, codec model.Codec, turn, node int64) (string, error) {
	head, shared, ok, err := store.PromptHead(c, turn, shownHead)
	if err != nil {
		return "", err
	}
	if ok && shared == 0 {
		return head, nil
	}
	item, _, err := store.ItemOf(c, nil, node)
	if err != nil {
		return "", err
	}
	d, err := codec.Describe(item)
	if err != nil {
		return "", protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the item of node %d cannot be read", node))
	}
	return d.Text, nil
}

// bindThinking settles which items go without their thinking: those written
// before what goes ahead of them last changed (providers.md 6).
func (v *view) bindThinking(c *store.Conn, t *task, bot int64) error {
	if t.family != model.FamilyAnthropic {
		return nil
	}
	was, err := store.BotThinking(c, bot)
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, part := range append([][]byte{[]byte(v.instructions), v.tools.encoded}, v.pinned...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(v.start))
	h.Write(n[:])
	print := int64(binary.BigEndian.Uint64(h.Sum(nil)) >> 1)
	v.thinking = was
	if was.Prefix != print {
		v.bound = true
		v.thinking.Prefix = print
		if was.Prefix != 0 {
			v.thinking.From = v.head + 1
		}
	}
	return nil
}

// list reads the ids and sizes of the window's items and the length of what is
// sent.
func (v *view) list(c *store.Conn, span window.Span) error {
	v.nodes = make([]viewNode, span.Items)
	at := len(v.nodes)
	var after store.Node
	fill := func(before int64) {
		at--
		n := &v.nodes[at]
		n.id = after.ID
		n.bytes = int32(after.TotalBytes - before - after.Pictures*store.PictureWeight)
		n.pictures = after.Pictures > 0
		if after.ID < v.thinking.From {
			n.thinking = int32(after.Thinking)
		}
	}
	err := store.Walk(c, v.head, func(n store.Node) bool {
		if after.ID != 0 {
			fill(n.TotalBytes)
		}
		after = n
		if at == 0 {
			v.skipped = n.Depth
			after = store.Node{}
			return false
		}
		return true
	})
	if err != nil {
		return err
	}
	if after.ID != 0 && at == 1 {
		fill(0)
	}
	if at != 0 {
		return protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the lineage of node %d is shorter than its depth", v.head))
	}
	return v.measure(c)
}

// measure adds up what is sent.
func (v *view) measure(c *store.Conn) error {
	parts := int64(0)
	for _, p := range v.pinned {
		v.bytes += int64(len(p))
		parts++
	}
	for _, n := range v.nodes {
		sent := int64(n.bytes - n.thinking)
		if n.pictures {
			err := store.PictureBytes(c, n.id, func(hash [32]byte, size int64) {
				sent += model.Picture{Bytes: size}.Base64Len() - int64(model.PlaceholderLen)
			})
			if err != nil {
				return err
			}
		}
		if sent > 0 {
			v.bytes += sent
			parts++
		}
	}
	if parts > 1 {
		v.bytes += parts - 1
	}
	return nil
}

// items is the view as a request body.
func (v *view) items(ctx context.Context, e *Engine, codec model.Codec) model.Items {
	return model.Items{Bytes: v.bytes, Count: len(v.pinned) + len(v.nodes), Open: func() (io.ReadCloser, error) {
		return openBody(ctx, e, codec, v), nil
	}}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

package engine

import (
	"context"
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
	pinned  [][]byte    // summary, note and context note, encoded
	nodes   []viewNode  // the pinned prompt, if any, then the window's, oldest first
	extra   []byte      // a last item that is not stored, nil for none
	size    window.Span // as the envelope counts it
	span    window.Span // of the window's items alone
	bytes   int64       // of the joined items, as sent
	skipped int64       // items of the lineage left out
	savable int64       // what stubs could save that are not sent yet

	instructions string
	reasoning    string
	fallbacks    bool
	webSearch    string
	tools        *toolSet
	cacheBot     int64
	compacts     bool // the bot is summarized

	start     int64 // the window's first node
	turnStart int64 // the first node of the newest turn
	moved     bool  // the bot's window starts elsewhere now
	ahead     ahead
	floor     floor
	thinking  store.Thinking
	bound     bool // thinking is to be recorded with the answer
}

// viewNode is an item of a view. A long context has thousands, and a view lives
// as long as its request: so it is kept small.
type viewNode struct {
	id       int64
	bytes    int32 // stored, or of the stub
	thinking int32 // left out of what is sent, or asStub
	pics     *itemPictures
}

// asStub marks an item whose stub is sent. Only results have stubs, and they hold
// no thinking.
const asStub = -1

func (n *viewNode) stub() bool { return n.thinking == asStub }

// floor is how far old results are sent as their stubs (runtime.md 20).
type floor struct {
	node  int64 // through; 0 for none
	saved int64 // by all stubs of the lineage up to it
}

// at is what the lineage up to a node takes as it is sent.
func (f floor) at(n *store.Node) int64 {
	if n.ID <= f.node {
		return n.TotalBytes - n.TotalElided
	}
	return n.TotalBytes - f.saved
}

// ahead is what stands before a window's items, whatever the window is.
type ahead struct {
	summary, note []byte
	compaction    store.Compaction
	prompt        store.Node // of the turn that the summary's cut lies inside
}

// inside reports whether a window that starts at a node needs the pinned
// prompt: it starts where the summary's cut is, in the middle of a turn.
func (a *ahead) inside(start int64) bool { return a.prompt.ID != 0 && start == a.compaction.Cut }

// blocks are what stands before the items, with the pinned prompt counted in
// their size.
func (a *ahead) blocks(start int64, text []byte) ([][]byte, window.Span) {
	list := blocks(a.summary, a.note, text)
	size := sizeOf(list)
	if a.inside(start) {
		size.Bytes += weight(&a.prompt)
		size.Items++
	}
	return list, size
}

// contextNote is the text about the turns a window leaves out. It depends only
// on where the window starts, and is kept so that the prefix stays the same.
type contextNote struct {
	start, covered int64
	full, bare     []byte
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
	v, err := t.newView(c)
	if err != nil {
		return nil, err
	}
	if err := t.window(c, v, t.limits()); err != nil {
		return nil, err
	}
	if err := v.list(c, t); err != nil {
		return nil, err
	}
	if err := v.bindThinking(c, t, t.bot); err != nil {
		return nil, err
	}
	v.measure()
	return v, nil
}

// newView is a view with all that its bot's row settles, and no window yet.
func (t *task) newView(c *store.Conn) (*view, error) {
	bot, ok, err := store.BotByID(c, t.bot)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, protocol.Fail(protocol.BotNotFound, t.name)
	}
	if err := t.rebind(&bot); err != nil {
		return nil, err
	}
	declared, err := clientTools(&bot)
	if err != nil {
		return nil, err
	}
	v := &view{
		head: t.head, start: bot.ContextStart, instructions: bot.Instructions, reasoning: bot.Reasoning,
		fallbacks: bot.Fallbacks, cacheBot: bot.CacheBot, tools: t.e.toolSets.of(t.family, bot.Tools, declared, len(bot.Sandbox) > 0),
		compacts: bot.CompactionInstructions != "", webSearch: searchMode(&bot, t.provider),
	}
	if v.cacheBot == 0 {
		v.cacheBot = bot.ID
	}
	if v.floor, err = floorOf(c, bot.Elision); err != nil {
		return nil, err
	}
	v.ahead, err = t.aheadOf(c, &bot)
	return v, err
}

// floorOf reads a bot's elision floor.
func floorOf(c *store.Conn, version int64) (f floor, err error) {
	e, err := store.ElisionByNode(c, version)
	if err != nil || e.Through == 0 {
		return f, err
	}
	n, ok, err := store.NodeByID(c, e.Through)
	if err == nil && !ok {
		err = protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("elision %d: node %d is missing", version, e.Through))
	}
	return floor{node: e.Through, saved: n.TotalElided}, err
}

// aheadOf reads what stands before a bot's window.
func (t *task) aheadOf(c *store.Conn, bot *store.Bot) (a ahead, err error) {
	if a.note, err = t.notePinned(c, bot); err != nil {
		return a, err
	}
	return a, t.summaryPinned(c, bot.Compaction, &a)
}

// overfull measures the view that plan could not make fit: from its newest
// possible start, without what it would send.
func (t *task) overfull() (v *view, err error) {
	err = t.e.read(t.ctx, "overfull", func(c *store.Conn) (err error) {
		if v, err = t.newView(c); err != nil {
			return err
		}
		var size window.Span
		if v.span, err = spanFrom(c, v.start, v.head, v.floor); err == nil {
			v.pinned, size = v.ahead.blocks(v.start, nil)
			v.size = joined(v.span, size)
		}
		return err
	})
	return v, err
}

// rebind takes what configure may have changed since the turn began.
func (t *task) rebind(bot *store.Bot) error {
	if lim := t.e.limitsFor(bot); lim != t.lim {
		t.lim, t.note = lim, contextNote{}
	}
	t.budget = bot.Budget
	if end, over := t.overBound(); over {
		return &protocol.Error{Code: end.err, Detail: end.detail, Facts: end.facts}
	}
	return nil
}

// limits are the envelopes of this bot's requests.
func (t *task) limits() window.Bounds { return t.lim.Context }

// notePinned is the carry-forward note as a block, nil without one.
func (t *task) notePinned(c *store.Conn, bot *store.Bot) ([]byte, error) {
	if bot.Note == 0 {
		return nil, nil
	}
	text, err := store.NoteText(c, bot.Note)
	if err != nil || text == "" {
		return nil, err
	}
	return t.codec.UserMarked(window.NoteText(text), t.lim.CacheTTL), nil
}

// window settles where the view starts and what stands ahead of it. It moves
// the start only when the present one no longer fits.
func (t *task) window(c *store.Conn, v *view, b window.Bounds) (err error) {
	if v.span, err = spanFrom(c, v.start, v.head, v.floor); err != nil {
		return err
	}
	for {
		full, bare, err := t.noteFor(c, v)
		if err != nil {
			return err
		}
		for _, text := range [][]byte{full, bare} {
			pinned, size := v.ahead.blocks(v.start, text)
			if b.Fits(v.span, size) {
				v.pinned, v.size = pinned, joined(v.span, size)
				return nil
			}
		}
		if v.moved {
			return protocol.Fail(protocol.ContextLimit, fmt.Sprintf(
				"the current turn takes %d bytes in %d items beside what goes ahead of it; the context holds %d bytes and %d items",
				v.span.Bytes, v.span.Items, b.Bytes, b.Items))
		}
		if err := t.moveStart(c, v, b); err != nil {
			return err
		}
		v.moved = true
	}
}

// moveStart lets the window begin later, if it can. The new start is chosen
// beside a whole note; where only the bare one fits, that.
func (t *task) moveStart(c *store.Conn, v *view, b window.Bounds) error {
	for _, room := range []int{t.noteRoom(), bareNote} {
		_, reserve := v.ahead.blocks(-1, make([]byte, room))
		mark, ok, err := t.chooseStart(c, v, b, reserve)
		if err != nil {
			return err
		}
		if ok {
			v.start, v.span = mark.Node, mark.Span
			return nil
		}
	}
	return nil
}

// chooseStart walks from the head over turn starts.
func (t *task) chooseStart(c *store.Conn, v *view, b window.Bounds, pinned window.Span) (window.Mark, bool, error) {
	var marks []window.Mark
	var top store.Node
	var last store.Node // the node walked before, one nearer the head
	mark := func(before int64) window.Span {
		m := window.Mark{
			Node: last.ID, Ordinal: last.TurnSeq,
			Span: window.Span{Bytes: v.floor.at(&top) - before, Items: top.Depth - last.Depth + 1},
		}
		marks = append(marks, m)
		return m.Span
	}
	err := store.Walk(c, v.head, func(n store.Node) bool {
		if top.ID == 0 {
			top = n
		} else if last.Turn != 0 {
			if s := mark(v.floor.at(&n)); s.Bytes > b.Bytes || s.Items > b.Items {
				last = store.Node{}
				return false
			}
		}
		last = n
		return true
	})
	if last.Turn != 0 {
		mark(0)
	}
	start, ok := window.Start(b, pinned, marks)
	return start, ok, err
}

// spanFrom measures the items from start, 0 for the root, to head as they are
// sent, by their cumulative sizes.
func spanFrom(c *store.Conn, start, head int64, f floor) (window.Span, error) {
	top, ok, err := store.NodeByID(c, head)
	if err != nil || !ok {
		return window.Span{}, err
	}
	if start == 0 {
		return window.Span{Bytes: f.at(&top), Items: top.Depth}, nil
	}
	first, ok, err := store.NodeByID(c, start)
	if err != nil || !ok {
		return window.Span{}, err
	}
	return window.Span{Bytes: f.at(&top) - f.at(&first) + f.own(&first), Items: top.Depth - first.Depth + 1}, nil
}

// own is what a node read by its id takes as it is sent.
func (f floor) own(n *store.Node) int64 {
	if n.ID <= f.node {
		return weight(n) - n.Elided
	}
	return weight(n)
}

// weight is what a node read by its id counts towards an envelope, whole.
func weight(n *store.Node) int64 { return n.ItemBytes + n.Pictures*store.PictureWeight }

// joined is a span with pinned blocks ahead of it, separators included.
func joined(span, pinned window.Span) window.Span {
	s := window.Span{Bytes: span.Bytes + pinned.Bytes, Items: span.Items + pinned.Items}
	s.Bytes += max(s.Items-1, 0)
	return s
}

// bareNote is room for a context note without its listing.
const bareNote = 384

// turnRoom is the size of the current turn's own items up to head, and of what
// must go ahead of them.
func turnRoom(c *store.Conn, t *task, head int64) (own, pinned window.Span, err error) {
	bot, _, err := store.BotByID(c, t.bot)
	if err != nil {
		return own, pinned, err
	}
	f, err := floorOf(c, bot.Elision)
	if err != nil {
		return own, pinned, err
	}
	a, err := t.aheadOf(c, &bot)
	if err != nil {
		return own, pinned, err
	}
	var first store.Node
	if err = store.Walk(c, head, func(n store.Node) bool { first = n; return n.Turn == 0 }); err != nil {
		return own, pinned, err
	}
	start := first.ID
	if a.prompt.ID == start {
		start = a.compaction.Cut
	}
	if own, err = spanFrom(c, start, head, f); err != nil {
		return own, pinned, err
	}
	var bare []byte
	if first.Parent != 0 || start != first.ID {
		bare = make([]byte, bareNote)
	}
	_, pinned = a.blocks(start, bare)
	return own, pinned, nil
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

// noteFor is the context note of a view, whole and without its listing; nil
// when nothing is left out.
func (t *task) noteFor(c *store.Conn, v *view) (full, bare []byte, err error) {
	start, covered := v.start, v.ahead.compaction.CoveredTo
	if start == 0 {
		return nil, nil, nil
	}
	if t.note.start == start && t.note.covered == covered {
		return t.note.full, t.note.bare, nil
	}
	first, ok, err := store.NodeByID(c, start)
	if err != nil || !ok || first.Parent == 0 {
		return nil, nil, err
	}
	m := window.Missing{Turns: first.TurnSeq - 1, Items: first.Depth - 1}
	from := first.Parent
	if p := &v.ahead.prompt; v.ahead.inside(start) {
		m = window.Missing{Turns: p.TurnSeq - 1, Items: p.Depth - 1, Turn: p.TurnSeq, TurnItems: first.Depth - p.Depth - 1}
		from = p.Parent
	}
	list, err := t.omitted(c, from, covered)
	if err != nil {
		return nil, nil, err
	}
	bot, _, err := store.BotByID(c, t.bot)
	if err != nil {
		return nil, nil, err
	}
	history := contains(bot.Effective(), "history")
	full = t.codec.User(window.ContextNote(m, history, list, t.noteRoom()), nil)
	bare = t.codec.User(window.ContextNote(m, history, nil, 0), nil)
	t.note = contextNote{start: start, covered: covered, full: full, bare: bare}
	return full, bare, nil
}

// omittedWalk bounds how far back the listing looks, in items.
const omittedWalk = 4096

// omitted lists the turns before a window that no summary covers, newest first.
func (t *task) omitted(c *store.Conn, from, covered int64) ([]window.Omitted, error) {
	most := int(t.lim.NoteTurns)
	if most == 0 || from == 0 {
		return nil, nil
	}
	type start struct{ node, turn, ordinal int64 }
	var starts []start
	err := store.WalkTurns(c, from, omittedWalk, func(node, turn, ordinal int64) bool {
		if ordinal <= covered {
			return false
		}
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

// list reads the ids and sizes of the window's items, and settles which of
// their pictures are sent.
func (v *view) list(c *store.Conn, t *task) error {
	var first []viewNode
	if v.ahead.inside(v.start) {
		p := &v.ahead.prompt
		first = append(first, v.node(p, p.ItemBytes))
	}
	v.nodes = make([]viewNode, int64(len(first))+v.span.Items)
	copy(v.nodes, first)
	at := len(v.nodes)
	var after store.Node
	fill := func(before int64) {
		at--
		if after.Turn != 0 && v.turnStart == 0 {
			v.turnStart = after.ID
		}
		v.nodes[at] = v.node(&after, after.TotalBytes-before-after.Pictures*store.PictureWeight)
	}
	err := store.Walk(c, v.head, func(n store.Node) bool {
		if after.ID != 0 {
			fill(n.TotalBytes)
		}
		after = n
		if at == len(first) {
			v.skipped = n.Depth - int64(len(first))
			after = store.Node{}
			return false
		}
		return true
	})
	if err != nil {
		return err
	}
	if after.ID != 0 && at == len(first)+1 {
		fill(0)
	}
	if at != len(first) {
		return protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the lineage of node %d is shorter than its depth", v.head))
	}
	return v.choosePictures(c, t)
}

// node is how an item of stored bytes goes into the view.
func (v *view) node(n *store.Node, bytes int64) viewNode {
	out := viewNode{id: n.ID, bytes: int32(bytes), thinking: int32(n.Thinking)}
	if n.Elided > 0 && n.ID <= v.floor.node {
		out.thinking = asStub
		out.bytes -= int32(n.Elided)
		return out
	}
	v.savable += n.Elided
	if n.Pictures > 0 {
		out.pics = &itemPictures{}
	}
	return out
}

// measure adds up what is sent, once it is settled which items go without
// their thinking.
func (v *view) measure() {
	parts := int64(0)
	v.bytes = 0
	for _, p := range v.pinned {
		v.bytes += int64(len(p))
		parts++
	}
	for i := range v.nodes {
		n := &v.nodes[i]
		if !n.stub() && !v.thinking.Without(n.id) {
			n.thinking = 0
		}
		sent := int64(n.bytes - max(n.thinking, 0))
		if n.pics != nil {
			sent += n.pics.grown()
		}
		if sent > 0 {
			v.bytes += sent
			parts++
		}
	}
	if v.extra != nil {
		v.bytes += int64(len(v.extra))
		parts++
	}
	if parts > 1 {
		v.bytes += parts - 1
	}
}

// parts is how many items the body joins, those left out included.
func (v *view) parts() int {
	n := len(v.pinned) + len(v.nodes)
	if v.extra != nil {
		n++
	}
	return n
}

// items is the view as a request body, whose failures tracked remembers.
func (v *view) items(ctx context.Context, e *Engine, codec model.Codec, tracked *bodies) model.Items {
	return model.Items{Bytes: v.bytes, Count: v.parts(), Open: func() (io.ReadCloser, error) {
		return trackedBody{openBody(ctx, e, codec, v), tracked}, nil
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

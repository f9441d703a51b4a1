package cells

import (
	"cmp"
	"slices"

	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
)

// Bounds of what a transcript keeps of its items: cells, and bytes of what they say. What is
// near the view is kept in any case. So are the newest, as many as a session that is opened
// begins with: they are what is copied, gone back to and asked about.
const (
	MostCells   = 1200
	MostBytes   = 8 << 20
	newestCells = 400
	newestBytes = 2 << 20
)

// Bounds of one range, which is read again as a whole; one cell may be larger.
const (
	rangeCells = 400
	rangeBytes = 1 << 20
)

// What is kept when cells were folded, so that not each new one folds others.
const (
	restCells = MostCells - 200
	restBytes = MostBytes / 4 * 3
)

// stretch is what a range of cells was that are not kept: the items from one node up to
// another, and how many rows they had.
type stretch struct {
	before int64 // the node after its last
	cells  int
	rows   int
	width  int              // at which
	used   map[int64]string // what was told of its turns
}

// Range is the items of a cell that stands for those that are not kept: from its Node up
// to the one before. is is false for every other cell.
func (c *Cell) Range() (from, before int64, is bool) {
	if c.stretch == nil {
		return 0, 0, false
	}
	return c.Node, c.stretch.before, true
}

// height is about as many rows as the range has at a width.
func (f *stretch) height(width int) int {
	if width == f.width || width <= 0 {
		return f.rows
	}
	return max(1, f.rows*f.width/width)
}

// slice is what stands there until its cells are back.
func (f *stretch) slice(from, to int) []text.Line {
	lines := make([]text.Line, to-from)
	if from == 0 && to > 0 {
		lines[0] = text.Of(text.Dim, "  "+human.Count(f.cells, "entry", "entries")+"…")
	}
	return lines
}

// bytes is how much a cell says.
func (c *Cell) bytes() int {
	n := len(c.Text) + len(c.Detail)
	if c.doc != nil {
		n += c.doc.source.Len()
	}
	for _, call := range c.Calls {
		n += len(call.Arguments) + len(call.Result)
	}
	return n
}

// ofItem reports whether a cell shows items, which can be read again.
func (c *Cell) ofItem() bool { return c.Node != 0 && c.stretch == nil }

// upTo is the newest item that a cell shows some of.
func (c *Cell) upTo() int64 {
	if c.stretch != nil {
		return c.stretch.before - 1
	}
	return max(c.Node, c.joined)
}

// Kept is how many cells of items are kept, and how many bytes they say.
func (t *Transcript) Kept() (cells, bytes int) {
	for _, c := range t.cells {
		if c.ofItem() {
			cells++
			bytes += c.bytes()
		}
	}
	return cells, bytes
}

// Fold lets go of cells far from the rows in view, from one up to another, until what is
// kept is well within the bounds, if it is not within them now. Ranges take their place,
// as high as they were.
func (t *Transcript) Fold(l Look, from, to int) {
	kept, bytes := t.Kept()
	if kept <= MostCells && bytes <= MostBytes {
		return
	}
	t.let(l, t.far(l, from, to), kept, bytes)
}

// FoldTaken is Fold for who prints: what Take has given is far, the oldest the farthest.
func (t *Transcript) FoldTaken(l Look) {
	kept, bytes := t.Kept()
	if kept <= MostCells && bytes <= MostBytes {
		return
	}
	far := make([]int, len(t.cells))
	for i, c := range t.cells {
		if t.goes(c) {
			far[i] = nearRows + len(t.cells) - i
		}
	}
	t.let(l, t.butNewest(far), kept, bytes)
}

// let folds the farthest cells until few enough of those that are kept are left.
func (t *Transcript) let(l Look, far []int, kept, bytes int) {
	var farthest []int
	for i, rows := range far {
		if rows > nearRows {
			farthest = append(farthest, i)
		}
	}
	slices.SortFunc(farthest, func(i, j int) int { return cmp.Compare(far[j], far[i]) })
	goes := make([]bool, len(t.cells))
	for _, i := range farthest {
		if kept <= restCells && bytes <= restBytes {
			break
		}
		goes[i] = true
		kept, bytes = kept-1, bytes-t.cells[i].bytes()
	}
	t.foldThose(l, goes)
}

// far is how many rows each cell is away from those in view; 0 for one that stays.
func (t *Transcript) far(l Look, from, to int) []int {
	far := make([]int, len(t.cells))
	at := 0
	for i, c := range t.cells {
		at += t.gap(i)
		h := c.Height(l)
		if t.goes(c) {
			far[i] = max(0, from-at-h, at-to)
		}
		at += h
	}
	return t.butNewest(far)
}

// goes reports whether a cell may be folded. Of a transcript that is printed what was not
// printed yet stays.
func (t *Transcript) goes(c *Cell) bool {
	return c.ofItem() && !c.Live && (c.taken || !t.prints) &&
		!slices.ContainsFunc(c.Calls, func(call *ToolCall) bool { return !call.done })
}

// butNewest is how far the cells are, but that the newest are near.
func (t *Transcript) butNewest(far []int) []int {
	newest, bytes := 0, 0
	for i := len(t.cells) - 1; i >= 0 && newest < newestCells && bytes < newestBytes; i-- {
		if far[i] = 0; t.cells[i].ofItem() {
			newest, bytes = newest+1, bytes+t.cells[i].bytes()
		}
	}
	return far
}

// foldThose folds the cells that go.
func (t *Transcript) foldThose(l Look, goes []bool) {
	seams := t.seams()
	var out []*Cell
	for i := 0; i < len(t.cells); {
		n, bytes := 0, 0
		for j := i; j < len(t.cells) && n < rangeCells && bytes < rangeBytes && goes[j]; j++ {
			n, bytes = n+1, bytes+t.cells[j].bytes()
		}
		for n > 0 && (seams[i+n] == 0 || seams[i] == 0) { // an item that is shown beside it too stays
			n--
		}
		if n == 0 {
			out = append(out, t.cells[i])
			i++
			continue
		}
		out = append(out, t.fold(l, i, i+n, seams[i+n]))
		i += n
	}
	t.cells = out
}

// seams are, for each cell and for the end, the oldest item that is shown from there on; 0
// where that is shown before, too, or where there is none.
func (t *Transcript) seams() []int64 {
	out := make([]int64, len(t.cells)+1)
	next := int64(0)
	for i := len(t.cells) - 1; i >= 0; i-- {
		if c := t.cells[i]; c.Node != 0 {
			next = c.Node
		}
		out[i] = next
	}
	before := int64(0)
	for i, c := range t.cells {
		if out[i] <= before {
			out[i] = 0
		}
		before = max(before, c.upTo())
	}
	return out
}

// fold is the range in place of some cells; before is the item behind them.
func (t *Transcript) fold(l Look, from, to int, before int64) *Cell {
	f := &stretch{before: before, cells: to - from, width: l.Width, used: map[int64]string{}}
	taken := true
	for i, c := range t.cells[from:to] {
		f.rows += c.Height(l) + t.gap(from+i)
		taken = taken && c.taken
		if c.Used != "" {
			f.used[c.Turn] = c.Used
		}
		for _, call := range c.Calls {
			delete(t.calls, call.ID)
			delete(t.home, call)
		}
	}
	first := t.cells[from]
	return &Cell{Kind: Folded, Node: first.Node, Turn: first.Turn, stretch: f, taken: taken}
}

// Folded is the range that is nearest to the rows from one up to another, of those that are
// not far from them; nil for none.
func (t *Transcript) Folded(l Look, from, to int) *Cell {
	var best *Cell
	least, at := nearRows, 0
	for i, c := range t.cells {
		at += t.gap(i)
		h := c.Height(l)
		if away := max(0, from-at-h, at-to); c.stretch != nil && away < least {
			best, least = c, away
		}
		at += h
	}
	return best
}

// Folds reports whether there is a range.
func (t *Transcript) Folds() bool {
	return slices.ContainsFunc(t.cells, func(c *Cell) bool { return c.stretch != nil })
}

// FoldedAt is the range that an item is in; nil for none.
func (t *Transcript) FoldedAt(node int64) *Cell {
	i := slices.IndexFunc(t.cells, func(c *Cell) bool {
		from, before, is := c.Range()
		return is && node >= from && node < before
	})
	if i < 0 {
		return nil
	}
	return t.cells[i]
}

// Unfold puts the cells of a range, read again, in its place. It does nothing where the
// range is not here any more.
func (t *Transcript) Unfold(c *Cell, again *Transcript) {
	i := slices.Index(t.cells, c)
	if i < 0 || c.stretch == nil {
		return
	}
	for turn, words := range c.stretch.used {
		again.Used(turn, words)
	}
	for _, cell := range again.cells {
		cell.taken = c.taken
	}
	t.takeIn(again)
	t.cells = slices.Replace(t.cells, i, i+1, again.cells...)
}

package term

import (
	"strings"

	"agent/internal/sonny/screen/text"
)

// Cell is one cell of a frame: a grapheme cluster and how it looks. The cell right of a
// wide cluster has Width 0 and no text.
type Cell struct {
	Text   string
	URL    string
	Role   text.Role
	Ground text.Role // what the area was filled with
	Attr   text.Attr
	Width  uint8 // cells: 1 or 2, and 0 right of a wide one
}

var blank = Cell{Text: " ", Width: 1}

// Frame is a whole screen as it is to be, or in the inline mode the live region. It
// belongs to one goroutine until it is given to Draw, and to the terminal from then on.
type Frame struct {
	w, h   int
	cells  []Cell
	cx, cy int
}

// NewFrame is an empty frame. A size below one cell becomes one.
func NewFrame(w, h int) *Frame {
	w, h = max(w, 1), max(h, 1)
	f := &Frame{w: w, h: h, cells: make([]Cell, w*h)}
	f.clear()
	return f
}

func (f *Frame) clear() {
	for i := range f.cells {
		f.cells[i] = blank
	}
	f.cx, f.cy = 0, 0
}

// Size is the frame's width and height in cells.
func (f *Frame) Size() (w, h int) { return f.w, f.h }

// At is the cell of a place, a blank one outside the frame.
func (f *Frame) At(x, y int) Cell {
	if x < 0 || y < 0 || x >= f.w || y >= f.h {
		return blank
	}
	return f.cells[y*f.w+x]
}

// Row is the text of a row without its blanks at the end.
func (f *Frame) Row(y int) string {
	end := f.w
	for end > 0 && f.At(end-1, y).Text == " " {
		end--
	}
	out := make([]byte, 0, end)
	for x := range end {
		out = append(out, f.At(x, y).Text...)
	}
	return string(out)
}

// All is a canvas of the whole frame.
func (f *Frame) All() Canvas { return Canvas{f: f, w: f.w, h: f.h} }

// Put is Canvas.Put on the whole frame.
func (f *Frame) Put(x, y int, l text.Line, width int) int { return f.All().Put(x, y, l, width) }

// Fill is Canvas.Fill on the whole frame.
func (f *Frame) Fill(x, y, w, h int, ground text.Role) { f.All().Fill(x, y, w, h, ground) }

// SetCursor puts the terminal's cursor at the insertion point of what takes text. It
// stays within the frame.
func (f *Frame) SetCursor(x, y int) {
	f.cx, f.cy = min(max(x, 0), f.w-1), min(max(y, 0), f.h-1)
}

// Cursor is where the cursor will stand.
func (f *Frame) Cursor() (x, y int) { return f.cx, f.cy }

// Canvas is a rectangle of a frame with its own coordinates. Nothing drawn on it leaves it.
type Canvas struct {
	f          *Frame
	x, y, w, h int
}

// Size is the canvas's width and height in cells.
func (c Canvas) Size() (w, h int) { return c.w, c.h }

// Place is where the canvas's upper left cell is in the frame.
func (c Canvas) Place() (x, y int) { return c.x, c.y }

// Sub is a rectangle of the canvas, cut at its edges.
func (c Canvas) Sub(x, y, w, h int) Canvas {
	left, top := min(max(x, 0), c.w), min(max(y, 0), c.h)
	right, bottom := min(max(x+w, left), c.w), min(max(y+h, top), c.h)
	return Canvas{f: c.f, x: c.x + left, y: c.y + top, w: right - left, h: bottom - top}
}

// Fill blanks a rectangle and gives it the ground of a role.
func (c Canvas) Fill(x, y, w, h int, ground text.Role) {
	s := c.Sub(x, y, w, h)
	for row := s.y; row < s.y+s.h; row++ {
		for col := s.x; col < s.x+s.w; col++ {
			c.f.set(col, row, Cell{Text: " ", Width: 1, Ground: ground})
		}
	}
}

// SetCursor is Frame.SetCursor in the canvas's coordinates.
func (c Canvas) SetCursor(x, y int) {
	c.f.SetCursor(c.x+min(max(x, 0), max(c.w-1, 0)), c.y+min(max(y, 0), max(c.h-1, 0)))
}

// Put draws a line from a place on, at most width cells of it, and returns how many
// cells it took. A cluster that would be cut at an edge is left out. The ground that was
// filled stays.
func (c Canvas) Put(x, y int, l text.Line, width int) int {
	if y < 0 || y >= c.h {
		return 0
	}
	end, at := min(x+width, c.w), x
	for _, s := range l.Spans {
		for cluster, w := range text.Clusters(s.Text) {
			if w == 0 {
				c.join(at-1, y, cluster)
				continue
			}
			if at+w > end {
				return at - x
			}
			if at >= 0 {
				c.cell(at, y, cluster, w, s)
			}
			at += w
		}
	}
	return at - x
}

// cell sets one cluster. Control characters never get here from a filtered text; one
// that does is drawn as a replacement, so that no cell can hold a sequence.
func (c Canvas) cell(x, y int, cluster string, w int, s text.Span) {
	if !typed(cluster) {
		cluster = strings.Repeat("?", w)
	}
	ground := c.f.At(c.x+x, c.y+y).Ground
	look := Cell{Text: cluster, URL: s.URL, Role: s.Role, Ground: ground, Attr: s.Attr, Width: uint8(w)}
	c.f.set(c.x+x, c.y+y, look)
	for i := 1; i < w; i++ {
		look.Text, look.Width = "", 0
		c.f.set(c.x+x+i, c.y+y, look)
	}
}

// join adds a cluster without width to the cell before it. It is dropped where there is
// none, and where a cell would hold more than a terminal takes as one.
func (c Canvas) join(x, y int, cluster string) {
	const most = 64 // bytes of one cell
	for x > 0 && c.f.At(c.x+x, c.y+y).Width == 0 {
		x--
	}
	if x < 0 || x >= c.w || !typed(cluster) {
		return
	}
	if at := &c.f.cells[(c.y+y)*c.f.w+c.x+x]; len(at.Text)+len(cluster) <= most {
		at.Text += cluster
	}
}

// set replaces a cell, and blanks what remains of a wide one that it cuts.
func (f *Frame) set(x, y int, c Cell) {
	row := f.cells[y*f.w : (y+1)*f.w]
	if old := row[x]; old.Width == 0 && c.Width != 0 {
		for left := x - 1; left >= 0; left-- {
			was := row[left].Width
			row[left].Text, row[left].Width = " ", 1
			if was != 0 {
				break
			}
		}
	}
	if row[x].Width == 2 && x+1 < f.w {
		row[x+1].Text, row[x+1].Width = " ", 1
	}
	row[x] = c
}

package term

import (
	"strconv"
	"unicode/utf8"

	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/theme"
)

// looks are how cells are written.
type looks struct {
	theme   theme.Theme
	depth   theme.Depth
	ascii   bool
	links   bool // links are sent as such
	sync    bool // the terminal draws a frame at once (mode 2026)
	unicode bool // the terminal measures by grapheme cluster (mode 2027)
}

// renderer writes frames as the sequences that turn what stands on the terminal into
// them. It knows what it wrote and nothing else. It is for one goroutine.
type renderer struct {
	looks
	inline bool

	shown *Frame // what stands on the terminal, nil where that is not known
	x, y  int    // the cursor, of the frame; x < 0 where the column is not known
	tall  int    // rows of the live region that stand on the terminal
	pen   theme.Style
	url   string

	out     []byte
	changed int // cells, in the frame that is being written
}

// gapMost is how many unchanged cells are written again rather than jumped over: a jump
// takes about as many bytes.
const gapMost = 4

// full turns the screen into a frame.
func (r *renderer) full(f *Frame) {
	if r.shown == nil || r.shown.w != f.w || r.shown.h != f.h {
		r.begin()
		r.style(theme.Style{})
		r.out = append(r.out, "\x1b[H\x1b[2J"...)
		r.x, r.y = 0, 0
		r.shown = NewFrame(f.w, f.h)
		r.rows(f)
		r.end(f)
		return
	}
	before := len(r.out)
	r.begin()
	started := len(r.out)
	r.rows(f)
	if len(r.out) == started {
		r.out = r.out[:before] // nothing changed but perhaps the cursor
		if r.x != f.cx || r.y != f.cy {
			r.move(f.cx, f.cy)
		}
		r.shown = f
		return
	}
	r.end(f)
}

// begin opens a frame: nothing of it shows until end where the terminal can do that.
func (r *renderer) begin() {
	if r.sync {
		r.out = append(r.out, "\x1b[?2026h"...)
	}
	r.out = append(r.out, "\x1b[?25l"...)
}

func (r *renderer) end(f *Frame) {
	r.style(theme.Style{})
	r.link("")
	r.x = -1
	r.move(f.cx, f.cy)
	r.out = append(r.out, "\x1b[?25h"...)
	if r.sync {
		r.out = append(r.out, "\x1b[?2026l"...)
	}
	r.shown, r.tall = f, f.h
}

// rows writes what differs from what is shown.
func (r *renderer) rows(f *Frame) {
	for y := range f.h {
		old, now := r.shown.cells[y*f.w:(y+1)*f.w], f.cells[y*f.w:(y+1)*f.w]
		whole := !r.unicode && (joined(old) || joined(now))
		r.row(y, old, now, whole)
	}
}

// row writes the runs of a row that changed, or where the terminal may disagree about
// the width of a cluster in it, all of a row that changed.
func (r *renderer) row(y int, old, now []Cell, whole bool) {
	for x := 0; x < len(now); {
		if r.same(old[x], now[x]) {
			x++
			continue
		}
		if whole {
			r.changed += len(now)
			r.cells(y, 0, len(now), now)
			return
		}
		from, to := x, x+1
		for gap := 0; to+gap < len(now) && gap <= gapMost; {
			if r.same(old[to+gap], now[to+gap]) {
				gap++
				continue
			}
			to, gap = to+gap+1, 0
		}
		for from > 0 && now[from].Width == 0 {
			from--
		}
		for to < len(now) && now[to].Width == 0 {
			to++
		}
		for i := from; i < to; i++ {
			if !r.same(old[i], now[i]) {
				r.changed++
			}
		}
		r.cells(y, from, to, now)
		x = to
	}
}

// same reports whether two cells look alike.
func (r *renderer) same(a, b Cell) bool {
	if a == b {
		return true
	}
	if a.Text != b.Text || a.Width != b.Width || a.URL != b.URL {
		return false
	}
	la, lb := r.theme.Look(a.Role, a.Ground, a.Attr), r.theme.Look(b.Role, b.Ground, b.Attr)
	return la == lb || a.Text == " " && bare(la) && bare(lb)
}

// cells writes a part of a row. A blank end is erased rather than written.
func (r *renderer) cells(y, from, to int, now []Cell) {
	end := to
	if tail := r.tail(now); to-max(tail, from) > gapMost {
		end = max(tail, from)
	}
	if from < end {
		r.move(from, y)
	}
	for x := from; x < end; x++ {
		if c := now[x]; c.Width != 0 {
			r.move(x, y)
			r.cell(c, len(now))
		}
	}
	if end < to {
		r.move(end, y)
		r.style(theme.Style{})
		r.link("")
		r.out = append(r.out, "\x1b[K"...)
	}
}

// tail is where the blanks at the end of a row begin.
func (r *renderer) tail(now []Cell) int {
	for x := len(now); x > 0; x-- {
		c := now[x-1]
		if c.Text != " " || c.URL != "" || !bare(r.theme.Look(c.Role, c.Ground, c.Attr)) {
			return x
		}
	}
	return 0
}

// cell writes one cell where the cursor stands.
func (r *renderer) cell(c Cell, width int) {
	r.style(r.theme.Look(c.Role, c.Ground, c.Attr))
	r.link(c.URL)
	s := c.Text
	if r.ascii {
		s = ASCII(s, int(c.Width))
	}
	r.out = append(r.out, s...)
	r.x += int(c.Width)
	if r.x >= width || !r.unicode && !r.ascii && many(c.Text) {
		r.x = -1 // at the edge, or where the terminal may have gone another way
	}
}

// joined reports whether a row holds a cluster that terminals measure differently.
func joined(row []Cell) bool {
	for _, c := range row {
		if many(c.Text) {
			return true
		}
	}
	return false
}

// many reports whether a cluster is of more than one character.
func many(s string) bool {
	_, n := utf8.DecodeRuneInString(s)
	return n < len(s)
}

func (r *renderer) style(s theme.Style) {
	if r.depth == theme.Mono {
		s.Fg, s.Bg = theme.Color{}, theme.Color{}
	}
	if s != r.pen {
		r.out = sgr(r.out, s, r.depth)
		r.pen = s
	}
}

func (r *renderer) link(url string) {
	if !r.links {
		return
	}
	if url = linkable(url); url != r.url {
		r.out = append(append(append(r.out, "\x1b]8;;"...), url...), "\x1b\\"...)
		r.url = url
	}
}

// move puts the cursor at a place of the frame.
func (r *renderer) move(x, y int) {
	switch {
	case r.x == x && r.y == y:
		return
	case r.inline:
		r.step(x, y)
	case r.y == y && r.x >= 0 && x > r.x:
		r.csi(x-r.x, 'C')
	default:
		r.out = append(r.out, "\x1b["...)
		r.out = strconv.AppendInt(r.out, int64(y+1), 10)
		r.out = append(r.out, ';')
		r.out = strconv.AppendInt(r.out, int64(x+1), 10)
		r.out = append(r.out, 'H')
	}
	r.x, r.y = x, y
}

// step moves within the live region, whose place on the screen is not known.
func (r *renderer) step(x, y int) {
	switch {
	case y < r.y:
		r.csi(r.y-y, 'A')
	case y > r.y:
		r.csi(y-r.y, 'B')
	}
	if r.x >= 0 && x > r.x {
		r.csi(x-r.x, 'C')
	} else if x != r.x {
		r.out = append(r.out, '\r')
		if x > 0 {
			r.csi(x, 'C')
		}
	}
}

func (r *renderer) csi(n int, final byte) {
	r.out = append(r.out, "\x1b["...)
	if n != 1 {
		r.out = strconv.AppendInt(r.out, int64(n), 10)
	}
	r.out = append(r.out, final)
}

// again makes the next frame be written whole.
func (r *renderer) again() { r.shown = nil }

// reset is for a terminal that was used by others: nothing of it is known.
func (r *renderer) reset() {
	r.shown, r.x, r.y, r.tall, r.pen, r.url = nil, 0, 0, 0, theme.Style{}, ""
}

// lineOf lays one line out as a row of its own width.
func lineOf(l text.Line) *Frame {
	f := NewFrame(max(l.Width(), 1), 1)
	f.Put(0, 0, l, f.w)
	return f
}

package term

import (
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/theme"
)

// live draws the live region of the inline mode below finished lines, which go into the
// terminal's scrollback and are never touched again (sonny.md 14). Where the region
// stands is not known, only where the cursor stands in it: after a resize no fewer rows
// of the region are above the cursor than were, so that going up that many never
// reaches a finished line.
func (r *renderer) live(lines []text.Line, f *Frame) {
	if f == nil {
		if f = r.shown; f == nil {
			f = NewFrame(1, 1)
		}
	}
	if len(lines) == 0 && r.shown != nil && r.shown.w == f.w && r.shown.h == f.h {
		r.full(f)
		return
	}
	r.begin()
	r.wipe()
	r.finished(lines)
	for y := range f.h {
		if y > 0 {
			r.out = append(r.out, "\r\n"...)
		}
		r.x, r.y = 0, y
		row := f.cells[y*f.w : (y+1)*f.w]
		r.changed += f.w
		if tail := r.tail(row); tail > 0 {
			r.cells(y, 0, tail, row)
		}
		r.style(theme.Style{})
		r.link("")
	}
	r.end(f)
}

// wipe goes to the top of the region and erases it. Its first row is erased by itself:
// erasing all from the screen's first cell on makes tmux keep what stood there.
func (r *renderer) wipe() {
	r.style(theme.Style{})
	r.link("")
	if r.y > 0 {
		r.csi(r.y, 'A')
	}
	r.out = append(r.out, "\r\x1b[K"...)
	if r.tall > 1 {
		r.out = append(r.out, "\x1b[B\x1b[J\x1b[A"...)
	}
	r.x, r.y, r.shown = 0, 0, nil
}

// finished writes lines for good. They may wrap, where the terminal has become narrower
// than they were laid out for; the region may not.
func (r *renderer) finished(lines []text.Line) {
	if len(lines) == 0 {
		return
	}
	r.out = append(r.out, "\x1b[?7h"...)
	for _, l := range lines {
		f := lineOf(l)
		for _, c := range f.cells[:r.tail(f.cells)] {
			if c.Width != 0 {
				r.cell(c, f.w+1)
			}
		}
		r.style(theme.Style{})
		r.link("")
		r.out = append(r.out, "\r\n"...)
	}
	r.out = append(r.out, "\x1b[?7l"...)
	r.x, r.y = 0, 0
}

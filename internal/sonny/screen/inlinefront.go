package screen

import (
	"time"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// inlineFront prints what can no longer change into the terminal's scrollback, once, and
// draws the rest below it: the open block, running calls, the queue, what is asked, the
// composer, the footer (sonny.md 14).
type inlineFront struct {
	title   string
	start   *startScreen
	summary map[string]bool // rows of it that were printed
	session *session        // whose transcript is printed
	skip    int64           // the newest item of it that was printed when it was open before
	printed map[int64]int64 // the newest item that was printed, of each bot
	asked   string          // the question that was printed
}

func (f *inlineFront) input(a *App, e term.Event) bool { return a.input(e) }
func (f *inlineFront) due(a *App) time.Time            { return a.nextSecond() }
func (f *inlineFront) close(*App)                      {}

func (f *inlineFront) draw(a *App) {
	a.o.Term.Print(f.finished(a))
	a.o.Term.Draw(f.region(a))
	titled(a, &f.title)
}

// finished are the lines to print now.
func (f *inlineFront) finished(a *App) (out []text.Line) {
	s := a.session
	if s != f.session {
		f.left()
		if f.session = s; s != nil {
			f.skip = f.printed[s.id]
			if f.printed != nil { // another one was open before
				out = append(out, text.Titled(cells.OneLine(fully(a.called(s), s.bot)), "", a.w))
			}
		}
	}
	if s == nil {
		return append(out, f.summaryRows(a)...)
	}
	if !s.story.IsLoaded() {
		return out
	}
	look := s.look
	look.Width = a.w
	for _, p := range s.tr.Take(s.over(a)) {
		if f.before(p.Cell) {
			continue
		}
		if p.Cell.Kind == cells.User {
			out = append(out, text.Line{})
		}
		out = append(out, p.Lines(look)...)
	}
	s.story.Printed(look)
	return append(out, f.question(a)...)
}

// left notes how far the session is printed that goes off the screen, so that what was
// printed is not printed again when it is opened again.
func (f *inlineFront) left() {
	s := f.session
	if s == nil {
		return
	}
	if f.printed == nil {
		f.printed = map[int64]int64{}
	}
	f.printed[s.id] = s.tr.Taken()
}

// before reports whether a cell was printed when the session was open before. What has
// no item of its own is as old as what follows it.
func (f *inlineFront) before(c *cells.Cell) bool {
	if f.skip == 0 {
		return false
	}
	if c.Node > f.skip {
		f.skip = 0
		return false
	}
	return true
}

func (f *inlineFront) summaryRows(a *App) []text.Line {
	if a.start != f.start {
		f.start, f.summary = a.start, map[string]bool{}
	}
	if a.start == nil {
		return nil
	}
	return a.start.news(a, a.w, f.summary)
}

// question is a call that waits, printed whole once: the live region may have no room
// for more than its choices.
func (f *inlineFront) question(a *App) []text.Line {
	now := a.questionID()
	if now == f.asked {
		return nil
	}
	if f.asked = now; now == "" {
		return nil
	}
	return a.questionRows(a.w)
}

// region is the live region: at most a third of the height.
func (f *inlineFront) region(a *App) *term.Frame {
	w, most := a.w, max(1, a.h/3)
	if w < leastWidth || a.h < leastHeight {
		frame := term.NewFrame(w, 1)
		frame.Put(0, 0, text.Of(text.Plain, "terminal too small"), w)
		a.answers.view.Hidden(a.answers.shown)
		return frame
	}
	a.answers.view.Elsewhere() // the question was printed whole
	foot := []text.Line{a.footer(w)}
	if most >= 7 {
		foot = append(foot, a.keyLine(w))
	}
	if said := a.longNotice(w, min(3, most/3)); said != nil {
		foot = said
	}
	parts := []regionPart{{lines: foot}}
	room := most - len(foot)
	above := func(p regionPart) {
		room -= p.height()
		parts = append([]regionPart{p}, parts...)
	}
	if a.panel != nil {
		above(regionPart{rows: max(1, room), draw: a.panelRows})
		return stacked(w, parts)
	}
	rows, _, _ := a.main().Rows(max(1, w-3), max(1, (room-1)/2))
	above(regionPart{rows: len(rows), draw: a.composerRows})
	if room >= 3 {
		above(regionPart{lines: []text.Line{text.Across(w)}})
	}
	above(regionPart{lines: tail(a.choiceRows(w), room)})
	if a.session != nil {
		queue := a.strip(w)
		above(regionPart{lines: queue[:min(len(queue), max(0, room-1))]})
		above(regionPart{lines: tail(f.open(a), room)})
	}
	return stacked(w, parts)
}

// open is what streams and what runs.
func (f *inlineFront) open(a *App) []text.Line {
	s := a.session
	if !s.story.IsLoaded() {
		return []text.Line{text.Of(text.Dim, "loading…")}
	}
	look := s.look
	look.Width = a.w
	return s.tr.Rest(look)
}

func tail(lines []text.Line, n int) []text.Line { return lines[max(0, len(lines)-max(0, n)):] }

// regionPart is a stretch of rows of the live region: lines, or what draws itself.
type regionPart struct {
	lines []text.Line
	rows  int
	draw  func(term.Canvas)
}

func (p regionPart) height() int { return len(p.lines) + p.rows }

// stacked is a frame of parts, from the top.
func stacked(w int, parts []regionPart) *term.Frame {
	h := 0
	for _, p := range parts {
		h += p.height()
	}
	frame := term.NewFrame(w, h)
	y := 0
	for _, p := range parts {
		for i, line := range p.lines {
			frame.Put(0, y+i, line.Cut(w), w)
		}
		if p.draw != nil {
			p.draw(frame.All().Sub(0, y, w, p.rows))
		}
		y += p.height()
	}
	return frame
}

func (a *App) panelRows(c term.Canvas) { a.panel.view(a, c) }

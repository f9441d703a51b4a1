package screen

import (
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// paneCommands are of the pane beside the transcript (sonny.md 7.1).
var paneCommands = feature{
	commands: []slashCommand{{"peek", "NAME", "show a bot beside this one", (*App).peekCommand}},
	actions: map[string]func(*App){
		"pane_next":     func(a *App) { a.focusSide(true) },
		"pane_previous": func(a *App) { a.focusSide(false) },
		"close_pane":    (*App).closeSide,
		"peek_next":     func(a *App) { a.peek(1) },
		"peek_previous": func(a *App) { a.peek(-1) },
	},
}

// The widths at which the side pane stands beside the transcript, or over a part of it.
const (
	wideScreen   = 140
	mediumScreen = 100
)

// shows reports whether a session is on screen.
func (a *App) shows(s *session) bool { return s != nil && (s == a.session || s == a.side) }

// at is the session that takes what is typed; nil on the start screen.
func (a *App) at() *session {
	if a.inSide && a.side != nil {
		return a.side
	}
	return a.session
}

// openSide shows a bot beside the transcript, in place of the one that was there.
func (a *App) openSide(name string, id int64) {
	if a.session == nil || a.o.Mode == Inline || a.o.Mode == Plain { // these have one column
		a.openSession(name, id)
		return
	}
	if a.side != nil && a.side.id == id {
		a.inSide = true
		return
	}
	a.closeSide()
	a.side, a.inSide = newSession(a, name, id), true
	a.side.load(a, "")
}

func (a *App) closeSide() {
	if a.side == nil {
		return
	}
	a.side.leave(a)
	a.side, a.inSide = nil, false
}

func (a *App) focusSide(side bool) {
	if a.side != nil {
		a.inSide = side
	}
}

func (a *App) peekCommand(name string) error {
	for b := range a.world.Bots() {
		if b.Record.Name == name || b.Record.Name == a.project()+"."+name {
			a.openSide(b.Record.Name, b.Record.ID)
			return nil
		}
	}
	return noBot(name)
}

// peek shows the next task beside the transcript.
func (a *App) peek(by int) {
	tasks := a.tasks()
	if len(tasks) == 0 {
		a.notes.say("there are no tasks to look at")
		return
	}
	next := 0
	if by < 0 {
		next = len(tasks) - 1
	}
	for i, t := range tasks {
		if a.side != nil && t.Record.ID == a.side.id {
			next = (i + by + len(tasks)) % len(tasks)
		}
	}
	a.openSide(tasks[next].Record.Name, tasks[next].Record.ID)
	a.inSide = false
}

// sidePlace is how much of the body's width, as it is beside the rail, the pane takes;
// all of it on a narrow screen.
func (a *App) sidePlace(w int) int {
	switch {
	case a.side == nil:
		return 0
	case a.w >= wideScreen:
		return a.w * 36 / 100
	case a.w >= mediumScreen:
		return a.w * 60 / 100
	}
	return w
}

// sideView draws the pane: whose it is, its transcript, its composer.
func (a *App) sideView(c term.Canvas, l layout) {
	w, h := c.Size()
	c.Fill(0, 0, w, h, text.Plain)
	s := a.side
	g := a.lookOf(s)
	head := text.Join(text.Span{Text: " " + cells.OneLine(s.bot), Attr: text.Bold}, text.Span{Text: "  " + g.Mark + " " + g.Word, Role: g.Role})
	c.Put(0, 0, head.Cut(w), w)
	lines, x, y := s.compose.Rows(max(1, w-4), max(1, h/4))
	n := len(lines)
	side := l
	side.gutter = 1
	s.view(a, c.Sub(0, 1, w, max(1, h-1-n)), side)
	for i := range n {
		c.Put(1, h-n+i, text.Of(text.Dim, "› "), 2)
		c.Put(3, h-n+i, lines[i], w-3)
	}
	switch {
	case a.inSide && !a.answers.focused && a.panel == nil:
		c.SetCursor(3+x, h-n+y)
	case s.compose.Empty():
		hint := "(Alt+→ moves here)"
		c.Put(max(0, w-text.Width(hint)-1), h-1, text.Of(text.Dim, hint), w)
	}
}

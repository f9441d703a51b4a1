package screen

import (
	"slices"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// The widths of the rail as a column, without the line beside it (sonny.md 7.1).
const (
	wideRail   = 28
	mediumRail = 26
)

// railPanel is the rail while it has the keyboard, and as an overlay where there is no
// room for a column. The rows are the rail's.
type railPanel struct {
	listPanel
	drawn  area   // where the rows of the column were drawn last
	beside bool   // it was opened as a column
	hide   string // the hint of the chord that hides it
	moved  string // the bot that was brought into view
}

// openRail gives the rail the keyboard. Where the screen has room it comes as a column,
// which stays, and is there again when the session is opened next.
func (a *App) openRail() {
	if a.rail.panel == nil {
		a.rail.panel = newRailPanel()
	}
	p := a.rail.panel
	p.Filter, p.Typing, p.At, p.beside = nil, false, a.railHand(), a.railRoom()
	p.hide = a.hint("rail", "hides it")
	a.panel = p
	if a.railRoom() && !a.rail.shown {
		a.showRail(true)
	}
	a.rail.read(a)
}

func newRailPanel() *railPanel {
	p := &railPanel{}
	p.name, p.title, p.empty, p.hint = "rail", "sessions", "no sessions here yet", []string{"Enter open", "p peek"}
	p.rows = p.near
	p.keys = map[string]func(*App, lists.Row) bool{
		"enter":     func(a *App, r lists.Row) bool { a.railGo(r.ID); return true },
		"rail_peek": (*App).railPeek,
	}
	return p
}

// showRail shows the column or hides it, and has the session on screen keep which.
func (a *App) showRail(shown bool) {
	a.rail.shown, a.rail.decided = shown, true
	a.keepRail()
}

// keepRail notes with the session on screen how the rail is. The first session that is
// opened says how it was left; from then on the person does.
func (a *App) keepRail() {
	s := a.session
	switch {
	case s == nil || s.kept.BotID == 0: // nothing is kept of it yet
	case !a.rail.decided:
		a.rail.shown, a.rail.decided = s.kept.View.Rail, true
		a.rail.read(a)
	case s.kept.View.Rail != a.rail.shown:
		shown := a.rail.shown
		s.note(a, func(k *lead.Session) { k.View.Rail = shown }, nil)
	}
}

// railRoom reports whether the rail is a column on this screen.
func (a *App) railRoom() bool { return a.o.Mode != Inline && a.o.Mode != Plain && a.w >= mediumScreen }

// railColumn is how wide the column is now, without the line beside it; 0 for none.
func (a *App) railColumn() int {
	switch {
	case !a.rail.shown || !a.railRoom():
		return 0
	case a.w >= wideScreen:
		return wideRail
	}
	return mediumRail
}

// railHas reports whether the column has the keyboard.
func (a *App) railHas() bool {
	return a.railColumn() > 0 && a.panel != nil && a.panel == panel(a.rail.panel)
}

// railOpen reports whether the rail is on screen.
func (a *App) railOpen() bool {
	return a.railColumn() > 0 || a.rail.panel != nil && a.panel == panel(a.rail.panel)
}

// railHand is the bot on screen: its row is at hand when the rail is opened.
func (a *App) railHand() string {
	if a.session == nil {
		return ""
	}
	return a.session.bot
}

// railGo opens a bot's session from the rail.
func (a *App) railGo(name string) {
	a.freshRail()
	if g := a.rail.Session(name); g != nil && g.Folder != a.o.Folder.Path {
		a.notes.say("it works in " + human.Path(g.Folder))
	}
	if a.session != nil && a.session.bot == name {
		a.panel, a.inSide = nil, false
		return
	}
	a.goTo(name, false)
}

// railPeek shows a bot beside the transcript. A column keeps the keyboard, so that the
// next one can be looked at too.
func (a *App) railPeek(r lists.Row) bool {
	column := a.railHas()
	if a.session == nil || a.session.bot != r.ID {
		a.goTo(r.ID, a.session != nil)
	}
	if column {
		a.inSide = false
	}
	return !column
}

// near are the rows about the one at hand, or those that the filter lets through.
func (p *railPanel) near(a *App) (out []lists.Row) {
	rows, _ := p.listed(a)
	now := a.railNow()
	for _, row := range rows {
		out = append(out, a.rail.Row(row, now))
	}
	return out
}

// listed are those rows as the rail has them, and the first one's place in all.
func (p *railPanel) listed(a *App) (rows []roster.Row, from int) {
	a.freshRail()
	if p.Filter != nil && !p.Filter.Empty() {
		return a.rail.Through(p.Filter.Text()), 0
	}
	return a.rail.Around(p.At)
}

func (p *railPanel) hints() []string {
	hints := p.listPanel.hints()
	if p.beside && !p.Typing {
		return append(hints[:len(hints)-1:len(hints)-1], "Esc back to the message", p.hide)
	}
	return hints
}

// key takes the rail's own chord, which hides the column, beside what every list takes.
func (p *railPanel) key(a *App, k term.Key) bool {
	if !p.Typing {
		chord := a.leader.Press(k.Name, a.o.Now())
		switch {
		case chord == "":
			return false
		case slices.Contains(a.o.Keys.Find(chord, keys.State{Empty: true}, keys.Composer), "rail"):
			if a.railHas() {
				a.showRail(false)
			}
			return true
		case k.Name == "home" || k.Name == "end":
			p.toEnd(a, k.Name == "end")
			return false
		}
	}
	return p.listPanel.key(a, k)
}

// toEnd goes to the first bot of all, or to the last.
func (p *railPanel) toEnd(a *App, last bool) {
	a.freshRail()
	rows := a.rail.All()
	if p.Filter != nil && !p.Filter.Empty() {
		rows = a.rail.Through(p.Filter.Text())
	}
	rows = slices.Clone(rows)
	if last {
		slices.Reverse(rows)
	}
	if i := slices.IndexFunc(rows, func(r roster.Row) bool { return r.Bot != "" }); i >= 0 {
		p.At = rows[i].Bot
	}
}

// railView draws the column.
func (a *App) railView(c term.Canvas) {
	if a.rail.panel == nil {
		a.rail.panel = newRailPanel()
	}
	a.rail.panel.column(a, c)
}

// column draws the rail at the left of the body. Without the keyboard its mark is at the
// session on screen.
func (p *railPanel) column(a *App, c term.Canvas) {
	w, h := c.Size()
	has := a.railHas()
	if !has {
		p.Filter, p.Typing, p.At = nil, false, a.railHand()
	}
	p.columnHead(c)
	y := 2
	rows, from := p.listed(a)
	at := slices.IndexFunc(rows, func(r roster.Row) bool { return r.Bot != "" && r.Bot == p.At })
	if at < 0 && has {
		at = slices.IndexFunc(rows, func(r roster.Row) bool { return r.Bot != "" })
	}
	if at >= 0 {
		p.At = rows[at].Bot
	}
	room := max(1, h-y)
	p.bring(from+at, at >= 0, room, from+len(rows))
	x0, y0 := c.Place()
	p.drawn = area{x0, y0 + y, w, room}
	now := a.railNow()
	for i := max(0, p.Top-from); i < len(rows) && y < h; i++ {
		p.draw(c, y, a.rail.Row(rows[i], now), i == at, has)
		y++
	}
	if len(rows) == 0 {
		c.Put(1, y, text.Of(text.Dim, p.empty).Cut(w-1), w-1)
	}
}

// columnHead is the title, or the filter in its place.
func (p *railPanel) columnHead(c term.Canvas) {
	w, _ := c.Size()
	if p.Filter == nil {
		c.Put(1, 0, text.Of(text.Dim, p.title), w-1)
		return
	}
	line, x := p.Filter.Line("/ ", w-2)
	c.Put(1, 0, line, w-1)
	if p.Typing {
		c.SetCursor(1+x, 0)
	}
}

// bring keeps the row at hand in view, once for each that comes to hand: the wheel may
// leave it.
func (p *railPanel) bring(at int, is bool, room, n int) {
	p.Top = max(0, min(p.Top, n-room))
	if !is || p.moved == p.At {
		return
	}
	p.moved = p.At
	p.InView(at, room, n)
}

func (p *railPanel) draw(c term.Canvas, y int, row lists.Row, hand, has bool) {
	w, _ := c.Size()
	if hand && has {
		c.Fill(0, y, w, 1, text.Select)
	}
	if hand {
		c.Put(0, y, text.Of(text.Accent, "▎"), 1)
	}
	c.Put(1, y, row.Line.Cut(w-2), w-2)
	if row.Shown != nil {
		row.Shown()
	}
}

// railPress takes a press of the button: on a row it opens the bot. Elsewhere the rail
// lets go of the keyboard. It reports whether the press was on the rail.
func (a *App) railPress(x, y int) bool {
	if a.panel != nil && !a.railHas() {
		return false
	}
	row, on := a.rail.panel.under(a, x, y)
	if a.railHas() {
		a.panel = nil
	}
	if on && a.o.Mouse.Click && row.Bot != "" {
		a.railGo(row.Bot)
	}
	return on
}

// railWheel scrolls the column. It reports whether the pointer is on it.
func (a *App) railWheel(x, y, by int) bool {
	if a.panel != nil && !a.railHas() {
		return false
	}
	if _, on := a.rail.panel.under(a, x, y); !on {
		return false
	}
	a.rail.panel.Top -= by // what is drawn bounds it
	return true
}

// under is the row at a place of the screen; false for none.
func (p *railPanel) under(a *App, x, y int) (roster.Row, bool) {
	if p == nil || a.railColumn() == 0 || !p.drawn.holds(x, y) {
		return roster.Row{}, false
	}
	rows, from := p.listed(a)
	if i := y - p.drawn.y + max(p.Top-from, 0); i < len(rows) {
		return rows[i], true
	}
	return roster.Row{}, true
}

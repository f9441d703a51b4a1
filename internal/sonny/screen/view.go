package screen

import (
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// The smallest screen that is drawn (sonny.md 7.1).
const (
	leastWidth  = 20
	leastHeight = 6
)

// layout is where the regions stand, from the top.
type layout struct {
	header, keys bool
	rules        bool
	queue        int
	composer     int
	body         int
	gutter       int
	capped       bool // the transcript's text has 100 cells at most, in the middle
}

const (
	textMost    = 100 // cells of a capped text
	leastBeside = 30  // cells that a transcript has beside the side pane; with less the pane covers it
)

// place gives each region its rows.
func (a *App) place(w, h int) layout {
	l := layout{header: h >= 10, rules: h >= 10, keys: h >= 16}
	if w >= 60 {
		l.gutter = 2
	}
	l.capped = w >= wideScreen
	most := max(1, h/3)
	if h < 16 {
		most = 2
	}
	lines, _, _ := a.main().Rows(max(1, w-3), most)
	l.composer = len(lines)
	l.queue = min(stripMost, len(a.strip(w)))
	l.body = h - l.composer - l.queue - 1 // the footer
	if l.header {
		l.body--
	}
	if l.rules {
		l.body -= 3
	}
	if l.keys {
		l.body--
	}
	l.body = max(1, l.body)
	return l
}

// composing is the composer on screen.
func (a *App) composing() *composer {
	if s := a.at(); s != nil {
		return &s.compose
	}
	return &a.start.compose
}

// main is the composer below the body.
func (a *App) main() *composer {
	if a.session != nil {
		return &a.session.compose
	}
	return &a.start.compose
}

// view draws everything.
func (a *App) view(f *term.Frame) {
	w, h := f.Size()
	if w < leastWidth || h < leastHeight {
		f.Put(0, 0, text.Of(text.Plain, "terminal too small"), w)
		a.answers.view.Hidden(a.answers.shown)
		return
	}
	l := a.place(w, h)
	c, y := f.All(), 0
	if l.header {
		c.Put(0, 0, a.header(w), w)
		y++
	}
	if l.rules {
		c.Put(0, y, text.Across(w), w)
		y++
	}
	bars := a.body(c.Sub(0, y, w, l.body), l)
	if l.rules {
		joints(c, y-1, bars, "┬")
	}
	if rows := a.leaderRows(w); len(rows) > 0 {
		n := min(len(rows), max(0, l.body-1))
		c.Fill(0, y+l.body-n-1, w, n+1, text.Plain)
		c.Put(0, y+l.body-n-1, text.Titled("Ctrl+X", "", w), w)
		for i, row := range rows[:n] {
			c.Put(0, y+l.body-n+i, row.Cut(w), w)
		}
	}
	y += l.body
	if l.queue > 0 {
		for i, line := range a.strip(w)[:l.queue] {
			c.Put(0, y+i, line.Cut(w), w)
		}
		y += l.queue
	}
	if l.rules {
		c.Put(0, y, text.Across(w), w)
		if l.queue == 0 {
			joints(c, y, bars, "┴")
		}
		y++
	}
	a.composerRows(c.Sub(0, y, w, l.composer))
	y += l.composer
	a.foot(c.Sub(0, y, w, h-y), l)
}

// foot draws what is below the composer. A notice that is longer than a row takes that of
// the keys, then the rule's: nothing else moves for it, so that no click goes astray.
func (a *App) foot(c term.Canvas, l layout) {
	w, _ := c.Size()
	at, rows := 0, 1
	if l.rules {
		c.Put(0, 0, text.Across(w), w)
		at, rows = 1, 2
	}
	c.Put(0, at, a.footer(w), w)
	if l.keys {
		c.Put(0, at+1, a.keyLine(w), w)
		rows++
	}
	said := a.longNotice(w, rows)
	if len(said) > rows-at {
		at = 0
	}
	c.Fill(0, at, w, len(said), text.Plain)
	for i, line := range said {
		c.Put(0, at+i, line, w)
	}
}

// joints are where the lines between the body's columns meet a rule.
func joints(c term.Canvas, y int, bars []int, mark string) {
	for _, x := range bars {
		c.Put(x, y, text.Of(text.Rule, mark), 1)
	}
}

// body draws the rail, the transcript and the pane beside it, or what covers them. It
// gives the columns of the lines between them.
func (a *App) body(c term.Canvas, l layout) (bars []int) {
	w, h := c.Size()
	copies, _ := a.panel.(*copyPanel)
	if a.panel != nil && !a.railHas() && (copies == nil || copies.s != a.session) {
		a.panel.view(a, c)
		return nil
	}
	if column := a.railColumn(); column > 0 {
		a.railView(c.Sub(0, 0, column, h))
		bars = append(bars, bar(c, column, h))
		w -= column + 1
		c = c.Sub(column+1, 0, w, h)
	}
	if a.session == nil {
		a.start.view(a, c)
		return bars
	}
	side := a.sidePlace(w)
	rest := w - side - 1
	a.answers.at = area{}
	switch {
	case side == 0:
		a.talk(c, l)
	case side >= w:
		a.sideView(c, l)
	case rest >= leastBeside:
		a.talk(c.Sub(0, 0, rest, h), l)
		a.sideView(c.Sub(rest+1, 0, side, h), l)
		bars = append(bars, bar(c, rest, h))
	default: // what is asked is not covered
		free := a.talk(c, l)
		a.sideView(c.Sub(rest+1, 0, side, free), l)
		bars = append(bars, bar(c, rest, free))
	}
	return bars
}

// bar draws the line between two columns of the body, and gives its place.
func bar(c term.Canvas, x, h int) int {
	for y := range h {
		c.Put(x, y, text.Of(text.Rule, "│"), 1)
	}
	left, _ := c.Place()
	return left + x
}

// talk draws the transcript with the approvals' panel at its lower part. It gives the
// rows that the transcript has.
func (a *App) talk(c term.Canvas, l layout) int {
	w, h := c.Size()
	if rows := a.answers.rows(a, w, h); len(rows) > 0 {
		n := min(len(rows), h)
		x0, y0 := c.Place()
		a.answers.at = area{x0, y0 + h - n, w, n}
		for i, line := range rows[:n] {
			c.Put(0, h-n+i, line.Cut(w), w)
		}
		if x, up, shown := a.answers.caret(w); shown && a.panel == nil {
			c.SetCursor(x, h-up)
		}
		h -= n
		c = c.Sub(0, 0, w, h)
	}
	if p, copies := a.panel.(*copyPanel); copies {
		p.view(a, c)
	} else {
		a.session.view(a, c, l)
	}
	return h
}

// leastWithPlan is how many rows a transcript has above which its bot's plan stands.
const leastWithPlan = 8

// view draws the part of the transcript that is in view, below what the bot means to do.
func (s *session) view(a *App, c term.Canvas, l layout) {
	w, h := c.Size()
	if l.capped {
		l.gutter = max(l.gutter, (w-textMost)/2)
	}
	s.look.Width = max(10, w-2*l.gutter)
	if l.capped {
		s.look.Width = min(s.look.Width, textMost)
	}
	if !s.story.IsLoaded() {
		c.Put(l.gutter, 0, text.Of(text.Dim, "loading…"), w)
		return
	}
	if plan, shown := a.planRow(s, w); shown && h >= leastWithPlan {
		c.Put(0, 0, plan, w)
		c, h = c.Sub(0, 1, w, h-1), h-1
	}
	total := s.tr.Height(s.look)
	s.hold(total, h)
	s.height, s.width, s.gutter = h, w, l.gutter
	s.left0, s.top0 = c.Place()
	if s.up == 0 {
		s.left = 0
	} else if s.left == 0 {
		s.left = total
	}
	to := total - s.up
	from := max(0, to-h)
	s.anchor(from)
	for y, row := range s.tr.Rows(s.look, from, to) {
		s.draw(c, y, l.gutter, from+y, row)
	}
	first, last := s.mark.with(from, to)
	s.story.Around(s.look, first, last)
	if from == 0 && !s.story.IsWhole() {
		s.story.LoadOlder()
	}
	if mark := s.below(total); mark != "" && h > 1 {
		c.Put(max(0, w-text.Width(mark)-1), h-1, text.Of(text.Accent, mark), w)
	}
}

func (a *App) heldWords(b *live.Bot) string {
	if b.Until.IsZero() {
		return ""
	}
	left := max(0, b.Until.Sub(a.o.Clock()))
	if b.Retry != nil {
		return fmt.Sprintf(", try %d, next in %s", b.Retry.Attempt+1, cells.Span(left))
	}
	return " until " + b.Until.Format("15:04:05")
}

// composerRows draws what is being written, and puts the cursor there.
func (a *App) composerRows(c term.Canvas) {
	w, h := c.Size()
	lines, x, y := a.main().Rows(max(1, w-3), h)
	for i := range min(h, len(lines)) {
		head := "  "
		if i == 0 {
			head = "› "
		}
		c.Put(0, i, text.Of(text.Dim, head), 2)
		c.Put(2, i, lines[i], w-2)
	}
	if !a.inSide && !a.answers.focused && a.panel == nil {
		c.SetCursor(2+x, y)
	}
}

// footer says what holds: the connection, the bot, its tasks, who is asked.
func (a *App) footer(w int) text.Line {
	left := []text.Span{{Text: " "}}
	add := func(role text.Role, words string) {
		if len(left) > 1 {
			left = append(left, text.Span{Text: "  "})
		}
		left = append(left, text.Span{Text: words, Role: role})
	}
	switch {
	case a.lost != nil && a.lost.Stopped:
		add(text.Fail, "daemon stopped · Enter starts it")
	case a.lost != nil && a.lost.Spent:
		add(text.Fail, "daemon died again and again · Enter starts it")
	case a.lost != nil:
		add(text.Fail, "disconnected: "+cells.OneLine(fault.Screen.Words(a.lost.Err)))
	case a.world.Paused != nil:
		add(text.Warn, a.pausedWords())
	case a.session == nil:
		add(text.Dim, "○ new")
		add(text.Plain, a.start.lead)
	case a.session.gone:
		add(goneLook.Role, goneLook.Mark+" "+goneLook.Word)
		add(text.Plain, a.session.bot)
		add(text.Plain, "Enter: forget it, or a new lead")
	default:
		g := a.lookOf(a.session)
		add(g.Role, g.Mark+" "+g.Word)
		add(text.Plain, a.session.bot)
		for _, words := range a.taskWords() {
			add(text.Plain, words)
		}
	}
	if a.session != nil && a.lost == nil {
		a.warnings(add)
	}
	if n := a.notes.current(); n != nil {
		left = []text.Span{{Text: " "}, n.said()}
		if said := (text.Line{Spans: left}); said.Width() > w/3 { // it has the row to itself
			return said.Cut(w)
		}
	}
	words, warn := a.confinedWords()
	if w < 60 {
		words = shortWords(words)
	}
	if a.branch != "" && w >= 60 {
		words = append(words, cells.OneLine(a.branch))
	}
	role := text.Dim
	if warn {
		role = text.Warn
	}
	line := text.Line{Spans: left}
	right := func() text.Line { return text.Of(role, strings.Join(words, " · ")+" ") }
	for len(words) > 2 && line.Width()+right().Width() >= w {
		words = words[:len(words)-1] // the branch, then the network
	}
	if state := text.Join(left[:min(2, len(left))]...); state.Width()+right().Width()+2 > w {
		return line.Right(text.Line{}, w) // the state is never cut
	}
	return line.Right(right(), w)
}

// warnings are what the person must know of the bot on screen besides its state.
func (a *App) warnings(add func(text.Role, string)) {
	if words := a.unreadable(); words != "" {
		add(text.Fail, words)
	}
	if a.judging.down {
		add(text.Wait, "approver down")
	}
	if a.session.after != nil {
		add(text.Accent, a.session.afterWords+": after this turn")
	}
}

// shortWords are the footer's on a narrow screen.
func shortWords(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	out := words[:1:1]
	if slices.Contains(words, "net on") {
		out = append(out, "net")
	}
	return []string{strings.Join(out, " ")}
}

func (a *App) pausedWords() string {
	return "‖ " + cells.OneLine(fault.PausedBy(a.world.Paused))
}

// confinement is the bot's on screen, or that of the lead that is to be made.
func (a *App) confinement() lead.Confinement {
	if b := a.bot(); b != nil {
		return lead.Confined(&b.Record)
	}
	if a.start != nil {
		return a.start.plan(a).Confinement()
	}
	return lead.Confinement{}
}

// confinedWords are the footer's of it, none for a bot that is gone.
func (a *App) confinedWords() (words []string, warn bool) {
	if a.session != nil && a.bot() == nil {
		return nil, false
	}
	return a.confinement().Words()
}

// taskWords count the lead's tasks by what they do.
func (a *App) taskWords() (out []string) {
	b := a.bot()
	tasks := a.tasks()
	if b == nil || len(tasks) == 0 {
		return nil
	}
	count := map[live.State]int{}
	approvals := b.ForPerson()
	for _, t := range tasks {
		count[t.State(false)]++
		approvals += t.ForPerson()
	}
	words := []string{fmt.Sprintf("tasks %d", len(tasks))}
	for _, s := range []live.State{live.Working, live.Waiting, live.NeedsYou, live.Failed} {
		if count[s] > 0 {
			words = append(words, fmt.Sprintf("%s %d", roster.Looks[s].Mark, count[s]))
		}
	}
	out = []string{strings.Join(words, " ")}
	if approvals > 0 {
		out = append(out, fmt.Sprintf("approvals %d", approvals))
	}
	return out
}

// keyLine names the keys that do something now, the most useful first.
func (a *App) keyLine(w int) text.Line {
	keys := a.keyHints()
	right := "? keys "
	line := ""
	for _, k := range keys {
		if text.Width(line)+2+text.Width(k) > w-text.Width(right)-1 {
			break
		}
		line += " " + k + " "
	}
	return text.Of(text.Dim, strings.TrimRight(line, " ")).Right(text.Of(text.Dim, right), w)
}

func (a *App) keyHints() []string {
	switch {
	case a.panel != nil:
		return a.panel.hints()
	case a.answers.focused:
		return a.answers.hints(a)
	case a.answers.open(a) && !a.composing().Empty():
		return []string{"keys go to your message · Alt+A or Ctrl+X a moves to the question"}
	case a.answers.open(a) && a.session.working(a):
		return []string{"Alt+A or Ctrl+X a moves to the question", "Esc Esc stops the turn"}
	case a.answers.open(a):
		return []string{"Alt+A or Ctrl+X a moves to the question", "Enter send"}
	case len(a.menu.picks) > 0:
		return []string{"Tab complete", "↑↓ choose", "Esc close"}
	case a.session != nil && a.session.gone:
		return []string{"Enter forget it, or a new lead", "Ctrl+D detach"}
	case a.session == nil:
		return []string{"Enter send", "Shift+Enter newline", "@ file", "! shell", "/ commands"}
	case a.session.working(a):
		first, second := "Enter steer", "Tab queue"
		if a.o.QueueFirst || a.world.Paused != nil {
			first, second = "Enter queue", "Tab steer"
		}
		return []string{first, second, "Esc stop", "Ctrl+O output", "Ctrl+D detach"}
	}
	return []string{"Enter send", "Shift+Enter newline", "Shift+Tab row", "/ commands", "Ctrl+D detach"}
}

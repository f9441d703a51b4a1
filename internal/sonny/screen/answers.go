package screen

import (
	"slices"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
)

// asking is something that waits for the person's word.
type asking interface {
	id() string // of what is asked: with another id it is another question
	bot() string
	since() time.Time
	sheet(a *App, w int, whole bool) decide.Sheet
	pick(a *App, n int, words string) // takes a choice, with the words that it asked for
	own(a *App, action string)        // does an action of the approval keys that is the question's own
	leave(a *App) (done bool)         // Esc. It reports whether that ends the question
}

// writing is a text that is written in the panel.
type writing struct {
	edit.Field
	label string
	wrong string // of what was taken last
	take  func(a *App, words string) error
}

// area is a part of the screen, in cells.
type area struct{ x, y, w, h int }

// holds reports whether a place is in the area.
func (r area) holds(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// answers is the panel of what waits for the person. It shows one thing at a time, in
// the order in which they came.
type answers struct {
	list    []asking // the oldest first
	wide    bool     // those of tasks are shown as well
	pinned  string   // the id of one that is shown whosever it is
	shown   string   // the id of the one on screen; "" for none
	focused bool     // it has the keyboard
	guard   decide.Guard
	closing string    // why the panel was closed under the person's hands; "" when it was not
	left    time.Time // when Esc came last that interrupts nothing; zero: another key came since
	choice  int       // the highlighted one's number; 0 for none
	whole   bool
	view    decide.Window
	field   *writing
	at      area // where it was drawn last
	calls   calls
}

// visible are the things that the panel steps through now.
func (p *answers) visible(a *App) (out []asking) {
	if a.session == nil {
		return nil
	}
	for _, q := range p.list {
		b := a.world.Bot(q.bot())
		if q.bot() == a.session.bot || q.id() == p.pinned || p.wide && b != nil && a.concerns(b) {
			out = append(out, q)
		}
	}
	return out
}

// current is what is on screen; nil for nothing.
func (p *answers) current(a *App) asking {
	list := p.visible(a)
	for _, q := range list {
		if q.id() == p.shown {
			return q
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}

// open reports whether a question is on screen.
func (p *answers) open(a *App) bool { return p.current(a) != nil }

// add puts a question at its place.
func (p *answers) add(a *App, q asking) {
	if slices.ContainsFunc(p.list, func(old asking) bool { return old.id() == q.id() }) {
		return
	}
	p.list = append(p.list, q)
	slices.SortStableFunc(p.list, func(x, y asking) int { return x.since().Compare(y.since()) })
	p.settle(a, "")
}

// drop takes a question away. why is what the person is told whose hands are on it; ""
// where it was their own answer.
func (p *answers) drop(a *App, id, why string) {
	p.list = slices.DeleteFunc(p.list, func(q asking) bool { return q.id() == id })
	p.settle(a, why)
}

// deafen makes the panel take no key for a moment, and draws it anew when it takes them.
func (p *answers) deafen(a *App) {
	p.guard.Restart(a.o.Now())
	a.after(decide.Swallowed, func() {})
}

func (p *answers) swallows(a *App) bool {
	if !p.guard.Swallows(a.o.Now()) {
		return false
	}
	a.after(decide.Swallowed, func() {})
	return true
}

// settle follows a change of what waits: another question on screen is another to be
// read, so the panel is deaf again.
func (p *answers) settle(a *App, why string) {
	now := ""
	if q := p.current(a); q != nil {
		now = q.id()
	}
	was := p.shown
	if now == was {
		return
	}
	p.shown, p.choice, p.whole, p.view.Top, p.field = now, 0, false, 0, nil
	p.deafen(a)
	switch {
	case now == "":
		if p.focused {
			p.closing = why
		}
		p.focused, p.wide, p.pinned = false, false, ""
	case was == "":
		p.closing = ""
		p.focused = a.panel == nil && a.composing().Empty() && a.o.Now().Sub(a.lastKey) >= decide.QuietBefore
	}
}

// show is called when another session came on screen.
func (p *answers) show(a *App) {
	p.wide, p.pinned, p.focused, p.closing = false, "", false, ""
	p.settle(a, "")
	p.refresh(a)
}

// focus moves to the question on screen. It reports whether there is one.
func (p *answers) focus(a *App) bool {
	if !p.open(a) {
		return false
	}
	p.settle(a, "")
	p.focused, p.choice = true, 0
	p.deafen(a)
	return true
}

// yield gives the keyboard back to the composer.
func (p *answers) yield(a *App) {
	p.focused, p.field, p.wide, p.pinned = false, nil, false, ""
	p.settle(a, "")
}

// step is Alt+A: to the question, and from one to the next through those of the tasks
// as well; with none open, to the newest denial of the bot on screen.
func (p *answers) step(a *App) {
	if a.session == nil {
		return
	}
	stepping := p.focused
	p.wide = true
	if !p.open(a) {
		if q := a.denied(); q != nil {
			p.pinned = q.id()
			p.add(a, q)
		}
	}
	if stepping {
		p.next(a)
	}
	if !p.focus(a) {
		p.wide = false
		a.notes.say("nothing waits for you here")
	}
}

// next goes on to the next question.
func (p *answers) next(a *App) {
	list := p.visible(a)
	if len(list) < 2 {
		return
	}
	at := slices.IndexFunc(list, func(q asking) bool { return q.id() == p.shown })
	p.shown, p.choice, p.whole, p.view.Top, p.field = list[(at+1)%len(list)].id(), 0, false, 0, nil
	p.deafen(a)
}

// pin shows one thing, whosever it is.
func (p *answers) pin(a *App, id string) {
	p.pinned = id
	p.shown, p.choice, p.whole, p.view.Top, p.field = id, 0, false, 0, nil
	p.focus(a)
}

// holdsEsc reports whether an Esc in the composer interrupts nothing yet. With a question
// open the first one does not, and a second one only when it is no part of the same
// press (sonny.md 9.1).
func (p *answers) holdsEsc(a *App) bool {
	now := a.o.Now()
	switch {
	case !p.open(a):
		return !p.left.IsZero() && now.Sub(p.left) < doubleEsc
	case p.left.IsZero():
		p.left = now
		return true
	}
	return now.Sub(p.left) < doubleEsc
}

// key takes a key where the panel has the keyboard. It reports whether it took it.
func (p *answers) key(a *App, k term.Key) bool {
	if p.closing != "" && !p.open(a) {
		return p.lateKey(a, k)
	}
	if !p.focused || !p.open(a) {
		return false
	}
	if p.swallows(a) {
		return true
	}
	if p.field != nil {
		p.write(a, k)
		return true
	}
	for _, action := range a.o.Keys.Find(k.Name, keys.State{}, keys.Approval) {
		p.act(a, action)
		return true
	}
	switch k.Name {
	case "pgup":
		p.scroll(-p.page())
	case "pgdown":
		p.scroll(p.page())
	default:
		p.elsewhere(a, k)
	}
	return true
}

// panelPage is how many rows of a long call PgUp and PgDn go at most.
const panelPage = 8

func (p *answers) page() int { return max(1, min(panelPage, p.view.Page())) }

// elsewhere does the few actions that mean the same with a question on screen.
func (p *answers) elsewhere(a *App, k term.Key) {
	for _, action := range a.o.Keys.Find(k.Name, a.keyState(), keys.Global) {
		switch action {
		case "answer":
			p.step(a)
		case "suspend", "redraw":
			a.act(action)
		}
	}
}

// lateKey takes the keys of a moment in which the question was closed under the
// person's hands: they were meant for it, and are for nothing now.
func (p *answers) lateKey(a *App, k term.Key) bool {
	actions := a.o.Keys.Find(k.Name, keys.State{}, keys.Approval)
	if k.Text == "" && len(actions) == 0 {
		return false // a chord, which no question takes
	}
	if !p.swallows(a) {
		p.closing = ""
		return false
	}
	for _, action := range actions {
		if numbers[action] != 0 || action == "approve_take" {
			a.notes.say("too late: " + p.closing)
		}
	}
	return true
}

// numbers are the actions that take a choice by its number.
var numbers = map[string]int{"approve_first": 1, "approve_second": 2, "approve_third": 3, "approve_fourth": 4}

func (p *answers) act(a *App, action string) {
	if n := numbers[action]; n != 0 {
		p.take(a, n)
		return
	}
	switch action {
	case "approve_up":
		p.move(a, -1)
	case "approve_down":
		p.move(a, 1)
	case "approve_take":
		if p.choice != 0 {
			p.take(a, p.choice)
		} else {
			p.current(a).own(a, action)
		}
	case "approve_whole":
		p.whole, p.view.Top = !p.whole, 0
		p.current(a).own(a, action)
	case "approve_next":
		p.next(a)
	case "approve_all":
		a.listApprovals()
	case "approve_leave":
		if q := p.current(a); q.leave(a) {
			p.drop(a, q.id(), "")
		} else {
			p.yield(a)
			p.left = a.o.Now()
		}
	default:
		p.current(a).own(a, action)
	}
}

// move highlights the choice above or below; the first press highlights one.
func (p *answers) move(a *App, by int) {
	list := p.current(a).sheet(a, a.w, false).Choices
	if len(list) == 0 {
		p.view.Top = max(0, p.view.Top+by)
		return
	}
	at := slices.IndexFunc(list, func(c decide.Choice) bool { return c.N == p.choice })
	switch {
	case at < 0 && by < 0:
		at = len(list) - 1
	case at < 0:
		at = 0
	default:
		at = min(max(at+by, 0), len(list)-1)
	}
	p.choice = list[at].N
}

// take takes the choice of a number, where it is offered.
func (p *answers) take(a *App, n int) {
	q := p.current(a)
	list := q.sheet(a, a.w, false).Choices
	at := slices.IndexFunc(list, func(c decide.Choice) bool { return c.N == n })
	if at >= 0 && !list[at].Safe && p.view.TooLittle(q.id()) {
		a.notes.say("read it first: PgDn, or a larger window; too little of it was on screen to decide")
		return
	}
	if at < 0 {
		return
	}
	if list[at].Words == "" {
		q.pick(a, n, "")
		return
	}
	p.field = &writing{label: list[at].Words, take: func(a *App, words string) error { q.pick(a, n, words); return nil }}
}

// write takes a key of the text that is written in the panel.
func (p *answers) write(a *App, k term.Key) {
	f := p.field
	switch k.Name {
	case "enter":
		if err := f.take(a, f.Text()); err != nil {
			f.wrong = fault.Screen.Told(err).Detail
		} else if p.field == f {
			p.field = nil
		}
	case "esc":
		p.field = nil
	default:
		f.Key(a.o.Keys, k.Name, k.Text)
	}
}

// paste takes pasted text where something is written in the panel; else it is the
// composer's.
func (p *answers) paste(a *App, s string) bool {
	if p.focused && p.field != nil && !p.swallows(a) {
		p.field.Editor().Paste(s)
		return true
	}
	if p.focused {
		p.yield(a)
	}
	return false
}

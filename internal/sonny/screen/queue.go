package screen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// queueKeys edit what is in line (sonny.md 10.3).
var queueKeys = feature{
	commands: []slashCommand{{"queue", "[TEXT]", "what is in line; with TEXT, put it there", func(a *App, args string) error {
		if args == "" {
			a.openQueue()
			return nil
		}
		if s := a.at(); s != nil {
			a.post(s, textMessage(args), delivery{queue: true})
		}
		return nil
	}}},
	actions: map[string]func(*App){"queue_edit": (*App).queueKey},
}

// maxMine bounds the messages whose drafts are remembered; the oldest are forgotten.
const maxMine = 500

// remember keeps what a message was written as, for taking it back.
func (s *session) remember(request string, m message) {
	if s.mine == nil {
		s.mine = map[string]message{}
	}
	if len(s.order) >= maxMine {
		delete(s.mine, s.order[0])
		s.order = s.order[1:]
	}
	s.mine[request], s.order = m, append(s.order, request)
}

// queued is a message of the person's in line.
type queued struct {
	turn    int64
	request string
	steer   bool
	m       message
	cut     bool // only its first characters are known
}

// line are the person's messages in line, in order, without those that steer.
func (s *session) line(b *live.Bot) (list []queued) {
	for _, q := range s.lineUp(b) {
		if !q.steer {
			list = append(list, q)
		}
	}
	return list
}

// lineUp is line with those that steer.
func (s *session) lineUp(b *live.Bot) (list []queued) {
	if b == nil {
		return nil
	}
	for _, t := range b.Queue {
		if !persons(t) {
			continue
		}
		m, known := s.mine[t.Request]
		if !known {
			m = textMessage(t.Prompt)
		}
		list = append(list, queued{turn: t.ID, request: t.Request, steer: t.Steer, m: m, cut: !known && t.Cut})
	}
	return list
}

// turnEnded is said of a steer that came too late.
const turnEnded = "turn ended; Enter sends"

// persons reports whether a turn in line is a message that the person wrote in Sonny.
func persons(t live.Turn) bool { return t.From == "" && strings.HasPrefix(t.Request, "sonny_") }

// lineEdit is a message that was taken out of line to be changed, with those after it.
type lineEdit struct {
	number int       // of it, from 1
	out    []message // it, and those that are withheld, in order
	before edit.Draft
}

// queueKey is Alt+↑, Alt+1 to Alt+9, or the chord of the panel.
func (a *App) queueKey() {
	s := a.at()
	if s == nil {
		return
	}
	n := len(s.line(a.botAt(s)))
	if digit, is := strings.CutPrefix(a.chord, "alt+"); is && len(digit) == 1 && digit[0] >= '1' && digit[0] <= '9' {
		a.editQueued(s, int(digit[0]-'0'))
		return
	}
	if a.chord == "ctrl+x q" {
		a.openQueue()
		return
	}
	if n == 0 && len(s.held) == 0 && s.editing == nil && a.chord == "alt+up" {
		a.toMessage(false) // nothing waits: the key is the transcript's
		return
	}
	a.editQueued(s, n)
}

// editQueued takes the nth message into the composer. Those after it are withheld until
// it is sent again.
func (a *App) editQueued(s *session, n int) {
	line := s.line(a.botAt(s))
	if s.editing != nil {
		a.notes.say("one is being edited; Enter puts it back, Esc as it was")
		return
	}
	if n == len(line)+1 && len(line) == 0 && len(s.held) > 0 || n == 0 && len(s.held) > 0 {
		a.editHeld(s)
		return
	}
	if n < 1 || n > len(line) {
		a.notes.say(fmt.Sprintf("there is no message %d in line", max(n, 1)))
		return
	}
	a.takeOut(s, n, func(out []message) []message {
		if s = a.nowOf(s); !a.shows(s) { // it left the screen meanwhile
			return out
		}
		s.editing = &lineEdit{number: n, out: out, before: s.compose.Editor().Draft()}
		s.compose.Editor().SetDraft(out[0].draft)
		return nil
	})
}

// editHeld takes the newest message that an interrupt held into the composer.
func (a *App) editHeld(s *session) {
	last := len(s.held) - 1
	m := s.held[last]
	s.held = s.held[:last]
	a.giveBack(s, m)
}

// edited puts the message that was edited back where it was, with those that were
// withheld. An empty one is dropped.
func (a *App) edited() {
	s := a.at()
	m := messageOf(s.compose.Editor().Draft())
	if !m.empty() && !a.goes(&s.compose, m) {
		return
	}
	list := s.editing.out
	if m.empty() {
		list = list[1:]
	} else {
		list[0] = m
	}
	a.endEdit(s, list)
}

// unedited puts all back as it was.
func (a *App) unedited(s *session) { a.endEdit(s, s.editing.out) }

func (a *App) endEdit(s *session, list []message) {
	before := s.editing.before
	s.editing = nil
	s.compose.Editor().Sent()
	if !before.Empty() {
		s.compose.Editor().SetDraft(before)
	}
	if len(s.held) > 0 { // the turn was interrupted meanwhile: what was in line waits for the person
		s.held = append(s.held, list...)
		return
	}
	a.resubmit(s, list, s.post.next)
}

// taken is what came of taking messages out of line.
type taken struct {
	out     []message // in order
	started bool      // one of them had begun meanwhile
	err     error
}

// aside notes that messages are about to be taken out of line. It gives what writes that:
// should Sonny be killed, those that are out come back. wentOut ends it.
func (a *App) aside(s *session, line []queued) func() {
	for _, q := range line {
		f := a.takeOffTo(s, q.request, q.m, true)
		f.stage, f.turn, f.way.Held, f.way.After = leaving, q.turn, true, q.turn-1
	}
	return a.keeper(s.compose.keptAs)
}

// wentOut forgets what aside noted. Where it is not known whether one is out of line the
// daemon is asked.
func (a *App) wentOut(line []queued, t taken) {
	var unclear []*flight
	for i, q := range line {
		f := a.flightOf(q.request)
		if f != nil && t.err != nil && i < len(line)-len(t.out) {
			f.stage = astray
			unclear = append(unclear, f)
			continue
		}
		a.landed(f)
	}
	a.askFor(unclear)
}

// withdraw takes messages out of line, the last first, so that none starts before one
// that is still in line. It runs beside the loop. One that has begun meanwhile goes on,
// and ends the taking: those after it are out all the same.
func (a *App) withdraw(ctx context.Context, bot string, line []queued) (t taken) {
	defer instant("withdrawn")
	for _, q := range slices.Backward(line) {
		_, err := a.client().Withdraw(ctx, bot, q.turn, "taken back by the person")
		switch {
		case errors.Is(err, protocol.StaleTurn), errors.Is(err, protocol.NoActiveTurn):
			t.started = true
			return t
		case err != nil:
			t.err = err
			return t
		}
		t.out = append([]message{q.m}, t.out...)
	}
	return t
}

// takeOut withdraws the messages from the nth on. use gets them in order, and gives what
// is to stand in line in their place. Where one has started, all is as it was.
func (a *App) takeOut(s *session, n int, use func(out []message) []message) {
	b := a.botAt(s)
	line := s.line(b)
	if s.moving || n > len(line) {
		return
	}
	if i := slices.IndexFunc(line[n-1:], func(q queued) bool { return q.cut }); i >= 0 {
		a.notes.say("that message was queued elsewhere and is known in part alone; it can be dropped")
		return
	}
	s.moving = true
	part := slices.Clone(line[n-1:])
	s.post.next(func() {
		keep := a.aside(s, part)
		do(a, func(ctx context.Context) (taken, error) {
			keep()
			instant("withdrawing")
			t := a.withdraw(ctx, s.bot, part)
			return t, t.err
		}, func(t taken, err error) {
			s.moving = false
			if err != nil {
				a.notes.fail(err)
			}
			if t.started {
				a.notes.say("it has started; nothing was changed")
			}
			a.wentOut(part, t)
			if len(t.out) == len(part) {
				t.out = use(t.out)
			}
			a.resubmit(s, t.out, s.post.first)
			a.keepSoon(s.compose.keptAs)
			s.post.done()
		})
	})
}

// resubmit puts messages in line, in order, when the outbox says. Those that are refused
// are held.
func (a *App) resubmit(s *session, list []message, when func(func())) {
	if len(list) == 0 {
		return
	}
	root := a.workspace(s)
	var reqs []*protocol.Submit
	for _, m := range list {
		req := &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: a.requestFor(s, m), Delivery: protocol.Queue}
		reqs = append(reqs, req)
		s.remember(req.RequestID, m)
		a.takeOffTo(s, req.RequestID, m, true)
	}
	when(func() {
		var kept []func(context.Context)
		for _, req := range reqs {
			kept = append(kept, a.keepFiles(req))
		}
		keep := a.keeper(s.compose.keptAs)
		do(a, func(ctx context.Context) (int, error) {
			keep()
			for i, req := range reqs {
				kept[i](ctx)
				instant("handing")
				if err := a.handOnce(ctx, req, list[i], root); err != nil {
					return i, err
				}
				instant("handed")
			}
			return len(reqs), nil
		}, func(n int, err error) {
			for _, req := range reqs {
				a.arrived(req.RequestID)
			}
			if err != nil {
				a.hold(s.compose.keptAs, list[n:])
				a.notes.fail(err)
			}
			a.keepSoon(s.compose.keptAs)
			s.post.done()
		})
	})
}

// openQueue lists the messages in line.
func (a *App) openQueue() {
	s := a.at()
	if s == nil {
		return
	}
	on := func(do func(n int)) func(*App, lists.Row) bool {
		return func(a *App, r lists.Row) bool {
			var n int
			if _, err := fmt.Sscan(r.ID, &n); err == nil && s.editing == nil {
				do(n)
			}
			return false
		}
	}
	p := &listPanel{}
	*p = listPanel{
		name: "queue", title: "in line", empty: "nothing is in line",
		right: func() string { return fmt.Sprint(len(s.line(a.botAt(s))) + len(s.held)) },
		hint:  []string{"e edit", "d drop", "K J move", "Enter steer", "g join"},
		rows:  func(a *App) []lists.Row { return queueRows(s, a.botAt(s)) },
		keys: map[string]func(*App, lists.Row) bool{
			"queued_edit": func(a *App, r lists.Row) bool {
				on(func(n int) { a.editNumber(s, n) })(a, r)
				return true
			},
			"queued_drop": on(func(n int) { a.dropQueued(s, n) }),
			"queued_up":   on(func(n int) { p.At = fmt.Sprint(a.moveQueued(s, n, n-1)) }),
			"queued_down": on(func(n int) { p.At = fmt.Sprint(a.moveQueued(s, n, n+1)) }),
			"queued_join": on(func(n int) { a.joinQueued(s, n) }),
			"enter":       on(func(n int) { a.steerQueued(s, n) }),
		},
	}
	a.panel = p
}

// queueRows number those in line from 1, and after them those that are held.
func queueRows(s *session, b *live.Bot) (rows []lists.Row) {
	add := func(head string, m message) {
		first, _, _ := strings.Cut(m.prompt, "\n")
		rows = append(rows, lists.Row{ID: fmt.Sprint(len(rows) + 1), Match: m.prompt, Line: text.Join(
			text.Span{Text: text.Pad(head, 10), Role: text.Dim}, text.Span{Text: cells.OneLine(first)})})
	}
	for i, q := range s.line(b) {
		add(fmt.Sprintf("queued %d", i+1), q.m)
	}
	for _, m := range s.held {
		add("held", m)
	}
	return rows
}

// heldAt is the place among the held of a row's number; below 0 for one in line.
func (a *App) heldAt(s *session, n int) int { return n - 1 - len(s.line(a.botAt(s))) }

func (a *App) editNumber(s *session, n int) {
	if i := a.heldAt(s, n); i >= 0 {
		m := s.held[i]
		s.held = slices.Delete(s.held, i, i+1)
		a.giveBack(s, m)
		return
	}
	a.editQueued(s, n)
}

// dropQueued takes the nth out of line for good.
func (a *App) dropQueued(s *session, n int) {
	if i := a.heldAt(s, n); i >= 0 {
		s.held = slices.Delete(s.held, i, i+1)
		return
	}
	line := s.line(a.botAt(s))
	if n > len(line) {
		return
	}
	one := line[n-1 : n]
	do(a, func(ctx context.Context) (taken, error) { t := a.withdraw(ctx, s.bot, one); return t, t.err },
		func(t taken, err error) {
			switch {
			case err != nil:
				a.notes.fail(err)
			case t.started:
				a.notes.say("it has started; nothing was changed")
			}
		})
}

// moveQueued swaps the nth with a neighbour, and gives the number that it will have.
func (a *App) moveQueued(s *session, n, to int) int {
	first, last := min(n, to), max(n, to)
	if first < 1 || a.heldAt(s, last) >= 0 {
		return n
	}
	a.takeOut(s, first, func(out []message) []message {
		out[0], out[1] = out[1], out[0]
		return out
	})
	return to
}

// joinQueued makes one message of the nth and the one before it.
func (a *App) joinQueued(s *session, n int) {
	if a.heldAt(s, n) >= 0 || n < 2 {
		return
	}
	a.takeOut(s, n-1, func(out []message) []message {
		return append([]message{messageOf(out[1].draft.After(out[0].draft))}, out[2:]...)
	})
}

// steerQueued sends the nth into the running turn.
func (a *App) steerQueued(s *session, n int) {
	if i := a.heldAt(s, n); i >= 0 {
		m := s.held[i]
		s.held = slices.Delete(s.held, i, i+1)
		a.post(s, m, delivery{})
		return
	}
	line := s.line(a.botAt(s))
	if n > len(line) {
		return
	}
	one := line[n-1 : n]
	if one[0].cut {
		a.notes.say("that message was queued elsewhere and is known in part alone")
		return
	}
	keep := a.aside(s, one)
	do(a, func(ctx context.Context) (taken, error) {
		keep()
		t := a.withdraw(ctx, s.bot, one)
		return t, t.err
	},
		func(t taken, err error) {
			a.wentOut(one, t)
			switch {
			case err != nil:
				a.notes.fail(err)
			case t.started:
				a.notes.say("it has started already")
			default:
				a.post(s, t.out[0], delivery{})
			}
			a.keepSoon(s.compose.keptAs)
		})
}

package screen

import (
	"context"
	"errors"
	"os"
	"slices"

	"agent/client"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// returned is a message that came back because the daemon did not have it.
type returned struct {
	key   string
	draft edit.Draft
}

// retake takes up again what a file says is on its way: a Sonny that was killed left it.
func (a *App) retake(c *composer, ways []pen.OnWay) {
	var left []*flight
	for _, w := range ways {
		if f := a.flightOf(w.Request); f != nil { // it is this Sonny's own
			f.key = c.keptAs
			continue
		}
		if a.over[w.Request] { // what was read is older than that
			continue
		}
		f := &flight{key: c.keptAs, way: w, m: messageOf(w.Draft), stage: astray, since: a.o.Now()}
		a.flights = append(a.flights, f)
		if w.Store == a.ready.Store.Identity { // another store's daemon cannot be asked
			left = append(left, f)
		}
	}
	a.askFor(left)
}

// askFor asks the daemon which messages it has. Those that it has not come back.
func (a *App) askFor(left []*flight) {
	if len(left) == 0 {
		return
	}
	known := map[int64]bool{}
	for b := range a.world.Bots() {
		known[b.Record.ID] = true
	}
	ask := slices.Clone(left)
	ask = slices.DeleteFunc(ask, func(f *flight) bool { return f.way.BotID != 0 && !known[f.way.BotID] })
	type answer struct {
		has   map[*flight]*protocol.Turn
		begun map[*flight]bool
	}
	hand := a.keeping.hand
	do(a, func(ctx context.Context) (answer, error) {
		got := answer{map[*flight]*protocol.Turn{}, map[*flight]bool{}}
		for _, f := range ask {
			var err error
			switch {
			case f.way.Hand != hand && a.pen.drafts.Lives(f.way.Hand): // it is on its way there
				got.begun[f] = true
			case f.way.Begins != "":
				got.begun[f] = os.Remove(f.way.Begins) != nil // from now on it never begins
			case f.way.Makes:
				got.begun[f], err = a.isThere(ctx, f.way.Bot)
			default:
				got.has[f], err = a.turnOf(ctx, f.way)
			}
			if err != nil {
				return got, err
			}
		}
		return got, nil
	}, func(got answer, err error) {
		if err != nil { // the file keeps them for the next time
			a.failing(err)
			return
		}
		a.settle(left, got.has, got.begun)
	})
}

func (a *App) isThere(ctx context.Context, bot string) (bool, error) {
	_, err := client.Retry(ctx, func(ctx context.Context) (*protocol.Bot, error) { return a.client().Inspect(ctx, bot) })
	if errors.Is(err, protocol.BotNotFound) {
		return false, nil
	}
	return err == nil, err
}

// turnOf is the turn that a message was taken as; nil where the daemon has none.
func (a *App) turnOf(ctx context.Context, w pen.OnWay) (*protocol.Turn, error) {
	turn, err := client.Retry(ctx, func(ctx context.Context) (*protocol.Turn, error) {
		for t, err := range a.client().Turns(ctx, w.Bot, w.After) {
			if err != nil {
				return nil, err
			}
			if t.RequestID == w.Request {
				return t, nil
			}
		}
		return nil, nil
	})
	if errors.Is(err, protocol.BotNotFound) {
		return nil, nil
	}
	return turn, err
}

// settle puts each message where it belongs by what the daemon has.
func (a *App) settle(left []*flight, has map[*flight]*protocol.Turn, begun map[*flight]bool) {
	var back []*flight
	for _, f := range left {
		t := has[f]
		switch {
		case begun[f]:
		case t == nil:
			a.returned[f.way.Request] = returned{f.key, f.way.Draft}
			back = append(back, f)
		case t.Status == protocol.StatusQueued || t.Status == protocol.StatusReady:
			if c := a.composerOf(f.key); c != nil && c.of != nil && f.way.Bot == c.of.bot {
				c.of.remember(f.way.Request, f.m)
			}
			if t.Delivery == protocol.Steer {
				f.stage, f.turn = steering, t.Turn
				continue
			}
		case t.StartedMS == nil && t.Status != protocol.StatusSteered: // it ended in line
			back = append(back, f)
		}
		a.landed(f)
	}
	a.comeBack(back)
	for _, f := range left {
		a.keepSoon(f.key)
	}
}

// comeBack puts messages that the daemon has not where the person finds them: one into
// the composer, several each on its own, held. None goes out by itself.
func (a *App) comeBack(back []*flight) {
	var held []message
	one := len(back) == 1 && !back[0].way.Held
	for _, f := range back {
		if c := a.composerOf(f.key); one || c != nil && c.of == nil {
			a.putBack(f.key, f.m)
			continue
		}
		held = append(held, f.m)
	}
	if len(held) > 0 {
		a.hold(back[0].key, held)
	}
	switch {
	case len(back) == 0:
	case len(held) == 0:
		a.notes.say("what you wrote had not gone out when Sonny ended; Enter sends it")
	default:
		a.notes.say("what had not gone out when Sonny ended is held; Enter sends it")
	}
}

// tookLate takes a message that came back away again: the daemon has it after all.
func (a *App) tookLate(request string) {
	r, is := a.returned[request]
	if !is {
		return
	}
	delete(a.returned, request)
	same := func(d edit.Draft) bool { return sameText(d, r.draft) }
	a.rewrite(r.key, func(c *composer) {
		if same(c.Editor().Draft()) {
			c.Editor().Sent()
		} else if s := c.of; s != nil {
			s.held = slices.DeleteFunc(s.held, func(m message) bool { return same(m.draft) })
		}
	}, func(k *pen.Kept) {
		if same(k.Draft) {
			k.Draft = edit.Draft{}
		} else {
			k.Held = slices.DeleteFunc(slices.Clone(k.Held), same)
		}
	})
}

// requestFor is the request under which a message goes out: the one under which it went
// before where it came back, so that the daemon never takes it twice.
func (a *App) requestFor(s *session, m message) string {
	for request, r := range a.returned {
		if r.key == s.compose.keptAs && sameText(r.draft, m.draft) {
			delete(a.returned, request)
			return request
		}
	}
	return requestID()
}

// sameText reports whether two drafts are the same message.
func sameText(x, y edit.Draft) bool {
	one, pictures := x.Message()
	other, more := y.Message()
	return one == other && slices.EqualFunc(pictures, more, func(p, q edit.Chip) bool { return p.Path == q.Path })
}

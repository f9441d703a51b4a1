package outbox

import (
	"context"
	"errors"
	"os"
	"slices"

	"agent/client"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// returned is a message that came back because the daemon did not have it.
type returned struct {
	key   string
	draft edit.Draft
}

// retake takes up again what a file says is on its way: a Sonny that was killed left it.
func (o *Outbox) retake(b *Box, ways []pen.OnWay) {
	var left []*Flight
	for _, w := range ways {
		if f := o.flightOf(w.Request); f != nil { // it is this Sonny's own
			f.key = b.key
			continue
		}
		if o.over[w.Request] { // what was read is older than that
			continue
		}
		f := &Flight{key: b.key, way: w, m: Of(w.Draft), stage: astray, since: o.now()}
		o.flights = append(o.flights, f)
		if w.Store == o.screen.Store() { // another store's daemon cannot be asked
			left = append(left, f)
		}
	}
	o.askFor(left)
}

// askFor asks the daemon which messages it has. Those that it has not come back.
func (o *Outbox) askFor(left []*Flight) {
	if len(left) == 0 {
		return
	}
	known := map[int64]bool{}
	for b := range o.screen.World().Bots() {
		known[b.Record.ID] = true
	}
	ask := slices.Clone(left)
	ask = slices.DeleteFunc(ask, func(f *Flight) bool { return f.way.BotID != 0 && !known[f.way.BotID] })
	type answer struct {
		has   map[*Flight]*protocol.Turn
		begun map[*Flight]bool
	}
	hand := o.keeping.hand
	beside.Do(o.screen, func(ctx context.Context) (answer, error) {
		got := answer{map[*Flight]*protocol.Turn{}, map[*Flight]bool{}}
		for _, f := range ask {
			var err error
			switch {
			case f.way.Hand != hand && o.drafts.Lives(f.way.Hand): // it is on its way there
				got.begun[f] = true
			case f.way.Begins != "":
				got.begun[f] = os.Remove(f.way.Begins) != nil // from now on it never begins
			case f.way.Makes:
				got.begun[f], err = o.isThere(ctx, f.way.Bot)
			default:
				got.has[f], err = o.turnOf(ctx, f.way)
			}
			if err != nil {
				return got, err
			}
		}
		return got, nil
	}, func(got answer, err error) {
		if err != nil { // the file keeps them for the next time
			o.failing(err)
			return
		}
		o.settle(left, got.has, got.begun)
	})
}

func (o *Outbox) isThere(ctx context.Context, bot string) (bool, error) {
	_, err := client.Retry(ctx, func(ctx context.Context) (*protocol.Bot, error) { return o.daemon.Inspect(ctx, bot) })
	if errors.Is(err, protocol.BotNotFound) {
		return false, nil
	}
	return err == nil, err
}

// turnOf is the turn that a message was taken as; nil where the daemon has none.
func (o *Outbox) turnOf(ctx context.Context, w pen.OnWay) (*protocol.Turn, error) {
	turn, err := client.Retry(ctx, func(ctx context.Context) (*protocol.Turn, error) {
		for t, err := range o.daemon.Turns(ctx, w.Bot, w.After) {
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
func (o *Outbox) settle(left []*Flight, has map[*Flight]*protocol.Turn, begun map[*Flight]bool) {
	var back []*Flight
	for _, f := range left {
		t := has[f]
		switch {
		case begun[f]:
		case t == nil:
			o.returned[f.way.Request] = returned{f.key, f.way.Draft}
			back = append(back, f)
		case t.Status == protocol.StatusQueued || t.Status == protocol.StatusReady:
			if b := o.composerOf(f.key); b != nil && b.to != nil && f.way.Bot == b.to.Name() {
				b.remember(f.way.Request, f.m)
			}
			if t.Delivery == protocol.Steer {
				f.stage, f.turn = steering, t.Turn
				continue
			}
		case t.StartedMS == nil && t.Status != protocol.StatusSteered: // it ended in line
			back = append(back, f)
		}
		o.landed(f)
	}
	o.comeBack(back)
	for _, f := range left {
		o.keepSoon(f.key)
	}
}

// comeBack puts messages that the daemon has not where the person finds them: one into
// the composer, several each on its own, held. None goes out by itself.
func (o *Outbox) comeBack(back []*Flight) {
	var held []Message
	one := len(back) == 1 && !back[0].way.Held
	for _, f := range back {
		if b := o.composerOf(f.key); one || b != nil && b.to == nil {
			o.putBack(f.key, f.m)
			continue
		}
		held = append(held, f.m)
	}
	if len(held) > 0 {
		o.hold(back[0].key, held)
	}
	switch {
	case len(back) == 0:
	case len(held) == 0:
		o.screen.Say("what you wrote had not gone out when Sonny ended; Enter sends it")
	default:
		o.screen.Say("what had not gone out when Sonny ended is held; Enter sends it")
	}
}

// tookLate takes a message that came back away again: the daemon has it after all.
func (o *Outbox) tookLate(request string) {
	r, is := o.returned[request]
	if !is {
		return
	}
	delete(o.returned, request)
	same := func(d edit.Draft) bool { return sameText(d, r.draft) }
	o.rewrite(r.key, func(b *Box) {
		if same(b.Editor().Draft()) {
			b.Editor().Sent()
		} else {
			b.held = slices.DeleteFunc(b.held, func(m Message) bool { return same(m.draft) })
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
func (o *Outbox) requestFor(b *Box, m Message) string {
	for request, r := range o.returned {
		if r.key == b.key && sameText(r.draft, m.draft) {
			delete(o.returned, request)
			return request
		}
	}
	return NewRequest()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agent/protocol"
)

// fleetShape is W6's (runtime.md 32).
type fleetShape struct {
	bots   int // bot-0 is the anchor
	parked int // of them, on the anchor's one turn
	active int // --max-active
	turns  int // of each bot that is neither
	cut    int // turns in flight at the kill
}

var (
	fleetWhole = fleetShape{bots: 10_000, parked: 5_000, active: 1_024, turns: 2, cut: 840}
	fleetQuick = fleetShape{bots: 200, parked: 100, active: 32, turns: 2, cut: 20}
)

// fleetReply is how long the provider takes over an answer: with it the live
// turns, and not the provider, are what there are many of.
const fleetReply = 700

func (f fleetShape) String() string {
	return fmt.Sprintf("%s bots, %s in flight", comma(f.bots), comma(f.active))
}

// fleet is W6.
func (b *bench) fleet(ctx context.Context) error {
	shape := fleetWhole
	if b.quick {
		shape = fleetQuick
	}
	if err := b.fleetTurns(ctx, shape); err != nil {
		return err
	}
	return b.fleetHeap(ctx, shape)
}

// fleetTurns runs the fleet on the daemon that is measured.
func (b *bench) fleetTurns(ctx context.Context, f fleetShape) error {
	s, err := b.set(ctx, staging{
		model: []string{playWord}, flags: []string{"--max-active", fmt.Sprint(f.active)},
	})
	if err != nil {
		return err
	}
	add := func(figure, unit string, v float64) { b.report.add("W6", f.String(), figure, unit, v) }
	if err := s.fleet(ctx, f, add); err != nil {
		_, err = s.end(err)
		return err
	}
	u, err := s.daemon.kill()
	if err := errors.Join(err, s.start(ctx)); err != nil {
		return errors.Join(err, s.model.close())
	}
	add("peak", "MiB", inMiB(u.Peak))
	add("own pages", "MiB", inMiB(u.Own))
	add("cpu", "s", u.CPU)
	add(fmt.Sprintf("restart with %d in flight", f.cut), "ms", millis(s.daemon.ready))
	_, err = s.end(s.interrupted(ctx, f))
	return err
}

// fleet makes the bots, parks half of them, runs the others, lets the parked
// ones go on, and leaves turns in flight.
func (s *stage) fleet(ctx context.Context, f fleetShape, add func(figure, unit string, v float64)) error {
	began := time.Now()
	if err := s.daemon.createMany(ctx, 0, f.bots, s.workspace, "wait"); err != nil {
		return err
	}
	add("bots made", "s", time.Since(began).Seconds())
	began = time.Now()
	parked, err := s.park(ctx, f.parked)
	if err != nil {
		return err
	}
	add("parked a second", "1/s", float64(f.parked)/time.Since(began).Seconds())
	rate, err := s.fleetRate(ctx, f)
	if err != nil {
		return err
	}
	add("turns a second", "1/s", rate)
	began = time.Now()
	if err := s.unpark(ctx, parked); err != nil {
		return err
	}
	add("parked turns ended a second", "1/s", float64(f.parked)/time.Since(began).Seconds())
	return s.hold(ctx, f.bots-f.cut, f.bots, f.turns, "cut")
}

// fleetRate gives the turns a second of the bots that are not parked, with all
// places taken: as many turns as may be live are held until the provider has
// seen them all. They do not count, since they began before.
func (s *stage) fleetRate(ctx context.Context, f fleetShape) (float64, error) {
	first, held := f.parked+1, f.active-1
	var ramp []*watched
	for n := range held {
		ramp = append(ramp, s.daemon.watch.expect(botName(first+n)))
	}
	if err := s.hold(ctx, first, first+held, 0, "ramp"); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.model.ask("release ramp", &struct{}{}); err != nil {
		return 0, err
	}
	free := f.bots - first
	err := each(free, func(n int) error {
		from := 0
		if n < held {
			from = 1
			if err := s.daemon.completed(ctx, ramp[n:n+1]); err != nil {
				return err
			}
		}
		for t := from; t < f.turns; t++ {
			prompt := part{DelayMS: fleetReply}.prompt(first+n, t, 0)
			if _, err := s.daemon.run(ctx, botName(first+n), requestOf(t), prompt); err != nil {
				return err
			}
		}
		return nil
	})
	rate := float64(free*f.turns-held) / time.Since(began).Seconds()
	if err != nil {
		return 0, err
	}
	stats, err := s.model.stats()
	if err == nil && stats.MaxOpen != f.active {
		err = fmt.Errorf("the provider saw %d answers at once, not %d: no figure", stats.MaxOpen, f.active)
	}
	return rate, err
}

// park runs a turn of bot-0 that does not end and parks the bots from 1 on it.
func (s *stage) park(ctx context.Context, bots int) ([]*watched, error) {
	s.daemon.delivery = protocol.Queue // as many as may run do, all the time, and the others wait
	turns := []*watched{s.daemon.watch.expect(botName(0))}
	anchor, err := s.daemon.submit(ctx, 0, 0, part{Hold: "anchor"})
	if err != nil {
		return nil, err
	}
	wait := calling("wait", map[string][]string{"handles": {anchor.Handle}})
	for n := range bots {
		turns = append(turns, s.daemon.watch.expect(botName(n+1)))
	}
	err = some(1, bots+1, func(n int) error {
		_, err := s.daemon.submit(ctx, n, 0, wait)
		return err
	})
	for n := 1; n <= bots && err == nil; n++ {
		select {
		case <-turns[n].parked:
		case <-turns[n].done:
			err = fmt.Errorf("the turn of %s ended in place of waiting: %s", botName(n), turns[n].why)
		case <-s.daemon.watch.ended:
			err = s.daemon.watch.failure()
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return turns, err
}

// unpark lets the anchor end and waits for all that were parked on it.
func (s *stage) unpark(ctx context.Context, turns []*watched) error {
	if err := s.model.ask("release anchor", &struct{}{}); err != nil {
		return err
	}
	return s.daemon.completed(ctx, turns)
}

// hold leaves a turn of each bot in flight, its answer held under a name.
func (s *stage) hold(ctx context.Context, from, to, turn int, name string) error {
	err := some(from, to, func(n int) error {
		_, err := s.daemon.submit(ctx, n, turn, part{Hold: name})
		return err
	})
	if err != nil {
		return err
	}
	return s.model.ask(fmt.Sprintf("await %s %d", name, to-from), &struct{}{})
}

// interrupted checks that the turns that were in flight at the kill have ended.
func (s *stage) interrupted(ctx context.Context, f fleetShape) error {
	stats, err := s.daemon.stats(ctx)
	if err != nil {
		return err
	}
	if n := stats.ActiveTurns + stats.WaitingTurns + stats.QueuedTurns; n != 0 {
		return fmt.Errorf("%d turns live after the restart", n)
	}
	for n := f.bots - f.cut; n < f.bots; n += max(f.cut/20, 1) {
		var record protocol.Bot
		if err := s.daemon.session.Do(ctx, "inspect", &protocol.Inspect{Bot: botName(n)}, &record); err != nil {
			return err
		}
		if record.Status != "interrupted" {
			return fmt.Errorf("%s is %s after the kill", record.Name, record.Status)
		}
	}
	return nil
}

// fleetHeap asks a probed daemon what is live on its heap for each bot.
func (b *bench) fleetHeap(ctx context.Context, f fleetShape) error {
	limits := probedLimits()
	limits.Active = int64(f.active)
	s, err := b.set(ctx, staging{model: []string{playWord}, probed: &probedSpec{Limits: limits}})
	if err != nil {
		return err
	}
	heaps, err := s.heaps(ctx, f)
	if _, err := s.end(err); err != nil {
		return err
	}
	add := func(figure string, more int64, bots int) {
		b.report.add("W6", "live heap", figure, "KiB", max(float64(more)/float64(bots)/kib, 0))
	}
	first := f.bots / 10
	add("an idle bot", heaps[1]-heaps[0], f.bots-first)
	add("a parked turn", heaps[3]-heaps[2], f.parked)
	add("an active turn and its connection", heaps[4]-heaps[3], f.active-1)
	return nil
}

// heaps gives what is live with a tenth of the bots, with all, with the anchor,
// with the parked ones, and with as many turns in flight as there may be. The
// first bots and the first turn bring with them what is there only once.
func (s *stage) heaps(ctx context.Context, f fleetShape) (heaps []int64, err error) {
	look := func() error {
		p, err := s.probe()
		heaps = append(heaps, p.Heap)
		return err
	}
	first := f.bots / 10
	if err := s.daemon.createMany(ctx, 0, first, s.workspace, "wait"); err != nil {
		return nil, err
	}
	if err := look(); err != nil {
		return nil, err
	}
	if err := s.daemon.createMany(ctx, first, f.bots, s.workspace, "wait"); err != nil {
		return nil, err
	}
	if err := look(); err != nil {
		return nil, err
	}
	if _, err := s.daemon.run(ctx, botName(f.bots-1), "warm-up", part{}.prompt(0, 0, 0)); err != nil {
		return nil, err
	}
	if err := look(); err != nil {
		return nil, err
	}
	parked, err := s.park(ctx, f.parked)
	if err != nil {
		return nil, err
	}
	if err := look(); err != nil {
		return nil, err
	}
	last := f.parked + f.active
	if err := s.hold(ctx, f.parked+1, last, 0, "all"); err != nil {
		return nil, err
	}
	if err := look(); err != nil {
		return nil, err
	}
	return heaps, errors.Join(s.model.ask("release all", &struct{}{}), s.unpark(ctx, parked))
}

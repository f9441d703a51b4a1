package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agent/client"
	"agent/protocol"
)

// W9's shape (runtime.md 32). The first bursts of a fresh daemon meet what is
// made only once and do not count.
const (
	burstBots   = 32
	burstWarmUp = 5
	bursts      = 100
)

// bursts is W9: answers that end together, and submissions that come together.
func (b *bench) bursts(ctx context.Context) error {
	s, err := b.set(ctx, staging{model: []string{playWord}, socket: true})
	if err != nil {
		return err
	}
	count := bursts
	if b.quick {
		count = 3
	}
	f := &burst{stage: s}
	err = f.run(ctx, count)
	if _, err := s.end(err); err != nil {
		return err
	}
	add := func(kase, figure, unit string, v float64) { b.report.add("W9", kase, figure, unit, v) }
	add("32 completions", "last p50", "ms", percentile(f.ends, 50))
	add("32 completions", "last p99", "ms", percentile(f.ends, 99))
	add("32 completions", "cpu a burst", "ms", f.cpu*1000/float64(count))
	add("32 admissions", "last p50", "ms", percentile(f.admits, 50))
	add("32 admissions", "last p99", "ms", percentile(f.admits, 99))
	return nil
}

// burst is one run: a connection for each bot.
type burst struct {
	*stage
	sessions []*client.Session
	turn     int
	admits   []time.Duration // from the first submission to the last answer
	ends     []time.Duration // from the release to the last end that the client sees
	cpu      float64         // of the daemon, from all releases to the ends
}

func (f *burst) run(ctx context.Context, count int) error {
	if err := f.daemon.createMany(ctx, 0, burstBots, f.workspace); err != nil {
		return err
	}
	for range burstBots {
		s, err := f.daemon.client.Session(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		f.sessions = append(f.sessions, s)
	}
	for n := range burstWarmUp + count {
		if n == burstWarmUp {
			f.admits, f.ends, f.cpu = nil, nil, 0
		}
		if err := f.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

// once submits on every connection at the same moment, lets every answer come
// to its end, and then lets them all end at the same moment.
func (f *burst) once(ctx context.Context) error {
	f.turn++
	hold := fmt.Sprintf("burst-%d", f.turn)
	turns, start := make([]*watched, burstBots), make(chan struct{})
	for n := range turns {
		turns[n] = f.daemon.watch.expect(botName(n))
	}
	var began time.Time
	answered := make([]time.Duration, burstBots)
	time.AfterFunc(2*time.Millisecond, func() { // when every connection's sender waits
		began = time.Now()
		close(start)
	})
	err := each(burstBots, func(n int) error {
		request := &protocol.Submit{Bot: botName(n), RequestID: requestOf(f.turn), Prompt: part{Hold: hold}.prompt(n, f.turn, 0)}
		<-start
		err := f.sessions[n].Do(ctx, "submit", request, nil)
		answered[n] = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	f.admits = append(f.admits, last(answered))
	return f.finish(ctx, hold, turns)
}

func (f *burst) finish(ctx context.Context, hold string, turns []*watched) error {
	if err := f.model.ask(fmt.Sprintf("await %s %d", hold, burstBots), &struct{}{}); err != nil {
		return err
	}
	for _, t := range turns { // the daemon has read all there is up to the end
		select {
		case <-t.begun:
		case <-t.done:
		}
	}
	before, err := f.cpuNow()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.model.ask("release "+hold, &struct{}{}); err != nil {
		return err
	}
	if err := f.daemon.completed(ctx, turns); err != nil {
		return err
	}
	after, err := f.cpuNow()
	f.cpu += after - before
	ends := make([]time.Duration, len(turns))
	for n, t := range turns {
		ends[n] = t.finished.Sub(began)
	}
	f.ends = append(f.ends, last(ends))
	return err
}

// pauseAll pulls the cord. It takes as long as its answer, behind which nothing
// runs any more.
func (s *stage) pauseAll(ctx context.Context, turns []*watched) (time.Duration, error) {
	began := time.Now()
	var pause protocol.Pause
	err := s.daemon.session.Do(ctx, "pause", &protocol.PauseRequest{By: "bench"}, &pause)
	took := time.Since(began)
	if err == nil && pause.InterruptedTurns != int64(len(turns)) {
		err = fmt.Errorf("the pause ended %d turns of %d", pause.InterruptedTurns, len(turns))
	}
	return took, errors.Join(err, s.daemon.ended(ctx, turns, "interrupted"))
}

func last(d []time.Duration) (most time.Duration) {
	for _, v := range d {
		most = max(most, v)
	}
	return most
}

// interruptBots is how many turns are interrupted at once.
const interruptBots = 1_000

// interrupts ends many turns at the same moment, each by its own interrupt and
// all by one pause, once while their models answer and once while their
// commands run.
func (b *bench) interrupts(ctx context.Context) error {
	bots := interruptBots
	if b.quick {
		bots = 20
	}
	for _, kase := range []struct {
		name     string
		commands bool
		end      func(*stage, context.Context, []*watched) (time.Duration, error)
	}{
		{"mid-request", false, (*stage).interruptAll},
		{"in a command", true, (*stage).interruptAll},
		{"paused mid-request", false, (*stage).pauseAll},
		{"paused in a command", true, (*stage).pauseAll},
	} {
		took, err := b.interruptOnce(ctx, bots, kase.commands, kase.end)
		if err != nil {
			return fmt.Errorf("%s: %w", kase.name, err)
		}
		b.report.add("interrupts", comma(bots)+" "+kase.name, "all ended", "ms", millis(took))
	}
	return nil
}

func (b *bench) interruptOnce(ctx context.Context, bots int, commands bool,
	end func(*stage, context.Context, []*watched) (time.Duration, error),
) (took time.Duration, err error) {
	s, err := b.set(ctx, staging{model: []string{playWord, "-lost"}, flags: []string{"--max-processes", "0"}})
	if err != nil {
		return 0, err
	}
	var turns []*watched
	err = s.daemon.createMany(ctx, 0, bots, s.workspace, "shell")
	for n := range bots {
		turns = append(turns, s.daemon.watch.expect(botName(n)))
	}
	if err == nil && commands {
		err = s.runCommands(ctx, turns)
	} else if err == nil {
		err = s.hold(ctx, 0, bots, 0, "all")
	}
	if err == nil {
		took, err = end(s, ctx, turns)
	}
	_, err = s.end(err)
	return took, err
}

// runCommands leaves a turn of each bot in a command that takes long, and comes
// back when every command runs.
func (s *stage) runCommands(ctx context.Context, turns []*watched) error {
	err := some(0, len(turns), func(n int) error {
		_, err := s.daemon.submit(ctx, n, 0, shell(fmt.Sprintf(": > runs-%d; exec sleep 600", n)))
		return err
	})
	for err == nil && ctx.Err() == nil {
		var runs []os.DirEntry
		if runs, err = os.ReadDir(s.workspace); len(runs) == len(turns) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.Join(err, ctx.Err())
}

func (s *stage) interruptAll(ctx context.Context, turns []*watched) (time.Duration, error) {
	ids := make([]int64, len(turns))
	err := some(0, len(turns), func(n int) error {
		var record protocol.Bot
		err := s.daemon.session.Do(ctx, "inspect", &protocol.Inspect{Bot: botName(n)}, &record)
		if err == nil && record.RunningTurn == nil {
			err = errors.New("no turn runs")
		}
		if err == nil {
			ids[n] = *record.RunningTurn
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = each(len(turns), func(n int) error {
		return s.daemon.session.Do(ctx, "interrupt", &protocol.Interrupt{Bot: botName(n), Turn: ids[n]}, nil)
	})
	if err := errors.Join(err, s.daemon.ended(ctx, turns, "interrupted")); err != nil {
		return 0, err
	}
	ends := make([]time.Duration, len(turns))
	for n, t := range turns {
		ends[n] = t.finished.Sub(began)
	}
	return last(ends), nil
}

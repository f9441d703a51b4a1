package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"agent/protocol"
)

// The daemon's memory budget (runtime.md 32, RT-101; the wider of its bounds).
// Passing it fails the tests; passing the goal is only said, since the goal is
// for a quiet machine.
const (
	budget       = 40 * mib
	goal         = 25 * mib
	idleBudget   = 5 * mib
	guardStreams = 32
	guardTurns   = 4 // of 256 KiB each: a history of 1 MiB
	guardBots    = 10_000
)

// guard builds the two programs and gives a bench that uses them.
func guard(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{agent: filepath.Join(dir, "agent"), self: filepath.Join(dir, "bench"), dir: dir,
		family: "responses", report: &report{}, stores: map[string]string{}, log: t.Output()}
	if err := build(t.Context(), dir+"/", "agent/cmd/agent", "agent/bench"); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGuard(t *testing.T) {
	b := guard(t)
	t.Run("RT-101 32 streams with 1 MiB of history each stay within the memory budget", b.guardStreams)
	t.Run("RT-101 10,000 idle bots cost next to nothing", b.guardIdle)
}

func (b *bench) guardStreams(t *testing.T) {
	for _, family := range []string{"responses", "anthropic"} {
		t.Run(family, func(t *testing.T) {
			b.family = family
			peak := b.longStreams(t)
			t.Logf("%s: peak %.1f MiB", family, inMiB(peak))
			if peak > budget {
				t.Errorf("RT-101: the daemon's peak was %.1f MiB; the budget is %d MiB", inMiB(peak), budget/mib)
			} else if peak > goal {
				t.Logf("WARNING, RT-101: the daemon's peak was %.1f MiB; the goal is %d MiB", inMiB(peak), goal/mib)
			}
		})
	}
}

// longStreams gives the peak of a fresh daemon whose bots all have a history of
// 1 MiB and all stream at the same moment. The daemon that took the prompts in
// is another one: 32 prompts of 256 KiB at once cost what they cost, and are
// no streams.
func (b *bench) longStreams(t *testing.T) (peak int64) {
	ctx := t.Context()
	s, err := b.stage(ctx, "-identity", "model", "-deltas", "20", "-size", "256", "-gap", "1ms")
	if err != nil {
		t.Fatal(err)
	}
	err = s.create(ctx, guardStreams)
	if err == nil {
		_, err = s.streams(ctx, guardStreams, guardTurns, protocol.MaxPrompt)
	}
	taken, end := s.daemon.stop()
	if err := errors.Join(err, end, s.start(ctx)); err != nil {
		t.Fatal(err, s.model.close())
	}
	t.Logf("peak while the prompts came in: %.1f MiB", inMiB(taken.Peak))
	err = s.heldTurns(ctx)
	stats, serr := s.model.stats()
	u, end := s.close()
	if err := errors.Join(err, serr, end); err != nil {
		t.Fatal(err)
	}
	const turns = guardStreams * (guardTurns + 1)
	if stats.MaxOpen != guardStreams || stats.Completed != turns || stats.BytesIn < guardStreams*3*mib {
		t.Fatalf("the provider saw %d of %d streams at once, finished %d of %d and read %d bytes",
			stats.MaxOpen, guardStreams, stats.Completed, turns, stats.BytesIn)
	}
	return u.Peak
}

// heldTurns runs a turn of every bot and lets none end before each has shown
// text.
func (s *stage) heldTurns(ctx context.Context) error {
	if err := s.model.ask("hold", &struct{}{}); err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, guardStreams)
	turns := make([]*watched, guardStreams)
	failed := make(chan struct{}, guardStreams)
	for n := range guardStreams {
		turns[n] = s.daemon.watch.expect(botName(n))
		wait.Go(func() {
			_, errs[n] = s.daemon.runSeen(ctx, turns[n], botName(n), "held", promptOf(n, guardTurns, kib))
			if errs[n] != nil {
				failed <- struct{}{}
			}
		})
	}
	for _, t := range turns {
		select {
		case <-t.begun:
		case <-failed:
		}
	}
	err := s.model.ask("release", &struct{}{})
	wait.Wait()
	return errors.Join(append(errs, err)...)
}

func (b *bench) guardIdle(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	d, err := serve(ctx, serveOptions{agent: b.agent, dir: dir, store: filepath.Join(dir, "state.sqlite"), socket: true,
		flags: []string{"--provider", "fake=responses,http://127.0.0.1:9/v1"}})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := sample(d.cmd.Process.Pid)
	if err == nil {
		err = d.createMany(ctx, guardBots, dir)
	}
	full, ferr := sample(d.cmd.Process.Pid)
	_, end := d.stop()
	if err := errors.Join(err, ferr, end); err != nil {
		t.Fatal(err)
	}
	t.Logf("empty %.1f MiB, with %d bots %.1f MiB", inMiB(empty.RSS), guardBots, inMiB(full.RSS))
	if more := full.RSS - empty.RSS; more > idleBudget {
		t.Errorf("RT-101: %d idle bots added %.1f MiB to the daemon; the budget is %d MiB", guardBots, inMiB(more), idleBudget/mib)
	}
}

// createMany makes bots, as many at once as the daemon admits.
func (d *daemon) createMany(ctx context.Context, bots int, workspace string) error {
	names := make(chan int)
	errs := make([]error, protocol.MaxAdmissions)
	var wait sync.WaitGroup
	for w := range errs {
		wait.Go(func() {
			for n := range names {
				if errs[w] == nil {
					errs[w] = d.create(ctx, fmt.Sprintf("idle-%d", n), workspace)
				}
			}
		})
	}
	for n := range bots {
		names <- n
	}
	close(names)
	wait.Wait()
	return errors.Join(errs...)
}

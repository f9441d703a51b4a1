package main

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
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
	b := &bench{
		agent: filepath.Join(dir, "agent"), self: filepath.Join(dir, "bench"), dir: dir,
		family: "responses", report: &report{}, stores: map[string]string{}, log: t.Output(),
	}
	if err := build(t.Context(), dir+"/", "agent/cmd/agent", "agent/bench"); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGuard(t *testing.T) {
	b := guard(t)
	t.Run("RT-101 32 streams with 1 MiB of history each stay within the memory budget", b.guardStreams)
	t.Run("RT-101 10,000 idle bots cost next to nothing", b.guardIdle)
	t.Run("RT-103 a filled store is one that the daemon goes on with", b.guardFilled)
	t.Run("the small form of every other workload", b.guardOthers)
}

// guardOthers runs the workloads that no other part of the guard runs: what
// they check of the daemon on their way must hold.
func (b *bench) guardOthers(t *testing.T) {
	for _, w := range workloads {
		if slices.Contains([]string{"W1", "W4", "W5", "start"}, w.id) {
			continue
		}
		t.Run(w.id, func(t *testing.T) {
			b.family, b.quick, b.dir, b.stores, b.report = "responses", true, t.TempDir(), map[string]string{}, &report{Runs: 1}
			if err := w.run(b, t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(b.report.Figures) == 0 {
				t.Error("it found no figure")
			}
		})
	}
}

// guardFilled goes on with filled stores: the daemon must read their rows back
// whole, and the model server must accept the histories it makes of them.
func (b *bench) guardFilled(t *testing.T) {
	for _, family := range []string{"responses", "anthropic", "chat"} {
		t.Run(family, func(t *testing.T) {
			b.family, b.quick, b.dir, b.stores, b.report = family, true, t.TempDir(), map[string]string{}, &report{Runs: 1}
			if err := errors.Join(b.smallTurns(t.Context()), b.longHistory(t.Context()), b.startUp(t.Context())); err != nil {
				t.Fatal(err)
			}
			figures := map[string]float64{}
			for _, f := range b.report.Figures {
				figures[f.Workload+" "+f.Case+" "+f.Name] = f.Median
				if f.Median <= 0 {
					t.Errorf("%s, %s: %s is %v", f.Workload, f.Case, f.Name, f.Median)
				}
			}
			if body := figures["W5 2,000 ÷ 1,000 items request body"]; body < 0.5 || body > 1.5 {
				t.Errorf("RT-103: the request grew with the history, by %v", body)
			}
			if n := figures["start one text turn syncs"]; n > 4 {
				t.Errorf("a text turn makes %v commits; 4 are allowed", n)
			}
			b.checkWhole(t)
		})
	}
}

// checkWhole reads every item of a filled store through the daemon.
func (b *bench) checkWhole(t *testing.T) {
	s, err := b.stageOn(t.Context(), b.stores["W4 100"], nil, "-identity", "model")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	items, calls := 0, map[string]bool{}
	from := protocol.Opt[int64]{}
	for {
		var page protocol.NodePage
		if err := s.daemon.session.Do(t.Context(), "history_nodes", &protocol.HistoryNodes{Bot: botName(0), From: from, Limit: protocol.Set[int64](100)}, &page); err != nil {
			t.Fatal(err)
		}
		var nodes []int64
		for _, n := range page.Nodes {
			nodes = append(nodes, n.Node)
		}
		var got protocol.ItemPage
		if err := s.daemon.session.Do(t.Context(), "history_items", &protocol.HistoryItems{Bot: botName(0), Nodes: nodes}, &got); err != nil {
			t.Fatal(err)
		}
		for _, item := range got.Items {
			items++
			for _, id := range callIDs.FindAllString(string(item.Item), -1) {
				calls[id] = true
			}
		}
		if page.NextFrom == nil {
			break
		}
		from = protocol.Set(*page.NextFrom)
	}
	if items != 400 || len(calls) != 100 {
		t.Errorf("%d items with %d calls in 100 turns, want 400 with 100", items, len(calls))
	}
}

// callIDs finds the ids of the model server's calls.
var callIDs = regexp.MustCompile(`\b(call_f|toolu_)[0-9a-f]{16}\b`)

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
	d, err := serve(ctx, serveOptions{
		agent: b.agent, dir: dir, store: filepath.Join(dir, "state.sqlite"), socket: true,
		provider: "fake=responses,http://127.0.0.1:9/v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := sample(d.cmd.Process.Pid)
	if err == nil {
		err = d.createMany(ctx, 0, guardBots, dir)
	}
	full, ferr := sample(d.cmd.Process.Pid)
	_, end := d.stop()
	if err := errors.Join(err, ferr, end); err != nil {
		t.Fatal(err)
	}
	// Pages of the program come and go: the daemon lets go of them once it is ready.
	t.Logf("own pages, empty: %.1f MiB, with %d bots: %.1f MiB", inMiB(empty.Own), guardBots, inMiB(full.Own))
	if more := full.Own - empty.Own; more > idleBudget {
		t.Errorf("RT-101: %d idle bots added %.1f MiB to the daemon; the budget is %d MiB", guardBots, inMiB(more), idleBudget/mib)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agent/protocol"
)

// W4's shape (runtime.md 32).
const (
	smallMeasured = 400
	smallWarmUp   = 10
)

var smallStored = []int{100, 100_000}

// comma writes a count as people do.
func comma(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", comma(n/1000), n%1000)
}

// smallTurns is W4: one bot that calls echo once a turn, on a small and on a
// large store.
func (b *bench) smallTurns(ctx context.Context) error {
	stored, measured := smallStored, smallMeasured
	if b.quick {
		stored, measured = []int{10, 100}, 20
	}
	var p50 []float64
	for _, n := range stored {
		p, err := b.smallOnce(ctx, n, measured)
		if err != nil {
			return fmt.Errorf("%s turns: %w", comma(n), err)
		}
		p50 = append(p50, p)
	}
	b.report.add("W4", fmt.Sprintf("%s ÷ %s turns", comma(stored[1]), comma(stored[0])), "p50", "ratio", p50[1]/p50[0])
	return nil
}

// smallModel are the model server's arguments.
func smallModel() []string {
	return []string{
		"-identity", "model", "-window", "-foreign", "-deltas", "1", "-size", "64", "-gap", "0",
		"-tool", "echo", "-arguments", `{"text":"hello"}`,
	}
}

func smallFill(turns int) fillSpec {
	return fillSpec{turns: turns, tools: []string{"echo"}, prompt: "Say hello.", model: smallModel()}
}

func (b *bench) smallOnce(ctx context.Context, stored, measured int) (p50 float64, err error) {
	model := smallModel()
	store, err := b.filled(ctx, fmt.Sprintf("W4 %d", stored), smallFill(stored))
	if err != nil {
		return 0, err
	}
	s, err := b.stageOn(ctx, store, []string{"--context-items", "8", "--retain-turns", "8"}, model...)
	if err != nil {
		return 0, err
	}
	var walls []time.Duration
	var cpu float64
	err = s.verify(ctx, int64(stored))
	for n := 0; n < smallWarmUp+measured && err == nil; n++ {
		if n == smallWarmUp {
			if cpu, err = s.cpuNow(); err != nil {
				break
			}
		}
		var t turn
		t, err = s.daemon.run(ctx, botName(0), fmt.Sprintf("measured-%d", n), "Say hello.")
		if n >= smallWarmUp {
			walls = append(walls, t.whole)
		}
	}
	stats, serr := s.model.stats()
	u, end := s.close()
	if err := errors.Join(err, serr, end); err != nil {
		return 0, err
	}
	if want := int64(2 * (smallWarmUp + measured)); stats.Completed != want {
		return 0, fmt.Errorf("the provider answered %d of %d calls: no figure", stats.Completed, want)
	}
	add := func(figure, unit string, v float64) {
		b.report.add("W4", comma(stored)+" turns", figure, unit, v)
	}
	p50 = percentile(walls, 50)
	add("p50", "ms", p50)
	add("p95", "ms", percentile(walls, 95))
	add("cpu a turn", "ms", (u.CPU-cpu)*1000/float64(measured))
	add("peak", "MiB", inMiB(u.Peak))
	return p50, nil
}

// cpuNow is the daemon's processor time so far, in seconds.
func (s *stage) cpuNow() (float64, error) {
	u, err := sample(s.daemon.cmd.Process.Pid)
	return u.CPU, err
}

// verify asks the daemon for the newest and the oldest of a filled store, so
// that a measurement never runs on rows the product would not have written.
func (s *stage) verify(ctx context.Context, turns int64) error {
	var page protocol.TurnPage
	if err := s.daemon.session.Do(ctx, "turns", &protocol.Turns{Bot: botName(0), After: turns - 1}, &page); err != nil {
		return err
	}
	if len(page.Turns) != 1 || page.Turns[0].Turn != turns || page.Turns[0].Status != "completed" {
		return fmt.Errorf("the filled store's newest turn is not the completed turn %d", turns)
	}
	var newest, oldest protocol.NodePage
	if err := s.daemon.session.Do(ctx, "history_nodes", &protocol.HistoryNodes{Bot: botName(0), Limit: protocol.Set[int64](20)}, &newest); err != nil {
		return err
	}
	err := s.daemon.session.Do(ctx, "history_nodes", &protocol.HistoryNodes{Bot: botName(0), Limit: protocol.Set[int64](20), OldestFirst: true}, &oldest)
	if err != nil {
		return err
	}
	if len(newest.Nodes) == 0 || len(oldest.Nodes) == 0 || oldest.Nodes[len(oldest.Nodes)-1].Node != 1 {
		return errors.New("the filled store's history cannot be read")
	}
	items := newest.Nodes[0].Node
	if items%turns != 0 {
		return fmt.Errorf("the filled store has %d items in %d turns", items, turns)
	}
	var item protocol.ItemPage
	err = s.daemon.session.Do(ctx, "history_items", &protocol.HistoryItems{Bot: botName(0), Nodes: []int64{items, items - 1}}, &item)
	if err != nil {
		return err
	}
	if len(item.Items) != 2 || item.Items[0].Error != "" {
		return errors.New("the filled store's newest items cannot be read")
	}
	return nil
}

// W5's shape: items of about 300 bytes, two a turn, in a fixed window.
const (
	longItem    = 300
	longTurns   = 21
	longWindow  = 64 * kib
	longItems   = 256
	itemsOfTurn = 2
)

var longStored = []int{1_000, 10_000, 100_000}

// longHistory is W5: one bot with a long past and a window of fixed size.
func (b *bench) longHistory(ctx context.Context) error {
	stored := longStored
	if b.quick {
		stored = []int{1_000, 2_000}
	}
	var walls, bodies []float64
	for _, n := range stored {
		wall, body, err := b.longOnce(ctx, n)
		if err != nil {
			return fmt.Errorf("%s items: %w", comma(n), err)
		}
		walls, bodies = append(walls, wall), append(bodies, body)
	}
	last := len(stored) - 1
	kase := fmt.Sprintf("%s ÷ %s items", comma(stored[last]), comma(stored[0]))
	b.report.add("W5", kase, "turn", "ratio", walls[last]/walls[0])
	b.report.add("W5", kase, "request body", "ratio", bodies[last]/bodies[0])
	return nil
}

func (b *bench) longOnce(ctx context.Context, stored int) (wall, body float64, err error) {
	model := []string{"-identity", "model", "-window", "-foreign", "-deltas", "1", "-size", "230", "-gap", "0"}
	prompt := strings.Repeat("An item of some length. ", longItem/20)[:longItem-70]
	store, err := b.filled(ctx, fmt.Sprintf("W5 %d", stored),
		fillSpec{turns: stored / itemsOfTurn, prompt: prompt, model: model})
	if err != nil {
		return 0, 0, err
	}
	flags := []string{"--context-bytes", fmt.Sprint(longWindow), "--context-items", fmt.Sprint(longItems)}
	s, err := b.stageOn(ctx, store, flags, model...)
	if err != nil {
		return 0, 0, err
	}
	var walls []time.Duration
	err = s.verify(ctx, int64(stored/itemsOfTurn))
	for n := 0; n < longTurns && err == nil; n++ {
		var t turn
		t, err = s.daemon.run(ctx, botName(0), fmt.Sprintf("measured-%d", n), prompt)
		walls = append(walls, t.whole)
	}
	stats, serr := s.model.stats()
	ready := s.daemon.ready
	u, end := s.close()
	if err := errors.Join(err, serr, end); err != nil {
		return 0, 0, err
	}
	if stats.Completed != longTurns {
		return 0, 0, fmt.Errorf("the provider answered %d of %d calls: no figure", stats.Completed, longTurns)
	}
	add := func(figure, unit string, v float64) {
		b.report.add("W5", comma(stored)+" items", figure, unit, v)
	}
	// The first turn moves the window and makes what later ones find made: it
	// is reported apart.
	wall, body = percentile(walls[1:], 50), float64(stats.BytesIn)/longTurns
	add("start to ready", "ms", millis(ready))
	add("first turn", "ms", millis(walls[0]))
	add("turn", "ms", wall)
	add("request body", "KB", body/1000)
	add("peak", "MiB", inMiB(u.Peak))
	return wall, body, nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agent/protocol"
)

// W12's shape (runtime.md 32): 600 results of 12.5 KiB in one turn. A turn has
// at most 200 rounds, so that four calls share one.
const (
	longTurnRounds = 150
	longTurnEach   = 4
	longTurnResult = 12_800
)

// longTurnSpans are what is looked at: the time from one point of the store
// (store.Faults) to the first of some others.
var longTurnSpans = []struct {
	figure, from string
	to           []string
	fewest       int // of them, in a turn of full length
}{
	{"record a result", "job:call_finish", []string{"wrote:call_finish"}, longTurnRounds * longTurnEach},
	{"window", "read:plan", []string{"read:items"}, longTurnRounds},
	{"move the floor", "read:floor", []string{"wrote:elide"}, 1},
	{"plan a cut", "read:cut", []string{"read:summary", "read:prompts", "read:summary_copy", "read:summary_items", "read:summary_room"}, 1},
}

// longTurn is W12, on a probed daemon: one bot that may move its floor, and one
// that must summarize.
func (b *bench) longTurn(ctx context.Context) error {
	rounds := longTurnRounds
	limits := probedLimits()
	if b.quick {
		rounds, limits.ContextBytes = 30, 512*kib
	}
	var points []string
	for _, s := range longTurnSpans {
		points = append(append(points, s.from), s.to...)
	}
	s, err := b.set(ctx, staging{model: []string{playWord, "-window"}, probed: &probedSpec{Limits: limits, Points: points}})
	if err != nil {
		return err
	}
	var times []pointTime
	var whole time.Duration
	for n, tools := range [][]string{{"shell", "read"}, {"shell"}} {
		if err != nil {
			break
		}
		var more []pointTime
		var took time.Duration
		more, took, err = s.longTurn(ctx, n, rounds, tools)
		times, whole = append(times, more...), whole+took
	}
	if _, err := s.end(err); err != nil {
		return err
	}
	for _, span := range longTurnSpans {
		took := spans(times, span.from, span.to)
		if least := span.fewest * rounds / longTurnRounds; len(took) < max(least, 1) {
			return fmt.Errorf("%s happened %d times, which is no figure", span.figure, len(took))
		}
		b.report.add("W12", "600 results", span.figure, "ms", percentile(took, 50))
	}
	b.report.add("W12", "600 results", "a round", "ms", millis(whole)/float64(2*rounds))
	return nil
}

// longTurn runs one long turn and gives when the store did what.
func (s *stage) longTurn(ctx context.Context, n, rounds int, tools []string) ([]pointTime, time.Duration, error) {
	file := filepath.Join(s.workspace, "result")
	if err := os.WriteFile(file, []byte(promptOf(0, 0, longTurnResult)), 0o600); err != nil {
		return nil, 0, err
	}
	err := s.daemon.session.Do(ctx, "create", &protocol.Create{
		Bot: botName(n), Model: "fake/" + botName(n), Instructions: "Be brief.", Tools: tools, Workspace: s.workspace,
		CompactionInstructions: summaryMark,
	}, nil)
	if err != nil {
		return nil, 0, err
	}
	p := shell("cat result")
	p.Rounds, p.Each = rounds, longTurnEach
	t, err := s.daemon.run(ctx, botName(n), requestOf(0), p.prompt(n, 0, 0))
	if err != nil {
		return nil, 0, err
	}
	found, err := s.probe()
	return found.Times, t.whole, err
}

// spans gives the times from each from to the next of to, if no other from
// comes first.
func spans(times []pointTime, from string, to []string) (all []time.Duration) {
	ends := map[string]bool{}
	for _, point := range to {
		ends[point] = true
	}
	began := int64(0)
	for _, t := range times {
		switch {
		case t.Point == from:
			began = t.Nanos
		case ends[t.Point] && began != 0:
			all = append(all, time.Duration(t.Nanos-began))
			began = 0
		}
	}
	return all
}

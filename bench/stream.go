package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// W1's shape (runtime.md 32).
const (
	streamTurns  = 3
	streamDeltas = 20
)

var (
	streamAgents = []int{1, 8, 32}
	streamSizes  = []int{4, 64} // KiB of user text a turn
)

func streamCase(agents, size int) string { return fmt.Sprintf("%d × %d KiB", agents, size) }

// stream is W1: agents that stream at once over standard input and output,
// with a provider that checks the whole history of each.
func (b *bench) stream(ctx context.Context) error {
	peaks := map[string]float64{}
	for _, size := range streamSizes {
		for _, agents := range streamAgents {
			name := streamCase(agents, size)
			u, err := b.streamOnce(ctx, name, agents, size<<10)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			peaks[name] = inMiB(u.Peak)
		}
	}
	b.report.add("W1", "1 → 32 × 64 KiB", "peak added", "MiB", peaks[streamCase(32, 64)]-peaks[streamCase(1, 64)])
	return nil
}

func (b *bench) streamOnce(ctx context.Context, name string, agents, size int) (usage, error) {
	s, err := b.stage(ctx, "-identity", "model", "-deltas", fmt.Sprint(streamDeltas), "-size", "256", "-gap", "25ms")
	if err != nil {
		return usage{}, err
	}
	var turns []turn
	if err = s.create(ctx, agents); err == nil {
		turns, err = s.streams(ctx, agents, streamTurns, size)
	}
	stats, serr := s.model.stats()
	u, end := s.close()
	if err := errors.Join(err, serr, end); err != nil {
		return u, err
	}
	if want := int64(agents * streamTurns); stats.MaxOpen != agents || stats.Completed != want || stats.Requests != want {
		return u, fmt.Errorf("the provider saw %d of %d streams at once and finished %d of %d: no figure",
			stats.MaxOpen, agents, stats.Completed, want)
	}
	var first, whole []time.Duration
	for _, t := range turns {
		if t.first == 0 {
			return u, errors.New("a turn showed no text: no figure")
		}
		first, whole = append(first, t.first), append(whole, t.whole)
	}
	add := func(figure, unit string, v float64) { b.report.add("W1", name, figure, unit, v) }
	add("streams", "", float64(stats.MaxOpen))
	add("peak", "MiB", inMiB(u.Peak))
	add("sampled RSS", "MiB", inMiB(u.RSS))
	if u.PSS > 0 {
		add("sampled PSS", "MiB", inMiB(u.PSS))
		add("own pages", "MiB", inMiB(u.Own))
	}
	add("cpu", "s", u.CPU)
	add("first text p50", "ms", percentile(first, 50))
	add("turn p50", "ms", percentile(whole, 50))
	add("turn p99", "ms", percentile(whole, 99))
	return u, nil
}

// create makes agents bots without tools.
func (s *stage) create(ctx context.Context, agents int) error {
	for a := range agents {
		if err := s.daemon.create(ctx, botName(a), s.workspace); err != nil {
			return err
		}
	}
	return nil
}

// streams runs turns on agents bots at once, each with a prompt of size bytes,
// and gives them all.
func (s *stage) streams(ctx context.Context, agents, turns, size int) ([]turn, error) {
	all := make([]turn, agents*turns)
	errs := make([]error, agents)
	var wait sync.WaitGroup
	for a := range agents {
		wait.Go(func() {
			for n := range turns {
				all[a*turns+n], errs[a] = s.daemon.run(ctx, botName(a), fmt.Sprintf("r%d", n), promptOf(a, n, size))
				if errs[a] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	return all, errors.Join(errs...)
}

func botName(n int) string { return fmt.Sprintf("bot-%d", n) }

// promptOf is text of a size that no other turn has.
func promptOf(bot, turn, size int) string {
	head := fmt.Sprintf("Turn %d of bot %d. ", turn, bot)
	const words = "The quick brown fox jumps over the lazy dog, and the dog does not mind. "
	return (head + strings.Repeat(words, size/len(words)+1))[:max(size, len(head))]
}

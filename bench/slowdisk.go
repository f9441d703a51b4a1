package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"agent/protocol"
)

// W10's shape (runtime.md 32): what a turn's model takes, so that 64 bots could
// run 320 turns a second were there no store.
const (
	slowBots  = 64
	slowReply = 200
	slowFor   = 6 * time.Second
	slowLead  = time.Second // before it counts
)

var slowDelays = []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond}

func slowCase(delay time.Duration) string { return fmt.Sprintf("sync + %d ms", delay.Milliseconds()) }

// slowDisk is W10: bots that resubmit at once, on a disk whose syncs take
// longer. The daemon is a probed one.
func (b *bench) slowDisk(ctx context.Context) error {
	length, lead := slowFor, slowLead
	if b.quick {
		length, lead = 400*time.Millisecond, 0
	}
	for _, delay := range slowDelays {
		if err := b.slowOnce(ctx, delay, lead, length); err != nil {
			return fmt.Errorf("%s: %w", slowCase(delay), err)
		}
	}
	return nil
}

func (b *bench) slowOnce(ctx context.Context, delay, lead, length time.Duration) error {
	s, err := b.set(ctx, staging{model: []string{playWord}, probed: &probedSpec{Limits: probedLimits(), Sync: delay}})
	if err != nil {
		return err
	}
	err = s.daemon.createMany(ctx, 0, slowBots, s.workspace)
	var turns int64
	var took time.Duration
	var before, after protocol.Stats
	if err == nil {
		turns, took, before, after, err = s.resubmit(ctx, slowBots, lead, length, func(bot, turn int) string {
			return part{DelayMS: slowReply}.prompt(bot, turn, 0)
		})
	}
	if _, err := s.end(err); err != nil {
		return err
	}
	groups := float64(after.Store.Groups.Count - before.Store.Groups.Count)
	add := func(figure, unit string, v float64) { b.report.add("W10", slowCase(delay), figure, unit, v) }
	add("turns a second", "1/s", float64(turns)/took.Seconds())
	add("jobs a commit", "", float64(after.Store.Groups.Jobs-before.Store.Groups.Jobs)/groups)
	add("commits a second", "1/s", groups/took.Seconds())
	return nil
}

// resubmit lets every bot run turn after turn, and gives how many ended in a
// length of time after the lead, and the daemon's counts at both ends of it.
func (s *stage) resubmit(ctx context.Context, bots int, lead, length time.Duration, prompt func(bot, turn int) string) (turns int64, took time.Duration, before, after protocol.Stats, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended atomic.Int64
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		failed <- each(bots, func(n int) error {
			for t := 0; ; t++ {
				select {
				case <-stop:
					return nil
				default:
				}
				if _, err := s.daemon.run(ctx, botName(n), requestOf(t), prompt(n, t)); err != nil {
					cancel() // what the others do is no figure
					return err
				}
				ended.Add(1)
			}
		})
	}()
	pause(ctx, lead)
	before, err = s.daemon.stats(ctx)
	began, first := time.Now(), ended.Load()
	pause(ctx, length)
	turns, took = ended.Load()-first, time.Since(began)
	after, serr := s.daemon.stats(ctx)
	close(stop)
	return turns, took, before, after, errors.Join(<-failed, err, serr)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

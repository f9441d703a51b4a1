package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agent/protocol"
)

// small are rows of the runtime document's tables that need no workload of
// their own.
func (b *bench) small(ctx context.Context) error {
	return errors.Join(b.throttled(ctx), b.loudCommand(ctx), b.foreignPrune(ctx), b.knownFork(ctx), b.secureBurst(ctx), b.longAnswer(ctx))
}

// fewer is how often something is done, which is seldom in the small form.
func (b *bench) fewer(n int) int {
	if b.quick {
		return 3
	}
	return n
}

// throttledActive is --max-active, and how many turns each provider gets.
const throttledActive = 8

// throttled measures eight turns of a provider that is well, while as many
// turns of one that refuses for a minute would fill all places.
func (b *bench) throttled(ctx context.Context) (err error) {
	ill, err := startModel(ctx, b.self, playWord)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ill.close()) }()
	s, err := b.set(ctx, staging{
		model: []string{playWord},
		flags: []string{"--max-active", fmt.Sprint(throttledActive), "--provider", "ill=" + b.family + "," + ill.url},
	})
	if err != nil {
		return err
	}
	took, err := s.throttled(ctx)
	if _, err := s.end(err); err != nil {
		return fmt.Errorf("the throttled provider: %w", err)
	}
	b.report.add("small", "provider refuses, --max-active 8", "the other's 8 turns", "ms", took)
	return nil
}

// throttled gives the median of ten rounds, in milliseconds.
func (s *stage) throttled(ctx context.Context) (float64, error) {
	if err := s.daemon.createMany(ctx, 0, throttledActive, s.workspace); err != nil {
		return 0, err
	}
	if err := s.wellTurns(ctx, 0); err != nil { // what is made only once
		return 0, err
	}
	var parked []*watched
	for n := throttledActive; n < 2*throttledActive; n++ {
		err := s.daemon.session.Do(ctx, "create", &protocol.Create{
			Bot: botName(n), Model: "ill/" + botName(n), Instructions: "Be brief.", Workspace: s.workspace,
		}, nil)
		if err != nil {
			return 0, err
		}
		parked = append(parked, s.daemon.watch.expect(botName(n)))
		if _, err := s.daemon.submit(ctx, n, 0, part{RefuseS: 60}); err != nil {
			return 0, err
		}
	}
	for _, t := range parked {
		select {
		case <-t.parked:
		case <-t.done:
			return 0, fmt.Errorf("a refused turn ended: %s", t.why)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	var took []float64
	for n := 1; n <= 10; n++ {
		began := time.Now()
		if err := s.wellTurns(ctx, n); err != nil {
			return 0, err
		}
		took = append(took, millis(time.Since(began)))
	}
	return median(took), nil
}

func (s *stage) wellTurns(ctx context.Context, turn int) error {
	return each(throttledActive, func(n int) error {
		_, err := s.daemon.run(ctx, botName(n), requestOf(turn), part{}.prompt(n, turn, 0))
		return err
	})
}

// loudCommand measures what a command that prints 1 MiB adds to the most that
// is on the heap during one that prints a word.
func (b *bench) loudCommand(ctx context.Context) error {
	s, err := b.set(ctx, staging{model: []string{playWord}, probed: &probedSpec{Limits: probedLimits(), Peak: true}})
	if err != nil {
		return err
	}
	err = s.daemon.create(ctx, botName(0), s.workspace, "shell")
	var quiet, loud []float64
	for n := 0; n < b.fewer(10) && err == nil; n++ {
		var peak float64
		if peak, err = s.peakOf(ctx, 2*n, shell("printf hello")); err != nil {
			break
		}
		quiet = append(quiet, peak)
		peak, err = s.peakOf(ctx, 2*n+1, shell(noiseCommand(b.self, mib, n, false)))
		loud = append(loud, peak)
	}
	if _, err := s.end(err); err != nil {
		return fmt.Errorf("the loud command: %w", err)
	}
	b.report.add("small", "shell prints 1 MiB", "peak heap added", "MiB", median(loud)-median(quiet))
	return nil
}

// peakOf runs a turn and gives the most that was on the heap during it, in MiB.
func (s *stage) peakOf(ctx context.Context, turn int, p part) (float64, error) {
	if _, err := s.probe(); err != nil { // begin with what is live
		return 0, err
	}
	if _, err := s.daemon.run(ctx, botName(0), requestOf(turn), p.prompt(0, turn, 0)); err != nil {
		return 0, err
	}
	found, err := s.probe()
	return inMiB(found.Peak), err
}

// smallRepeats is of how many requests a figure is the median.
const smallRepeats = 100

// foreignPrune measures the pruning of a bot that has nothing to drop, in a
// store with another one's 100,000 turns.
func (b *bench) foreignPrune(ctx context.Context) error {
	stored := smallStored[1]
	if b.quick {
		stored = 100
	}
	store, err := b.filled(ctx, fmt.Sprintf("W4 %d", stored), smallFill(stored))
	if err != nil {
		return err
	}
	s, err := b.set(ctx, staging{filled: store, model: append([]string{modelWord}, smallModel()...), probed: jobProbe("prune")})
	if err != nil {
		return err
	}
	err = s.daemon.create(ctx, botName(1), s.workspace, "echo")
	if err == nil {
		_, err = s.daemon.run(ctx, botName(1), requestOf(0), "Say hello.")
	}
	var job float64
	if err == nil {
		job, err = s.jobTime("prune", b.fewer(smallRepeats), func(int) error {
			return s.daemon.session.Do(ctx, "prune", &protocol.Prune{Bot: botName(1), KeepTurns: 1}, nil)
		})
	}
	if _, err := s.end(err); err != nil {
		return fmt.Errorf("pruning: %w", err)
	}
	b.report.add("small", "prune, nothing to drop beside 100,000 turns", "job", "ms", job)
	return nil
}

// knownFork measures forks at a checkpoint in the middle of 6 MB of history.
func (b *bench) knownFork(ctx context.Context) error {
	turns := b.fewer(24)
	s, err := b.set(ctx, staging{model: []string{playWord}, probed: jobProbe("fork")})
	if err != nil {
		return err
	}
	var middle int64
	err = s.daemon.create(ctx, botName(0), s.workspace)
	for n := 0; n < turns && err == nil; n++ {
		w := s.daemon.watch.expect(botName(0))
		_, err = s.daemon.runSeen(ctx, w, botName(0), requestOf(n), part{}.prompt(0, n, protocol.MaxPrompt))
		if err == nil && n == turns/2 && w.end.Checkpoint != nil {
			middle = *w.end.Checkpoint
		}
	}
	var job float64
	if err == nil {
		job, err = s.jobTime("fork", b.fewer(smallRepeats), func(n int) error {
			fork := &protocol.Fork{Source: botName(0), Bot: fmt.Sprintf("fork-%d", n), Checkpoint: protocol.Set(middle)}
			return s.daemon.session.Do(ctx, "fork", fork, nil)
		})
	}
	if _, err := s.end(err); err != nil {
		return fmt.Errorf("forking: %w", err)
	}
	b.report.add("small", "fork at a known checkpoint of 6 MB", "job", "ms", job)
	return nil
}

// jobProbe is a daemon that tells when a job of the store began and ended.
func jobProbe(op string) *probedSpec {
	return &probedSpec{Limits: probedLimits(), Points: []string{"job:" + op, "wrote:" + op}}
}

// jobTime repeats a request and gives, in milliseconds, how long its job ran in
// the store. What the sync takes is the disk's.
func (s *stage) jobTime(op string, repeats int, do func(n int) error) (float64, error) {
	for n := range repeats {
		if err := do(n); err != nil {
			return 0, err
		}
	}
	found, err := s.probe()
	if err != nil {
		return 0, err
	}
	took := spans(found.Times, "job:"+op, []string{"wrote:" + op})
	if len(took) < repeats {
		return 0, fmt.Errorf("the store ran %d jobs %q: no figure", len(took), op)
	}
	return percentile(took, 50), nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"
)

// secureTurns is how many turns ask a provider behind TLS and HTTP/2 at once.
const secureTurns = 350

const (
	secureCase     = "350 turns at once, TLS and HTTP/2"
	longAnswerCase = "an answer of 100,000 pieces"
)

// rootsFromFile says whether a program can be told by a variable whom to trust.
const rootsFromFile = runtime.GOOS != "darwin"

func secureTargets() []target {
	if !rootsFromFile {
		return nil
	}
	return []target{
		{workload: "small", kase: secureCase, name: "the last first text", most: 1000},
		{workload: "small", kase: secureCase, name: "connections", most: 8},
	}
}

// secureBurst measures the first words of a fleet that begins at the same
// moment, over few connections. The server holds every answer's end, so that
// all are open together.
func (b *bench) secureBurst(ctx context.Context) error {
	if !rootsFromFile {
		return nil
	}
	roots := filepath.Join(b.dir, "roots.pem")
	s, err := b.set(ctx, staging{
		model: []string{playWord, "-secure", roots}, env: []string{"SSL_CERT_FILE=" + roots}, socket: true,
	})
	if err != nil {
		return err
	}
	turns := secureTurns
	if b.quick {
		turns = 8
	}
	took, err := s.secureBurst(ctx, turns)
	var found struct{ Opened int64 }
	if err == nil {
		err = s.model.ask("connections", &found)
	}
	if _, err := s.end(err); err != nil {
		return fmt.Errorf("the burst over TLS: %w", err)
	}
	b.report.add("small", secureCase, "the last first text", "ms", took)
	b.report.add("small", secureCase, "connections", "", float64(found.Opened))
	return nil
}

// secureBurst gives, in milliseconds, how long it is from the first submission
// until every turn has shown its first text.
func (s *stage) secureBurst(ctx context.Context, turns int) (float64, error) {
	if err := s.daemon.createMany(ctx, 0, turns, s.workspace); err != nil {
		return 0, err
	}
	all := make([]*watched, turns)
	for n := range all {
		all[n] = s.daemon.watch.expect(botName(n))
	}
	began := time.Now()
	err := some(0, turns, func(n int) error {
		_, err := s.daemon.submit(ctx, n, 0, part{Deltas: 1, Hold: "end"})
		return err
	})
	if err != nil {
		return 0, err
	}
	var last time.Time
	for _, t := range all {
		select {
		case <-t.begun:
		case <-t.done:
			return 0, fmt.Errorf("a turn ended before it said anything: %s", t.why)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if t.first.After(last) {
			last = t.first
		}
	}
	stats, err := s.model.stats()
	if err == nil && stats.Open != turns {
		err = fmt.Errorf("the provider has %d answers open, not %d: no figure", stats.Open, turns)
	}
	var released struct{ Released int }
	err = errors.Join(err, s.model.ask("release end", &released))
	return millis(last.Sub(began)), errors.Join(err, s.daemon.completed(ctx, all))
}

// longAnswer measures what an answer in 100,000 pieces adds to the most that is
// on the heap during one of the same length in 100.
func (b *bench) longAnswer(ctx context.Context) error {
	s, err := b.set(ctx, staging{model: []string{playWord}, probed: &probedSpec{Limits: probedLimits(), Peak: true}})
	if err != nil {
		return err
	}
	pieces := 100_000
	if b.quick {
		pieces = 1000
	}
	err = s.daemon.create(ctx, botName(0), s.workspace)
	var few, many []float64
	for n := 0; n < b.fewer(5) && err == nil; n++ {
		var peak float64
		if peak, err = s.peakOf(ctx, 2*n, part{Deltas: 100, Size: 2 * pieces / 100}); err != nil {
			break
		}
		few = append(few, peak)
		peak, err = s.peakOf(ctx, 2*n+1, part{Deltas: pieces, Size: 2})
		many = append(many, peak)
	}
	if _, err := s.end(err); err != nil {
		return fmt.Errorf("the long answer: %w", err)
	}
	b.report.add("small", longAnswerCase, "peak heap added", "MiB", median(many)-median(few))
	return nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startRepeats is of how many processes a start-up figure is the median.
const startRepeats = 20

// startUp measures what a person waits for before anything is said.
func (b *bench) startUp(ctx context.Context) error {
	home, err := os.MkdirTemp(b.dir, "home-")
	if err != nil {
		return err
	}
	version, err := b.repeated(ctx, home, "--version")
	if err != nil {
		return err
	}
	b.report.add("start", "agent --version", "wall", "ms", percentile(version, 50))
	cold, err := b.coldStart(ctx, home)
	if err != nil {
		return err
	}
	b.report.add("start", "agent run, no daemon", "wall", "ms", millis(cold))
	warm, err := b.repeated(ctx, home, "stats")
	_, _, end := b.command(ctx, home, "shutdown")
	if err := errors.Join(err, end); err != nil {
		return err
	}
	b.report.add("start", "agent stats, warm", "wall", "ms", percentile(warm, 50))
	return b.syncs(ctx)
}

// command runs the agent to its end and gives its output and how long it took.
func (b *bench) command(ctx context.Context, home string, args ...string) (string, time.Duration, error) {
	cmd := exec.CommandContext(ctx, b.agent, args...)
	cmd.Dir, cmd.Env = home, environment(home, "AGENT_PROVIDER=scripted")
	var stray bytes.Buffer
	cmd.Stderr = &stray
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil {
		err = fmt.Errorf("agent %s: %w: %s", strings.Join(args, " "), err, stray.Bytes())
	}
	return string(out), took, err
}

func (b *bench) repeated(ctx context.Context, home string, args ...string) (walls []time.Duration, err error) {
	for range startRepeats {
		out, took, err := b.command(ctx, home, args...)
		if err != nil {
			return nil, err
		}
		if out == "" {
			return nil, fmt.Errorf("agent %s printed nothing", args[0])
		}
		walls = append(walls, took)
	}
	return walls, nil
}

// coldStart runs a turn of one word in a home where nothing exists yet: the
// command starts the daemon, which makes its store.
func (b *bench) coldStart(ctx context.Context, home string) (time.Duration, error) {
	store := filepath.Join(home, ".agent", "state.sqlite")
	if _, err := os.Stat(store); err == nil {
		return 0, fmt.Errorf("%s exists: no cold start", store)
	}
	out, took, err := b.command(ctx, home, "run", "--new", "--bot", "Ada", "--model", "scripted/echo", "Hello")
	if err == nil && !strings.Contains(out, `"status":"completed"`) {
		err = fmt.Errorf("the turn did not complete: %s", out)
	}
	return took, err
}

// syncs counts the commits of one text turn by the daemon's own count of
// groups: each is one sync of the write-ahead log. Syncs of a checkpoint, one
// for a thousand pages or so, come on top and fall into few turns.
func (b *bench) syncs(ctx context.Context) error {
	s, err := b.stage(ctx, "-identity", "model", "-deltas", "1", "-gap", "0")
	if err != nil {
		return err
	}
	n, err := s.commitsOfTurn(ctx)
	_, end := s.close()
	if err := errors.Join(err, end); err != nil {
		return err
	}
	b.report.add("start", "one text turn", "syncs", "", float64(n))
	return nil
}

func (s *stage) commitsOfTurn(ctx context.Context) (int64, error) {
	if err := s.daemon.create(ctx, botName(0), s.workspace); err != nil {
		return 0, err
	}
	if _, err := s.daemon.run(ctx, botName(0), "warm-up", "Hello"); err != nil {
		return 0, err
	}
	before, err := s.daemon.stats(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := s.daemon.run(ctx, botName(0), "counted", "Hello"); err != nil {
		return 0, err
	}
	after, err := s.daemon.stats(ctx)
	if err != nil {
		return 0, err
	}
	n := after.Store.Groups.Count - before.Store.Groups.Count
	if n <= 0 {
		return 0, errors.New("a turn without a commit: the daemon does not count them")
	}
	return n, nil
}

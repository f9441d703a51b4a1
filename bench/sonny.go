package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sonnySize is how large the measurements of Sonny are.
type sonnySize struct {
	long, many sonnySession
	starts     int
	keys       int
	pasted     int // lines
	rest       time.Duration
	idle       time.Duration
	streams    time.Duration
}

var (
	sonnyWhole = sonnySize{
		long: sonnySession{turns: 1250, lines: 40}, many: sonnySession{turns: 5000, lines: 10, long: 50_000},
		starts: 12, keys: 200, pasted: 10_000, rest: 10 * time.Second, idle: 20 * time.Second, streams: 5 * time.Second,
	}
	sonnyQuick = sonnySize{
		long: sonnySession{turns: 30, lines: 10}, many: sonnySession{turns: 30, lines: 10, long: 500},
		starts: 2, keys: 20, pasted: 100, rest: 10 * time.Millisecond, idle: 100 * time.Millisecond, streams: 100 * time.Millisecond,
	}
)

// The cases of the table.
const (
	sonnyLong = "a transcript of 50,000 lines"
	sonnyMany = "10,000 items, then a reply of 50,000 lines"
)

// keyPace is the time between two keys.
const keyPace = 16 * time.Millisecond

// screen measures Sonny as its user meets it: the program on a terminal, with the daemon
// it starts itself.
func (b *bench) screen(ctx context.Context) error {
	size := sonnyWhole
	if b.quick {
		size = sonnyQuick
	}
	if err := b.buildSonny(ctx); err != nil {
		return err
	}
	if err := b.longTranscript(ctx, size); err != nil {
		return fmt.Errorf("%s: %w", sonnyLong, err)
	}
	if err := b.longReply(ctx, size); err != nil {
		return fmt.Errorf("%s: %w", sonnyMany, err)
	}
	return nil
}

// buildSonny makes the binary where none was given, and puts both in one folder, since
// Sonny starts the agent that is beside it.
func (b *bench) buildSonny(ctx context.Context) error {
	dir := filepath.Join(b.dir, "programs")
	if filepath.Dir(b.sonny) == dir {
		return nil // by an earlier run
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	to := filepath.Join(dir, "sonny")
	if b.sonny == "" {
		if err := build(ctx, to, "agent/cmd/sonny"); err != nil {
			return err
		}
	} else if err := os.Symlink(b.sonny, to); err != nil {
		return err
	}
	b.sonny = to
	return os.Symlink(b.agent, filepath.Join(dir, "agent"))
}

// sitting is Sonny on a terminal, with the lead on screen.
type sitting struct {
	*terminal
	home *sonnyHome
	add  func(name, unit string, v float64)
}

// sit opens Sonny and waits for the end of the lead's transcript.
func (b *bench) sit(ctx context.Context, h *sonnyHome, kase, end string) (*sitting, error) {
	t, err := h.open()
	if err != nil {
		return nil, err
	}
	if _, err := t.await(ctx, end); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return &sitting{terminal: t, home: h, add: func(name, unit string, v float64) { b.report.add("sonny", kase, name, unit, v) }}, nil
}

// longTranscript measures with a history of 50,000 lines in many replies.
func (b *bench) longTranscript(ctx context.Context, size sonnySize) (err error) {
	h, err := b.sonnyHome(ctx, size.long)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()
	if err := b.starts(ctx, h, size.starts); err != nil {
		return err
	}
	s, err := b.sit(ctx, h, sonnyLong, newestMark)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, measure := range []func(context.Context, sonnySize) error{
		s.memoryAtRest, s.idle, s.keyAlone, s.scrollThrough, s.waiting, s.paste, s.bigResult, s.oneStream, s.streaming(3),
	} {
		if err := measure(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// longReply measures with 10,000 items and a reply of 50,000 lines that comes while Sonny
// looks on, and eight bots that stream.
func (b *bench) longReply(ctx context.Context, size sonnySize) (err error) {
	h, err := b.sonnyHome(ctx, size.many)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()
	s, err := b.sit(ctx, h, sonnyMany, newestMark)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.mark()
	if err := h.say(ctx, sonnyLead, longPrompt); err != nil {
		return err
	}
	if _, err := s.await(ctx, longMark); err != nil {
		return err
	}
	if err := s.rest(ctx, time.Second/10); err != nil {
		return err
	}
	return s.streaming(8)(ctx, size)
}

// starts measures from a program's start to the frame that shows the session.
func (b *bench) starts(ctx context.Context, h *sonnyHome, times int) error {
	var shown []time.Duration
	var cpu []float64
	for range times {
		t, err := h.open()
		if err != nil {
			return err
		}
		at, err := t.await(ctx, newestMark)
		u, uerr := sample(t.cmd.Process.Pid)
		if err := errors.Join(err, uerr, t.close()); err != nil {
			return err
		}
		shown, cpu = append(shown, at.Sub(t.began)), append(cpu, u.CPU*1000)
	}
	b.report.add("sonny", sonnyLong, "start to session p50", "ms", percentile(shown, 50))
	b.report.add("sonny", sonnyLong, "start to session p95", "ms", percentile(shown, 95))
	b.report.add("sonny", sonnyLong, "start to session, least", "ms", percentile(shown, 0))
	b.report.add("sonny", sonnyLong, "cpu of a start", "ms", median(cpu))
	return nil
}

func (s *sitting) pid() int { return s.cmd.Process.Pid }

// memory reports what the program holds now.
func (s *sitting) memory(when string) error {
	u, err := sample(s.pid())
	if err != nil {
		return err
	}
	s.add("RSS "+when, "MiB", inMiB(u.RSS))
	if u.PSS > 0 {
		s.add("PSS "+when, "MiB", inMiB(u.PSS))
		s.add("own pages "+when, "MiB", inMiB(u.Own))
	}
	return nil
}

func (s *sitting) memoryAtRest(ctx context.Context, size sonnySize) error {
	pause(ctx, size.rest)
	return s.memory("at rest")
}

// load is how much of a core a process takes while something goes on, in percent.
func load(ctx context.Context, pid int, during time.Duration) (float64, error) {
	before, err := sample(pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	pause(ctx, during)
	after, err := sample(pid)
	return 100 * (after.CPU - before.CPU) / time.Since(began).Seconds(), err
}

// idle measures while nothing happens, Sonny and the daemon one after the other.
func (s *sitting) idle(ctx context.Context, size sonnySize) error {
	daemon, err := s.home.daemon(ctx)
	if err != nil {
		return err
	}
	s.mark()
	before, berr := sample(daemon)
	mine, err := load(ctx, s.pid(), size.idle)
	after, aerr := sample(daemon)
	if err := errors.Join(err, berr, aerr); err != nil {
		return err
	}
	s.add("idle", "% of a core", mine)
	s.add("idle, the daemon", "% of a core", 100*(after.CPU-before.CPU)/size.idle.Seconds())
	s.add("idle, written", "bytes", float64(s.written()))
	return nil
}

// waiting measures while the bot works and says nothing.
func (s *sitting) waiting(ctx context.Context, size sonnySize) error {
	end, err := s.home.turns(ctx, silentPrompt, sonnyLead)
	if err != nil {
		return err
	}
	pause(ctx, min(size.rest, 2*time.Second))
	mine, err := load(ctx, s.pid(), size.idle)
	s.add("a silent turn", "% of a core", mine)
	return errors.Join(err, end(), s.rest(ctx, time.Second/10))
}

// keyAlone measures what a key writes while nothing streams.
func (s *sitting) keyAlone(ctx context.Context, size sonnySize) error {
	if err := s.rest(ctx, time.Second/10); err != nil {
		return err
	}
	most := 0
	for n := range 10 {
		s.mark()
		s.write(keyOf(n))
		if _, err := s.await(ctx, keyOf(n)); err != nil {
			return err
		}
		if err := s.rest(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		most = max(most, s.written())
	}
	s.add("a key writes", "bytes", float64(most))
	return s.clear(ctx)
}

// clear empties the composer.
func (s *sitting) clear(ctx context.Context) error {
	s.write("\x03")
	return s.rest(ctx, time.Second/10)
}

// scrollThrough goes to the oldest question page by page, and back.
func (s *sitting) scrollThrough(ctx context.Context, size sonnySize) error {
	var pages []time.Duration
	began := time.Now()
	for s.mark(); ; s.mark() {
		at := time.Now()
		s.write("\x1b[5~")
		// At the oldest that is loaded a page writes nothing until more is there.
		end, err := s.awaitFor(ctx, frameEnd, time.Second/10)
		if err != nil {
			return err
		}
		if !end.IsZero() {
			pages = append(pages, end.Sub(at))
		}
		if !s.when(oldestMark).IsZero() {
			break
		}
		if time.Since(began) > 2*patience {
			return fmt.Errorf("the oldest question did not come in %d pages", len(pages))
		}
	}
	s.add("a page up p50", "ms", percentile(pages, 50))
	s.add("a page up p99", "ms", percentile(pages, 99))
	if err := s.memory("scrolled through"); err != nil {
		return err
	}
	s.mark()
	s.write("\x1b[1;5F")
	if _, err := s.await(ctx, newestMark); err != nil {
		return err
	}
	pause(ctx, size.rest)
	return s.memory("afterwards at rest")
}

// frameEnd ends each frame.
const frameEnd = "\x1b[?2026l"

// keyOf is the text of a key that is nowhere else on the screen, so that its bytes in what
// is written are its echo: a letter of Latin's extensions.
func keyOf(n int) string { return string(rune(0x180 + n)) }

// oneStream measures while the bot on screen streams.
func (s *sitting) oneStream(ctx context.Context, size sonnySize) error {
	s.mark()
	end, err := s.home.turns(ctx, streamPrompt, sonnyLead)
	if err != nil {
		return err
	}
	mine, err := s.loadOf(ctx, size)
	s.add("1 stream", "% of a core", mine)
	return errors.Join(err, end(), s.rest(ctx, time.Second/10))
}

// loadOf is what Sonny takes while what was begun streams.
func (s *sitting) loadOf(ctx context.Context, size sonnySize) (float64, error) {
	if _, err := s.await(ctx, streamsMark); err != nil {
		return 0, err
	}
	return load(ctx, s.pid(), size.streams)
}

// streaming measures while so many bots stream: what it takes, and 200 keys.
func (s *sitting) streaming(bots int) func(context.Context, sonnySize) error {
	return func(ctx context.Context, size sonnySize) error {
		s.mark()
		end, err := s.home.streams(ctx, bots)
		if err != nil {
			return err
		}
		mine, err := s.loadOf(ctx, size)
		s.add(fmt.Sprintf("%d streams", bots), "% of a core", mine)
		if err == nil {
			err = s.typing(ctx, size.keys)
		}
		if err == nil {
			err = s.memory(fmt.Sprintf("with %d streams", bots))
		}
		u, uerr := sample(s.pid())
		s.add("peak", "MiB", inMiB(u.Peak))
		return errors.Join(err, uerr, end(), s.clear(ctx))
	}
}

// bigResult types while a command prints 5 MiB and its result comes. Keys wait for the
// frame under way: the one that waited longest bounds the slowest frame.
func (s *sitting) bigResult(ctx context.Context, size sonnySize) error {
	s.mark()
	if _, err := s.home.turns(ctx, printPrompt, sonnyLead); err != nil {
		return err
	}
	echoes, err := s.echoes(ctx, size.keys)
	if err != nil {
		return err
	}
	if _, err := s.await(ctx, printedMark); err != nil {
		return fmt.Errorf("the result of 5 MiB: %w", err)
	}
	s.add("key to echo as 5 MiB come, most", "ms", percentile(echoes, 100))
	return s.clear(ctx)
}

// typing measures from each key to its echo.
func (s *sitting) typing(ctx context.Context, keys int) error {
	s.mark()
	echoes, err := s.echoes(ctx, keys)
	if err != nil {
		return err
	}
	for _, p := range []float64{50, 95, 99} {
		s.add(fmt.Sprintf("key to echo p%.0f", p), "ms", percentile(echoes, p))
	}
	s.add("key to echo, most", "ms", percentile(echoes, 100))
	return nil
}

// echoes presses keys and gives the time from each to its echo, of what was written since
// the mark.
func (s *sitting) echoes(ctx context.Context, keys int) ([]time.Duration, error) {
	sent := make([]time.Time, keys)
	next := time.Now()
	for n := range keys {
		next = next.Add(keyPace)
		pause(ctx, time.Until(next))
		sent[n] = time.Now()
		s.write(keyOf(n))
	}
	if _, err := s.await(ctx, keyOf(keys-1)); err != nil {
		return nil, err
	}
	echoes := make([]time.Duration, keys)
	for n := range keys {
		at := s.when(keyOf(n))
		if at.IsZero() {
			return nil, fmt.Errorf("key %d of %d was never shown", n+1, keys)
		}
		echoes[n] = at.Sub(sent[n])
	}
	return echoes, nil
}

// paste measures from a paste to the frame that shows it.
func (s *sitting) paste(ctx context.Context, size sonnySize) error {
	if err := s.rest(ctx, time.Second/10); err != nil {
		return err
	}
	var took []time.Duration
	for range 5 {
		s.mark()
		began := time.Now()
		s.write("\x1b[200~" + strings.Repeat("A line of what is pasted here.\r", size.pasted) + "\x1b[201~")
		at, err := s.await(ctx, fmt.Sprintf("[pasted %d lines]", size.pasted))
		if err != nil {
			return err
		}
		took = append(took, at.Sub(began))
		if err := s.clear(ctx); err != nil {
			return err
		}
	}
	s.add("a paste of 10,000 lines p50", "ms", percentile(took, 50))
	s.add("a paste of 10,000 lines, least", "ms", percentile(took, 0))
	return nil
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
	"unicode/utf8"
)

// W7's shape (runtime.md 32). The provider takes a second over each of a turn's
// two answers, which gives the reference's 30 turns a second.
const (
	sustainBots  = 64
	sustainReply = 1000
	sustainItems = 8
)

// sustained is W7: bots that run a command and answer, again and again; once
// with nothing pruned, for as long as -sustain says, and once, for a third of
// that, with eight kept turns.
func (b *bench) sustained(ctx context.Context) error {
	length, reply := b.sustain, sustainReply
	if b.quick {
		length, reply = time.Second, 50
	}
	if err := b.sustainOnce(ctx, "nothing pruned", length, reply); err != nil {
		return err
	}
	return b.sustainOnce(ctx, "eight kept turns", length/3, reply, "--retain-turns", "8")
}

func (b *bench) sustainOnce(ctx context.Context, kase string, length time.Duration, reply int, flags ...string) error {
	flags = append(flags, "--context-items", fmt.Sprint(sustainItems))
	s, err := b.set(ctx, staging{model: []string{playWord, "-window"}, flags: flags})
	if err != nil {
		return err
	}
	err = s.daemon.createMany(ctx, 0, sustainBots, s.workspace, "shell")
	var turns, all int64
	var took time.Duration
	if err == nil {
		p := shell("printf hello")
		p.DelayMS = reply
		lead := length / 10
		turns, took, _, _, err = s.resubmit(ctx, sustainBots, lead, length-lead, func(bot, turn int) string {
			return p.prompt(bot, turn, 0)
		})
	}
	stats, serr := s.model.stats()
	drift, first, last := s.daemon.sampler.drift()
	u, err := s.end(errors.Join(err, serr))
	if err != nil {
		return fmt.Errorf("%s: %w", kase, err)
	}
	all = stats.Completed / 2 // calls of a turn
	info, err := os.Stat(s.store)
	if err != nil {
		return err
	}
	add := func(figure, unit string, v float64) { b.report.add("W7", kase, figure, unit, v) }
	add("turns a second", "1/s", float64(turns)/took.Seconds())
	add("store a turn", "KB", float64(info.Size())/1000/float64(all))
	add("RSS, first third", "MiB", first)
	add("RSS, last third", "MiB", last)
	add("RSS, last ÷ first third", "ratio", drift)
	add("peak", "MiB", inMiB(u.Peak))
	add("threads", "", float64(u.Threads))
	add("open files", "", float64(u.Files))
	return nil
}

// W8's shape.
const (
	growBots   = 16 // the first half is noisy
	growNoise  = mib
	growPrompt = 4 * kib
)

// growTurns are after how many turns, of all bots together, the store is looked
// at.
var growTurns = []int{64, 256, 1024}

// growth is W8: how a store grows whose bots print much.
func (b *bench) growth(ctx context.Context) error {
	turns, raw := growTurns, growTurns[:2]
	if b.quick {
		turns, raw = []int{32}, []int{32}
	}
	if err := b.grow(ctx, "varied output", turns, false); err != nil {
		return err
	}
	return b.grow(ctx, "incompressible output", raw, true)
}

// grow runs the turns of all bots at once. At each count the daemon is ended in
// good order, so that all is in the store's one file.
func (b *bench) grow(ctx context.Context, kase string, counts []int, raw bool) error {
	s, err := b.set(ctx, staging{
		model: []string{playWord, "-window"},
		flags: []string{"--retain-turns", "4", "--context-items", fmt.Sprint(sustainItems)},
	})
	if err != nil {
		return err
	}
	err = s.daemon.createMany(ctx, 0, growBots, s.workspace, "shell")
	done := 0
	for _, count := range counts {
		if err == nil {
			err = s.growTo(ctx, b.self, done/growBots, count/growBots, raw)
		}
		if _, end := s.daemon.stop(); err != nil || end != nil {
			return errors.Join(err, end, s.model.close())
		}
		done = count
		info, err := os.Stat(s.store)
		if err != nil {
			return err
		}
		b.report.add("W8", kase, fmt.Sprintf("store after %s turns", comma(count)), "MiB", inMiB(info.Size()))
		if count == counts[len(counts)-1] {
			break
		}
		if err := s.start(ctx); err != nil {
			return errors.Join(err, s.model.close())
		}
	}
	return s.model.close()
}

func (s *stage) growTo(ctx context.Context, self string, from, to int, raw bool) error {
	return each(growBots, func(n int) (err error) {
		for t := from; t < to && err == nil; t++ {
			p, size := part{}, growPrompt
			if n < growBots/2 {
				p, size = shell(noiseCommand(self, growNoise, n*1000+t, raw)), 0
			}
			_, err = s.daemon.run(ctx, botName(n), requestOf(t), p.prompt(n, t, size))
		}
		return err
	})
}

// noiseWord, as the first argument, makes this program print.
const noiseWord = "noise"

// noiseCommand is a command that prints size bytes, other ones for each seed:
// lines as of a program's log, of which deflate leaves about a fifth, or with
// raw characters without any order.
func noiseCommand(self string, size, seed int, raw bool) string {
	return fmt.Sprintf("'%s' %s %d %d %t", self, noiseWord, size, seed, raw)
}

// noise prints.
func noise(args []string, out io.Writer) int {
	var size, seed int
	var raw bool
	if len(args) != 3 {
		return 2
	}
	if _, err := fmt.Sscan(args[0]+" "+args[1]+" "+args[2], &size, &seed, &raw); err != nil {
		return 2
	}
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	w := bufio.NewWriter(out)
	for n := 0; n < size; {
		text := noiseLine(r, raw)
		if n+len(text) > size {
			text = bytes.Repeat([]byte("x"), size-n)
		}
		w.Write(text)
		n += len(text)
	}
	if err := w.Flush(); err != nil {
		return 1
	}
	return 0
}

var (
	noiseLevels = []string{"debug", "info", "warning", "error"}
	noiseTexts  = []string{
		"the request of a client took longer than it should", "the cache had no entry for the path that was asked for",
		"a worker is idle and gives back what it holds", "one more attempt after the connection broke off", "the queue is as long as it may be",
	}
)

// rawRune is a character of text that deflate takes only a twentieth off.
func rawRune(r *rand.Rand) rune {
	switch n := r.IntN(100); {
	case n < 81:
		return rune(0x21 + r.IntN(0x7f-0x21))
	case n < 96:
		return rune(0xa0 + r.IntN(0x800-0xa0))
	}
	return rune(0x800 + r.IntN(0xd800-0x800))
}

func noiseLine(r *rand.Rand, raw bool) []byte {
	if raw {
		return utf8.AppendRune(nil, rawRune(r))
	}
	line := fmt.Appendf(nil, "2026-01-02T03:04:%02d.%03dZ %s worker-%d: ", r.IntN(60), r.IntN(1000), noiseLevels[r.IntN(4)], r.IntN(16))
	line = append(line, noiseTexts[r.IntN(len(noiseTexts))]...)
	return fmt.Appendf(line, " id=%010x after %d ms\n", r.Int64N(1<<40), r.IntN(10_000))
}

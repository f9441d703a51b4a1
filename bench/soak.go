package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"agent/protocol"
)

// W11's shape (runtime.md 32). With 192 bots and two seconds for an answer it
// keeps about the reference's pace.
const (
	soakBots   = 192
	soakReply  = 2000
	soakCut    = 16 // turns in flight at the kill
	soakNoise  = 256 * kib
	soakWindow = 64 * kib // of the bots that must summarize
	soakItems  = 64       // what a request of the others holds, so that the pace is reached early
)

// The roles. A parent waits for its child, which is the bot after it.
const (
	roleLong   = iota // a history that outgrows its window
	roleNoisy         // commands that print much
	roleBurst         // commands in the background, waited for
	roleParent        // parked on a child
	roleChild
	roleFlaky // every fourth request fails
	rolePlain // interrupted, forked, its forks deleted
	roles
)

// soak is W11: all roles at once for as long as -soak says, then a kill and one
// more turn of every bot.
func (b *bench) soak(ctx context.Context) error {
	length, bots, reply := b.soakFor, soakBots, soakReply
	if b.quick {
		length, bots, reply = 2*time.Second, 3*roles, 50
	}
	s, err := b.set(ctx, staging{
		model: []string{playWord, "-window", "-lost"}, flags: []string{"--retain-turns", "8"}, looks: looks{every: time.Second},
	})
	if err != nil {
		return err
	}
	k := &soaking{stage: s, bots: bots, reply: reply, self: b.self}
	if err := errors.Join(k.create(ctx), k.run(ctx, length)); err != nil {
		_, err = s.end(err)
		return err
	}
	drift, first, last := s.daemon.sampler.drift()
	if err := s.hold(ctx, 0, min(soakCut, bots), 1_000_000, "cut"); err != nil {
		_, err = s.end(err)
		return err
	}
	u, err := s.daemon.kill()
	if err := errors.Join(err, s.start(ctx)); err != nil {
		return errors.Join(err, s.model.close())
	}
	ready := s.daemon.ready
	if _, err := s.end(errors.Join(k.checkRoles(ctx), k.after(ctx))); err != nil {
		return fmt.Errorf("after the kill: %w", err)
	}
	add := func(figure, unit string, v float64) {
		b.report.add("W11", fmt.Sprintf("%d bots", bots), figure, unit, v)
	}
	add("length", "min", length.Minutes())
	add("turns a second", "1/s", float64(k.turns.Load())/k.took.Seconds())
	add("RSS, first third", "MiB", first)
	add("RSS, last third", "MiB", last)
	add("RSS, last ÷ first third", "ratio", drift)
	add("peak", "MiB", inMiB(u.Peak))
	add("most in the WAL", "MiB", inMiB(k.wal))
	add("store, growth a minute", "MiB", float64(k.grown)/mib/k.took.Minutes())
	add("interrupts", "", float64(len(k.interrupts)))
	if len(k.interrupts) > 0 { // a short soak may have come to none
		add("interrupt p50", "ms", percentile(k.interrupts, 50))
		add("interrupt, slowest", "ms", percentile(k.interrupts, 100))
	}
	add("forks", "", float64(k.forks.Load()))
	add("restart with 16 in flight", "ms", millis(ready))
	return nil
}

// soaking is the soak's state.
type soaking struct {
	*stage
	bots, reply int
	self        string
	took        time.Duration
	wal, grown  int64
	turns       atomic.Int64
	forks       atomic.Int64

	mu         sync.Mutex
	interrupts []time.Duration // from the request to the end of the turn
}

func (k *soaking) create(ctx context.Context) error {
	tools := [roles][]string{roleNoisy: {"shell", "read"}, roleBurst: {"shell", "wait"}, roleParent: {"wait"}}
	return some(0, k.bots, func(n int) error {
		role := n % roles
		c := &protocol.Create{
			Bot: botName(n), Model: "fake/" + botName(n), Instructions: "Be brief.", Tools: tools[role], Workspace: k.workspace,
		}
		if role == roleLong {
			c.CompactionInstructions = summaryMark
			c.Settings = &protocol.Settings{ContextBytes: protocol.Set[int64](soakWindow)}
		} else {
			c.Settings = &protocol.Settings{ContextItems: protocol.Set[int64](soakItems)}
		}
		return k.daemon.session.Do(ctx, "create", c, nil)
	})
}

// run drives every bot until the time is over.
func (k *soaking) run(ctx context.Context, length time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	stop := make(chan struct{})
	time.AfterFunc(length, func() { close(stop) })
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		k.watchStore(stop)
	}()
	err := each(k.bots, func(n int) error {
		for t := 0; n%roles != roleChild; t++ { // a child is driven by its parent
			select {
			case <-stop:
				return nil
			default:
			}
			if err := k.turn(ctx, n, t); err != nil {
				cancel() // what the others do is no figure
				return fmt.Errorf("%s, turn %d: %w", botName(n), t, err)
			}
		}
		return nil
	})
	k.took = time.Since(began)
	if err == nil {
		<-watched
	}
	return err
}

// watchStore looks at the store's files every second.
func (k *soaking) watchStore(stop chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	first := int64(0)
	for {
		if info, err := os.Stat(k.store + "-wal"); err == nil {
			k.wal = max(k.wal, info.Size())
		}
		if info, err := os.Stat(k.store); err == nil {
			if first == 0 {
				first = info.Size()
			}
			k.grown = info.Size() - first
		}
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

// turn is one turn of a bot, as its role has it.
func (k *soaking) turn(ctx context.Context, n, t int) error {
	p, size := part{}, 0
	switch n % roles {
	case roleLong:
		p.Deltas, size = 8, 4*kib
	case roleNoisy:
		p = shell(noiseCommand(k.self, soakNoise, n*100_000+t, false))
	case roleBurst:
		p = calling("shell", map[string]any{"command": "sleep 0.2; printf done", "background": true})
		p.Each, p.Await = 3, true
	case roleParent:
		return k.parent(ctx, n, t)
	case roleFlaky:
		p.FailEvery = 4
	case rolePlain:
		switch t % 10 {
		case 4:
			return k.interrupt(ctx, n, t)
		case 9:
			return k.fork(ctx, n, t)
		}
	}
	p.DelayMS = k.reply
	return k.one(ctx, botName(n), requestOf(t), p.prompt(n, t, size))
}

func (k *soaking) one(ctx context.Context, bot, request, prompt string) error {
	_, err := k.daemon.run(ctx, bot, request, prompt)
	if err == nil {
		k.turns.Add(1)
	}
	return err
}

// parent runs a turn of the child and one of the parent that waits for it.
func (k *soaking) parent(ctx context.Context, n, t int) error {
	turns := []*watched{k.daemon.watch.expect(botName(n)), k.daemon.watch.expect(botName(n + 1))}
	child, err := k.daemon.submit(ctx, n+1, t, part{DelayMS: k.reply})
	if err != nil {
		return err
	}
	wait := calling("wait", map[string][]string{"handles": {child.Handle}})
	wait.DelayMS = k.reply / 4
	if _, err := k.daemon.submit(ctx, n, t, wait); err != nil {
		return err
	}
	if err := k.daemon.completed(ctx, turns); err != nil {
		return err
	}
	k.turns.Add(2)
	return nil
}

// interrupt ends a turn in the middle of its answer.
func (k *soaking) interrupt(ctx context.Context, n, t int) error {
	w := k.daemon.watch.expect(botName(n))
	s, err := k.daemon.submit(ctx, n, t, part{Deltas: 100, GapMS: k.reply})
	if err != nil {
		return err
	}
	select {
	case <-w.begun:
	case <-w.done:
		return fmt.Errorf("the turn ended by itself: %s", w.why)
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	if err := k.daemon.session.Do(ctx, "interrupt", &protocol.Interrupt{Bot: botName(n), Turn: s.Turn}, nil); err != nil {
		return err
	}
	if err := k.daemon.ended(ctx, []*watched{w}, "interrupted"); err != nil {
		return err
	}
	k.turns.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.interrupts = append(k.interrupts, w.finished.Sub(began))
	return nil
}

// fork lets a fork go on from where a bot is, and deletes it.
func (k *soaking) fork(ctx context.Context, n, t int) error {
	do, name := k.daemon.session.Do, fmt.Sprintf("%s-fork-%d", botName(n), t)
	if err := do(ctx, "fork", &protocol.Fork{Source: botName(n), Bot: name, Workspace: k.workspace}, nil); err != nil {
		return err
	}
	if err := k.one(ctx, name, requestOf(0), part{DelayMS: k.reply}.prompt(n, t, 0)); err != nil {
		return err
	}
	k.forks.Add(1)
	return do(ctx, "delete", &protocol.Delete{Bot: name}, nil)
}

// checkRoles makes sure that the soak was one: the long histories must have
// been summarized.
func (k *soaking) checkRoles(ctx context.Context) error {
	if k.took < time.Minute {
		return nil // too short for that
	}
	var record protocol.Bot
	err := k.daemon.session.Do(ctx, "inspect", &protocol.Inspect{Bot: botName(roleLong)}, &record)
	if err == nil && record.Compaction == nil {
		err = errors.New("a history that outgrew its window was never summarized: no figure")
	}
	return err
}

// after runs one more turn of every bot, those that were cut included.
func (k *soaking) after(ctx context.Context) error {
	return each(k.bots, func(n int) error {
		return k.one(ctx, botName(n), requestOf(2_000_000), part{}.prompt(n, 0, 0))
	})
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"agent/client"
	"agent/protocol"
)

// The shape of W2 and W3 (runtime.md 32).
const (
	lifeBots  = 32
	lifeTurns = 3
	lifeText  = 4 * kib
	lifeEvery = 200 * time.Millisecond
)

// lifeCase is one of their modes.
type lifeCase struct {
	mode   string // text, echo or shell
	bots   int
	socket bool
}

func (c lifeCase) String() string { return fmt.Sprintf("%s, %d bots", c.mode, c.bots) }

// lifecycle is W2: the whole life of bots, a kill included, on standard input
// and output.
func (b *bench) lifecycle(ctx context.Context) error {
	return b.lives(ctx, "W2", b.lifeCases(false))
}

// socketLifecycle is W3: W2 over the socket, with a follower of each bot, who
// must be told exactly what a replay tells.
func (b *bench) socketLifecycle(ctx context.Context) error {
	cases := b.lifeCases(true)
	for _, bots := range []int{1, 8} {
		if !b.quick {
			cases = append(cases, lifeCase{mode: "shell", bots: bots, socket: true})
		}
	}
	return b.lives(ctx, "W3", cases)
}

func (b *bench) lifeCases(socket bool) (cases []lifeCase) {
	bots := lifeBots
	if b.quick {
		bots = 4
	}
	for _, mode := range []string{"text", "echo", "shell"} {
		cases = append(cases, lifeCase{mode: mode, bots: bots, socket: socket})
	}
	return cases
}

func (b *bench) lives(ctx context.Context, id string, cases []lifeCase) error {
	for _, c := range cases {
		if err := b.live(ctx, id, c); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	return nil
}

// life is one run of a case.
type life struct {
	*stage
	lifeCase
	gapMS  int // between the pieces of an answer
	least  int // answers that the provider must see at once
	turns  []turn
	replay [][]*protocol.Event // of each bot, before the kill
}

func (b *bench) live(ctx context.Context, id string, c lifeCase) error {
	s, err := b.set(ctx, staging{
		model: []string{playWord}, socket: c.socket, looks: looks{every: lifeEvery, tree: true},
	})
	if err != nil {
		return err
	}
	l := &life{stage: s, lifeCase: c, gapMS: 25, least: c.bots}
	if b.quick {
		l.gapMS, l.least = 2, 1
	}
	if err := l.run(ctx); err != nil {
		_, err = s.end(err)
		return err
	}
	u, err := l.daemon.kill()
	if err := errors.Join(err, s.start(ctx)); err != nil {
		return errors.Join(err, s.model.close())
	}
	ready := l.daemon.ready
	began := time.Now()
	err = l.check(ctx)
	checked := time.Since(began)
	if _, err := s.end(err); err != nil {
		return err
	}
	add := func(figure, unit string, v float64) { b.report.add(id, c.String(), figure, unit, v) }
	var whole []time.Duration
	for _, t := range l.turns {
		whole = append(whole, t.whole)
	}
	add("peak", "MiB", inMiB(u.Peak))
	add("tree, summed RSS", "MiB", inMiB(u.TreeRSS))
	if u.TreePSS > 0 {
		add("tree, PSS", "MiB", inMiB(u.TreePSS))
	}
	add("cpu", "s", u.CPU)
	p50, p99 := percentile(whole, 50), percentile(whole, 99)
	add("turn p50", "ms", p50)
	add("turn p99", "ms", p99)
	add("p99 less p50", "ms", p99-p50)
	add("restart to ready", "ms", millis(ready))
	add("checks of all", "ms", millis(checked))
	return nil
}

// run lets every bot take its turns, all bots at once, and reads back what
// happened.
func (l *life) run(ctx context.Context) error {
	tools := map[string][]string{"echo": {"echo"}, "shell": {"shell"}}[l.mode]
	for n := range l.bots {
		if err := l.daemon.create(ctx, botName(n), l.workspace, tools...); err != nil {
			return err
		}
	}
	var follow *followers
	if l.socket {
		follow = startFollowers(ctx, l.daemon.client, l.bots)
		defer follow.stop()
	}
	l.turns = make([]turn, l.bots*lifeTurns)
	err := each(l.bots, func(n int) (err error) {
		for t := 0; t < lifeTurns && err == nil; t++ {
			prompt := l.part(n, t).prompt(n, t, lifeText)
			l.turns[n*lifeTurns+t], err = l.daemon.run(ctx, botName(n), requestOf(t), prompt)
		}
		return err
	})
	if err != nil {
		return err
	}
	stats, err := l.model.stats()
	if err == nil && stats.MaxOpen < l.least {
		err = fmt.Errorf("the provider saw %d of %d streams at once: no figure", stats.MaxOpen, l.bots)
	}
	if err != nil {
		return err
	}
	if l.replay, err = l.replays(ctx); err != nil || follow == nil {
		return err
	}
	return follow.saw(ctx, l.replay)
}

func requestOf(turn int) string { return fmt.Sprintf("r%d", turn) }

// part is what a bot does in a turn.
func (l *life) part(bot, turn int) part {
	var p part
	switch l.mode {
	case "echo":
		p = calling("echo", map[string]string{"text": "hello"})
	case "shell":
		p = shell(fmt.Sprintf("printf done > out-%d-%d; sleep 0.25; true", bot, turn))
	}
	p.Deltas, p.GapMS = streamDeltas, l.gapMS
	return p
}

// replays reads every bot's events from the first.
func (l *life) replays(ctx context.Context) ([][]*protocol.Event, error) {
	all := make([][]*protocol.Event, l.bots)
	err := each(l.bots, func(n int) (err error) {
		all[n], err = l.daemon.events(ctx, botName(n))
		return err
	})
	return all, err
}

// events reads a bot's events from the first.
func (d *daemon) events(ctx context.Context, bot string) (all []*protocol.Event, err error) {
	for after := int64(0); ; {
		var page protocol.EventPage
		if err := d.session.Do(ctx, "events", &protocol.EventsRequest{Bot: bot, After: after, Limit: protocol.MaxPage}, &page); err != nil {
			return nil, err
		}
		events, err := page.All()
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return all, nil
		}
		all, after = append(all, events...), page.NextCursor
	}
}

// check asks the daemon that came up after the kill for everything that must
// have outlived it.
func (l *life) check(ctx context.Context) error {
	return each(l.bots, func(n int) error {
		if err := l.checkBot(ctx, n); err != nil {
			return fmt.Errorf("after the kill, %s: %w", botName(n), err)
		}
		return nil
	})
}

func (l *life) checkBot(ctx context.Context, n int) error {
	do, bot := l.daemon.session.Do, botName(n)
	var record protocol.Bot
	if err := do(ctx, "resume", &protocol.Resume{Bot: protocol.Set(bot)}, &record); err != nil {
		return err
	}
	if record.Status != "completed" {
		return fmt.Errorf("its status is %s", record.Status)
	}
	events, err := l.daemon.events(ctx, bot)
	if err != nil {
		return err
	}
	if err := sameEvents(l.replay[n], events); err != nil {
		return err
	}
	if err := l.readItems(ctx, bot); err != nil {
		return err
	}
	last := lifeTurns - 1
	var again protocol.Submitted
	prompt := l.part(n, last).prompt(n, last, lifeText)
	if err := do(ctx, "submit", &protocol.Submit{Bot: bot, RequestID: requestOf(last), Prompt: prompt}, &again); err != nil {
		return err
	}
	if !again.Duplicate {
		return errors.New("a submission that was made before the kill was taken for a new one")
	}
	first, err := firstCheckpoint(events)
	if err != nil {
		return err
	}
	return do(ctx, "fork", &protocol.Fork{Source: bot, Bot: bot + "-fork", Checkpoint: protocol.Set(first)}, nil)
}

// readItems reads a bot's whole history.
func (l *life) readItems(ctx context.Context, bot string) error {
	var page protocol.NodePage
	if err := l.daemon.session.Do(ctx, "history_nodes", &protocol.HistoryNodes{Bot: bot}, &page); err != nil {
		return err
	}
	var nodes []int64
	for _, n := range page.Nodes {
		nodes = append(nodes, n.Node)
	}
	var items protocol.ItemPage
	if err := l.daemon.session.Do(ctx, "history_items", &protocol.HistoryItems{Bot: bot, Nodes: nodes}, &items); err != nil {
		return err
	}
	want := lifeTurns * map[string]int{"text": 2, "echo": 4, "shell": 4}[l.mode]
	if len(items.Items) != want {
		return fmt.Errorf("its history has %d items, not %d", len(items.Items), want)
	}
	return nil
}

func firstCheckpoint(events []*protocol.Event) (int64, error) {
	for _, e := range events {
		var end protocol.TurnFinished
		if e.Kind != protocol.KindTurnFinished {
			continue
		}
		if err := e.Decode(&end); err != nil {
			return 0, err
		}
		if end.Checkpoint != nil {
			return *end.Checkpoint, nil
		}
	}
	return 0, errors.New("no turn left a checkpoint")
}

func sameEvents(want, got []*protocol.Event) error {
	if len(want) == 0 || len(want) != len(got) {
		return fmt.Errorf("%d events are replayed and %d were there", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(want[i].Line, got[i].Line) {
			return fmt.Errorf("event %d is %s and was %s", i, got[i].Line, want[i].Line)
		}
	}
	return nil
}

// followers follow a bot each, over connections of their own.
type followers struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
	mu     sync.Mutex
	more   *sync.Cond
	events [][]*protocol.Event // the durable ones of each
	err    error
}

func startFollowers(ctx context.Context, c *client.Client, bots int) *followers {
	f := &followers{events: make([][]*protocol.Event, bots)}
	f.more = sync.NewCond(&f.mu)
	ctx, f.cancel = context.WithCancel(ctx)
	for n := range bots {
		f.wait.Go(func() {
			for e, err := range c.Follow(ctx, botName(n), client.FollowOptions{}) {
				f.take(n, e, err)
			}
		})
	}
	return f
}

func (f *followers) take(n int, e *protocol.Event, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.err = errors.Join(f.err, err)
	} else if e.Durable {
		f.events[n] = append(f.events[n], e)
	}
	f.more.Broadcast()
}

// saw waits until the followers have been told as many events as a replay has,
// and compares them.
func (f *followers) saw(ctx context.Context, replay [][]*protocol.Event) error {
	defer context.AfterFunc(ctx, f.more.Broadcast)()
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range replay {
		for len(f.events[n]) < len(replay[n]) && f.err == nil && ctx.Err() == nil {
			f.more.Wait()
		}
		if err := errors.Join(f.err, ctx.Err()); err != nil {
			return err
		}
		if err := sameEvents(replay[n], slices.Clone(f.events[n])); err != nil {
			return fmt.Errorf("the follower of %s: %w", botName(n), err)
		}
	}
	return nil
}

func (f *followers) stop() {
	f.cancel()
	f.wait.Wait()
}

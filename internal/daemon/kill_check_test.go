package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent/internal/store"
	"agent/protocol"
)

// live runs clients against daemons with faults, one daemon after another until
// one has none left, and holds the end against what was acknowledged. Each
// client is a function that runs to its end over all daemons.
func (w *world) live(plans []faultPlan, clients ...func(*hand)) {
	w.t.Helper()
	done := make(chan struct{})
	var others sync.WaitGroup
	others.Go(w.follow)
	defer others.Wait()
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for _, client := range clients {
			all.Go(func() { guard(func() { client(&hand{w: w}) }) })
		}
		all.Wait()
		guard(func() { w.checkEnd(&hand{w: w}) })
	}()
	for life := 0; ; life++ {
		var plan faultPlan
		if life < len(plans) {
			plan = plans[life]
		}
		if w.outlives(plan, life, done, &others) {
			break
		}
	}
	w.mu.Lock()
	w.over = true
	w.changed.Broadcast()
	w.mu.Unlock()
}

// outlives runs one daemon and reports whether it came to an orderly end.
func (w *world) outlives(plan faultPlan, life int, done chan struct{}, others *sync.WaitGroup) bool {
	if !w.rise(plan) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.over
	}
	w.mu.Lock()
	p := w.p
	w.mu.Unlock()
	if life > 0 {
		others.Go(func() { guard(func() { w.checkAcknowledged(&hand{w: w}) }) })
	}
	if plan.After > 0 {
		defer time.AfterFunc(plan.After, func() { p.cmd.Process.Signal(syscall.SIGKILL) }).Stop()
	}
	select {
	case <-p.exited:
		w.fell(p, plan)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.over {
			<-done
		}
		return w.over
	case <-done:
	}
	w.mu.Lock()
	over, stuck := w.over, w.stuck
	w.mu.Unlock()
	if stuck {
		p.cmd.Process.Signal(syscall.SIGQUIT) // it says what it waits for
		<-p.exited
	}
	if over {
		p.kill()
		return true
	}
	return w.shut(p, plan)
}

// shut ends a daemon as asked and looks at what is left. It reports whether no
// further daemon is needed.
func (w *world) shut(p *process, plan faultPlan) bool {
	w.mu.Lock()
	w.p = nil
	w.mu.Unlock()
	l, err := w.dialTo(p)
	if err == nil {
		defer l.c.Close()
		err = l.ask(nil, "shutdown", "")
	}
	if code := p.wait(); code != 0 && (plan.Kill > 0 || plan.After > 0) {
		w.fell(p, plan)
		return false
	} else if code != 0 {
		w.fail("shutdown: %v; exit %d: %s", err, code, p.stderr.String())
		return true
	}
	report, err := store.Check(w.set.Store)
	if err != nil || !report.OK {
		w.fail("the store at the end: %+v, %v", report, err)
	}
	return true
}

// checkEnd waits until nothing runs any more and holds everything together.
func (w *world) checkEnd(h *hand) {
	w.mu.Lock()
	var turns []int64
	for _, s := range w.acked {
		if !w.deleted[s.bot] {
			turns = append(turns, s.turn)
		}
	}
	w.mu.Unlock()
	slices.Sort(turns)
	h.ended(turns...)
	w.checkQuiet(h)
	w.checkAcknowledged(h)
	w.checkReplay(h)
	w.checkHandles(h)
	w.checkAccounts(h)
	w.checkOrder()
	w.checkCalls()
	w.checkModel()
}

// checkModel fails for what the model server found wrong. On a busy machine it
// may not have seen that an interrupted request was given up when the next one
// comes, which then looks like an overlap.
func (w *world) checkModel() {
	for _, v := range w.model.Violations() {
		bot, _, _ := strings.Cut(strings.TrimPrefix(v.Detail, "another request of "), " ")
		w.mu.Lock()
		cut := w.cut[bot]
		w.mu.Unlock()
		if v.Reason != "overlap" || !cut {
			w.fail("model server: %v", &v)
		}
	}
}

// checkQuiet waits until the daemon counts nothing as running or waiting.
func (w *world) checkQuiet(h *hand) {
	var st protocol.Stats
	for end := time.Now().Add(patience); ; {
		h.must(&st, "stats", "")
		busy := st.ActiveTurns + st.WaitingTurns + st.PacedTurns + st.QueuedTurns + st.RunningProcesses + st.PendingBytes
		if busy == 0 {
			return
		}
		if time.Now().After(end) {
			w.fail("it never falls quiet: %+v", st)
			panic(errOver)
		}
	}
}

// checkAcknowledged asks again for all that was acknowledged: a submission is
// the same turn, a bot the same bot, what was deleted gone.
func (w *world) checkAcknowledged(h *hand) {
	w.mu.Lock()
	acked, bots := maps.Clone(w.acked), maps.Clone(w.bots)
	deleted, configured := maps.Clone(w.deleted), maps.Clone(w.configured)
	w.mu.Unlock()
	for name, id := range bots {
		var b protocol.Bot
		_, err := h.insist(&b, "inspect", fmt.Sprintf(`"bot":%q`, name))
		gone := protocol.CodeOf(err) == protocol.BotNotFound
		switch {
		case deleted[name] && !gone:
			w.fail("bot %s was deleted and is there: %v", name, err)
		case gone && !deleted[name] && w.mayGo(name):
		case !deleted[name] && (err != nil || b.ID != id):
			w.fail("bot %s was %d and is %d, %v", name, id, b.ID, err)
		case configured[name] != 0 && err == nil && (b.BudgetTokens == nil || *b.BudgetTokens != configured[name]):
			w.fail("the budget of %s was set to %d and is %v", name, configured[name], b.BudgetTokens)
		}
	}
	for key, s := range acked {
		var got protocol.Submitted
		_, err := h.insist(&got, "submit", submission(s.bot, s.request, s.prompt, s.more))
		gone := protocol.CodeOf(err) == protocol.BotNotFound
		if gone && (deleted[s.bot] || w.mayGo(s.bot)) {
			continue
		}
		if err != nil || !got.Duplicate || got.Turn != s.turn {
			w.fail("%s was acknowledged as turn %d and is now %+v, %v", key, s.turn, got, err)
		}
	}
}

// mayGo reports whether a bot's deletion was asked for: it may be carried out
// before its answer comes.
func (w *world) mayGo(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deleting[name]
}

// checkReplay holds the follower's record against a replay from the beginning.
func (w *world) checkReplay(h *hand) {
	replay, newest := w.replay(h)
	w.await("the follower", func() bool { return w.newest >= newest })
	w.mu.Lock()
	defer w.mu.Unlock()
	for cursor, raw := range w.record {
		again, there := replay[cursor]
		if w.deleted[parsed(raw).str("bot")] {
			if there {
				w.failLocked("event %s of a deleted bot is replayed", raw)
			}
		} else if cursor <= newest && again != raw {
			w.failLocked("the follower saw %s, replay gives %s", raw, again)
		}
	}
	for cursor, raw := range replay {
		if _, ok := w.record[cursor]; !ok {
			w.failLocked("the follower never saw %s", raw)
		}
	}
}

// replay reads every event there is.
func (w *world) replay(h *hand) (events map[int64]string, newest int64) {
	for tries := 0; ; tries++ {
		h.must(nil, "stats", "") // there is a daemon
		events, err := w.replayFrom(h.p)
		if err == nil {
			for cursor := range events {
				newest = max(newest, cursor)
			}
			return events, newest
		}
		if !errors.Is(err, errDown) && !w.faulty || tries > 100 {
			w.fail("replay: %v", err)
			panic(errOver)
		}
	}
}

func (w *world) replayFrom(p *process) (map[int64]string, error) {
	l, err := w.dialTo(p)
	if err != nil {
		return nil, err
	}
	defer l.c.Close()
	if err := l.ask(nil, "follow", `"bot":"*","after":0`); err != nil {
		return nil, err
	}
	events, last := map[int64]string{}, int64(0)
	for {
		got, err := l.read()
		if err != nil {
			return nil, err
		}
		if got.str("event") == "follow_live" {
			return events, nil
		}
		if got.fields["data"] == nil {
			continue
		}
		cursor := got.num("cursor")
		if cursor <= last {
			return nil, fmt.Errorf("event %s follows %d", got.raw, last)
		}
		events[cursor], last = string(got.raw), cursor
	}
}

// checkHandles resolves every handle there can be: none is pending.
func (w *world) checkHandles(h *hand) {
	handles := map[string]protocol.TurnFinished{}
	for l := range w.ordered() {
		if l.str("event") == "turn_finished" {
			var end protocol.TurnFinished
			l.data(&end)
			handles[fmt.Sprintf("turn:%s/%d", l.str("bot"), l.num("turn"))] = end
		}
	}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(handles)), 16) {
		for handle, r := range w.resolve(h, batch) {
			if want := handles[handle]; r.Turn == nil || r.Turn.Status != want.Status {
				w.fail("%s resolves to %+v, its end was %+v", handle, r, want)
			}
		}
	}
	for n := 1; ; n++ {
		handle := fmt.Sprint("proc:", n)
		r := w.resolve(h, []string{handle})[handle]
		if r.Err != nil && r.Err.Code == protocol.UnknownHandle {
			return
		}
		if r.Process == nil && (r.Err == nil || r.Err.Code != protocol.ProcessLost || w.lives() == 0) {
			w.fail("%s resolves to %+v", handle, r)
		}
	}
}

// lives is how many daemons ended before their time.
func (w *world) lives() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kills
}

func (w *world) resolve(h *hand, handles []string) map[string]protocol.Resolved {
	list, _ := json.Marshal(handles)
	var got protocol.Waited
	h.must(&got, "wait", fmt.Sprintf(`"handles":%s,"timeout_ms":0`, list))
	if len(got.Pending) > 0 || len(got.Results) != len(handles) {
		w.fail("handles %s resolve to %+v", list, got)
	}
	return got.Results
}

// checkAccounts adds up the usage events of every turn and bot.
func (w *world) checkAccounts(h *hand) {
	type sum struct{ in, out, rounds int64 }
	turns, bots := map[int64]sum{}, map[string]sum{}
	for l := range w.ordered() {
		if l.str("event") != "usage" {
			continue
		}
		var u protocol.Usage
		l.data(&u)
		add := func(s sum) sum { return sum{s.in + u.InputTokens, s.out + u.OutputTokens, s.rounds + 1} }
		turns[l.num("turn")] = add(turns[l.num("turn")])
		bots[l.str("bot")] = add(bots[l.str("bot")])
	}
	w.mu.Lock()
	names := slices.Sorted(maps.Keys(w.bots))
	names = slices.DeleteFunc(names, func(name string) bool { return w.deleted[name] })
	w.mu.Unlock()
	for _, name := range names {
		var b protocol.Bot
		h.must(&b, "inspect", fmt.Sprintf(`"bot":%q`, name))
		if s := bots[name]; b.TokensUsed != s.in+s.out || b.InputTokens != s.in {
			w.fail("bot %s used %d, its events say %+v", name, b.TokensUsed, s)
		}
		requests := map[string]int64{}
		for after := int64(0); ; {
			var page protocol.TurnPage
			h.must(&page, "turns", fmt.Sprintf(`"bot":%q,"after":%d`, name, after))
			for _, tr := range page.Turns {
				if s := turns[tr.Turn]; tr.InputTokens != s.in || tr.OutputTokens != s.out || tr.ModelRounds != s.rounds {
					w.fail("turn %+v, its events say %+v", tr, s)
				}
				if was, ok := requests[tr.RequestID]; ok {
					w.fail("request %s of %s is turn %d and turn %d", tr.RequestID, name, was, tr.Turn)
				}
				requests[tr.RequestID] = tr.Turn
			}
			if page.NextAfter == nil {
				break
			}
			after = *page.NextAfter
		}
		w.checkRequests(name, requests)
	}
}

// checkRequests holds a bot's turns against what was acknowledged.
func (w *world) checkRequests(bot string, requests map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.acked {
		if s.bot == bot && requests[s.request] != s.turn {
			w.failLocked("request %s of %s is turn %d, acknowledged was %d", s.request, bot, requests[s.request], s.turn)
		}
	}
}

// ordered gives the record's events of bots that still are, in order.
func (w *world) ordered() iter.Seq[line] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.without(maps.Clone(w.deleted))
}

// without gives the record's events but those of some bots, in order.
func (w *world) without(deleted map[string]bool) iter.Seq[line] {
	return func(yield func(line) bool) {
		w.mu.Lock()
		record := maps.Clone(w.record)
		w.mu.Unlock()
		for _, cursor := range slices.Sorted(maps.Keys(record)) {
			if l := parsed(record[cursor]); !deleted[l.str("bot")] && !yield(l) {
				return
			}
		}
	}
}

// checkOrder holds the record against the order of events (protocol.md 14): a
// bot's turns run one at a time and in their line's order, each begins and ends
// once, and a parked turn is resumed, or ended by whoever asked for that.
func (w *world) checkOrder() {
	running := map[string]int64{} // by bot
	started := map[string]int64{}
	over := map[int64]bool{}
	waits := map[int64]bool{}
	for l := range w.ordered() {
		bot, turn, kind := l.str("bot"), l.num("turn"), l.str("event")
		if turn == 0 || kind == "queued" {
			continue
		}
		if over[turn] {
			w.fail("event %s follows its turn's end", l.raw)
		}
		switch kind {
		case "accepted":
			if running[bot] != 0 || turn <= started[bot] {
				w.fail("turn %d of %s begins while %d runs, after %d", turn, bot, running[bot], started[bot])
			}
			running[bot], started[bot] = turn, turn
		case "turn_finished":
			var end protocol.TurnFinished
			l.data(&end)
			over[turn] = true
			w.checkFinished(l, end, waits[turn])
			if running[bot] == turn {
				running[bot] = 0
			} else if end.Status == protocol.StatusCompleted {
				w.fail("turn %d of %s completes, which never began", turn, bot)
			}
		case "turn_waiting", "turn_paced":
			waits[turn] = true
		default:
			if running[bot] != turn {
				w.fail("event %s comes while %d runs", l.raw, running[bot])
			}
			if kind != "tool_completed" { // a parked call may be cancelled
				waits[turn] = false
			}
		}
	}
}

// checkFinished says whether a turn may end so here.
func (w *world) checkFinished(l line, end protocol.TurnFinished, parked bool) {
	code := protocol.Code("")
	if end.Error != nil {
		code = *end.Error
	}
	crashed := code == protocol.ProcessInterrupted && w.lives() > 0
	refused := code == protocol.StorageError && w.faulty
	switch {
	case end.Status == protocol.StatusCompleted, end.Status == protocol.StatusSteered:
	case end.Status == protocol.StatusInterrupted && code == protocol.Cancelled:
	case parked && (crashed || refused):
		w.fail("a parked turn ends with %s", l.raw)
	case end.Status == protocol.StatusInterrupted && crashed:
	case end.Status == protocol.StatusFailed && refused:
	default:
		w.fail("a turn ends with %s", l.raw)
	}
}

var commandForm = regexp.MustCompile(`echo (\S+) >> log`)

// checkCalls holds the log that the commands wrote against what is recorded of
// them: none ran twice, none that is reported as cancelled ran, each whose
// result is known ran once.
func (w *world) checkCalls() {
	text, err := os.ReadFile(filepath.Join(w.workspace, "log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.fail("%v", err)
	}
	ran := map[string]int{}    // by line
	left := map[string]bool{}  // steps that left a line
	began := map[string]bool{} // lines whose call is recorded
	for _, id := range strings.Fields(string(text)) {
		if ran[id]++; ran[id] > 1 {
			w.fail("call %s ran twice", id)
		}
		step, _, _ := strings.Cut(id, "#")
		left[step] = true
	}
	type call struct {
		turn int64
		id   string
	}
	commands := map[call]protocol.ToolStarted{}
	for l := range w.without(nil) { // a bot is deleted after its turns have ended
		switch l.str("event") {
		case "tool_started":
			var s protocol.ToolStarted
			l.data(&s)
			key := call{l.num("turn"), s.CallID}
			if _, twice := commands[key]; twice {
				w.fail("a call starts again: %s", l.raw)
			}
			commands[key] = s
			if m := commandForm.FindStringSubmatch(s.Arguments); m != nil {
				began[m[1]] = true
			}
		case "tool_completed":
			var c protocol.ToolCompleted
			l.data(&c)
			key := call{l.num("turn"), c.CallID}
			s, ok := commands[key]
			delete(commands, key)
			m := commandForm.FindStringSubmatch(s.Arguments)
			if !ok || m == nil {
				continue
			}
			background := strings.Contains(s.Arguments, "background")
			if n := ran[m[1]]; n == 0 && !c.OutcomeUnknown && !c.Cancelled && !background {
				w.fail("call %s has a result and never ran: %s", m[1], l.raw)
			} else if n > 0 && c.Cancelled {
				w.fail("call %s is reported as cancelled and ran: %s", m[1], l.raw)
			}
		}
	}
	for key, s := range commands {
		w.fail("call %s of turn %d started and never ended: %s", key.id, key.turn, s.Arguments)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.acked {
		// A background command that the store refuses is the model's to hear of.
		must := w.finished[s.turn].Status == protocol.StatusCompleted && !w.cutShort[s.turn] && !(w.faulty && strings.Contains(s.prompt, "bg"))
		for _, step := range programLines(s.prompt) {
			if must && !w.deleted[s.bot] && !left[step] {
				w.failLocked("turn %d completed and its call %s never ran", s.turn, step)
			}
		}
	}
	for id := range ran {
		if !began[id] {
			w.failLocked("call %s ran and nothing says that it began", id)
		}
	}
}

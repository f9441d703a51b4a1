package daemon_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v2 "github.com/go-json-experiment/json"

	"agent/internal/fakemodel"
	"agent/internal/store"
	"agent/protocol"
)

// world is a daemon that is killed, or whose store fails, under clients that go
// on: after each loss they come back and repeat what they have no answer to.
// What was acknowledged and what the follower saw is remembered, to be held
// against the store. The model server outlives every daemon.
type world struct {
	*host
	model  *fakemodel.Server
	actor  *actor
	always []string // every daemon's environment
	label  string   // begins every failure: what is done to the daemon, seeds

	mu      sync.Mutex
	changed *sync.Cond
	p       *process    // nil while no daemon is ready
	over    bool        // a failure was found: everybody stops
	stuck   bool        // the failure is that something never came
	kills   int         // daemons that ended before their time
	full    atomic.Bool // the disk is, or was: a start may be refused
	faulty  bool        // the store fails without dying: storage_error is to be expected

	record   map[int64]string // the follower's lines, by cursor
	newest   int64
	finished map[int64]protocol.TurnFinished
	parked   map[int64]bool // turns whose newest event says that they wait
	cutShort map[int64]bool // turns that took in a steer, whose program is then another

	acked      map[string]sent  // by bot and request
	bots       map[string]int64 // acknowledged ones, by name
	deleting   map[string]bool  // asked for
	deleted    map[string]bool  // acknowledged
	configured map[string]int64 // the acknowledged budget
	cut        map[string]bool  // bots a turn of which was interrupted
}

// sent is an acknowledged submission.
type sent struct {
	bot, request, prompt, more string
	turn                       int64
}

// errOver ends a goroutine of a world that has failed.
var errOver = errors.New("the world has ended")

func newWorld(t testing.TB, label string) *world {
	w := &world{
		host: newHost(t, ""), actor: newActor(), label: label,
		record: map[int64]string{}, finished: map[int64]protocol.TurnFinished{}, parked: map[int64]bool{}, cutShort: map[int64]bool{},
		acked: map[string]sent{}, bots: map[string]int64{}, deleting: map[string]bool{}, deleted: map[string]bool{}, configured: map[string]int64{}, cut: map[string]bool{},
	}
	w.changed = sync.NewCond(&w.mu)
	w.model = w.fake("responses", fakemodel.Options{Window: true, Lost: true, Handler: w.actor.reply})
	w.always = w.env
	return w
}

// fail notes a failure and ends the world.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(format, args...)
}

func (w *world) failLocked(format string, args ...any) {
	w.t.Helper()
	if !w.over {
		w.t.Errorf("%s: %s", w.label, fmt.Sprintf(format, args...))
	}
	w.over = true
	w.changed.Broadcast()
}

// await waits until what holds, which is asked under the lock whenever
// something was seen. It ends the goroutine when the world ends.
func (w *world) await(what string, holds func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := false
	timer := time.AfterFunc(patience, func() {
		w.mu.Lock()
		late = true
		w.changed.Broadcast()
		w.mu.Unlock()
	})
	defer timer.Stop()
	for !w.over && !holds() {
		if late {
			w.stuck = true
			w.failLocked("never came: %s; the last events: %s", what, w.lastEvents())
		}
		if !w.over {
			w.changed.Wait()
		}
	}
	if w.over {
		panic(errOver)
	}
}

// lastEvents are the newest lines of the record.
func (w *world) lastEvents() string {
	all := slices.Sorted(maps.Keys(w.record))
	var text strings.Builder
	for _, cursor := range all[max(0, len(all)-60):] {
		fmt.Fprintf(&text, "\n%.300s", strings.TrimSpace(w.record[cursor]))
	}
	return text.String()
}

// guard runs f, which a world that ends may end early.
func guard(f func()) {
	defer func() {
		if r := recover(); r != nil && r != errOver {
			panic(r)
		}
	}()
	f()
}

// rise starts a daemon with faults, or without for a zero plan. It reports
// whether the daemon is there: one that is to die or fail may do so before it
// is ready.
func (w *world) rise(plan faultPlan) (up bool) {
	w.env = slices.Clone(w.always)
	if plan.Points != nil {
		text, _ := json.Marshal(plan)
		w.env = append(w.env, planVar+"="+string(text))
	}
	p, raw := w.tryRise()
	// A command that was being started when its daemon was killed holds the
	// daemon's locks until it is its program: a client tries again.
	for end := time.Now().Add(patience); raw == nil && p.cmd.ProcessState.ExitCode() == 75 && time.Now().Before(end); {
		p, raw = w.tryRise()
	}
	if raw == nil {
		w.fell(p, plan)
		return false
	}
	if err := json.Unmarshal(raw, &p.ready); err != nil {
		w.fail("ready line %s: %v", raw, err)
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	w.mu.Lock()
	w.p = p
	w.changed.Broadcast()
	w.mu.Unlock()
	return true
}

// tryRise starts a daemon and gives its ready line, nil when it ended first.
func (w *world) tryRise() (*process, []byte) {
	p := w.launch()
	raw, err := p.stdout.ReadBytes('\n')
	if err != nil {
		p.cmd.Wait()
		close(p.exited)
		return p, nil
	}
	return p, raw
}

// fell looks at a daemon that has ended and at the store it left.
func (w *world) fell(p *process, plan faultPlan) {
	w.mu.Lock()
	w.p = nil
	w.kills++
	w.changed.Broadcast()
	w.mu.Unlock()
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	said := p.stderr.String()
	refusedStart := p.ready.PID == 0 && ws.ExitStatus() == 1 && strings.Contains(said, "storage_error") &&
		(plan.Fail > 0 || w.full.Load() && strings.Contains(said, "is full; make room and start again"))
	if !ws.Signaled() && !refusedStart || ws.Signaled() && ws.Signal() != syscall.SIGKILL {
		w.fail("the daemon ended with %v: %s", p.cmd.ProcessState, said)
	}
	w.soundCopy()
}

// soundCopy checks a copy of what a killed daemon left: the next one must meet
// the log as it is.
func (w *world) soundCopy() {
	dir, err := os.MkdirTemp(w.dir, "copy")
	if err != nil {
		w.fail("%v", err)
		return
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "state.sqlite")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(w.set.Store + suffix)
		if err == nil {
			err = os.WriteFile(at+suffix, b, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			w.fail("%v", err)
		}
	}
	report, err := store.Check(at)
	if protocol.CodeOf(err) == protocol.StoreNotFound {
		return // killed before it was made
	}
	if err != nil || !report.OK {
		w.fail("the store after the end: %+v, %v", report, err)
	}
}

// link is a client's connection.
type link struct {
	c    net.Conn
	r    *bufio.Reader
	next int
}

// errDown says that a connection ended.
var errDown = errors.New("the daemon is gone")

func (w *world) dialTo(p *process) (*link, error) {
	c, err := net.Dial("unix", p.h.set.Socket)
	if err != nil {
		return nil, errDown
	}
	l := &link{c: c, r: bufio.NewReaderSize(c, 64<<10)}
	if _, err := l.read(); err != nil {
		c.Close()
		return nil, err
	}
	return l, nil
}

func (l *link) read() (line, error) {
	raw, err := l.r.ReadBytes('\n')
	if err != nil {
		return line{}, errDown
	}
	got := line{raw: raw}
	if err := json.Unmarshal(raw, &got.fields); err != nil {
		return line{}, fmt.Errorf("line %s: %w", raw, err)
	}
	return got, nil
}

// ask makes a request and waits for its answer: errDown, or the refusal as
// *protocol.Error.
func (l *link) ask(result any, op, members string) error {
	l.next++
	if members != "" {
		members = "," + members
	}
	if _, err := fmt.Fprintf(l.c, `{"id":%d,"op":%q%s}`+"\n", l.next, op, members); err != nil {
		return errDown
	}
	for {
		got, err := l.read()
		if err != nil {
			return err
		}
		if string(got.fields["id"]) != fmt.Sprint(l.next) {
			continue
		}
		if code := got.str("error"); code != "" {
			return protocol.Fail(protocol.Code(code), got.str("detail"))
		}
		if result == nil {
			return nil
		}
		return v2.Unmarshal(got.fields["result"], result)
	}
}

// follow keeps the record, over every daemon, until the world ends.
func (w *world) follow() {
	for {
		var p *process
		w.mu.Lock()
		for w.p == nil && !w.over {
			w.changed.Wait()
		}
		p, over, after := w.p, w.over, w.newest
		w.mu.Unlock()
		if over {
			return
		}
		l, err := w.dialTo(p)
		if err != nil {
			<-p.exited
			continue
		}
		for err = l.ask(nil, "follow", fmt.Sprintf(`"bot":"*","after":%d`, after)); err == nil; {
			var got line
			if got, err = l.read(); err == nil && got.fields["data"] != nil {
				err = w.saw(got)
			}
		}
		l.c.Close()
	}
}

// parsed reads a line of the record again.
func parsed(raw string) line {
	l := line{raw: []byte(raw)}
	if err := json.Unmarshal(l.raw, &l.fields); err != nil {
		panic(err)
	}
	return l
}

// saw takes an event into the record: each comes once, and in order.
func (w *world) saw(l line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	cursor, turn := l.num("cursor"), l.num("turn")
	if cursor <= w.newest {
		w.failLocked("event %s came after %d", l.raw, w.newest)
		return errOver
	}
	w.record[cursor], w.newest = string(l.raw), cursor
	switch l.str("event") {
	case "turn_finished":
		var end protocol.TurnFinished
		l.data(&end)
		w.finished[turn] = end
	case "turn_waiting", "turn_paced":
		w.parked[turn] = true
	case "turn_resumed":
		delete(w.parked, turn)
	case "steered":
		w.cutShort[turn] = true
	}
	w.changed.Broadcast()
	return nil
}

// hand is one client of a world, with a connection of its own.
type hand struct {
	w *world
	l *link
	p *process
}

// ask makes a request of whatever daemon there is, as often as connections
// break under it. unsure says that an earlier try may have been carried out.
func (h *hand) ask(result any, op, members string) (unsure bool, err error) {
	for {
		if h.l == nil {
			var p *process // it may die as soon as it is seen
			h.w.await("a daemon", func() bool { p = h.w.p; return p != nil && p != h.p })
			l, err := h.w.dialTo(p)
			if err != nil {
				<-p.exited
				continue
			}
			h.l, h.p = l, p
		}
		if err = h.l.ask(result, op, members); !errors.Is(err, errDown) {
			return unsure, err
		}
		unsure = true
		h.l.c.Close()
		h.l = nil
	}
}

// insist is ask, again for as long as a faulty store refuses.
func (h *hand) insist(result any, op, members string) (unsure bool, err error) {
	for end := time.Now().Add(patience); ; {
		again, err := h.ask(result, op, members)
		unsure = unsure || again
		if protocol.CodeOf(err) != protocol.StorageError || !h.w.faulty {
			return unsure, err
		}
		if time.Now().After(end) {
			h.w.fail("%s is refused for ever: %v", op, err)
			panic(errOver)
		}
	}
}

// must is insist for what cannot be refused.
func (h *hand) must(result any, op, members string) {
	if _, err := h.insist(result, op, members); err != nil {
		h.w.fail("%s %s: %v", op, members, err)
		panic(errOver)
	}
}

// create makes a bot on the model server; its model is its name.
func (h *hand) create(name, more string) {
	var b protocol.Bot
	unsure, err := h.insist(&b, "create", fmt.Sprintf(`"bot":%q,"model":"f/%s","instructions":"Be brief.","tools":["shell","wait","echo","history"],"workspace":%q%s`,
		name, name, h.w.workspace, more))
	h.made(name, b.ID, unsure, err)
}

// fork forks a bot at its head, or in mid-turn at its newest closed node.
func (h *hand) fork(source, name string) {
	var b protocol.Bot
	unsure, err := h.insist(&b, "fork", fmt.Sprintf(`"source":%q,"bot":%q,"workspace":%q`, source, name, h.w.workspace))
	h.made(name, b.ID, unsure, err)
}

// made enters a bot that is there. A creation whose answer was lost may have
// made it (runtime.md 7).
func (h *hand) made(name string, id int64, unsure bool, err error) {
	if protocol.CodeOf(err) == protocol.BotExists && unsure {
		var b protocol.Bot
		h.must(&b, "inspect", fmt.Sprintf(`"bot":%q`, name))
		id, err = b.ID, nil
	}
	if err != nil {
		h.w.fail("bot %s: %v", name, err)
		panic(errOver)
	}
	h.w.mu.Lock()
	h.w.bots[name] = id
	h.w.mu.Unlock()
}

// remove deletes a bot without work.
func (h *hand) remove(name string) {
	h.w.mu.Lock()
	h.w.deleting[name] = true
	h.w.mu.Unlock()
	unsure, err := h.insist(nil, "delete", fmt.Sprintf(`"bot":%q`, name))
	if err != nil && !(protocol.CodeOf(err) == protocol.BotNotFound && unsure) {
		h.w.fail("delete %s: %v", name, err)
		panic(errOver)
	}
	h.w.mu.Lock()
	h.w.deleted[name] = true
	h.w.mu.Unlock()
}

// configure sets a bot's budget.
func (h *hand) configure(name string, budget int64) {
	h.must(nil, "configure", fmt.Sprintf(`"bot":%q,"budget_tokens":%d`, name, budget))
	h.w.mu.Lock()
	h.w.configured[name] = budget
	h.w.mu.Unlock()
}

// submit queues a prompt, with further members, until it is acknowledged, and
// gives its turn.
func (h *hand) submit(bot, request, prompt, more string) int64 {
	if !strings.Contains(more, "delivery") {
		more = strings.TrimSuffix(`"delivery":"queue",`+more, ",")
	}
	s := sent{bot: bot, request: request, prompt: prompt, more: more}
	var got protocol.Submitted
	unsure, err := h.insist(&got, "submit", submission(bot, request, prompt, more))
	if err != nil {
		h.w.fail("submit %s %s: %v", bot, request, err)
		panic(errOver)
	}
	if got.Duplicate && !unsure { // a refusal writes nothing, so no earlier try did
		h.w.fail("%s %s is a duplicate of nothing: %+v", bot, request, got)
	}
	s.turn = got.Turn
	h.w.mu.Lock()
	h.w.acked[bot+"/"+request] = s
	h.w.mu.Unlock()
	return got.Turn
}

// ended waits for the end of turns.
func (h *hand) ended(turns ...int64) {
	for _, turn := range turns {
		h.w.await(fmt.Sprint("the end of turn ", turn), func() bool {
			_, ended := h.w.finished[turn]
			return ended
		})
	}
}

// held waits until the answer of a program is held back, or its turn is over.
func (h *hand) held(id string, turn int64) {
	done := make(chan struct{})
	var reached bool // under the world's lock
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer close(done)
		guard(func() {
			h.w.await("an answer held back", func() bool {
				_, ended := h.w.finished[turn]
				return ended || reached
			})
		})
	})
	h.w.actor.gate(id).Await(done, 1)
	h.w.mu.Lock()
	reached = true
	h.w.changed.Broadcast()
	h.w.mu.Unlock()
	waiting.Wait()
}

// interrupt ends a bot's turn, unless it is over.
func (h *hand) interrupt(bot string, turn int64) {
	h.w.mu.Lock()
	h.w.cut[bot] = true
	h.w.mu.Unlock()
	_, err := h.insist(nil, "interrupt", fmt.Sprintf(`"bot":%q,"turn":%d`, bot, turn))
	if code := protocol.CodeOf(err); err != nil && code != protocol.StaleTurn && code != protocol.NoActiveTurn {
		h.w.fail("interrupt %s %d: %v", bot, turn, err)
		panic(errOver)
	}
}

package engine

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agent/internal/model"
	"agent/internal/model/scripted"
	"agent/internal/secret"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/internal/window"
	"agent/protocol"
)

// TestTurns runs random submissions, model answers, waits, interrupts, restarts
// and kills against the oracle of oracle_test.go, and compares every answer,
// every event and every state of a turn.
func TestTurns(t *testing.T) {
	for name, value := range map[string]string{"checks": turnChecks, "steps": "120", "nofailfile": "true", "shrinktime": "20s"} {
		if err := flag.Set("rapid."+name, value); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		h := newHall(t)
		t.Repeat(map[string]func(*rapid.T){
			"":     func(t *rapid.T) { h.settle(t) },
			"step": func(t *rapid.T) { even(t, "action", h.actions())(t) },
		})
	})
}

// even draws one of a list, each as often as the others: rapid's own choice
// prefers the first, and lines and waits would hardly ever grow.
func even[T any](t *rapid.T, label string, list []T) T {
	n := 0
	for range 7 {
		n *= 2
		if rapid.Bool().Draw(t, label) {
			n++
		}
	}
	return list[n%len(list)]
}

func (h *hall) actions() []func(*rapid.T) {
	return []func(*rapid.T){
		h.submit, h.submit, h.submit, h.submit, h.submit, h.answer, h.answer, h.answer, h.answerCalls, h.answerCalls,
		h.answerCalls, h.wait, h.wait, h.retry, h.create, h.interrupt, h.disturb,
	}
}

// hall is an engine whose model says what the test has it say, and the oracle.
type hall struct {
	o     *oracle
	dir   string
	life  int
	store *store.Store
	e     *Engine
	stage *stage
	fresh int
	waits []*clientWait
}

// clientWait is a wait request that has no answer yet.
type clientWait struct {
	handles []string
	any     bool
	answer  chan *protocol.Waited
	forget  func()
}

const hallActive, hallPending = 2, 7

func newHall(t *rapid.T) *hall {
	dir, err := os.MkdirTemp("", "turns")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	h := &hall{o: newOracle(hallActive, hallPending), dir: dir}
	h.open(t)
	for range 3 {
		h.create(t)
	}
	t.Cleanup(func() { h.close(t); os.RemoveAll(dir) })
	return h
}

func (h *hall) path() string { return filepath.Join(h.dir, fmt.Sprintf("state%d.sqlite", h.life)) }

func (h *hall) open(t *rapid.T) {
	h.stage = &stage{held: map[int64]*held{}, counts: map[int64]int{}, stir: make(chan struct{}, 1)}
	var err error
	if h.store, err = store.Open(store.Options{Path: h.path(), Sink: h.stage}); err != nil {
		t.Fatal(err)
	}
	h.e = New(Config{
		Store: h.store, Providers: map[string]model.Provider{"p": h.stage}, Codecs: map[model.Family]model.Codec{model.FamilyScripted: scripted.Codec{}},
		Tools: tool.All(), Redact: &secret.Values{}, Live: deaf{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), StorePath: h.path(),
		Limits: Limits{
			Active: hallActive, Pending: hallPending, Context: window.Bounds{Bytes: 8 << 20, Items: 4096},
			NoteTurns: 48, CompactAt: 75, CompactKeep: 25, CacheTTL: "5m",
		},
	})
	if err := h.e.Recover(); err != nil {
		t.Fatal(err)
	}
	h.e.Run()
}

func (h *hall) close(t *rapid.T) {
	for _, w := range h.waits {
		w.forget()
	}
	h.waits = nil
	h.e.Close()
	if err := h.store.Close(); err != nil {
		t.Errorf("the store was not closed: %v", err)
	}
}

// stage is the provider, whose calls are held until the test answers them, and
// the sink of what is committed.
type stage struct {
	mu     sync.Mutex
	held   map[int64]*held
	counts map[int64]int // calls by turn
	bad    string
	stir   chan struct{} // something happened
}

type held struct {
	req    *model.Request
	answer chan reply
}

type reply struct {
	done  *model.Completion
	err   error
	paced time.Duration
}

func (s *stage) stirred() {
	select {
	case s.stir <- struct{}{}:
	default:
	}
}

func (s *stage) Publish(b store.Batch) {
	for _, f := range b.After {
		f()
	}
	s.stirred()
}

func (s *stage) Info() model.Info                              { return model.Info{Family: model.FamilyScripted} }
func (s *stage) Models(context.Context) ([]model.Model, error) { return nil, nil }
func (s *stage) Status() json.RawMessage                       { return nil }

func (s *stage) Complete(ctx context.Context, req *model.Request, _ func(model.Event), rep *model.Report) (*model.Completion, error) {
	bad := checkHistory(req)
	h := &held{req: req, answer: make(chan reply, 1)}
	s.mu.Lock()
	if s.held[req.Turn] != nil {
		bad = fmt.Sprintf("turn %d has two model calls at once", req.Turn)
	}
	if s.bad == "" {
		s.bad = bad
	}
	s.held[req.Turn] = h
	s.counts[req.Turn]++
	s.mu.Unlock()
	s.stirred()
	var r reply
	select {
	case r = <-h.answer:
	case <-ctx.Done():
		r = reply{err: context.Cause(ctx)}
	}
	s.mu.Lock()
	delete(s.held, req.Turn)
	s.mu.Unlock()
	s.stirred()
	rep.ParkFor = r.paced
	return r.done, r.err
}

// checkHistory is what a strict provider checks: each call has one result, and
// no result comes without its call.
func checkHistory(req *model.Request) string {
	body, err := req.Items.Open()
	if err != nil {
		return err.Error()
	}
	defer body.Close()
	sent, err := io.ReadAll(body)
	if err != nil || int64(len(sent)) != req.Items.Bytes {
		return fmt.Sprintf("%d bytes of items of %d: %v", len(sent), req.Items.Bytes, err)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(fmt.Appendf(nil, "[%s]", sent), &items); err != nil {
		return err.Error()
	}
	open := map[string]bool{}
	for i, raw := range items {
		d, err := scripted.Codec{}.Describe(raw)
		if err != nil {
			return err.Error()
		}
		if d.Role != "tool" && len(open) > 0 {
			return fmt.Sprintf("turn %d: item %d comes before the results of %v", req.Turn, i, slices.Collect(maps.Keys(open)))
		}
		for _, c := range d.Calls {
			open[c.ID] = true
		}
		if d.Role == "tool" {
			var r struct{ ID string }
			if json.Unmarshal(raw, &r) != nil || !open[r.ID] {
				return fmt.Sprintf("turn %d: a result without its call: %s", req.Turn, raw)
			}
			delete(open, r.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("turn %d: calls without a result: %v", req.Turn, slices.Collect(maps.Keys(open)))
	}
	return ""
}

// settle waits until everything is as the oracle has it.
func (h *hall) settle(t *rapid.T) {
	h.o.run()
	late := time.After(20 * time.Second)
	for {
		diff := h.diff(t)
		if diff == "" {
			return
		}
		select {
		case <-h.stage.stir:
		case <-late:
			t.Fatalf("%s\n%s", diff, strings.Join(h.o.log, "\n"))
		}
	}
}

// diff names the first thing that is not as the oracle has it.
func (h *hall) diff(t *rapid.T) string {
	h.stage.mu.Lock()
	bad, counts := h.stage.bad, maps.Clone(h.stage.counts)
	var held []int64
	for id := range h.stage.held {
		held = append(held, id)
	}
	h.stage.mu.Unlock()
	if bad != "" {
		t.Fatal(bad)
	}
	slices.Sort(held)
	if want := h.o.running(); !slices.Equal(held, want) {
		return fmt.Sprintf("model calls of the turns %v are under way, want %v", held, want)
	}
	for _, id := range held {
		if counts[id] != h.o.turns[id].calls {
			return fmt.Sprintf("turn %d made %d model calls in this daemon, want %d", id, counts[id], h.o.turns[id].calls)
		}
	}
	for _, name := range sortedKeys(h.o.bots) {
		if diff := h.diffBot(t, h.o.bots[name]); diff != "" {
			return diff
		}
	}
	return h.diffWaits()
}

func (h *hall) diffBot(t *rapid.T, b *oracleBot) string {
	rec, err := h.e.Bot(context.Background(), b.name)
	if err != nil {
		t.Fatal(err)
	}
	current := int64(0)
	if rec.RunningTurn != nil {
		current = *rec.RunningTurn
	}
	if rec.Status != b.status || current != b.current {
		return fmt.Sprintf("%s is %s with turn %d, want %s with %d", b.name, rec.Status, current, b.status, b.current)
	}
	page, err := h.e.Turns(context.Background(), b.name, 0, protocol.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Turns) != len(b.turns) {
		return fmt.Sprintf("%s has %d turns, want %d", b.name, len(page.Turns), len(b.turns))
	}
	for i, got := range page.Turns {
		want := h.o.turns[b.turns[i]]
		if got.Turn != want.id || got.Status != want.state || got.ModelRounds != want.rounds || got.InputTokens != want.rounds {
			return fmt.Sprintf("turn %+v, want %+v", got, want)
		}
		if (got.FinishedMS != nil) != protocol.Finished(got.Status) {
			return fmt.Sprintf("turn %+v: its end", got)
		}
		out, err := h.e.Result(context.Background(), b.name, got.Turn)
		if err != nil {
			t.Fatal(err)
		}
		if code := codeOf(out); out.Status != want.state || code != want.err || out.Into != want.into {
			return fmt.Sprintf("the outcome %+v %s, want %+v", out, code, want)
		}
	}
	got := h.events(t, b.name)
	for i, want := range b.events {
		if i == len(got) {
			return fmt.Sprintf("%s: the event %q is missing", b.name, want)
		}
		if got[i] != want {
			return fmt.Sprintf("%s: event %d is %q, want %q", b.name, i, got[i], want)
		}
	}
	if len(got) > len(b.events) {
		return fmt.Sprintf("%s: the event %q is too many", b.name, got[len(b.events)])
	}
	return ""
}

func codeOf(out *protocol.Outcome) protocol.Code {
	if out.Error == nil {
		return ""
	}
	return *out.Error
}

// events are a bot's events in the oracle's words.
func (h *hall) events(t *rapid.T, name string) (list []string) {
	for after := int64(0); ; {
		page, err := h.e.Events(context.Background(), name, after, protocol.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			return list
		}
		events, perr := page.All()
		if perr != nil {
			t.Fatal(perr)
		}
		for _, ev := range events {
			list = append(list, eventWords(t, ev))
		}
		after = page.NextCursor
	}
}

func eventWords(t *rapid.T, ev *protocol.Event) string {
	var d struct {
		Status, Error   string
		Into, From      int64
		Cancelled       bool
		Outcome_unknown bool
	}
	if ev.Data != nil {
		if err := json.Unmarshal(ev.Data, &d); err != nil && ev.Kind != protocol.KindAccepted {
			t.Fatalf("%s: %v", ev.Data, err)
		}
	}
	words := []string{ev.Kind, fmt.Sprint(ev.Turn)}
	switch ev.Kind {
	case protocol.KindTurnFinished:
		words = append(words, d.Status, d.Error)
	case protocol.KindSteered:
		words = append(words, fmt.Sprint(d.From))
	case protocol.KindToolCompleted:
		if d.Cancelled {
			words = append(words, "cancelled")
		}
		if d.Outcome_unknown {
			words = append(words, "unknown")
		}
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// diffWaits looks whether the waits of clients that should be answered are, and
// takes those away.
func (h *hall) diffWaits() string {
	for i := 0; i < len(h.waits); i++ {
		w := h.waits[i]
		met := h.o.met(w.handles, w.any)
		select {
		case got := <-w.answer:
			if !met {
				return fmt.Sprintf("the wait for %v was answered %v", w.handles, got)
			}
			if diff := h.o.diffWaited(w.handles, got); diff != "" {
				return diff
			}
			h.waits = slices.Delete(h.waits, i, i+1)
			i--
		default:
			if met {
				return fmt.Sprintf("the wait for %v has no answer", w.handles)
			}
		}
	}
	return ""
}

func (h *hall) create(t *rapid.T) {
	if len(h.o.bots) >= 5 {
		t.Skip("enough bots")
	}
	name := fmt.Sprint("b", len(h.o.bots))
	done := make(chan *protocol.Error, 1)
	h.e.Create(nil, &protocol.Create{Bot: name, Model: "p/m", Tools: []string{"echo", "wait"}, Workspace: h.dir},
		func(_ *protocol.Bot, err *protocol.Error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.o.create(name)
}

func (h *hall) bot(t *rapid.T) *oracleBot {
	if len(h.o.bots) == 0 {
		t.Skip("no bot")
	}
	return h.o.bots[even(t, "bot", sortedKeys(h.o.bots))]
}

// anyTurn is a turn of any bot, oftener a recent one.
func (h *hall) anyTurn(t *rapid.T) *oracleTurn {
	ids := slices.Sorted(maps.Keys(h.o.turns))
	if len(ids) == 0 {
		t.Skip("no turn")
	}
	if recent := ids[max(0, len(ids)-6):]; rapid.IntRange(0, 3).Draw(t, "recent") > 0 {
		ids = recent
	}
	return h.o.turns[even(t, "turn", ids)]
}

// unfinished is a turn that is not over, if there is one, and mostly so; one
// that is not parked, so that few bots wait for each other.
func (h *hall) unfinished(t *rapid.T) *oracleTurn {
	ids := h.o.with(protocol.StatusRunning, protocol.StatusReady, protocol.StatusQueued)
	if len(ids) == 0 || rapid.IntRange(0, 4).Draw(t, "finished") == 0 {
		return h.anyTurn(t)
	}
	return h.o.turns[even(t, "unfinished turn", ids)]
}

func (h *hall) submit(t *rapid.T) {
	b := h.bot(t)
	h.fresh++
	req := &protocol.Submit{
		Bot: b.name, RequestID: fmt.Sprint("r", h.fresh), Prompt: fmt.Sprint("say ", h.fresh),
		Delivery: even(t, "delivery", []protocol.Delivery{protocol.Queue, protocol.Steer, protocol.Reject, protocol.Steer}),
	}
	if req.Delivery == protocol.Steer && rapid.IntRange(0, 2).Draw(t, "strict") == 0 {
		req.ExpectedTurn = max(b.current, 1)
	}
	h.send(t, req)
}

func (h *hall) retry(t *rapid.T) {
	turn := h.anyTurn(t)
	req := turn.request
	if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
		req.Prompt += " changed"
	}
	h.send(t, &req)
}

func (h *hall) send(t *rapid.T, req *protocol.Submit) {
	type answer struct {
		s   *protocol.Submitted
		err *protocol.Error
	}
	done := make(chan answer, 1)
	h.e.Submit(nil, req, func(s *protocol.Submitted, err *protocol.Error) {
		if s != nil {
			copied := *s
			s = &copied
		}
		done <- answer{s, err}
	})
	got := <-done
	id := int64(0)
	if got.s != nil {
		id = got.s.Turn
	}
	want, duplicate, code := h.o.submit(req, id)
	switch {
	case code != "":
		if got.err == nil || got.err.Code != code {
			t.Fatalf("%+v: %+v, %v; want %s\n%s", req, got.s, got.err, code, strings.Join(h.o.log, "\n"))
		}
	case got.err != nil || got.s.Turn != want.id || got.s.Duplicate != duplicate || got.s.Status != want.state:
		t.Fatalf("%+v: %+v, %v; want %+v\n%s", req, got.s, got.err, want, strings.Join(h.o.log, "\n"))
	}
}

// call takes a model call that is under way.
func (h *hall) call(t *rapid.T) (*oracleTurn, *held) {
	running := h.o.running()
	if len(running) == 0 {
		t.Skip("no model call")
	}
	id := even(t, "call of turn", running)
	h.stage.mu.Lock()
	defer h.stage.mu.Unlock()
	return h.o.turns[id], h.stage.held[id]
}

func (h *hall) answer(t *rapid.T) {
	if len(h.o.running()) == 0 {
		h.interrupt(t) // else bots that wait for each other would do so to the end
		return
	}
	turn, call := h.call(t)
	h.o.answered(turn, nil)
	call.answer <- reply{done: &model.Completion{
		Usage: &model.Usage{Input: 1, Output: 1},
		Items: [][]byte{fmt.Appendf(nil, `{"role":"assistant","text":"answer %d"}`, turn.calls)},
	}}
}

func (h *hall) answerFailure(t *rapid.T) {
	turn, call := h.call(t)
	h.o.failed(turn, "provider_refused")
	call.answer <- reply{err: model.Errorf("provider_refused", "as the test has it")}
}

// answerPaced says that the provider's pool is closed: for good, or for so
// short a time that the turn comes back at once. The latter only where nothing
// else waits for a slot, so that who gets it is known.
func (h *hall) answerPaced(t *rapid.T) {
	turn, call := h.call(t)
	long := h.o.crowded() || rapid.Bool().Draw(t, "long")
	h.o.paced(turn, long)
	r := reply{err: model.ErrPaced, paced: time.Millisecond}
	if long {
		r.paced = 24 * time.Hour
	}
	call.answer <- r
}

func (h *hall) answerCalls(t *rapid.T) {
	turn, call := h.call(t)
	safe := model.NewSafe(call.req)
	done := &model.Completion{Usage: &model.Usage{Input: 1, Output: 1}}
	var planned []oracleCall
	var encoded []string
	for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
		c := h.drawCall(t)
		made, err := safe.Call(fmt.Sprint("same", i), c.tool, c.arguments(), false)
		if err != nil {
			t.Fatal(err)
		}
		planned = append(planned, c)
		done.Calls = append(done.Calls, made)
		encoded = append(encoded, fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":%s}`, made.ID, made.Name, made.Arguments))
	}
	done.Items = [][]byte{fmt.Appendf(nil, `{"role":"assistant","text":"","calls":[%s]}`, strings.Join(encoded, ","))}
	h.o.answered(turn, planned)
	call.answer <- reply{done: done}
}

func (h *hall) drawCall(t *rapid.T) oracleCall {
	kinds := []string{"wait", "echo", "wait", "write", "bad", "poll"}
	if !h.o.crowded() {
		kinds = append(kinds, "brief")
	}
	switch kind := even(t, "tool", kinds); kind {
	case "echo", "write":
		return oracleCall{tool: kind}
	case "bad":
		return oracleCall{tool: "echo", bad: true}
	default:
		return oracleCall{tool: "wait", how: kind, any: rapid.Bool().Draw(t, "any"), handles: h.drawHandles(t)}
	}
}

func (h *hall) drawHandles(t *rapid.T) (handles []string) {
	for range rapid.IntRange(1, 2).Draw(t, "handles") {
		if rapid.IntRange(0, 8).Draw(t, "unknown") == 0 {
			handles = append(handles, "turn:nobody/1")
			continue
		}
		turn := h.unfinished(t)
		handles = append(handles, protocol.TurnHandle(turn.bot, turn.id).String())
	}
	return handles
}

func (h *hall) interrupt(t *rapid.T) {
	b, id := h.bot(t), int64(0)
	if b.current != 0 && rapid.IntRange(0, 3).Draw(t, "another") < 3 {
		id = b.current
	} else {
		id = h.anyTurn(t).id
	}
	got, err := h.e.Interrupt(nil, &protocol.Interrupt{Bot: b.name, Turn: id})
	want, code := h.o.interrupt(b, id)
	if code != "" {
		if err == nil || err.Code != code {
			t.Fatalf("interrupting %d of %s: %+v, %v; want %s", id, b.name, got, err, code)
		}
		return
	}
	if err != nil || got.Turn != id || got.Parked != want.Parked || got.Queued != want.Queued {
		t.Fatalf("interrupting %d of %s: %+v, %v; want %+v", id, b.name, got, err, want)
	}
}

func (h *hall) wait(t *rapid.T) {
	w := &clientWait{handles: h.drawHandles(t), any: rapid.Bool().Draw(t, "any"), answer: make(chan *protocol.Waited, 1)}
	req := &protocol.Wait{Handles: w.handles, Any: w.any}
	if rapid.IntRange(0, 3).Draw(t, "poll") == 0 {
		req.TimeoutMS = protocol.Set[int64](0)
		h.e.Wait(nil, req, func(got *protocol.Waited, err *protocol.Error) {
			if err != nil {
				t.Fatal(err)
			}
			if diff := h.o.diffWaited(w.handles, got); diff != "" {
				t.Fatal(diff)
			}
		})
		return
	}
	stage := h.stage // the hall may have another by the time the answer comes
	w.forget = h.e.Wait(nil, req, func(got *protocol.Waited, err *protocol.Error) {
		if err != nil {
			panic(err)
		}
		w.answer <- got
		stage.stirred()
	})
	h.waits = append(h.waits, w)
}

// disturb does what ends turns early. It has one action among many, so that
// lines and waits grow between two of them.
func (h *hall) disturb(t *rapid.T) {
	what := even(t, "what", []func(*rapid.T){h.answerFailure, h.answerPaced, h.restart, h.kill})
	what(t)
}

// restart ends the daemon in order and starts another.
func (h *hall) restart(t *rapid.T) {
	h.close(t)
	h.o.restart(protocol.DaemonShutdown)
	h.open(t)
}

// kill goes on with the files as they lie there at this instant.
func (h *hall) kill(t *rapid.T) {
	next := filepath.Join(h.dir, fmt.Sprintf("state%d.sqlite", h.life+1))
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(h.path() + suffix)
		if err == nil {
			err = os.WriteFile(next+suffix, data, 0o600)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	h.close(t)
	h.life++
	h.o.restart(protocol.ProcessInterrupted)
	h.open(t)
}

package host

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"agent/client"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/memory"
	"agent/protocol"
)

// entered asks for a place, and tells when it is had.
func entered(ctx context.Context, p *places, bot int64) <-chan error {
	got := make(chan error, 1)
	before := p.waiting()
	go func() { got <- p.enter(ctx, bot) }()
	for p.waiting() == before && len(got) == 0 {
		runtime.Gosched() // until it stands in line, or is in
	}
	return got
}

func (p *places) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.line) + p.running
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := newPlaces(3, 2)
	for _, bot := range []int64{1, 1, 2} {
		if err := p.enter(ctx, bot); err != nil {
			t.Fatal(err)
		}
	}
	full := entered(ctx, p, 3)
	again := entered(ctx, p, 1)
	p.leave(1)
	if err := <-full; err != nil { // the first in line
		t.Fatal(err)
	}
	p.leave(2)
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(ctx)
	waits := entered(gone, p, 9)
	why := errors.New("interrupted")
	cancel(why)
	if err := <-waits; !errors.Is(err, why) {
		t.Error(err)
	}
	for _, bot := range []int64{1, 1, 3} {
		p.leave(bot)
	}
	if p.running != 0 || len(p.of) != 0 || len(p.line) != 0 {
		t.Errorf("%d run, %v, %d wait", p.running, p.of, len(p.line))
	}
}

func TestOneBotTakesNotAllPlaces(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := newPlaces(maxCalls, maxEach)
	for range maxEach {
		if err := p.enter(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	fifth := entered(ctx, p, 1)
	if err := p.enter(ctx, 2); err != nil { // it does not wait behind the other's
		t.Fatal(err)
	}
	if len(fifth) != 0 {
		t.Error("a fifth call runs")
	}
	p.leave(1)
	if err := <-fifth; err != nil {
		t.Error(err)
	}
}

func TestStopwatchStandsStillWhileACallWaits(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	w := startWatch(50*time.Millisecond, func() { close(over) })
	w.pause()
	if w.timer != nil || w.left <= 0 || w.left > 50*time.Millisecond {
		t.Fatalf("it runs on, with %v left", w.left)
	}
	w.pause() // once more changes nothing
	w.goOn()
	<-over
	startWatch(0, func() { t.Error("without a limit none is over") }).stop()
}

func TestResultsFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxResult)
	got := fit(long)
	if len(got) > maxResult || !utf8.ValidString(got) || !strings.Contains(got, "bytes are left out here") || fit("short") != "short" {
		t.Errorf("%d bytes", len(got))
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ arguments, word string }{
		{`{"pane": 1}`, "pane"},
		{`{"other": 1}`, "other"},
		{`{} {}`, "nothing after"},
		{`[`, "unexpected"},
		{`{"lines": "x"}`, "lines"},
	} {
		c := &Call{ToolCall: &client.ToolCall{ToolCall: protocol.ToolCall{Arguments: row.arguments}}}
		var into struct {
			Pane  string `json:"pane"`
			Lines int    `json:"lines"`
		}
		if err := c.decode(&into); !errors.Is(err, invalidArguments) || !strings.Contains(err.Error(), row.word) {
			t.Errorf("%s: %v", row.arguments, err)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	n, err := openNotes(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	call := &client.ToolCall{ToolCall: protocol.ToolCall{BotID: 3, Turn: 7, CallID: "../../../etc/passwd", Request: 1}}
	key := noteKey(call)
	if strings.ContainsAny(key, "/.") {
		t.Fatalf("the key %q leads elsewhere", key)
	}
	if of, err := n.read(key); of != nil || err != nil {
		t.Fatalf("%v, %v", of, err)
	}
	if err := n.begin(key, &note{BotID: 3, Turn: 7, CallID: call.CallID, Tool: "start_task", Subject: "demo.a"}); err != nil {
		t.Fatal(err)
	}
	read := func() (client.ToolOutput, error) {
		of, err := n.read(key)
		return of.answer(err)
	}
	if _, err := read(); !errors.Is(err, outcomeUnknown) {
		t.Errorf("a note without a result: %v", err)
	}
	n.settled(lead.Settled{Bot: "demo.b", Lead: 3, Turn: 7})
	if _, err := read(); !errors.Is(err, outcomeUnknown) {
		t.Errorf("another start's end: %v", err)
	}
	n.settled(lead.Settled{Bot: "demo.a", Lead: 3, Turn: 7, Started: &lead.TaskStarted{Bot: "demo.a", Turn: 9}})
	if out, err := read(); err != nil || !strings.Contains(out.Text, `"turn":9`) {
		t.Errorf("%+v, %v", out, err)
	}
	n.done(key, client.ToolOutput{}, protocol.Fail("setup_failed", "why"))
	if _, err := read(); !errors.Is(err, protocol.SetupFailed) || !strings.Contains(err.Error(), "why") {
		t.Errorf("%v", err)
	}
	n.drop(8, call.CallID)
	n.drop(7, "another")
	if of, _ := n.read(key); of == nil {
		t.Error("another call's end took it")
	}
	n.drop(7, call.CallID)
	if of, _ := n.read(key); of != nil {
		t.Error("it is still there")
	}
}

func TestQuestionsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"question": " "}`, `{"question": "` + strings.Repeat("x", 2001) + `"}`, `{"question": "q", "choices": ["a","b","c","d","e"]}`,
		`{"question": "q", "choices": [""]}`, `{"question": "q", "multiple": true}`,
	} {
		c := &Call{ToolCall: &client.ToolCall{ToolCall: protocol.ToolCall{Arguments: text}}}
		if _, err := askPerson(c); !errors.Is(err, invalidArguments) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestThePaceOfUpdates(t *testing.T) {
	t.Parallel()
	now := time.Unix(100_000, 0)
	h := &hearing{since: now}
	if got := h.due(now); got != now.Add(10*time.Second) {
		t.Errorf("the first comes %v after", got.Sub(now))
	}
	h.sent = []time.Time{now.Add(-5 * time.Second)}
	if got := h.due(now); got != now.Add(55*time.Second) {
		t.Errorf("the second comes %v after", got.Sub(now))
	}
	for i := range 10 {
		h.sent = append(h.sent, now.Add(time.Duration(i-10)*time.Second))
	}
	if got := h.due(now); got != now.Add(10*time.Minute-time.Second) {
		t.Errorf("after ten in an hour it comes %v after", got.Sub(now))
	}
	h.sent = []time.Time{now.Add(-time.Hour)}
	if got := h.due(now); got != now.Add(10*time.Second) || len(h.sent) != 0 {
		t.Errorf("an hour later it comes %v after", got.Sub(now))
	}
	a := []*news{{bot: "demo.a", turn: 1, state: "completed"}}
	b := []*news{{bot: "demo.a", turn: 2, state: "completed"}}
	same := []*news{{bot: "demo.a", turn: 1, state: "completed"}}
	if keyFor(1, a) != keyFor(1, same) || keyFor(1, a) == keyFor(1, b) || keyFor(1, a) == keyFor(2, a) || !protocol.ValidName(keyFor(1, a)) {
		t.Errorf("%s, %s", keyFor(1, a), keyFor(1, b))
	}
}

func TestFactsThatOthersChanged(t *testing.T) {
	t.Parallel()
	m := memory.Open(t.TempDir(), time.Now)
	var w factWatch
	save := func(name string) {
		t.Helper()
		if _, err := m.Save(memory.Scope{Project: "demo"}, memory.Draft{Name: name, Type: "project", Description: "of " + name, Source: "s", Text: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	save("gone")
	save("old")
	before := w.list(m, "demo")
	if _, err := m.Remove(memory.Scope{Project: "demo"}, "gone"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "mine"} {
		save(name)
	}
	w.own(1, memory.Scope{Project: "demo"}, "mine")
	lines, _ := json.Marshal(w.since(1, before, w.list(m, "demo")))
	if string(lines) != `["- removed gone (project demo)","- saved new (project demo): of new"]` {
		t.Errorf("%s", lines)
	}
	if got := w.since(2, before, w.list(m, "demo")); len(got) != 3 {
		t.Errorf("another lead hears %q", got)
	}
	for i := range 30 {
		save("many-" + string(rune('a'+i%26)) + string(rune('a'+i/26)))
	}
	if got := w.since(1, before, w.list(m, "demo")); len(got) != maxFactLines || !strings.HasPrefix(got[len(got)-1], "- and ") {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}

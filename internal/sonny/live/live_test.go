package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"agent/protocol"
)

// told is a world to which a test tells events.
type told struct {
	*World
	t   *testing.T
	now time.Time
}

func newTold(t *testing.T) *told {
	d := &told{World: New(&protocol.Ready{}), t: t, now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	d.Now = func() time.Time { return d.now }
	d.World.Put(protocol.Bot{Name: "demo.lead", ID: 1})
	return d
}

func (d *told) tell(turn int64, kind string, data any) *told {
	d.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Apply(&protocol.Event{Bot: "demo.lead", Turn: turn, Kind: kind, Durable: kind != protocol.KindRetry && kind != protocol.KindTextDelta, Data: raw})
	return d
}

func (d *told) queued(turn int64) *told {
	return d.tell(turn, protocol.KindQueued, protocol.Queued{RequestID: fmt.Sprint("r", turn), Delivery: protocol.Queue})
}

func (d *told) accepted(turn int64) *told {
	return d.tell(turn, protocol.KindAccepted, protocol.Accepted{})
}

func (d *told) finished(turn int64, status string) *told {
	return d.tell(turn, protocol.KindTurnFinished, protocol.TurnFinished{Status: status})
}

func (d *told) asks(call, step string, request int64) *told {
	return d.tell(1, protocol.KindApprovalRequested, protocol.ApprovalRequested{Calls: []protocol.RequestedCall{{
		CallID: call, Step: step, Request: request, Gates: []string{"manual"},
	}}})
}

func (d *told) bot() *Bot { return d.Bot("demo.lead") }

func TestStatesByEvents(t *testing.T) {
	t.Parallel()
	waiting := protocol.TurnWaiting{CallID: "c1", Handles: []string{"proc:1"}}
	for _, c := range []struct {
		name string
		tell func(d *told)
		want State
	}{
		{"a bot of which nothing was heard rests", func(d *told) {}, Idle},
		{"a turn in line", func(d *told) { d.queued(1) }, Queued},
		{"a turn that began", func(d *told) { d.queued(1).accepted(1) }, Working},
		{"a call that waits for a verdict", func(d *told) { d.accepted(1).asks("c1", "", 1) }, NeedsYou},
		{"one that waits for the judge alone", func(d *told) {
			d.accepted(1).tell(1, protocol.KindApprovalRequested, protocol.ApprovalRequested{Calls: []protocol.RequestedCall{{CallID: "c1", Gates: []string{"auto"}}}})
		}, Working},
		{"a question that is open", func(d *told) { d.accepted(1); d.bot().Questions = 1 }, NeedsYou},
		{"one that was allowed", func(d *told) {
			d.accepted(1).asks("c1", "", 1).tell(1, protocol.KindToolStarted, protocol.ToolStarted{CallID: "c1"})
		}, Working},
		{"one that was denied", func(d *told) {
			d.accepted(1).asks("c1", "", 1).tell(1, protocol.KindToolCompleted, protocol.ToolCompleted{CallID: "c1", Denied: true})
		}, Working},
		{"one of two that was allowed", func(d *told) {
			d.accepted(1).asks("c1", "", 1).asks("c2", "", 1).tell(1, protocol.KindToolStarted, protocol.ToolStarted{CallID: "c1"})
		}, NeedsYou},
		{"a step that waits, of a call that started", func(d *told) {
			d.accepted(1).tell(1, protocol.KindToolStarted, protocol.ToolStarted{CallID: "c1"}).asks("c1", "s1", 1)
		}, NeedsYou},
		{"a step that was decided", func(d *told) {
			d.accepted(1).asks("c1", "s1", 1).tell(1, protocol.KindStepDecided, protocol.StepDecided{CallID: "c1", Step: "s1", Decision: protocol.Allow})
		}, Working},
		{"another step than the one that was decided", func(d *told) {
			d.accepted(1).asks("c1", "s1", 1).asks("c1", "s2", 2).tell(1, protocol.KindStepDecided, protocol.StepDecided{CallID: "c1", Step: "s1"})
		}, NeedsYou},
		{"a call that was cancelled with its turn", func(d *told) { d.accepted(1).asks("c1", "", 1).finished(1, protocol.StatusInterrupted) }, Idle},
		{"a turn that waits on a process", func(d *told) { d.accepted(1).tell(1, protocol.KindTurnWaiting, waiting) }, Waiting},
		{"one that goes on", func(d *told) {
			d.accepted(1).tell(1, protocol.KindTurnWaiting, waiting).tell(1, protocol.KindTurnResumed, protocol.TurnResumed{CallID: "c1"})
		}, Working},
		{"a turn that is paced", func(d *told) {
			d.accepted(1).tell(1, protocol.KindTurnPaced, protocol.TurnPaced{ResumeAtMS: d.now.Add(time.Minute).UnixMilli()})
		}, HeldUp},
		{"a call that is repeated", func(d *told) { d.accepted(1).tell(1, protocol.KindRetry, protocol.Retry{Attempt: 1, DelayMS: 1000}) }, HeldUp},
		{"one whose answer streams", func(d *told) {
			d.accepted(1).tell(1, protocol.KindRetry, protocol.Retry{Attempt: 1, DelayMS: 1000}).tell(1, protocol.KindTextDelta, map[string]string{"text": "x"})
		}, Working},
		{"a turn that is done", func(d *told) { d.accepted(1).finished(1, protocol.StatusCompleted) }, Done},
		{"a turn that was interrupted is not done", func(d *told) { d.accepted(1).finished(1, protocol.StatusInterrupted) }, Idle},
		{"one that was seen", func(d *told) { d.accepted(1).finished(1, protocol.StatusCompleted); d.bot().Seen = true }, Idle},
		{"a turn that failed", func(d *told) { d.accepted(1).finished(1, protocol.StatusFailed) }, Failed},
		{"the next turn clears a failure", func(d *told) { d.accepted(1).finished(1, protocol.StatusFailed).accepted(2) }, Working},
		{"a steer that was taken in ends no turn", func(d *told) { d.accepted(1).queued(2).finished(2, protocol.StatusSteered) }, Working},
		{"a queued turn that was withdrawn ends no other", func(d *told) { d.accepted(1).queued(2).finished(2, protocol.StatusInterrupted) }, Working},
		{"an event that cannot be read changes nothing", func(d *told) {
			d.accepted(1)
			d.Apply(&protocol.Event{Bot: "demo.lead", Turn: 1, Kind: protocol.KindTurnFinished, Durable: true, Data: []byte(`{"status":7}`)})
		}, Working},
	} {
		d := newTold(t)
		c.tell(d)
		if got := d.bot().State(d.Paused != nil); got != c.want {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}

func TestThePause(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	d.accepted(1)
	d.Apply(&protocol.Event{Bot: "*", Kind: protocol.KindPaused, Durable: true, Data: []byte(`{"by":"Ada","reason":"why"}`)})
	if d.Paused == nil || d.Paused.By != "Ada" || d.bot().State(true) != Paused {
		t.Errorf("%+v", d.Paused)
	}
	d.Apply(&protocol.Event{Bot: "*", Kind: protocol.KindResumed, Durable: true, Data: []byte(`{}`)})
	if d.Paused != nil || d.bot().State(false) != Working {
		t.Errorf("%+v", d.Paused)
	}
}

func TestTheLine(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	d.accepted(1).queued(2).queued(3).queued(4)
	d.bot().Prompted("r3", "the third")
	d.finished(1, protocol.StatusCompleted).accepted(2).finished(4, protocol.StatusInterrupted)
	var got []string
	for _, turn := range d.bot().Queue {
		got = append(got, fmt.Sprint(turn.ID, " ", turn.Prompt))
	}
	if !slices.Equal(got, []string{"3 the third"}) {
		t.Errorf("%v", got)
	}
	d.tell(2, protocol.KindSteered, protocol.Steered{From: 3})
	if len(d.bot().Queue) != 0 {
		t.Errorf("a steer that was taken in waits on: %+v", d.bot().Queue)
	}
	d.Line("demo.lead", []protocol.Turn{{Turn: 3, Status: protocol.StatusQueued}}) // listed before it was taken in
	if len(d.bot().Queue) != 0 {
		t.Error("a listing took the place of what events said")
	}
	other := newTold(t)
	other.Line("demo.lead", []protocol.Turn{
		{Turn: 7, Status: protocol.StatusCompleted},
		{Turn: 8, Status: protocol.StatusReady, Prompt: "x", Origin: "trigger"},
		{Turn: 9, Status: protocol.StatusQueued, From: &protocol.From{Bot: "home"}, Delivery: protocol.Steer},
	})
	want := []Turn{{ID: 8, Prompt: "x", From: "trigger"}, {ID: 9, From: "home", Steer: true}}
	if !slices.Equal(other.bot().Queue, want) {
		t.Errorf("%+v", other.bot().Queue)
	}
}

func TestRecordsAndEventsMeet(t *testing.T) {
	t.Parallel()
	running := int64(3)
	for _, c := range []struct {
		name string
		tell func(d *told)
		turn int64
		id   int64
	}{
		{"a listed bot runs what its record says", func(d *told) { d.Page([]protocol.Bot{{Name: "demo.lead", ID: 1, RunningTurn: &running}}) }, 3, 1},
		{"a bot that events spoke of keeps what they said", func(d *told) {
			d.accepted(5)
			d.Page([]protocol.Bot{{Name: "demo.lead", ID: 1, RunningTurn: &running}})
		}, 5, 1},
		{"a name that another bot has now is another bot", func(d *told) { d.Page([]protocol.Bot{{Name: "demo.lead", ID: 2, RunningTurn: &running}}) }, 3, 2},
	} {
		d := newTold(t)
		c.tell(d)
		if b := d.bot(); b.Turn != c.turn || b.Record.ID != c.id {
			t.Errorf("%s: turn %d of %d", c.name, b.Turn, b.Record.ID)
		}
	}

	d := newTold(t)
	d.Apply(&protocol.Event{Bot: "demo.lead", Kind: protocol.KindDeleted, Durable: true, Data: []byte(`{}`)})
	d.Page([]protocol.Bot{{Name: "demo.lead", ID: 1}})
	if d.bot() != nil || d.ByID(1) != nil {
		t.Error("a deleted bot came back with an older listing")
	}
	d.Page([]protocol.Bot{{Name: "demo.lead", ID: 2}})
	if d.bot() == nil || d.bot().Record.ID != 2 {
		t.Error("its namesake is not known")
	}
}

func TestWhatWasDeletedWhileNobodyFollowed(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	d.Page([]protocol.Bot{{Name: "demo.lead", ID: 1}, {Name: "demo.stays", ID: 2}, {Name: "demo.anew", ID: 3}})
	d.Relist()
	d.Put(protocol.Bot{Name: "demo.meanwhile", ID: 4})
	d.Page([]protocol.Bot{{Name: "demo.anew", ID: 5}})
	if d.bot() == nil {
		t.Error("it is gone before the listing is whole")
	}
	d.Page([]protocol.Bot{{Name: "demo.stays", ID: 2}})
	d.Listed()
	if d.bot() != nil {
		t.Error("it is there still")
	}
	for name, id := range map[string]int64{"demo.stays": 2, "demo.anew": 5, "demo.meanwhile": 4} {
		if b := d.Bot(name); b == nil || b.Record.ID != id {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

func TestABotThatEventsBear(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	folder, maker, makerID := "/a", "demo.lead", int64(1)
	kin := d.Kin
	raw, err := json.Marshal(protocol.Created{ID: 2, Provider: "p", Model: "m", Workspace: &folder, CreatedBy: &maker, CreatedByID: &makerID, Gates: []protocol.Gate{{Tag: "auto"}}})
	if err != nil {
		t.Fatal(err)
	}
	b := d.Apply(&protocol.Event{Bot: "demo.task", Kind: protocol.KindCreated, Durable: true, Data: raw})
	if b == nil || !b.Stale || b.Record.ID != 2 || b.Record.ModelRef() != "p/m" || *b.Record.CreatedByID != 1 || len(b.Record.Gates) != 1 || d.Kin == kin {
		t.Errorf("%+v", b)
	}
	if d.ByID(2) != b {
		t.Error("it is not found by its identity")
	}
}

func TestACallThatIsListed(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	d.Wait(&protocol.Approval{Bot: "demo.lead", Turn: 1, CallID: "c1", Request: 2, Gates: []string{"manual"}})
	d.Wait(&protocol.Approval{Bot: "nobody", CallID: "c1"})
	if got := d.bot().State(false); got != NeedsYou {
		t.Errorf("%v", got)
	}
	for _, c := range d.bot().Waits {
		if c.Request != 2 || c.CallID != "c1" {
			t.Errorf("%+v", c)
		}
	}
	d.asks("c1", "", 3)
	if len(d.bot().Waits) != 1 {
		t.Errorf("announced again it waits twice: %+v", d.bot().Waits)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	d.tell(1, protocol.KindUsage, protocol.Usage{InputTokens: 10, OutputTokens: 2, CachedInputTokens: 4})
	d.tell(1, protocol.KindUsage, protocol.Usage{InputTokens: 5, OutputTokens: 1, Purpose: "compaction"})
	b := d.bot()
	if (b.Here != Tokens{15, 3, 4}) || b.Total != b.Here || b.Usage.InputTokens != 10 {
		t.Errorf("%+v of %+v, the newest %+v", b.Here, b.Total, b.Usage)
	}
	d.Put(protocol.Bot{Name: "demo.lead", ID: b.Record.ID, InputTokens: 115, TokensUsed: 128, CachedInputTokens: 24})
	d.tell(2, protocol.KindUsage, protocol.Usage{InputTokens: 10, OutputTokens: 2, CachedInputTokens: 4})
	d.Page([]protocol.Bot{{Name: "demo.lead", ID: b.Record.ID, InputTokens: 115, TokensUsed: 128, CachedInputTokens: 24}}) // of before
	if b := d.bot(); (b.Here != Tokens{25, 5, 8}) || (b.Total != Tokens{125, 15, 28}) {
		t.Errorf("%+v of %+v", b.Here, b.Total)
	}
}

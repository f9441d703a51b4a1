package protocol

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// newData makes the struct that an event's data is read into.
func newData(kind string) any {
	switch kind {
	case KindCreated:
		return &Created{}
	case KindForked:
		return &Forked{}
	case KindConfigured:
		return &Configured{}
	case KindQueued:
		return &Queued{}
	case KindAccepted:
		return &Accepted{}
	case KindMessage:
		return &Message{}
	case KindUsage:
		return &Usage{}
	case KindApprovalRequested:
		return &ApprovalRequested{}
	case KindToolStarted:
		return &ToolStarted{}
	case KindToolRequested:
		return &ToolRequested{}
	case KindStepDecided:
		return &StepDecided{}
	case KindStepCompleted:
		return &StepCompleted{}
	case KindToolCompleted:
		return &ToolCompleted{}
	case KindTurnWaiting:
		return &TurnWaiting{}
	case KindTurnPaced:
		return &TurnPaced{}
	case KindTurnResumed:
		return &TurnResumed{}
	case KindSteered:
		return &Steered{}
	case KindElided:
		return &Elided{}
	case KindCompacted:
		return &Compacted{}
	case KindTurnFinished:
		return &TurnFinished{}
	case KindFollowLive:
		return &FollowLive{}
	case KindTextDelta:
		return &Delta{}
	}
	return nil
}

func TestEventsOfASessionReadAndWriteBack(t *testing.T) {
	t.Parallel()
	session, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, line := range bytes.SplitAfter(session, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		e, err := ParseEvent(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		kinds[e.Kind] = true
		data := newData(e.Kind)
		if err := e.Decode(data); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var again []byte
		switch {
		case e.Kind == KindTextDelta:
			d := data.(*Delta)
			again = AppendDelta(nil, e.Kind, d.Bot, d.Turn, d.Text)
		case e.Durable:
			encoded, err := Append(nil, data)
			if err != nil {
				t.Fatal(err)
			}
			again = AppendEvent(nil, e.Cursor, e.Bot, e.Turn, e.Kind, encoded)
		default:
			if again, err = AppendLive(nil, e.Kind, data); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(again, line) {
			t.Errorf("wrote\n%swanted\n%s", again, line)
		}
	}
	for _, kind := range []string{
		KindCreated, KindForked, KindConfigured, KindQueued, KindAccepted, KindMessage, KindUsage,
		KindApprovalRequested, KindToolStarted, KindToolRequested, KindStepDecided, KindStepCompleted, KindToolCompleted,
		KindTurnWaiting, KindTurnPaced, KindTurnResumed, KindSteered, KindElided, KindCompacted, KindTurnFinished,
	} {
		if !kinds[kind] {
			t.Errorf("the session has no %s", kind)
		}
	}
}

func TestEventShapes(t *testing.T) {
	t.Parallel()
	parse := func(line string) *Event {
		t.Helper()
		e, err := ParseEvent([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return e
	}
	t.Run("a push has a cursor and data and is live all the same", func(t *testing.T) {
		e := parse(`{"event":"approval_requested","bot":"Bob","turn":9,"cursor":88,"tag":"auto","lease":5512,"durable":false,"data":{"part":1,"parts":1,"calls":[{"call_id":"c1","request":1,"gates":["auto"],"name":"shell","node":61,"announced_ms":1,"arguments":{"command":"make"},"arguments_cut":[],"arguments_omitted":0,"cause":"tool","escalated":false,"expires_ms":2,"denials":{"auto":{"in_row":0,"in_turn":0,"recent":0,"window":50,"expired":0}}}]}}`)
		if e.Durable || e.Cursor != 0 || e.Turn != 9 {
			t.Fatalf("got %+v", e)
		}
		var push ApprovalPush
		if err := e.Decode(&push); err != nil {
			t.Fatal(err)
		}
		var args struct{ Command string }
		if err := push.Data.Calls[0].Decode(&args); err != nil {
			t.Fatal(err)
		}
		if push.Lease != 5512 || push.Cursor != 88 || !push.Data.Calls[0].Whole() {
			t.Errorf("got %+v", push)
		}
	})
	t.Run("a delta's text is read and another event's is empty", func(t *testing.T) {
		if got := parse(`{"event":"text_delta","bot":"A","turn":1,"durable":false,"text":"hé\n"}`).Text(); got != "hé\n" {
			t.Errorf("got %q", got)
		}
		if got := parse(`{"event":"retry","bot":"A","turn":1,"durable":false,"text":"x"}`).Text(); got != "" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("an unknown kind with unknown fields is kept whole", func(t *testing.T) {
		e := parse(`{"event":"later","cursor":7,"bot":"A","turn":1,"data":{"x":[1, 2]},"y":1}`)
		if e.Kind != "later" || !e.Durable || string(e.Data) != `{"x":[1, 2]}` {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a live one whose members are of other types is kept whole, and one with a cursor is refused", func(t *testing.T) {
		line := `{"event":"later","durable":false,"bot":{"id":3},"turn":"soon","data":7}`
		if e := parse(line); e.Kind != "later" || e.Durable || e.Bot != "" || e.Turn != 0 || string(e.Data) != line {
			t.Errorf("got %+v", e)
		}
		for _, line := range []string{`{"event":"later","cursor":7,"bot":"A","turn":"soon","data":{}}`, `{"event":"later","cursor":1e99,"bot":"A","turn":1,"data":{}}`} {
			if _, err := ParseEvent([]byte(line)); CodeOf(err) != InvalidJSON {
				t.Errorf("%s: got %v", line, err)
			}
		}
	})
	t.Run("facts of an ended turn are kept", func(t *testing.T) {
		var end TurnFinished
		if err := parse(`{"event":"turn_finished","cursor":7,"bot":"A","turn":1,"data":{"status":"failed","checkpoint":null,"error":"budget_exhausted","detail":null,"tokens_used":220}}`).Decode(&end); err != nil {
			t.Fatal(err)
		}
		if *end.Error != BudgetExhausted || string(end.Extra["tokens_used"]) != "220" {
			t.Errorf("got %+v", end)
		}
	})
	t.Run("a live notification carries durable false", func(t *testing.T) {
		line, err := AppendLive(nil, KindToolsLost, TagLost{Tag: "sonny", Lease: 3})
		if err != nil || string(line) != `{"event":"tools_lost","durable":false,"tag":"sonny","lease":3}`+"\n" {
			t.Errorf("got %s %v", line, err)
		}
	})
	t.Run("a line that is no notification is refused", func(t *testing.T) {
		for _, line := range []string{``, `[]`, `{}`, `{"event":1}`, `{"cursor":"x","event":"a"}`} {
			if _, err := ParseEvent([]byte(line)); CodeOf(err) != InvalidJSON {
				t.Errorf("%s: got %v", line, err)
			}
		}
	})
}

func TestReadyLine(t *testing.T) {
	t.Parallel()
	line, err := AppendReady(nil, &Ready{
		PID: 4711, Schema: 1, Capabilities: Capabilities(),
		Store: Store{Identity: "9f", Lineage: "00"}, Providers: map[string]ProviderInfo{"s": {Family: "scripted", Transport: "local", Auth: "none"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := ParseMessage(line)
	if err != nil || in.Ready == nil {
		t.Fatalf("%+v %v", in, err)
	}
	if in.Ready.Protocol != 3 || in.Ready.PID != 4711 || !in.Ready.Has("wait_any") || in.Ready.Has("teleport") {
		t.Errorf("got %+v", in.Ready)
	}
	want := []string{
		"event", "protocol", "pid", "store", "schema", "capabilities", "limits", "tools", "providers", "durability",
		"partial_text_durable", "version", "sandbox", "walls", "protected", "bot_sockets", "paused",
	}
	if got := memberNames(t, line); !equalStrings(got, want) {
		t.Errorf("members %v, wanted %v", got, want)
	}
}

// memberNames are an object's names in their order.
func memberNames(t *testing.T, object []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func equalStrings(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

package live

import (
	"testing"

	"agent/protocol"
)

func TestLine(t *testing.T) {
	w := New(&protocol.Ready{})
	w.Page([]protocol.Bot{{Name: "demo.lead", ID: 1}})
	event := func(kind string, turn int64, data string) {
		w.Apply(&protocol.Event{Kind: kind, Bot: "demo.lead", Turn: turn, Durable: true, Data: []byte(data)})
	}
	event(protocol.KindMessage, 1, `{"node":3}`) // something was heard before the turns were listed
	event(protocol.KindAccepted, 2, `{"request_id":"b","node":4,"workspace":null,"model":"m"}`)
	listed := []protocol.Turn{
		{Turn: 2, RequestID: "b", Status: protocol.StatusQueued, Prompt: "started meanwhile"},
		{Turn: 3, RequestID: "c", Status: protocol.StatusQueued, Prompt: "in line", PromptTruncated: true},
	}
	w.Line("demo.lead", listed)
	queue := w.Bot("demo.lead").Queue
	if len(queue) != 1 || queue[0].ID != 3 || queue[0].Prompt != "in line" || !queue[0].Cut {
		t.Fatalf("in line: %+v", queue)
	}
	event(protocol.KindTurnFinished, 3, `{"status":"interrupted"}`)
	w.Line("demo.lead", listed)
	if queue := w.Bot("demo.lead").Queue; len(queue) != 0 {
		t.Errorf("what was withdrawn is back: %+v", queue)
	}
}

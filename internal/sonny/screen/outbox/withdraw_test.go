package outbox

import (
	"testing"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// A turn that began in the instant in which it was to be taken out of line, of which the
// screen has not heard yet, is not ended.
func TestWithdrawLeavesWhatHasBegun(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	if ran := h.Agent("start"); ran.Exit != 0 {
		t.Fatal(ran.Stderr)
	}
	c := h.Client()
	if ran := h.Agent("run", "--detach", "--new", "--bot", "ada", "--model", "scripted/sonny", "--workspace", h.Dir, "--", "sh: until [ -e release ]; do sleep 0.1; done"); ran.Exit != 0 {
		t.Fatal(ran.Stderr)
	}
	bot, err := c.Inspect(t.Context(), "ada")
	if err != nil || bot.RunningTurn == nil {
		t.Fatalf("%+v, %v", bot, err)
	}
	begun := *bot.RunningTurn
	line := []Queued{{turn: begun, m: Text("begun")}}
	for _, words := range []string{"say: one", "say: two"} {
		q, err := c.Submit(t.Context(), &protocol.Submit{Bot: "ada", Prompt: words, Delivery: protocol.Queue})
		if err != nil {
			t.Fatal(err)
		}
		line = append(line, Queued{turn: q.Turn, m: Text(words)})
	}
	o := newBench(t, c)
	got := o.withdraw(t.Context(), "ada", line)
	if got.err != nil || !got.started || len(got.out) != 2 || got.out[0].prompt != "say: one" {
		t.Errorf("%+v", got)
	}
	if o, err := c.Result(t.Context(), "ada", begun); err != nil || o.Finished {
		t.Errorf("the turn that had begun: %+v, %v", o, err)
	}
}

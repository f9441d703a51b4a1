package engine

import (
	"encoding/json"
	"testing"
	"time"

	"agent/protocol"
)

// A row that cannot be read, or that no gate has a say in, allows no step.
func TestStepRows(t *testing.T) {
	t.Parallel()
	gates := func(list string) string {
		return `[{"step":"s","name":"a","same":"x","approval":{"request":1,"gates":` + list + `}}]`
	}
	for _, row := range []struct{ name, text, want string }{
		{"no JSON", `[`, "unreadable"},
		{"no list", `{}`, "unreadable"},
		{"a step without approval", `[{"step":"s"}]`, "unreadable"},
		{"a step without gates", gates(`[]`), "unreadable"},
		{"a step without a name", `[{"approval":{"gates":[{"tag":"a","decision":"allow"}]}}]`, "unreadable"},
		{"an open gate", gates(`[{"tag":"a"}]`), ""},
		{"one of two gates", gates(`[{"tag":"a","decision":"allow"},{"tag":"b"}]`), ""},
		{"both gates", gates(`[{"tag":"a","decision":"allow"},{"tag":"b","decision":"allow"}]`), protocol.Allow},
		{"a denial", gates(`[{"tag":"a","decision":"allow"},{"tag":"b","decision":"deny"}]`), protocol.Deny},
		{"an expiry", gates(`[{"tag":"a","decision":"allow"},{"tag":"b","decision":"expired"}]`), protocol.Expired},
		{"a denial beside an expiry", gates(`[{"tag":"a","decision":"expired"},{"tag":"b","decision":"deny"}]`), protocol.Deny},
		{"a decision that nobody knows", gates(`[{"tag":"a","decision":"ALLOW"}]`), protocol.Deny},
	} {
		t.Run(row.name, func(t *testing.T) {
			steps, err := readSteps("c", json.RawMessage(row.text))
			got := "unreadable"
			if err == nil {
				got = steps.find("s").decision()
			}
			if got != row.want {
				t.Errorf("it reads as %q, want %q", got, row.want)
			}
		})
	}
}

// What a step keeps in memory is bounded, and given back however it ends.
func TestStepsHeld(t *testing.T) {
	t.Parallel()
	e := &Engine{}
	e.verdicts.init()
	var answers []protocol.Code
	enter := func(step string, lease int64) {
		t.Helper()
		if err := e.verdicts.reserve(1 << 20); err != nil {
			t.Fatal(err)
		}
		ask := &question{step: step, args: make([]byte, 1<<20), lease: lease, answer: func(_ *protocol.StepVerdict, err *protocol.Error) {
			answers = append(answers, err.Code)
		}}
		row := &approvalRow{Request: 1, AnnouncedMS: time.Now().UnixMilli(), Gates: []gateVerdict{{Tag: "a", ExpireMS: 60_000}}}
		e.enter(&announced{asked: asked{1, "c", step}, ask: ask, row: row})
	}
	for _, step := range []string{"one", "two", "three"} {
		enter(step, 7)
	}
	if err := e.verdicts.reserve(maxHeldSteps - 3<<20 + 1); protocol.CodeOf(err) != protocol.StepLimit {
		t.Errorf("more than there is room for: %v", err)
	}
	e.withdraw(1, "another call")
	if len(answers) != 0 {
		t.Errorf("answered %v", answers)
	}
	e.withdraw(1, "c")
	e.withdraw(1, "")
	if len(answers) != 3 || answers[0] != protocol.StepCancelled || e.verdicts.held != 0 || len(e.verdicts.turns) != 0 || len(e.waits.due) != 0 {
		t.Errorf("answered %v, %d bytes and %d deadlines are left", answers, e.verdicts.held, len(e.waits.due))
	}
}

func TestServedClock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name            string
		clock           servedClock
		now, due, later int64
	}{
		{"it goes", servedClock{ExpiresMS: 1000}, 400, 1000, 1000},
		{"it stands", servedClock{ExpiresMS: 1000, StandsMS: 400}, 900, 1500, 1600},
		{"the wall clock was set back", servedClock{ExpiresMS: 1000, StandsMS: 400}, 300, 1000, 1000},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, later := row.clock.due(row.now), row.clock.due(row.now+100); got != row.due || later != row.later {
				t.Errorf("due at %d and then %d, want %d and %d", got, later, row.due, row.later)
			}
		})
	}
}

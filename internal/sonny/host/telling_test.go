package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/live"
	"agent/protocol"
)

// TestAnUnansweredApproval is about the command alone: no daemon is needed for it.
func TestAnUnansweredApproval(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	h := &host{sonny: t.TempDir(), ready: &protocol.Ready{}}
	h.Now = func() time.Time { return now }
	h.Settings = func(string) (Settings, error) {
		return Settings{Notify: Notify{
			On: []string{"approval"}, When: "unfocused", Command: []string{"sh", "-c", `echo "$2" >> ` + told, "tell"},
		}}, nil
	}
	u := newUpdates(h)
	folder := "/src/demo"
	u.world.Page([]protocol.Bot{{ID: 1, Name: "demo.lead", Workspace: &folder, Status: "idle"}, {ID: 2, Name: "stranger", Status: "idle"}})
	teller := &teller{u: u}
	asks := func(bot string, request int64) {
		data, err := json.Marshal(protocol.ApprovalRequested{Calls: []protocol.RequestedCall{{CallID: fmt.Sprint("call", request), Name: "shell", Gates: []string{"manual"}, Request: request}}})
		if err != nil {
			t.Fatal(err)
		}
		e := &protocol.Event{Bot: bot, Kind: protocol.KindApprovalRequested, Turn: 1, Durable: true, Data: data}
		u.take(live.Note{Event: e})
		teller.hear(t.Context(), e)
	}
	lines := func(want int) {
		t.Helper()
		teller.end()
		text, _ := os.ReadFile(told)
		if got := strings.Count(string(text), "demo.lead asks to use shell\n"); got != want || strings.Contains(string(text), "stranger") {
			t.Errorf("%d times, not %d: %s", got, want, text)
		}
	}
	asks("demo.lead", 7)
	asks("stranger", 8)
	lines(1)
	if next := teller.due(t.Context()); next.Sub(now) != 2*time.Second {
		t.Errorf("looks again after %v", next.Sub(now))
	}
	now = now.Add(3 * time.Second)
	if next := teller.due(t.Context()); next.Sub(now) != 10*time.Minute-3*time.Second {
		t.Errorf("looks again after %v", next.Sub(now))
	}
	now = now.Add(10 * time.Minute)
	teller.due(t.Context())
	lines(2)
	now = now.Add(20 * time.Minute)
	if next := teller.due(t.Context()); !next.IsZero() {
		t.Errorf("it is told of again at %v", next)
	}
	lines(2)

	asks("demo.lead", 9)
	lines(3)
	u.world.Bot("demo.lead").Waits = nil // answered
	now = now.Add(20 * time.Minute)
	teller.due(t.Context())
	lines(3)
}

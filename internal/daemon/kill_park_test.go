package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// entwined parks two turns on each other, so that nothing but a's deadline ever
// ends them and nothing runs meanwhile.
func entwined(w *world, k *conn, timeout time.Duration) (a, b protocol.Submitted) {
	w.t.Helper()
	for _, name := range []string{"A", "B"} {
		k.fbot(name, w.workspace, "shell wait")
		k.follow(name, 0)
	}
	first := k.submit("B", "b1", program("b1", "hold"), "")
	b = k.submit("B", "b2", program("b2", fmt.Sprintf("wait turn:A/%d", first.Turn+2)), `"delivery":"queue"`)
	a = k.submit("A", "a1", program("a1", fmt.Sprintf("soon %d turn:B/%d", timeout.Milliseconds(), b.Turn), "sh 1"), "")
	if a.Turn != first.Turn+2 {
		w.t.Fatalf("the turns are %d, %d, %d", first.Turn, b.Turn, a.Turn)
	}
	k.until("turn_waiting", a.Turn)
	w.actor.gate("b1").Release()
	k.until("turn_waiting", b.Turn)
	return a, b
}

func TestParkedOverAnEnd(t *testing.T) {
	t.Parallel()
	t.Run("RT-45 a deadline that passed while the daemon was down resumes the turn with the handle pending", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		p := w.start()
		k := p.dial()
		const timeout = 6 * time.Second
		a, b := entwined(w, k, timeout)
		due := time.After(timeout) // later than the deadline
		p.kill()
		<-due
		k = w.start().dial()
		k.ask(nil, "follow", `"bot":"A","after":0`)
		seen := k.until("turn_finished", a.Turn)
		if got := k.itemsOf("A", seen); !strings.Contains(got, fmt.Sprintf(`turn:B/%d`, b.Turn)) || !strings.Contains(got, "pending") {
			t.Errorf("the wait gave %s", got)
		}
		k.ask(nil, "follow", `"bot":"B","after":0`)
		k.until("turn_finished", b.Turn)
		for _, s := range []protocol.Submitted{a, b} {
			if o := k.result(s.Bot, s.Turn); o.Status != "completed" {
				t.Errorf("outcome %+v", o)
			}
		}
		w.model.Verify(t)
	})
	t.Run("RT-97 parked turns do not keep an idle daemon, and the next one goes on with them", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		seconds := int64(1)
		w.set.Limits.IdleExitSeconds = &seconds
		p := w.start()
		k := p.dial()
		a, b := entwined(w, k, 6*time.Second)
		k.c.Close()
		if code := p.wait(); code != 0 {
			t.Fatalf("exit %d: %s", code, p.stderr.String())
		}
		k = w.start().dial()
		k.ask(nil, "follow", `"bot":"B","after":0`)
		k.until("turn_finished", b.Turn)
		for _, s := range []protocol.Submitted{a, b} {
			if o := k.result(s.Bot, s.Turn); o.Status != "completed" {
				t.Errorf("outcome %+v", o)
			}
		}
		w.model.Verify(t)
	})
}

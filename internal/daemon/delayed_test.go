package daemon_test

import (
	"sync"
	"testing"
	"time"

	"agent/internal/fakemodel"
)

func TestAServerThatAsksForPatience(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		var mu sync.Mutex
		var at []time.Time
		s := h.fake(family, fakemodel.Options{Hook: func(*fakemodel.Request) {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
		}})
		s.Queue(fakemodel.HTTPError(503, "busy", "Retry-After", "3"), fakemodel.Say("done"))
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "")
		k.follow("Ada", 0)
		t.Run("PV-76 a 503 that names three seconds is asked again after them, and no sooner", func(t *testing.T) {
			sub := k.submit("Ada", "r", "go", "")
			seen := k.until("turn_finished", sub.Turn)
			var retries []line
			for _, l := range seen {
				if l.str("event") == "retry" {
					retries = append(retries, l)
				}
			}
			if len(retries) != 1 || retries[0].str("error") != "provider_http_503" || retries[0].num("attempt") != 1 {
				t.Fatalf("retries %s", retries)
			}
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "done" {
				t.Errorf("outcome %+v", o)
			}
			if len(at) != 2 || at[1].Sub(at[0]) < 2900*time.Millisecond {
				t.Errorf("requests at %v", at)
			}
		})
		s.Verify(t)
	})
}

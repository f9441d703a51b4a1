package screen_test

import (
	"fmt"
	"testing"

	"agent/protocol"
)

// The first items that come fill a screen; the others are there without being asked for.
func TestALongSessionIsOpenedWhole(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 80, 24)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: the oldest reply")
	s.WaitFor("✔ done")
	c := h.Client()
	for n := range 40 {
		o, err := c.Run(t.Context(), &protocol.Submit{Bot: "demo.lead", RequestID: fmt.Sprint("n", n), Prompt: fmt.Sprintf("say: reply number %d", n)}, nil)
		if err != nil || o.Status != protocol.StatusCompleted {
			t.Fatalf("%v, %+v", err, o)
		}
	}
	again := openAt(h, dir, 80, 24)
	again.WaitFor("reply number 39")
	again.Keys("C-Home")
	wants(t, again, "the oldest reply", "reply number 0")
	again.Keys("C-End")
	again.WaitFor("reply number 39")
}

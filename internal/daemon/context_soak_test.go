package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"agent/internal/fakemodel"
)

// TestContextSoak lets a model do what it likes in a small envelope: whatever
// the history has become, each request is one that a strict provider takes and
// lies within the envelope, each newest result is whole, and the next turn runs.
func TestContextSoak(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		for _, family := range families {
			t.Run(fmt.Sprintf("whatever a bot did it takes another turn, %s %d", family, seed), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(seed, 7))
				var mu sync.Mutex
				pick := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return rnd.IntN(n)
				}
				h := newHost(t, "")
				h.set.Limits.ContextBytes = int64(16+pick(32)) << 10
				h.set.Limits.ContextItems = int64(24 + pick(200))
				for i := range 4 {
					smallPicture(t, h, i)
				}
				bigFiles(t, h, 3, 4<<10)
				s := h.fake(family, fakemodel.Options{Window: true, Keep: 2000, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
					if asksSummary(r) {
						switch pick(5) {
						case 0:
							return fakemodel.Say("no", fakemodel.Call("shell", `{"command":"true"}`))
						case 1:
							return fakemodel.HTTPError(400, "not today")
						}
						return fakemodel.Say("SUMMARY " + strings.Repeat("s", pick(4000)))
					}
					reply := fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("hm"), fakemodel.Text("so " + strings.Repeat("t", pick(400)))}}
					if r.Rounds > 8 {
						return reply
					}
					for range pick(4) {
						reply.Blocks = append(reply.Blocks, []fakemodel.Block{
							fakemodel.Call("shell", fmt.Sprintf(`{"command":"head -c %d f0"}`, pick(3000))),
							fakemodel.Call("read", fmt.Sprintf(`{"path":"f%d"}`, pick(3))),
							fakemodel.Call("read", fmt.Sprintf(`{"path":"p%02d.png"}`, pick(4))),
							fakemodel.Call("note", fmt.Sprintf(`{"text":"note %s"}`, strings.Repeat("n", pick(900)))),
							fakemodel.Call("history", `{"turn":1}`),
							fakemodel.Call("nothing", `{}`),
						}[pick(6)])
					}
					return reply
				}})
				p := h.start()
				k := p.dial()
				tools := "shell read note history"
				if seed%3 == 0 {
					tools = "shell note history"
				}
				if seed%2 == 0 {
					k.cbot("Ada", h.workspace, tools, "")
				} else {
					k.fbot("Ada", h.workspace, tools)
				}
				for i := range 25 {
					if i == 12 {
						p.kill()
						p = h.start()
						k = p.dial()
					}
					o := k.run("Ada", fmt.Sprint("r", i), "prompt "+strings.Repeat("p", pick(1500)))
					if o.Status != "completed" && (o.Error == nil || *o.Error != "context_limit") {
						t.Fatalf("turn %d: %+v", i, o)
					}
				}
				// The last turn asks for little, so it must run.
				s.Queue(fakemodel.Say("fine"))
				if o := k.run("Ada", "last", "rest"); o.Status != "completed" && s.Queued() > 0 {
					t.Errorf("outcome %+v", o)
				}
				for _, r := range s.Requests() {
					pictures := strings.Count(string(r.Body), "iVBORw0KGgo")
					if n := int64(envelope(r)); n > h.set.Limits.ContextBytes+int64(pictures)*300 {
						t.Errorf("request %d takes %d bytes of %d", r.Seq, n, h.set.Limits.ContextBytes)
					}
					if n := int64(r.Items); n > h.set.Limits.ContextItems {
						t.Errorf("request %d takes %d items of %d", r.Seq, n, h.set.Limits.ContextItems)
					}
					if !asksSummary(r) {
						wholeNewest(t, r)
					}
				}
				s.Verify(t)
			})
		}
	}
}

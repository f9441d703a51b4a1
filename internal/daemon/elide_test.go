package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// bigFiles writes files f0, f1, … of size bytes each, which name themselves at
// their start, middle and end.
func bigFiles(t *testing.T, h *host, n, size int) {
	t.Helper()
	for i := range n {
		half := strings.Repeat(strings.Repeat("x", 99)+"\n", size/200)
		text := fmt.Sprintf("start-%03d\n%smiddle-%03d\n%send-%03d\n", i, half, i, half, i)
		if err := os.WriteFile(filepath.Join(h.workspace, fmt.Sprint("f", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// reading is a reply that thinks and reads file i.
func reading(i int) fakemodel.Reply {
	return fakemodel.Reply{Blocks: []fakemodel.Block{
		fakemodel.Thinking(fmt.Sprintf("thought %03d", i)),
		fakemodel.Text(fmt.Sprintf("round %03d", i)), fakemodel.Call("read", fmt.Sprintf(`{"path":"f%d"}`, i)),
	}}
}

// itemsOf are the items of a request's body.
func itemsOf(r *fakemodel.Request) (items []string) {
	var body struct{ Messages, Input []json.RawMessage }
	if err := json.Unmarshal(r.Body, &body); err != nil {
		panic(err)
	}
	for _, raw := range append(body.Messages, body.Input...) {
		if strings.HasPrefix(string(raw), `{"role":"system"`) {
			continue // a chat request's instructions
		}
		items = append(items, string(raw))
	}
	return items
}

// envelope is what the items of a request take, joined.
func envelope(r *fakemodel.Request) int { return len(strings.Join(itemsOf(r), ",")) }

func isResult(item string) bool {
	return strings.Contains(item, `"tool_result"`) || strings.Contains(item, `"function_call_output"`) ||
		strings.HasPrefix(item, `{"role":"tool"`)
}

var stubForm = regexp.MustCompile(`bytes of output, shortened here\. read with artifact result/([0-9]+) returns`)

// wholeNewest checks that the results after the model's newest output are all
// whole in a request.
func wholeNewest(t *testing.T, r *fakemodel.Request) {
	t.Helper()
	items := itemsOf(r)
	for i := len(items) - 1; i >= 0 && isResult(items[i]); i-- {
		if stubForm.MatchString(items[i]) {
			t.Errorf("request %d: its newest result is a stub: %.200s", r.Seq, items[i])
		}
	}
}

func TestElision(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 64 << 10
		bigFiles(t, h, 24, 11<<10)
		reference := ""
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 100, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			switch {
			case !strings.HasPrefix(r.Prompt, "read them"):
				return fakemodel.Say("yes")
			case r.Rounds < 24:
				return reading(r.Rounds)
			case r.Rounds == 24:
				for _, item := range itemsOf(r) {
					if m := stubForm.FindStringSubmatch(item); m != nil && reference == "" {
						reference = "result/" + m[1]
					}
				}
				return fakemodel.Say("again", fakemodel.Call("read", `{"artifact":"`+reference+`"}`))
			}
			return fakemodel.Say("done")
		}})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "read history")
		k.run("Ada", "r0", "hello")
		sub := k.submit("Ada", "r1", "read them", "")
		seen := k.until("turn_finished", sub.Turn)
		reqs := s.Requests()
		t.Run("RT-77 24 rounds of 11 KiB results fit in 64 KiB, old ones as stubs", func(t *testing.T) {
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "done" {
				t.Fatalf("outcome %+v", o)
			}
			for _, r := range reqs {
				if n := envelope(r); n > 64<<10 {
					t.Errorf("request %d takes %d bytes", r.Seq, n)
				}
				wholeNewest(t, r)
			}
			if n := strings.Count(string(reqs[len(reqs)-2].Body), "bytes of output, shortened here"); n < 18 {
				t.Errorf("%d results are stubs", n)
			}
			if last := itemsOf(reqs[len(reqs)-1]); !strings.Contains(last[len(last)-1], "middle-000") {
				t.Errorf("read of %s returned %.300s", reference, last[len(last)-1])
			}
		})
		t.Run("RT-77 the store holds every result whole", func(t *testing.T) {
			n := 0
			for _, l := range seen {
				if l.str("event") != "tool_completed" || n == 24 {
					continue
				}
				var c protocol.ToolCompleted
				l.data(&c)
				if item := k.item("Ada", c.Node); !strings.Contains(item, fmt.Sprintf("middle-%03d", n)) {
					t.Errorf("result %d: %.300s", n, item)
				}
				n++
			}
		})
		t.Run("elided says what moved, each move with its version and the one before", func(t *testing.T) {
			var previous *int64
			moves := 0
			for _, l := range seen {
				if l.str("event") != "elided" {
					continue
				}
				moves++
				var e protocol.Elided
				l.data(&e)
				if e.Version <= e.Through || e.Results < 1 || e.SavedBytes < 4<<10 ||
					(e.Previous == nil) != (previous == nil) || previous != nil && *previous != *e.Previous {
					t.Errorf("%s after %v", l.raw, previous)
				}
				previous = &e.Version
			}
			if moves < 4 {
				t.Errorf("%d moves", moves)
			}
		})
		if family == "anthropic" {
			t.Run("thinking from the first new stub to the move's request is left out, later and earlier thinking is kept", func(t *testing.T) {
				found := false
				for _, r := range reqs {
					got := regexp.MustCompile("thought [0-9]+").FindAllString(string(r.Body), -1)
					found = found || len(got) > 1 && got[0] == "thought 000" && got[1] > "thought 010" &&
						got[len(got)-1] == fmt.Sprintf("thought %03d", r.Rounds-1)
				}
				if !found {
					t.Error("no request holds the thinking before the first stub and that since the last move, and no other")
				}
			})
		}
		t.Run("the floor outlives a crash", func(t *testing.T) {
			p.kill()
			k = h.start().dial()
			if o := k.run("Ada", "r2", "and?"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			reqs := s.Requests()
			if n := strings.Count(string(reqs[len(reqs)-1].Body), "bytes of output, shortened here"); n < 18 {
				t.Errorf("%d results are stubs", n)
			}
		})
		s.Verify(t)
	})
}

func TestNoElision(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 64 << 10
		text, _ := json.Marshal(map[string]string{"text": strings.Repeat("y", 5600)})
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 30, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			if r.Prompt == "work" {
				return fakemodel.Say(fmt.Sprint(r.Rounds), fakemodel.Call("echo", string(text)))
			}
			return fakemodel.Say("fine")
		}})
		k := h.start().dial()
		t.Run("RT-78 without read no stub is sent and the turn fails with context_limit, and the bot goes on", func(t *testing.T) {
			k.fbot("Bob", h.workspace, "echo")
			if o := k.run("Bob", "r1", "work"); o.Status != "failed" || o.Error == nil || *o.Error != "context_limit" {
				t.Fatalf("outcome %+v", o)
			}
			for _, r := range s.Requests() {
				if stubForm.Match(r.Body) {
					t.Errorf("request %d holds a stub", r.Seq)
				}
			}
			if o := k.run("Bob", "r2", "rest"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
		})
		s.Verify(t)
	})
}

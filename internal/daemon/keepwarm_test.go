package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// waitingFor is a command that ends once the file go exists.
const waitingFor = `{"command":"until [ -e go ]; do sleep 0.02; done","timeout_ms":60000}`

func TestKeepWarm(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, family string, opt fakemodel.Options, set func(h *host)) (*host, *fakemodel.Server, *conn) {
		h := newHost(t, "")
		h.set.Limits.KeepWarmSeconds = 1
		if set != nil {
			set(h)
		}
		opt.Keep, opt.Bodies, opt.Window = 30, true, true
		s := h.fake(family, opt)
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "shell")
		k.follow("Ada", 0)
		return h, s, k
	}
	open := func(t *testing.T, h *host) {
		if err := os.WriteFile(filepath.Join(h.workspace, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("PV-21 a tool that outlasts the cache twice is bridged by exactly two refreshes", func(t *testing.T) {
		t.Parallel()
		refreshes := make(chan int, 9)
		var count atomic.Int64
		h, s, k := start(t, "anthropic", fakemodel.Options{Hook: func(r *fakemodel.Request) {
			if r.Refresh {
				refreshes <- int(count.Add(1))
			}
		}}, nil)
		s.Queue(fakemodel.Say("wait", fakemodel.Call("shell", waitingFor)), fakemodel.Say("done"))
		sub := k.submit("Ada", "r1", "go", "")
		for n := range refreshes {
			if n == 2 {
				break
			}
		}
		open(t, h)
		seen := k.until("turn_finished", sub.Turn)
		reqs := s.Requests()
		if len(reqs) != 4 || !reqs[1].Refresh || !reqs[2].Refresh || reqs[3].Refresh {
			t.Fatalf("%d requests", len(reqs))
		}
		for _, r := range reqs[1:3] {
			if strings.Join(itemsOf(r), ",") != strings.Join(itemsOf(reqs[0]), ",") || r.System != reqs[0].System {
				t.Error("a refresh is not the call that it keeps")
			}
		}
		kept, total, bot := 0, int64(0), protocol.Bot{}
		for _, l := range seen {
			if l.str("event") != "usage" {
				continue
			}
			var u protocol.Usage
			l.data(&u)
			total += u.InputTokens + u.OutputTokens
			if u.Purpose == "keep_warm" {
				kept++
				if u.SentMS == 0 || u.CachedInputTokens == 0 || u.OutputTokens != 0 {
					t.Errorf("usage %s", l.raw)
				}
			}
		}
		k.ask(&bot, "inspect", `"bot":"Ada"`)
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		if tr := page.Turns[0]; kept != 2 || tr.ModelRounds != 2 || tr.InputTokens+tr.OutputTokens != total || bot.TokensUsed != total {
			t.Errorf("%d refreshes recorded, turn %+v, bot used %d of %d", kept, tr, bot.TokensUsed, total)
		}
		s.Verify(t)
	})

	t.Run("a reply that streams for long keeps its own cache, and the refresh counts to the budget", func(t *testing.T) {
		t.Parallel()
		gate := fakemodel.NewGate()
		_, s, k := start(t, "anthropic", fakemodel.Options{Hook: func(r *fakemodel.Request) {
			if r.Refresh {
				gate.Release()
			}
		}}, nil)
		s.Queue(fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("slow")}, Finish: gate})
		if o := k.run("Ada", "r1", "go"); o.Status != "completed" || o.Text != "slow" {
			t.Fatalf("outcome %+v", o)
		}
		var b protocol.Bot
		k.ask(&b, "inspect", `"bot":"Ada"`)
		if st := s.Stats(); st.Refreshes != 1 || b.CachedInputTokens == 0 {
			t.Errorf("%d refreshes, bot %+v", st.Refreshes, b)
		}
		s.Verify(t)
	})

	for _, tt := range []struct {
		name, family, create string
		set                  func(h *host)
	}{
		{"keep-warm 0 sends none", "anthropic", "", func(h *host) { h.set.Limits.KeepWarmSeconds = 0 }},
		{"PV-15 a cache of an hour needs none", "anthropic", "", func(h *host) { h.set.Limits.CacheTTL = "1h" }},
		{"another family has none", "responses", "", nil},
		{"budgeted thinking has none", "anthropic", `"model":"f/claude-sonnet-4-5","reasoning":"low"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, s, k := start(t, tt.family, fakemodel.Options{}, tt.set)
			name := "Ada"
			if tt.create != "" {
				name = "Bob"
				k.ask(nil, "create", fmt.Sprintf(`"bot":"Bob",%s,"instructions":"","tools":["shell"],"workspace":%q`, tt.create, h.workspace))
			}
			s.Queue(fakemodel.Say("wait", fakemodel.Call("shell", `{"command":"sleep 1.5"}`)), fakemodel.Say("done"))
			if o := k.run(name, "r1", "go"); o.Status != "completed" || s.Stats().Refreshes != 0 {
				t.Errorf("outcome %+v, %d refreshes", o, s.Stats().Refreshes)
			}
			s.Verify(t)
		})
	}
}

// TestKeepWarmRefused answers refreshes with an error, which the strict server
// never does.
func TestKeepWarmRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.set.Limits.KeepWarmSeconds = 1
	var refreshes atomic.Int64
	url := refusingRefreshes(t, &refreshes)
	h.set.Providers = append(h.set.Providers, "f=anthropic,"+url+",F_KEY")
	h.env = append(h.env, "F_KEY=k0123456789")
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	sub := k.submit("Ada", "r1", "go", "")
	failed := k.until("keep_warm_failed", 0)
	if l := last(failed); l.str("error") != "provider_http_400" || l.num("turn") != sub.Turn || !strings.Contains(l.str("detail"), "no refresh") {
		t.Errorf("%s", l.raw)
	}
	if err := os.WriteFile(filepath.Join(h.workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	more := k.until("turn_finished", sub.Turn)
	if o := k.result("Ada", sub.Turn); o.Status != "completed" || refreshes.Load() != 1 || strings.Contains(kindsAll(more), "keep_warm_failed") {
		t.Errorf("outcome %+v after %d refreshes", o, refreshes.Load())
	}
}

// refusingRefreshes is a plain server: a tool call first, then an answer, and
// 400 for each refresh.
func refusingRefreshes(t *testing.T, refreshes *atomic.Int64) string {
	var calls atomic.Int64
	event := func(kind, data string) string { return "event: " + kind + "\ndata: " + data + "\n\n" }
	start := event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"Ada","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}`)
	end := func(reason string) string {
		return event("content_block_stop", `{"type":"content_block_stop","index":0}`) +
			event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`"},"usage":{"output_tokens":5}}`) +
			event("message_stop", `{"type":"message_stop"}`)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"max_tokens":0,`) {
			refreshes.Add(1)
			w.Header().Set("content-type", "application/json")
			w.WriteHeader(400)
			io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no refresh here"}}`)
			return
		}
		w.Header().Set("content-type", "text/event-stream")
		if calls.Add(1) == 1 {
			args, _ := json.Marshal(waitingFor)
			io.WriteString(w, start+event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"shell","input":{}}}`)+
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+string(args)+`}}`)+end("tool_use"))
			return
		}
		io.WriteString(w, start+event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)+
			event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done"}}`)+end("end_turn"))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

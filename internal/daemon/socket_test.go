package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// socketRequest is what a test looks at of a request over a socket.
type socketRequest struct {
	conn     int
	previous string
	input    []string
	cacheKey string
	raw      string
}

// overSockets gives the requests that came over sockets.
func overSockets(t *testing.T, s *fakemodel.Server) []socketRequest {
	t.Helper()
	var out []socketRequest
	for _, m := range s.SocketMessages() {
		var body struct {
			Previous string            `json:"previous_response_id"`
			Input    []json.RawMessage `json:"input"`
			CacheKey string            `json:"prompt_cache_key"`
		}
		if err := json.Unmarshal(m.Body, &body); err != nil {
			t.Fatal(err)
		}
		r := socketRequest{conn: m.Conn, previous: body.Previous, cacheKey: body.CacheKey, raw: string(m.Body)}
		for _, item := range body.Input {
			r.input = append(r.input, string(item))
		}
		out = append(out, r)
	}
	return out
}

// providerStats are the figures of the provider "f".
type providerStats struct {
	Sockets *int `json:"sockets"`
	Pools   map[string]struct {
		Limit     *int64 `json:"requests_per_minute"`
		Available *int64 `json:"requests_available"`
		Reserved  int64  `json:"reserved_requests"`
	} `json:"pools"`
}

func (k *conn) providerStats() providerStats {
	k.t.Helper()
	var all struct {
		Providers map[string]json.RawMessage `json:"providers"`
	}
	raw := k.ask(nil, "stats", "").fields["result"]
	if err := json.Unmarshal(raw, &all); err != nil {
		k.t.Fatal(err)
	}
	var p providerStats
	if err := json.Unmarshal(all.Providers["f"], &p); err != nil {
		k.t.Fatalf("%s: %v", raw, err)
	}
	return p
}

// untilSockets waits until so many connections are open at the server.
func untilSockets(t *testing.T, s *fakemodel.Server, want int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		_, _, open := s.SocketCounts()
		if open == want {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d connections are open, wanted %d", open, want)
		}
	}
}

// aTurn is what the model says in a turn with one call of a tool.
func aTurn(n int) []fakemodel.Reply {
	return []fakemodel.Reply{
		{Blocks: []fakemodel.Block{
			fakemodel.Thinking("hm"), fakemodel.Text(fmt.Sprintf("Looking %d.", n)),
			fakemodel.Call("echo", fmt.Sprintf(`{"text":"%d"}`, n)),
		}},
		fakemodel.Say(fmt.Sprintf("Done %d.", n)),
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses-ws", fakemodel.Options{Keep: 50, Bodies: true, Identity: func(*fakemodel.Request) string { return "" }})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "echo")
	turn := func(bot string, n int) {
		t.Helper()
		s.Queue(aTurn(n)...)
		if o := k.run(bot, fmt.Sprint(bot, n), fmt.Sprintf("prompt %d", n)); o.Status != "completed" || o.Text != fmt.Sprintf("Done %d.", n) {
			t.Fatalf("outcome %+v", o)
		}
	}
	t.Run("ready names the transport", func(t *testing.T) {
		if info := p.ready.Providers["f"]; info.Transport != "websocket" || info.Family != "responses" {
			t.Errorf("ready says %+v", info)
		}
	})
	t.Run("PV-28 two turns with a tool each go over one connection, and later inputs hold only what is new", func(t *testing.T) {
		turn("Ada", 1)
		turn("Ada", 2)
		got := overSockets(t, s)
		if len(got) != 4 {
			t.Fatalf("%d requests", len(got))
		}
		wants := []string{"prompt 1", "function_call_output", "prompt 2", "function_call_output"}
		for i, r := range got {
			if r.conn != 1 || (r.previous != "") != (i > 0) || len(r.input) != 1 || !strings.Contains(r.input[0], wants[i]) || strings.Contains(r.raw, `"stream"`) {
				t.Errorf("request %d on connection %d: %s", i+1, r.conn, r.raw)
			}
		}
		if upgrades, opened, open := s.SocketCounts(); upgrades != 1 || opened != 1 || open != 1 {
			t.Errorf("%d upgrades, %d connections, %d open", upgrades, opened, open)
		}
		if n := k.providerStats().Sockets; n == nil || *n != 1 {
			t.Errorf("stats count %v sockets", n)
		}
	})
	t.Run("PV-32 a fork opens its own connection and sends everything under its source's cache key", func(t *testing.T) {
		before := len(overSockets(t, s))
		k.ask(nil, "fork", fmt.Sprintf(`"source":"Ada","bot":"Bob","workspace":%q`, h.workspace))
		turn("Bob", 3)
		got := overSockets(t, s)[before:]
		first := overSockets(t, s)[0]
		if got[0].conn != 2 || got[0].previous != "" || len(got[0].input) != 13 || got[0].cacheKey != first.cacheKey {
			t.Errorf("its first request on connection %d with %d items: %s", got[0].conn, len(got[0].input), got[0].raw)
		}
		if got[1].conn != 2 || got[1].previous == "" || len(got[1].input) != 1 {
			t.Errorf("its second request %s", got[1].raw)
		}
	})
	t.Run("changed instructions send everything on the same connection", func(t *testing.T) {
		before := len(overSockets(t, s))
		k.ask(nil, "configure", `"bot":"Bob","reasoning":"low"`)
		turn("Bob", 4)
		got := overSockets(t, s)[before:]
		if got[0].conn != 2 || got[0].previous != "" || got[1].previous == "" {
			t.Errorf("requests %+v", got)
		}
	})
	t.Run("a deleted bot's connection is closed", func(t *testing.T) {
		k.ask(nil, "delete", `"bot":"Bob"`)
		untilSockets(t, s, 1)
		if n := k.providerStats().Sockets; *n != 1 {
			t.Errorf("stats count %d sockets", *n)
		}
	})
	t.Run("after a restart everything is sent anew", func(t *testing.T) {
		p.kill()
		p = h.start()
		k = p.dial()
		if n := k.providerStats().Sockets; *n != 0 {
			t.Errorf("stats count %d sockets before the first call", *n)
		}
		before := len(overSockets(t, s))
		turn("Ada", 5)
		got := overSockets(t, s)[before:]
		if got[0].conn != 3 || got[0].previous != "" || len(got[0].input) != 13 || got[1].previous == "" || len(got[1].input) != 1 {
			t.Errorf("requests %+v", got)
		}
	})
	s.Verify(t)
}

func TestSocketRefusals(t *testing.T) {
	t.Parallel()
	t.Run("PV-29 a response that the server forgot is made good within the call", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, "")
		s := h.fake("responses-ws", fakemodel.Options{Keep: 50, Bodies: true})
		s.SetSockets(fakemodel.Sockets{
			Header: http.Header{"X-Ratelimit-Limit-Requests": {"6"}, "X-Ratelimit-Remaining-Requests": {"6"}},
			Faults: map[int]fakemodel.SocketFault{4: fakemodel.NotFound},
		})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "echo")
		s.Queue(append(aTurn(1), aTurn(2)...)...)
		k.run("Ada", "r1", "one")
		if o := k.run("Ada", "r2", "two"); o.Status != "completed" || o.Text != "Done 2." {
			t.Fatalf("outcome %+v", o)
		}
		got := overSockets(t, s)
		if len(got) != 5 || got[3].previous == "" || got[4].previous != "" || got[4].conn != 1 || len(got[4].input) != 11 {
			t.Errorf("requests %+v", got)
		}
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		for _, turn := range page.Turns {
			if turn.Retries != 0 || turn.ModelRounds != 2 {
				t.Errorf("turn %+v", turn)
			}
		}
		pool := k.providerStats().Pools["Ada"]
		if pool.Limit == nil || *pool.Limit != 6 || *pool.Available > 2 || *pool.Available < 1 || pool.Reserved != 0 {
			b, _ := json.Marshal(pool)
			t.Errorf("the pool shows %s, where five of six requests are spent", b)
		}
		s.Verify(t)
	})
	t.Run("PV-30 a refused upgrade closes the pool for as long as it says", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, "")
		s := h.fake("responses-ws", fakemodel.Options{})
		s.SetSockets(fakemodel.Sockets{Refuse: []fakemodel.Reply{fakemodel.HTTPError(429, "Too fast.", "retry-after", "1")}})
		s.Queue(fakemodel.Say("hello"))
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "")
		began := time.Now()
		if o := k.run("Ada", "r1", "hi"); o.Status != "completed" || o.Text != "hello" {
			t.Fatalf("outcome %+v", o)
		}
		upgrades, opened, _ := s.SocketCounts()
		if took := time.Since(began); took < 900*time.Millisecond || upgrades != 2 || opened != 1 {
			t.Errorf("%s, %d upgrades, %d connections", took, upgrades, opened)
		}
		s.Verify(t)
	})
}

func TestSocketFailures(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.set.Limits.StallTimeoutSeconds = 1
	s := h.fake("responses-ws", fakemodel.Options{Keep: 50, Bodies: true})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell echo")
	k.follow("Ada", 0)
	request := 0
	turn := func(t *testing.T) (protocol.Turn, []line) {
		t.Helper()
		request++
		sub := k.submit("Ada", fmt.Sprint("r", request), "go", "")
		seen := k.until("turn_finished", sub.Turn)
		var page protocol.TurnPage
		k.ask(&page, "turns", fmt.Sprintf(`"bot":"Ada","after":%d`, sub.Turn-1))
		return page.Turns[0], seen
	}
	next := func(fault fakemodel.SocketFault) {
		s.SetSockets(fakemodel.Sockets{Faults: map[int]fakemodel.SocketFault{len(overSockets(t, s)) + 1: fault}})
	}
	retried := func(t *testing.T, seen []line, codes ...string) {
		t.Helper()
		var got []string
		for _, l := range seen {
			if l.str("event") == "retry" {
				got = append(got, l.str("error"))
			}
		}
		if strings.Join(got, " ") != strings.Join(codes, " ") {
			t.Errorf("retries %v, wanted %v", got, codes)
		}
	}
	t.Run("PV-75 PV-72 a cut answer is voided and made again on a new connection, half a call never runs", func(t *testing.T) {
		half := []fakemodel.Block{fakemodel.Text("half"), fakemodel.Call("shell", `{"command":"touch bad"}`)}
		s.Queue(fakemodel.Reply{Blocks: half, NoEnd: true}, fakemodel.Reply{Blocks: half, MidFrame: true}, fakemodel.Say("whole"))
		tr, seen := turn(t)
		if tr.Status != "completed" || tr.Retries != 2 {
			t.Errorf("turn %+v", tr)
		}
		retried(t, seen, "provider_stream_failed", "provider_stream_failed")
		if _, opened, _ := s.SocketCounts(); opened != 3 {
			t.Errorf("%d connections", opened)
		}
	})
	t.Run("an old connection that the server gives up is replaced", func(t *testing.T) {
		next(fakemodel.ConnectionLimit)
		s.Queue(fakemodel.Say("again"))
		tr, seen := turn(t)
		if tr.Status != "completed" {
			t.Errorf("turn %+v", tr)
		}
		retried(t, seen, "provider_socket_expired")
	})
	t.Run("a binary message ends the turn", func(t *testing.T) {
		next(fakemodel.Binary)
		_, seen := turn(t)
		var end protocol.TurnFinished
		last(seen).data(&end)
		if *end.Error != "provider_unexpected_binary" {
			t.Errorf("end %s", last(seen).raw)
		}
	})
	t.Run("an error event leaves the connection and what it remembers", func(t *testing.T) {
		s.Queue(fakemodel.Say("one"))
		turn(t)
		_, before, _ := s.SocketCounts()
		s.Queue(fakemodel.HTTPError(503, "busy"), fakemodel.Say("two"))
		tr, seen := turn(t)
		retried(t, seen, "provider_http_503")
		got := overSockets(t, s)
		if _, opened, _ := s.SocketCounts(); tr.Status != "completed" || opened != before || lastOf(got).previous == "" {
			t.Errorf("turn %+v, %d connections, then %s", tr, opened, lastOf(got).raw)
		}
	})
	t.Run("PV-27 a rate limit inside the stream parks the turn, and the connection serves on without what it remembered", func(t *testing.T) {
		_, before, _ := s.SocketCounts()
		s.Queue(fakemodel.Reply{Fail: &fakemodel.Failure{Type: "rate_limit_exceeded", Message: "Rate limit reached: try again in 0.5s."}}, fakemodel.Say("three"))
		tr, seen := turn(t)
		retried(t, seen, "provider_rate_limited")
		if _, opened, _ := s.SocketCounts(); tr.Status != "completed" || opened != before || lastOf(overSockets(t, s)).previous != "" {
			t.Errorf("turn %+v, %d connections", tr, opened)
		}
	})
	t.Run("an event after the last one closes the connection", func(t *testing.T) {
		next(fakemodel.LateEvent)
		s.Queue(fakemodel.Say("four"))
		turn(t)
		untilSockets(t, s, 0)
		s.Queue(fakemodel.Say("five"))
		if tr, seen := turn(t); tr.Status != "completed" {
			t.Errorf("turn %+v", tr)
		} else {
			retried(t, seen)
		}
	})
	t.Run("RT-75 pings alone keep an attempt for five times the bound", func(t *testing.T) {
		next(fakemodel.PingOnly)
		s.Queue(fakemodel.Say("late"))
		began := time.Now()
		tr, seen := turn(t)
		retried(t, seen, "provider_stream_stalled")
		if took := time.Since(began); tr.Status != "completed" || took < 4900*time.Millisecond {
			t.Errorf("turn %+v after %s", tr, took)
		}
	})
	t.Run("PV-65 an interrupt closes the connection at once", func(t *testing.T) {
		s.Queue(fakemodel.Deltas(1000, 20, 10*time.Millisecond))
		sub := k.submit("Ada", "cut", "go", "")
		k.until("text_delta", sub.Turn)
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, sub.Turn))
		untilSockets(t, s, 0)
		k.until("turn_finished", sub.Turn)
	})
	s.Verify(t)
}

func lastOf(list []socketRequest) socketRequest { return list[len(list)-1] }

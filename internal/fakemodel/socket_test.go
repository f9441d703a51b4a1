package fakemodel

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

const socketReq = `{"type":"response.create","model":"gpt-test-1","instructions":"","store":false,"include":["reasoning.encrypted_content"],"tools":[],"input":[`

// openSocket connects as the product does; edit may break that.
func openSocket(t *testing.T, s *Server, edit ...func(http.Header)) (*websocket.Conn, int) {
	t.Helper()
	h := http.Header{"Openai-Beta": {"responses_websockets=2026-02-06"}}
	for _, e := range edit {
		e(h)
	}
	c, r, err := websocket.Dial(t.Context(), s.URL+"/responses", &websocket.DialOptions{HTTPClient: client(t), HTTPHeader: h})
	if err != nil {
		return nil, r.StatusCode
	}
	c.SetReadLimit(1 << 20)
	t.Cleanup(func() { c.CloseNow() })
	return c, r.StatusCode
}

// ask sends one message and reads up to the event that ends the response.
func ask(t *testing.T, c *websocket.Conn, text string) (events []string) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	for {
		_, b, err := c.Read(t.Context())
		if err != nil {
			return append(events, err.Error())
		}
		events = append(events, string(b))
		for _, last := range []string{"response.completed", "response.failed", "error"} {
			if strings.HasPrefix(string(b), `{"type":"`+last+`"`) {
				return events
			}
		}
	}
}

func TestSocketConversation(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Identity: ByModel, Keep: 10, Bodies: true})
	s.Queue(Say("one"), Say("two"), HTTPError(503, "busy", "retry-after", "2"), Say("three"))
	c, _ := openSocket(t, s)
	first := ask(t, c, socketReq+sayR("hi")+`]}`)
	if len(first) != 4 || !strings.Contains(first[3], `"id":"resp_1"`) {
		t.Fatalf("got %q", first)
	}
	goOn := func(previous, text string) string {
		return strings.Replace(socketReq, `"model"`, `"previous_response_id":"`+previous+`","model"`, 1) + sayR(text) + `]}`
	}
	second := ask(t, c, goOn("resp_1", "more"))
	if !strings.Contains(second[3], `"id":"resp_2"`) {
		t.Fatalf("got %q", second)
	}
	refused := ask(t, c, goOn("resp_2", "again"))
	if want := `{"type":"error","status":503,"error":{"message":"busy"`; len(refused) != 1 || !strings.HasPrefix(refused[0], want) || !strings.Contains(refused[0], `"headers":{"retry-after":"2"}`) {
		t.Fatalf("got %q", refused)
	}
	if third := ask(t, c, goOn("resp_2", "again")); !strings.Contains(third[len(third)-1], "resp_4") {
		t.Fatalf("got %q", third)
	}
	s.Verify(t)
	if r := s.Requests(); len(r) != 4 || r[1].Items != 3 || r[3].Items != 5 {
		t.Errorf("the requests hold %d, %d items", r[1].Items, r[3].Items)
	}
	if upgrades, opened, open := s.SocketCounts(); upgrades != 1 || opened != 1 || open != 1 || len(s.SocketMessages()) != 4 {
		t.Errorf("%d upgrades, %d opened, %d open", upgrades, opened, open)
	}
}

func TestSocketViolations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reason, where string
		edit                func(http.Header)
		message             string // the second one of a conversation; resp_1 came before
	}{
		{name: "no beta header", reason: "wrong_beta", edit: func(h http.Header) { h.Del("openai-beta") }},
		{name: "a content type on an upgrade", reason: "wrong_accept", edit: func(h http.Header) { h.Set("content-type", "application/json") }},
		{name: "compression", reason: "compression_asked", edit: func(h http.Header) { h.Set("sec-websocket-extensions", "permessage-deflate") }},
		{name: "a stream field", reason: "unknown_field", where: "stream", message: strings.Replace(socketReq, `"store"`, `"stream":true,"store"`, 1) + sayR("x") + `]}`},
		{name: "another message", reason: "wrong_message", where: "type", message: `{"type":"response.cancel"}`},
		{name: "an id that it never gave", reason: "previous_response_unknown", message: strings.Replace(socketReq, `"model"`, `"previous_response_id":"resp_9","model"`, 1) + sayR("x") + `]}`},
		{name: "an empty id", reason: "previous_response_unknown", message: strings.Replace(socketReq, `"model"`, `"previous_response_id":"","model"`, 1) + sayR("x") + `]}`},
		{name: "nothing new", reason: "no_items", message: strings.Replace(socketReq, `"model"`, `"previous_response_id":"resp_1","model"`, 1) + `]}`},
		{name: "what it remembers, once more", reason: "item_not_issued", message: strings.Replace(socketReq, `"model"`, `"previous_response_id":"resp_1","model"`, 1) + `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"never said"}]},` + sayR("x") + `]}`},
		{name: "a result of no call", reason: "tool_result_unknown", message: strings.Replace(socketReq, `"model"`, `"previous_response_id":"resp_1","model"`, 1) + `{"type":"function_call_output","call_id":"call_1","output":"x"}]}`},
		{name: "a history that leaves out what was said", reason: "history_not_continued", message: socketReq + sayR("x") + `]}`},
		{name: "a field of another API", reason: "unknown_field", where: "temperature", message: strings.Replace(socketReq, `"store"`, `"temperature":1,"store"`, 1) + sayR("x") + `]}`},
		{name: "a session that is not the cache key's", reason: "wrong_session_id", edit: func(h http.Header) { h.Set("session-id", "a") }, message: strings.Replace(socketReq, `"input"`, `"prompt_cache_key":"b","input"`, 1) + sayR("x") + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Identity: ByModel})
			s.Queue(Say("one"))
			if c.edit == nil {
				c.edit = func(http.Header) {}
			}
			conn, status := openSocket(t, s, c.edit)
			if c.message == "" {
				if status != http.StatusBadRequest {
					t.Errorf("status %d", status)
				}
			} else {
				if c.reason != "wrong_session_id" {
					ask(t, conn, socketReq+sayR("hi")+`]}`)
				}
				got := ask(t, conn, c.message)
				if len(got) != 1 || !strings.HasPrefix(got[0], `{"type":"error","status":400,`) {
					t.Errorf("got %q", got)
				}
			}
			if v := s.Violations(); len(v) != 1 || v[0].Reason != c.reason || c.where != "" && v[0].Where != c.where {
				t.Errorf("violations %+v", v)
			}
		})
	}
	t.Run("an id of another connection", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{})
		s.Queue(Say("one"), Say("two"))
		a, _ := openSocket(t, s)
		b, _ := openSocket(t, s)
		ask(t, a, socketReq+sayR("hi")+`]}`)
		ask(t, b, strings.Replace(socketReq, `"model"`, `"previous_response_id":"resp_1","model"`, 1)+sayR("x")+`]}`)
		if v := s.Violations(); len(v) != 1 || v[0].Reason != "previous_response_unknown" {
			t.Errorf("violations %+v", v)
		}
	})
}

func TestSocketFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		set   Sockets
		reply Reply
		last  string // a part of the last event
	}{
		{"a forgotten response", Sockets{Faults: map[int]SocketFault{1: NotFound}}, Reply{}, "previous_response_not_found"},
		{"an old connection", Sockets{Faults: map[int]SocketFault{1: ConnectionLimit}}, Reply{}, "websocket_connection_limit_reached"},
		{"a cut answer", Sockets{}, Reply{Blocks: []Block{Text("half")}, NoEnd: true}, "failed to"},
		{"a failure inside", Sockets{}, Reply{Fail: &Failure{Type: "server_error", Message: "oops"}}, "response.failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{})
			s.SetSockets(c.set)
			if len(c.set.Faults) == 0 {
				s.Queue(c.reply)
			}
			conn, _ := openSocket(t, s)
			got := ask(t, conn, socketReq+sayR("hi")+`]}`)
			if last := got[len(got)-1]; !strings.Contains(last, c.last) {
				t.Errorf("got %q", got)
			}
			s.Verify(t)
		})
	}
	t.Run("a refused upgrade", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{})
		s.SetSockets(Sockets{Refuse: []Reply{HTTPError(429, "slow")}, Header: http.Header{"X-A": {"b"}}})
		if _, status := openSocket(t, s); status != 429 {
			t.Errorf("status %d", status)
		}
		if c, status := openSocket(t, s); c == nil || status != http.StatusSwitchingProtocols {
			t.Errorf("status %d", status)
		}
		upgrades, opened, _ := s.SocketCounts()
		if got := fmt.Sprint(upgrades, opened); got != "2 1" {
			t.Errorf("counts %s", got)
		}
	})
}

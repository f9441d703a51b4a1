package fakemodel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agent/internal/model"

	"github.com/google/go-cmp/cmp"
)

// bodyOf is a request of family with these items and, for identity, a model.
func bodyOf(family model.Family, name string, items ...string) string {
	list := strings.Join(items, ",")
	if family == resp {
		return `{"model":"` + name + `","instructions":"","stream":true,"store":false,"include":["reasoning.encrypted_content"],"tools":[],"input":[` + list + `]}`
	}
	return `{"model":"` + name + `","max_tokens":1000,"stream":true,"messages":[` + list + `]}`
}

func sayOf(family model.Family, text string) string {
	if family == resp {
		return sayR(text)
	}
	return say(text)
}

func resultOf(family model.Family, id, out string) string {
	if family == resp {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"` + out + `"}`
	}
	return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"` + out + `"}]}`
}

// assemble is a small client: the items that a stream says are to be stored.
func assemble(t *testing.T, family model.Family, sse string) []string {
	t.Helper()
	if family == resp {
		var items []string
		for _, d := range data(sse) {
			var e struct {
				Type string          `json:"type"`
				Item json.RawMessage `json:"item"`
			}
			if err := json.Unmarshal([]byte(d), &e); err != nil {
				t.Fatalf("%v in %s", err, d)
			}
			if e.Type == "response.output_item.done" {
				items = append(items, string(e.Item))
			}
		}
		return items
	}
	type event struct {
		Type  string
		Index int
		Block json.RawMessage `json:"content_block"`
		Delta map[string]string
	}
	var blocks []map[string]any
	var raw []json.RawMessage
	inputs := map[int]string{}
	for _, d := range data(sse) {
		var e event
		if strings.Contains(d, `"message_`) {
			continue
		}
		if err := json.Unmarshal([]byte(d), &e); err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		switch e.Type {
		case "content_block_start":
			var b map[string]any
			if err := json.Unmarshal(e.Block, &b); err != nil {
				t.Fatal(err)
			}
			blocks, raw = append(blocks, b), append(raw, e.Block)
		case "content_block_delta":
			for _, field := range []string{"text", "thinking", "signature"} {
				if v, ok := e.Delta[field]; ok {
					blocks[e.Index][field] = blocks[e.Index][field].(string) + v
				}
			}
			inputs[e.Index] += e.Delta["partial_json"]
		}
	}
	content := make([]any, len(blocks))
	for i, b := range blocks {
		switch b["type"] {
		case "tool_use":
			b["input"] = json.RawMessage(inputs[i])
			fallthrough
		case "text", "thinking":
			content[i] = b
		default:
			content[i] = raw[i] // kept as it came
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{"role": "assistant", "content": content}); err != nil {
		t.Fatal(err)
	}
	return []string{strings.TrimSpace(out.String())}
}

// callIDs finds the ids of the calls in items.
func callIDs(items []string) []string {
	var ids []string
	for _, item := range items {
		for _, mark := range []string{`"call_id":"`, `"id":"toolu_`} {
			parts := strings.Split(item, mark)
			for _, p := range parts[1:] {
				id, _, _ := strings.Cut(p, `"`)
				if strings.HasPrefix(mark, `"id"`) {
					id = "toolu_" + id
				}
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, family := range []model.Family{anth, resp} {
		t.Run(string(family)+" an answer comes back and the next one is given", func(t *testing.T) {
			t.Parallel()
			run := func() string {
				s := start(t, Options{Identity: ByModel, Keep: 9})
				s.Queue(
					Reply{Blocks: []Block{Thinking("Use <ls> & é"), Text("Looking at <this>.\n"), Call("shell", `{"command":"ls"}`), Call("shell", `{"command":"é"}`)}, DeltaSize: 3},
					Reply{Blocks: []Block{Redacted(), Text("Done.")}, Usage: &Usage{Input: 132, Cached: 100, CacheWrite: 20, Output: 31, Reasoning: 9}},
					Say("Bye."))
				items := []string{sayOf(family, "go")}
				first := good(t, s, family, bodyOf(family, "m", items...))
				items = append(items, assemble(t, family, first)...)
				ids := callIDs(items)
				if len(ids) != 2 || ids[0] == ids[1] {
					t.Fatalf("ids %q", ids)
				}
				items = append(items, resultOf(family, ids[0], "a"), resultOf(family, ids[1], "b"))
				second := good(t, s, family, bodyOf(family, "m", items...))
				want := `"cache_read_input_tokens":100,"cache_creation_input_tokens":20`
				if family == resp {
					want = `"usage":{"input_tokens":132,"input_tokens_details":{"cached_tokens":100,"cache_write_tokens":20},"output_tokens":31,"output_tokens_details":{"reasoning_tokens":9},"total_tokens":163}`
				}
				if !strings.Contains(second, want) {
					t.Errorf("usage in %s", second)
				}
				items = append(items, assemble(t, family, second)...)
				refusedEnd := bodyOf(family, "m", items...)
				refused(t, s, family, refusedEnd, "ends_with_assistant")
				items = append(items, sayOf(family, "more"))
				good(t, s, family, bodyOf(family, "m", items...))
				if st := s.Stats(); st.Completed != 3 || st.Requests != 3 || st.Open != 0 && st.MaxOpen != 1 {
					t.Errorf("stats %+v", st)
				}
				return first + second
			}
			if diff := cmp.Diff(run(), run()); diff != "" {
				t.Errorf("two runs differ: %s", diff)
			}
		})

		t.Run(string(family)+" PV-71 broken arguments come back as an object", func(t *testing.T) {
			t.Parallel()
			for _, args := range []string{"", "null", "[]", `{"a":`, "{\"a\":\"\xff\"}", `"x"`, `{} {}`} {
				s := start(t, Options{Identity: ByModel})
				s.Queue(Say("", Call("shell", args)), Say("Done."))
				out := good(t, s, family, bodyOf(family, "m", sayOf(family, "go")))
				id := ""
				for _, d := range data(out) {
					if ids := callIDs([]string{d}); len(ids) > 0 {
						id = ids[0]
					}
				}
				var item string
				if family == anth {
					item = `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"shell","input":{}}]}`
				} else {
					item = `{"type":"function_call","id":"fc_1_0","call_id":"` + id + `","name":"shell","arguments":"{}","status":"completed"}`
				}
				good(t, s, family, bodyOf(family, "m", sayOf(family, "go"), item, resultOf(family, id, "bad")))
				s.Verify(t)
			}
		})

		t.Run(string(family)+" PV-70 repeated and empty ids come back as the client's own", func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Identity: ByModel})
			s.Queue(Say("", CallID("x1", "shell", "{}"), CallID("x1", "shell", "{}"), CallID("", "shell", "{}")), Say("Done."))
			good(t, s, family, bodyOf(family, "m", sayOf(family, "go")))
			build := func(ids ...string) []string {
				items := []string{sayOf(family, "go")}
				var blocks []string
				for i, id := range ids {
					if family == anth {
						blocks = append(blocks, `{"type":"tool_use","id":"`+id+`","name":"shell","input":{}}`)
						continue
					}
					items = append(items, fmt.Sprintf(`{"type":"function_call","id":"fc_1_%d","call_id":"%s","name":"shell","arguments":"{}","status":"completed"}`, i, id))
				}
				if family == anth {
					items = append(items, `{"role":"assistant","content":[`+strings.Join(blocks, ",")+`]}`)
				}
				for _, id := range ids {
					items = append(items, resultOf(family, id, "r"))
				}
				return items
			}
			refused(t, s, family, bodyOf(family, "m", build("x1", "x1", "x2")...), "duplicate_call_id")
			refused(t, s, family, bodyOf(family, "m", build("x1", "x2", "call_0123456789ab")...), "item_changed")
			refused(t, s, family, bodyOf(family, "m", build("x9", "call_0123456789aa", "call_0123456789ab")...), "item_changed")
			good(t, s, family, bodyOf(family, "m", build("x1", "call_0123456789aa", "call_0123456789ab")...))
		})

		t.Run(string(family)+" a window may leave out the beginning where that is allowed", func(t *testing.T) {
			t.Parallel()
			for _, window := range []bool{true, false} {
				s := start(t, Options{Window: window})
				s.Queue(Reply{Blocks: []Block{Thinking("t"), Text("One.")}}, Say("Two."), Say("Three."))
				u1, u2 := sayOf(family, "1"), sayOf(family, "2")
				one := assemble(t, family, good(t, s, family, bodyOf(family, "m", u1)))
				all := slices.Concat([]string{u1}, one, []string{u2})
				two := assemble(t, family, good(t, s, family, bodyOf(family, "m", all...)))
				late := bodyOf(family, "m", slices.Concat([]string{u2}, two, []string{sayOf(family, "3")})...)
				if !window {
					refused(t, s, family, late, "history_changed")
					continue
				}
				good(t, s, family, late)
				s.Verify(t)
			}
		})

		t.Run(string(family)+" another server's answers are accepted where that is allowed", func(t *testing.T) {
			t.Parallel()
			a, b := start(t, Options{}), start(t, Options{Foreign: true})
			a.Queue(Reply{Blocks: []Block{Thinking("t"), Text("One.")}})
			b.Queue(Say("Two."))
			items := append([]string{sayOf(family, "1")}, assemble(t, family, good(t, a, family, bodyOf(family, "m", sayOf(family, "1"))))...)
			good(t, b, family, bodyOf(family, "m", append(items, sayOf(family, "2"))...))
			b.Verify(t)
		})

		t.Run(string(family)+" deltas have the stated count and size", func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{})
			s.Queue(Deltas(20, 256, time.Microsecond))
			out := good(t, s, family, bodyOf(family, "m", sayOf(family, "go")))
			n := 0
			for _, d := range data(out) {
				if strings.Contains(d, "text_delta") || strings.Contains(d, "output_text.delta") {
					n++
					if got := strings.Count(d, "x"); got < 255 {
						t.Errorf("%d bytes in %s", got, d)
					}
				}
			}
			if n != 20 {
				t.Errorf("%d deltas", n)
			}
		})
	}

	t.Run("thinking may be left out of a window, and then it all goes", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Window: true})
		s.Queue(Reply{Blocks: []Block{Thinking("t"), Text("One.")}}, Say("Two."))
		good(t, s, anth, bodyOf(anth, "m", say("1")))
		good(t, s, anth, bodyOf(anth, "m", say("1"), `{"role":"assistant","content":[{"type":"text","text":"One."}]}`, say("2")))
		s.Verify(t)
	})

	t.Run("after a pause the answer may stand last", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Identity: ByModel})
		search := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`
		s.Queue(Reply{Blocks: []Block{Raw(search)}, Stop: "pause_turn"}, Say("Found."))
		good(t, s, anth, bodyOf(anth, "m", say("1")))
		good(t, s, anth, bodyOf(anth, "m", say("1"), `{"role":"assistant","content":[`+search+`]}`))
		s.Verify(t)
	})
}

func TestBadEnds(t *testing.T) {
	t.Parallel()
	for _, family := range []model.Family{anth, resp} {
		text := Text("some words that are streamed")
		end := map[model.Family]string{anth: "message_stop", resp: "response.completed"}[family]
		rows := []struct {
			name  string
			reply Reply
			err   error // of the body
			has   string
			lacks string
			tail  string
		}{
			{"without its last event", Reply{NoEnd: true}, nil, "some words", end, "\n\n"},
			{"in the middle of its last frame", Reply{MidFrame: true}, nil, "some words", "}\n\n}", ""},
			{"at a byte", Reply{CutAt: 90}, nil, "event: ", "some words", ""},
			{"at a byte with a broken connection", Reply{CutAt: 90, Abort: true}, io.ErrUnexpectedEOF, "event: ", "some words", ""},
			{"with an error event", Reply{Fail: &Failure{"overloaded_error", "Too much."}}, nil, "Too much.", end, "\n\n"},
			{"incomplete", Reply{Stop: "max_tokens"}, nil, `"max_tokens"`, "response.completed", "\n\n"},
		}
		for _, row := range rows {
			t.Run(string(family)+" a stream ends "+row.name, func(t *testing.T) {
				t.Parallel()
				s := start(t, Options{Identity: ByModel})
				row.reply.Blocks = []Block{text}
				s.Queue(row.reply, Say("Fine."))
				body := bodyOf(family, "m", sayOf(family, "go"))
				r := post(t, s, family, body)
				out, err := io.ReadAll(r.Body)
				if !errors.Is(err, row.err) || !strings.Contains(string(out), row.has) || strings.Contains(string(out), row.lacks) || !strings.HasSuffix(string(out), row.tail) {
					t.Errorf("error %v, body %s", err, out)
				}
				if row.reply.CutAt > 0 && len(out) != 90 {
					t.Errorf("%d bytes", len(out))
				}
				if row.reply.MidFrame && strings.HasSuffix(string(out), "\n\n") {
					t.Errorf("the frame is whole: %s", out)
				}
				// Nothing of it counts as said: the same request is asked again.
				good(t, s, family, body)
				s.Verify(t)
			})
		}
		t.Run(string(family)+" an HTTP error has the family's body and its headers", func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Identity: ByModel})
			s.Queue(HTTPError(429, "Slow down.", "retry-after", "2"), Reply{Status: 503, Body: "busy", Header: http.Header{"Content-Type": {"text/plain"}}}, Say("x"))
			body := bodyOf(family, "m", sayOf(family, "go"))
			r := post(t, s, family, body)
			want := `{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."},"request_id":"req_1"}`
			if family == resp {
				want = `{"error":{"message":"Slow down.","type":"requests","code":"rate_limit_exceeded","param":null}}`
			}
			if got := read(t, r); r.StatusCode != 429 || r.Header.Get("retry-after") != "2" || got != want || r.Header.Get("content-type") != "application/json" {
				t.Errorf("%d %v %s", r.StatusCode, r.Header, got)
			}
			if r := post(t, s, family, body); r.StatusCode != 503 || read(t, r) != "busy" || r.Header.Get("content-type") != "text/plain" {
				t.Errorf("%d %v", r.StatusCode, r.Header)
			}
			good(t, s, family, body)
			s.Verify(t)
		})
		t.Run(string(family)+" keep-alives come before the answer", func(t *testing.T) {
			t.Parallel()
			for _, comments := range []bool{true, false} {
				s := start(t, Options{})
				s.Queue(Reply{Blocks: []Block{text}, KeepAlive: time.Millisecond, KeepAliveFor: 5 * time.Millisecond, Comments: comments})
				out := good(t, s, family, bodyOf(family, "m", sayOf(family, "go")))
				mark := map[model.Family]string{anth: `data: {"type":"ping"}`, resp: `data: {"type":"keepalive"}`}[family]
				if comments {
					mark = ": keep-alive\n\n"
				}
				if strings.Count(out, mark) != 5 || !strings.Contains(out, end) {
					t.Errorf("stream %s", out)
				}
			}
		})
	}
	t.Run("a raw body and another content type", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{})
		s.Queue(Reply{Raw: []byte("<html>"), ContentType: "text/html"}, Reply{Raw: []byte("data: x"), ContentType: "-"})
		if r := post(t, s, anth, bodyOf(anth, "m", say("x"))); r.Header.Get("content-type") != "text/html" || read(t, r) != "<html>" {
			t.Error(r.Header)
		}
		if r := post(t, s, anth, bodyOf(anth, "m", say("x"))); len(r.Header.Values("content-type")) != 0 || read(t, r) != "data: x" {
			t.Error(r.Header)
		}
	})
}

func TestStallAndLeave(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Identity: ByModel})
	s.Queue(Reply{Blocks: []Block{Text("Half")}, Stall: true}, Say("Whole."))
	body := bodyOf(anth, "m", say("go"))
	ctx, leave := context.WithCancel(t.Context())
	r, err := client(t).Do(newRequest(ctx, s, anth, body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "Half") {
	}
	leave()
	// The next request of the conversation is no overlap: the first was left.
	good(t, s, anth, body)
	s.Verify(t)
}

func TestBrokenUploadIsNoViolation(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	s := start(t, Options{})
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nanthropic-version: 2023-06-01\r\ncontent-length: 5000\r\n\r\n{\"model\":\"m")
	go func() { defer close(gone); io.Copy(io.Discard, conn) }()
	conn.(*net.TCPConn).CloseWrite()
	<-gone // the server has ended the connection
	conn.Close()
	if st := s.Stats(); st.Abandoned != 1 || st.Violations != 0 {
		t.Errorf("stats %+v", st)
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Identity: ByModel})
	gate := NewGate()
	s.Queue(Reply{Blocks: []Block{Text("x")}, Finish: gate}, Say("other"))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer gate.Release()
	wg.Go(func() { post(t, s, anth, bodyOf(anth, "a", say("go"))) })
	if !gate.Await(t.Context().Done(), 1) {
		t.Fatal("the first request did not come")
	}
	good(t, s, anth, bodyOf(anth, "b", say("go"))) // another bot
	refused(t, s, anth, bodyOf(anth, "a", say("go")), "overlap")
}

func TestGatesAndGauges(t *testing.T) {
	t.Parallel()
	const n = 32
	gate := NewGate()
	var hooked sync.Map
	s := start(t, Options{
		Identity: ByModel,
		Keep:     4,
		Hook:     func(r *Request) { hooked.Store(r.Model, r.Prompt) },
		Handler: func(r *Request) Reply {
			reply := Say("for " + r.Prompt)
			reply.Headers = gate
			return reply
		},
	})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("m%d", i)
			out := read(t, post(t, s, resp, bodyOf(resp, name, sayR("p-"+name))))
			if !strings.Contains(out, "for p-"+name) {
				t.Errorf("%s got %s", name, out)
			}
		})
	}
	if !gate.Await(t.Context().Done(), n) {
		t.Fatal("not all requests came")
	}
	if st := s.Stats(); st.Open != n || st.Completed != 0 {
		t.Errorf("stats %+v", st)
	}
	gate.Release()
	gate.Release()
	wg.Wait()
	if st := s.Stats(); st.MaxOpen != n || st.Completed != n || st.Requests != n {
		t.Errorf("stats %+v", st)
	}
	if got := s.Requests(); len(got) != 4 {
		t.Errorf("%d requests kept", len(got))
	}
	if v, _ := hooked.Load("m7"); v != "p-m7" {
		t.Errorf("the hook saw %v", v)
	}
	s.Verify(t)
}

// fails collects what Verify says.
type fails struct{ lines []string }

func (*fails) Helper() {}
func (f *fails) Errorf(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

func TestVerifyFails(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	refused(t, s, anth, bodyOf(anth, "m", say("x")), "no_reply")
	s.Queue(Say("x"))
	var f fails
	s.Verify(&f)
	want := []string{"model server: request 1: no_reply: the queue is empty and there is no handler", "model server: 1 replies of the queue were never asked for"}
	if diff := cmp.Diff(want, f.lines); diff != "" {
		t.Error(diff)
	}
}

func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{true, false} {
		s := start(t, Options{Identity: ByModel, Lost: lost})
		s.Queue(Say("One."), Say("Two."))
		good(t, s, anth, bodyOf(anth, "m", say("1")))
		next := bodyOf(anth, "m", say("1"), say("2"))
		if !lost {
			refused(t, s, anth, next, "answer_lost")
			continue
		}
		good(t, s, anth, next)
		s.Verify(t)
	}
}

func TestCloseEndsHeldReplies(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	gate := NewGate()
	s.Queue(Reply{Start: gate})
	r := post(t, s, anth, bodyOf(anth, "m", say("x")))
	gate.Await(t.Context().Done(), 1)
	s.Close()
	if b, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(b), "message_stop") {
		t.Errorf("the stream was finished: %s", b)
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.com:0", "x"} {
		if s, err := New(Options{Addr: addr}); err == nil {
			s.Close()
			t.Errorf("listens on %s", addr)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Models: []string{"a", "b"}})
	for version, want := range map[string]string{
		"":           `{"object":"list","data":[{"object":"model","id":"a"},{"object":"model","id":"b"}]}`,
		"2023-06-01": `{"has_more":false,"data":[{"type":"model","id":"a"},{"type":"model","id":"b"}],"first_id":"a","last_id":"b"}`,
	} {
		r, _ := http.NewRequest("GET", s.URL+"/models", nil)
		if version != "" {
			r.Header.Set("anthropic-version", version)
		}
		got, err := client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if out := read(t, got); out != want {
			t.Errorf("models %s", out)
		}
		got.Body.Close()
	}
}

// manyItems is the body of a request of n small items, made as it is read. At
// its end it takes the size of the live heap.
type manyItems struct {
	n, i int
	rest []byte
	live uint64
}

func (m *manyItems) Read(p []byte) (int, error) {
	if len(m.rest) == 0 {
		switch {
		case m.i == m.n:
			runtime.GC()
			var st runtime.MemStats
			runtime.ReadMemStats(&st)
			m.live = st.HeapAlloc
			m.rest = []byte("]}")
		case m.i > m.n:
			return 0, io.EOF
		default:
			m.rest = []byte("," + say(strings.Repeat("x", 240)))
			if m.i == 0 {
				m.rest = []byte(`{"model":"m","max_tokens":9,"stream":true,"messages":[` + say("x"))
			}
		}
		m.i++
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func TestLongHistoryIsNotHeld(t *testing.T) {
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	body := &manyItems{n: 20_000}
	req := &Request{Family: anth}
	if err := newChecker(newHistory(), &Options{}, req).body(body); err != nil {
		t.Fatal(err)
	}
	if req.Items != 20_000 {
		t.Errorf("%d items", req.Items)
	}
	if grown := int64(body.live) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("6 MB passed and %d bytes were held", grown)
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	in, commands := io.Pipe()
	answers, out := io.Pipe()
	code := make(chan int)
	go func() {
		code <- run([]string{"-identity", "model", "-deltas", "2", "-size", "4", "-gap", "1us", "-tool", "echo", "-arguments", `{"text":"x"}`, "-fail-every", "3", "-fail-status", "529"}, in, out, io.Discard)
	}()
	lines := json.NewDecoder(answers)
	next := func() (m map[string]any) {
		t.Helper()
		if err := lines.Decode(&m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	s := &Server{URL: next()["url"].(string)}
	ask := func(command string) map[string]any {
		t.Helper()
		fmt.Fprintln(commands, command)
		return next()
	}
	items := []string{sayR("go")}
	items = append(items, assemble(t, resp, good(t, s, resp, bodyOf(resp, "m", items...)))...)
	ids := callIDs(items)
	if len(ids) != 1 {
		t.Fatalf("no call in %q", items)
	}
	items = append(items, resultOf(resp, ids[0], "x"))

	ask("hold")
	done := make(chan string)
	go func() { done <- good(t, s, resp, bodyOf(resp, "m", items...)) }()
	for ask("hold")["held"].(float64) == 0 {
		runtime.Gosched()
	}
	if st := ask("stats"); st["open"].(float64) != 1 || st["completed"].(float64) != 1 {
		t.Errorf("stats %v", st)
	}
	if got := ask("release"); got["released"].(float64) != 1 {
		t.Errorf("released %v", got)
	}
	if text := <-done; !strings.Contains(text, `"delta":"xxx "`) {
		t.Errorf("reply %s", text)
	}
	if r := post(t, s, resp, bodyOf(resp, "m2", sayR("go"))); r.StatusCode != 529 {
		t.Errorf("third request: %d", r.StatusCode)
	}
	if r := post(t, s, resp, bodyOf(resp, "m", sayR("new"))); r.StatusCode != 400 {
		t.Errorf("a conversation that starts over: %d", r.StatusCode)
	}
	fmt.Fprintln(commands, "violations")
	var v []Violation
	if err := lines.Decode(&v); err != nil || len(v) != 1 || v[0].Reason != "history_not_continued" {
		t.Errorf("violations %v, %v", v, err)
	}
	if got := ask("x y"); got["error"] != "unknown command x y" {
		t.Errorf("answer %v", got)
	}
	commands.Close()
	if got := <-code; got != 1 {
		t.Errorf("exit code %d", got)
	}
	for _, args := range [][]string{{"-identity", "x"}, {"-arguments", "[]"}, {"-size", "0"}, {"more"}, {"-nope"}, {"-addr", "0.0.0.0:0"}} {
		if got := run(args, strings.NewReader(""), io.Discard, io.Discard); got != 2 {
			t.Errorf("%q: exit code %d", args, got)
		}
	}
}

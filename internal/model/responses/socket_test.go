package responses

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"agent/internal/model"
	"agent/internal/model/modeltest"
	"agent/internal/model/wire"
)

// script is a WebSocket's fixture: the heads of both sides and the messages.
type script struct {
	request  *http.Request
	response *http.Response
	messages []string // each with its direction, "> " or "< "
}

func readScript(t testing.TB, name string) script {
	t.Helper()
	parts := strings.SplitN(string(modeltest.File(t, name)), "\n\n", 3)
	head := func(i int) *bufio.Reader {
		return bufio.NewReader(strings.NewReader(strings.ReplaceAll(parts[i], "\n", "\r\n") + "\r\n\r\n"))
	}
	var s script
	var err error
	if s.request, err = http.ReadRequest(head(0)); err != nil {
		t.Fatal(err)
	}
	if s.response, err = http.ReadResponse(head(1), s.request); err != nil {
		t.Fatal(err)
	}
	s.messages = strings.Split(strings.TrimSpace(parts[2]), "\n")
	return s
}

// before answers the upgrade as the script does, and says what was not as there.
func (s *script) before(t testing.TB) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		got := r.Header.Clone()
		for name, want := range s.request.Header {
			if name != "Sec-Websocket-Key" && !slices.Equal(got[name], want) {
				t.Errorf("the header %s is %q", name, got[name])
			}
			got.Del(name)
		}
		got.Del("User-Agent")
		if len(got) > 0 || r.Method != s.request.Method || r.URL.Path != s.request.URL.Path {
			t.Errorf("%s %s with %v besides", r.Method, r.URL, got)
		}
		for name, values := range s.response.Header {
			if strings.HasPrefix(name, "X-") {
				w.Header()[name] = values
			}
		}
		return false
	}
}

// play speaks the server's part; send sends one message.
func (s *script) play(t testing.TB, send func(ctx context.Context, c *websocket.Conn, text string) error) func(context.Context, *websocket.Conn, int) {
	return func(ctx context.Context, c *websocket.Conn, _ int) {
		for _, line := range s.messages {
			want, ours := strings.CutPrefix(line, "> ")
			if !ours {
				if err := send(ctx, c, line[2:]); err != nil {
					return
				}
				continue
			}
			_, got, err := c.Read(ctx)
			if err != nil {
				return
			}
			if string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
		c.Read(ctx)
	}
}

func inOne(ctx context.Context, c *websocket.Conn, text string) error {
	return c.Write(ctx, websocket.MessageText, []byte(text))
}

// inFrames sends a message in frames that end at the places given.
func inFrames(ends func(length int) []int) func(context.Context, *websocket.Conn, string) error {
	return func(ctx context.Context, c *websocket.Conn, text string) error {
		w, err := c.Writer(ctx, websocket.MessageText)
		if err != nil {
			return err
		}
		from := 0
		for _, end := range ends(len(text)) {
			if _, err := w.Write([]byte(text[from:end])); err != nil {
				return err
			}
			from = end
		}
		if _, err := w.Write([]byte(text[from:])); err != nil {
			return err
		}
		return w.Close()
	}
}

// bot is a conversation as the engine keeps one.
type bot struct {
	id    int64
	p     *Provider
	req   model.Request // what every request has
	ahead [][]byte
	ids   []int64
	items [][]byte
	forms map[int64]uint64
	next  int64
}

func newBot(p *Provider, id int64) *bot {
	b := &bot{id: id, p: p, req: *modeltest.Request("gpt-test-1"), forms: map[int64]uint64{}, next: 100 * id}
	b.req.BotID, b.req.CacheKey, b.req.Stall = id, "st1-7", time.Minute
	return b
}

func (b *bot) add(items ...[]byte) (ids []int64) {
	for _, item := range items {
		b.next++
		ids = append(ids, b.next)
		b.ids, b.items = append(b.ids, b.next), append(b.items, item)
	}
	return ids
}

func (b *bot) say(text string) { b.add(Codec{}.User(text, nil)) }

func (b *bot) request() *model.Request {
	req := b.req
	req.Items = modeltest.Items(append(slices.Clone(b.ahead), b.items...)...)
	req.Chain = &model.Chain{
		Ahead: b.ahead, Nodes: len(b.ids),
		Node:  func(i int) (int64, uint64) { return b.ids[i], b.forms[b.ids[i]] },
		After: func(n int) model.Items { return modeltest.Items(b.items[n:]...) },
	}
	return &req
}

// call makes one call and, if it succeeds, records its items.
func (b *bot) call(t testing.TB) (modeltest.Outcome, model.Report) {
	t.Helper()
	var o modeltest.Outcome
	var rep model.Report
	o.Completion, o.Err = b.p.Complete(t.Context(), b.request(), func(e model.Event) { o.Events = append(o.Events, e) }, &rep)
	o.Usage = rep.Usage
	if o.Err == nil {
		b.p.Recorded(b.id, b.add(o.Completion.Items...))
	}
	return o, rep
}

const socketSpec = "openai=responses-ws,http://127.0.0.1:9000/v1,K"

func socketProvider(t testing.TB, s *modeltest.SocketServer) *Provider {
	t.Helper()
	p, err := New("openai", modeltest.Spec(t, socketSpec, s.Env), s.Env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var socketKey = map[string]string{"K": "KEY"}

func TestSocketFixture(t *testing.T) {
	t.Parallel()
	fixture := readScript(t, "W1.ws")
	run := func(t *testing.T, send func(context.Context, *websocket.Conn, string) error) {
		synctest.Test(t, func(t *testing.T) {
			s := modeltest.ServeSockets(t, socketKey, fixture.before(t), fixture.play(t, send))
			defer s.Close()
			p := socketProvider(t, s)
			b := newBot(p, 7)
			b.say("hi")
			o, rep := b.call(t)
			if o.Err != nil || len(o.Completion.Calls) != 1 || o.Completion.Calls[0].ID != "call_1" || o.Usage.Input != 10 || !rep.Dispatched || rep.SentMS == 0 {
				t.Fatalf("%+v, %+v", o, rep)
			}
			if want := `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"echo","arguments":"{\"text\":\"hi\"}"}`; items(o.Completion) != want {
				t.Errorf("stored %s", items(o.Completion))
			}
			b.add(Codec{}.Result(model.Result{CallID: "call_1", Output: "hi"}))
			o, _ = b.call(t)
			if o.Err != nil || modeltest.Text(o.Events, model.EventText) != "done" || o.Usage.Input != 20 || o.Usage.Output != 2 {
				t.Fatalf("%+v", o)
			}
			opened, _ := s.Counts()
			if got := string(p.Status()); opened != 1 || !strings.Contains(got, `"requests_per_minute":6,"requests_available":3`) || !strings.HasSuffix(got, `,"sockets":1}`) {
				t.Errorf("%d connections, %s", opened, got)
			}
		})
	}
	run(t, inOne)
	run(t, inFrames(func(n int) (ends []int) {
		for i := 1; i < n; i++ {
			ends = append(ends, i)
		}
		return ends
	}))
	for at := range 260 { // longer than every message
		run(t, inFrames(func(n int) []int { return []int{min(at, n)} }))
	}
}

// says is an answer of one text, as messages.
func says(id, word string) []string {
	return []string{
		textDelta(word), done(message(word)),
		fmt.Sprintf(`{"type":"response.completed","response":{"id":%q,"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}}`, id),
	}
}

// sentRequest is what a server was sent.
type sentRequest struct {
	Previous string            `json:"previous_response_id"`
	Input    []json.RawMessage `json:"input"`
}

// talking starts a server whose answers come from answer, by the number of the
// request, and a bubble around it. Requests are gathered.
func talking(t *testing.T, answer func(n int) []string, run func(t *testing.T, s *modeltest.SocketServer, p *Provider, got *[]sentRequest)) {
	synctest.Test(t, func(t *testing.T) {
		var got []sentRequest
		s := modeltest.ServeSockets(t, socketKey, nil, func(ctx context.Context, c *websocket.Conn, _ int) {
			for {
				_, b, err := c.Read(ctx)
				if err != nil {
					return
				}
				var r sentRequest
				if err := json.Unmarshal(b, &r); err != nil {
					t.Error(err)
				}
				got = append(got, r)
				for _, m := range answer(len(got)) {
					if inOne(ctx, c, m) != nil {
						return
					}
				}
			}
		})
		defer s.Close()
		run(t, s, socketProvider(t, s), &got)
	})
}

func simple(n int) []string { return says(fmt.Sprintf("resp_%d", n), fmt.Sprintf("answer %d", n)) }

func TestContinuing(t *testing.T) {
	t.Parallel()
	// Each row changes something between two calls; after says what the second
	// sends: "previous_response_id items".
	for _, c := range []struct {
		name   string
		change func(t *testing.T, s *modeltest.SocketServer, p *Provider, b *bot)
		sends  string
	}{
		{"nothing changes", func(*testing.T, *modeltest.SocketServer, *Provider, *bot) {}, "resp_1 1"},
		{"PV-31 60 s pass", func(t *testing.T, s *modeltest.SocketServer, p *Provider, b *bot) {
			time.Sleep(60*time.Second - time.Millisecond)
			if !strings.HasSuffix(string(p.Status()), `"sockets":1}`) {
				t.Errorf("before: %s", p.Status())
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if _, open := s.Counts(); open != 0 || !strings.HasSuffix(string(p.Status()), `"sockets":0}`) {
				t.Errorf("%d open at the server, %s", open, p.Status())
			}
		}, " 3"},
		{"other instructions", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) { b.req.Instructions = "x" }, " 3"},
		{"another level", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) { b.req.Reasoning = "low" }, " 3"},
		{"other tools", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) {
			b.req.Tools = Codec{}.Tools([]model.ToolDef{shell})
		}, " 3"},
		{"another model", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) { b.req.Model = "gpt-test-2" }, " 3"},
		{"something ahead of the window", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) {
			b.ahead = [][]byte{Codec{}.User("note", nil)}
		}, " 4"},
		{"the window begins later", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) {
			b.ids, b.items = b.ids[1:], b.items[1:]
		}, " 2"},
		{"an item is sent in another form", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) { b.forms[b.ids[0]] = 1 }, " 3"},
		{"another item is in the place of one", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) { b.ids[1] = 999 }, " 3"},
		{"what is recorded is not all of the response", func(_ *testing.T, _ *modeltest.SocketServer, p *Provider, b *bot) {
			p.Recorded(b.id, []int64{5, 6})
		}, " 3"},
		{"the bot is deleted and its id comes again", func(_ *testing.T, _ *modeltest.SocketServer, p *Provider, b *bot) { p.Forget(b.id) }, " 3"},
		{"another bot with the same items", func(_ *testing.T, _ *modeltest.SocketServer, _ *Provider, b *bot) { b.id = 8; b.req.BotID = 8 }, " 3"},
		{"a call aside from the history", func(t *testing.T, s *modeltest.SocketServer, p *Provider, b *bot) {
			req := b.request()
			req.Chain, req.CacheKey = nil, "st1-7-summary"
			if _, err := p.Complete(t.Context(), req, func(model.Event) {}, &model.Report{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if opened, open := s.Counts(); opened != 2 || open != 1 {
				t.Errorf("%d made, %d open", opened, open)
			}
		}, "resp_1 1"},
		{"a call that was not sent", func(t *testing.T, _ *modeltest.SocketServer, p *Provider, b *bot) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := p.Complete(ctx, b.request(), func(model.Event) {}, &model.Report{}); err != context.Canceled {
				t.Errorf("got %v", err)
			}
		}, "resp_1 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			talking(t, simple, func(t *testing.T, s *modeltest.SocketServer, p *Provider, got *[]sentRequest) {
				b := newBot(p, 7)
				b.say("one")
				if o, _ := b.call(t); o.Err != nil {
					t.Fatal(o.Err)
				}
				c.change(t, s, p, b)
				b.say("two")
				if o, _ := b.call(t); o.Err != nil {
					t.Fatal(o.Err)
				}
				last := (*got)[len(*got)-1]
				if sends := fmt.Sprint(last.Previous, " ", len(last.Input)); sends != c.sends {
					t.Errorf("it sent %q, wanted %q", sends, c.sends)
				}
			})
		})
	}
	t.Run("until the items are recorded nothing is gone on from", func(t *testing.T) {
		talking(t, simple, func(t *testing.T, _ *modeltest.SocketServer, p *Provider, got *[]sentRequest) {
			b := newBot(p, 7)
			b.say("one")
			c, err := p.Complete(t.Context(), b.request(), func(model.Event) {}, &model.Report{})
			if err != nil {
				t.Fatal(err)
			}
			b.add(c.Items...)
			b.say("two")
			b.call(t)
			if (*got)[1].Previous != "" || len((*got)[1].Input) != 3 {
				t.Errorf("sent %+v", (*got)[1])
			}
		})
	})
	for _, c := range []struct{ name, item string }{
		{"a call whose arguments were mended", callItem("call_1", "[1]")},
		{"a call whose id is one of ours", callItem("", "{}")},
		{"half a surrogate pair", message(`a`)[:len(message(`a`))-1] + `,"x":"\ud800"}`},
	} {
		t.Run("what is stored otherwise than it came is not gone on from: "+c.name, func(t *testing.T) {
			talking(t, func(n int) []string {
				if n > 1 {
					return simple(n)
				}
				return []string{done(c.item), `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`}
			}, func(t *testing.T, _ *modeltest.SocketServer, p *Provider, got *[]sentRequest) {
				b := newBot(p, 7)
				b.say("one")
				if o, _ := b.call(t); o.Err != nil {
					t.Fatal(o.Err)
				}
				b.say("two")
				b.call(t)
				if (*got)[1].Previous != "" || len((*got)[1].Input) != 3 {
					t.Errorf("sent %+v", (*got)[1])
				}
			})
		})
	}
}

func TestSocketErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, event  string
		code, detail string
		retry        time.Duration
		opened       int    // connections after one more call
		then         string // what that sends
		blocked      bool   // the pool is closed
	}{
		{"too fast, with headers", `{"type":"error","status":429,"error":{"code":"other"},"headers":{"retry-after":"2","x-ratelimit-limit-requests":10}}`, "provider_http_429", "", 2 * time.Second, 1, "resp_1 1", true},
		{"the other word for the status", `{"type":"error","status_code":429,"error":{"code":"other","message":"try again in 3s"}}`, "provider_http_429", "try again", 3 * time.Second, 1, "resp_1 1", true},
		{"a rate limit by name", `{"type":"error","status":429,"error":{"code":"rate_limit_exceeded","message":"Rate limit reached: try again in 1.5s."}}`, "provider_rate_limited", "Rate limit", 1500 * time.Millisecond, 1, "resp_1 1", true},
		{"overloaded", `{"type":"error","status":529,"error":{"message":"busy, try again in 2s"}}`, "provider_http_529", "busy", 2 * time.Second, 1, "resp_1 1", true},
		{"a server's fault", `{"type":"error","status":500,"error":{"code":"server_error","message":"oops"}}`, "provider_http_500", "oops", 0, 1, "resp_1 1", false},
		{"quota", `{"type":"error","status":429,"error":{"code":"insufficient_quota","message":"pay"},"headers":{"retry-after":"9"}}`, "provider_quota_exhausted", "pay", 0, 1, "resp_1 1", false},
		{"the plan's", `{"type":"error","status":429,"error":{"type":"usage_limit_reached","message":"wait"}}`, "provider_quota_exhausted", "wait", 0, 1, "resp_1 1", false},
		{"too long", `{"type":"error","status":400,"error":{"code":"context_length_exceeded","message":"long"}}`, "provider_context_exceeded", "long", 0, 1, "resp_1 1", false},
		{"refused", `{"type":"error","status":400,"error":{"code":"invalid_value","message":"no"}}`, "provider_http_400", "no", 0, 1, "resp_1 1", false},
		{"without a status", `{"type":"error","code":"x","message":"no"}`, "provider_incomplete", "no", 0, 1, "resp_1 1", false},
		{"the connection is too old", `{"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached","message":"Reconnect."}}`, "provider_socket_expired", "Reconnect", 0, 2, " 3", false},
		{"failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oops"}}}`, "provider_http_503", "oops", 0, 1, " 3", false},
		{"incomplete", `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`, "provider_incomplete", "max_output_tokens", 0, 1, " 3", false},
		{"no JSON", `{`, "invalid_provider_response", "", 0, 2, " 3", false},
		{"an unknown item", done(`{"type":"computer_call"}`), "unsupported_output_item", "computer_call", 0, 2, " 3", false},
		{"another text than was streamed", textDelta("x") + "\n" + strings.Join(says("resp_2", "y")[1:], "\n"), "stream_terminal_mismatch", "", 0, 1, " 3", false},
		{"an unknown previous response after text", textDelta("x") + "\n" + `{"type":"error","status":400,"error":{"code":"previous_response_not_found","message":"gone"}}`, "provider_http_400", "gone", 0, 1, "resp_1 1", false},
		{"ChatGPT's figures are passed over", `{"type":"codex.rate_limits","plan_type":"plus"}` + "\n" + strings.Join(says("resp_2", "y"), "\n"), "", "", 0, 1, "resp_2 1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			talking(t, func(n int) []string {
				if n == 2 {
					return strings.Split(c.event, "\n")
				}
				return simple(n)
			}, func(t *testing.T, s *modeltest.SocketServer, p *Provider, got *[]sentRequest) {
				b := newBot(p, 7)
				b.say("one")
				if o, _ := b.call(t); o.Err != nil {
					t.Fatal(o.Err)
				}
				b.say("two")
				o, rep := b.call(t)
				if c.code == "" && o.Err != nil {
					t.Fatal(o.Err)
				} else if c.code != "" {
					code, detail := modeltest.Code(o.Err)
					if code != c.code || !strings.Contains(detail, c.detail) || !rep.Dispatched {
						t.Fatalf("got %v", o.Err)
					}
					if retry := o.Err.(*model.Error).Retry; retry != c.retry {
						t.Errorf("the delay is %s", retry)
					}
				} else {
					b.say("three")
				}
				if blocked := !strings.Contains(string(p.Status()), `"blocked_ms":0`); blocked != c.blocked {
					t.Errorf("%s", p.Status())
				}
				time.Sleep(10 * time.Second)
				if o, _ := b.call(t); o.Err != nil {
					t.Fatal(o.Err)
				}
				last := (*got)[len(*got)-1]
				opened, _ := s.Counts()
				if sends := fmt.Sprint(last.Previous, " ", len(last.Input)); sends != c.then || opened != c.opened {
					t.Errorf("then it sent %q over connection %d", sends, opened)
				}
			})
		})
	}
	t.Run("a server that forgets everything is sent everything, and not asked for ever", func(t *testing.T) {
		gone := []string{`{"type":"error","status":400,"error":{"code":"previous_response_not_found","message":"gone"}}`}
		talking(t, func(n int) []string {
			if n == 1 {
				return simple(n)
			}
			return gone
		}, func(t *testing.T, _ *modeltest.SocketServer, p *Provider, got *[]sentRequest) {
			b := newBot(p, 7)
			b.say("one")
			b.call(t)
			b.say("two")
			o, _ := b.call(t)
			if code, _ := modeltest.Code(o.Err); code != "provider_http_400" || len(*got) != 3 {
				t.Errorf("%v after %d requests", o.Err, len(*got))
			}
		})
	})
}

func TestLengthOverASocket(t *testing.T) {
	t.Parallel()
	for _, by := range []int64{-1, 1} {
		talking(t, simple, func(t *testing.T, _ *modeltest.SocketServer, p *Provider, got *[]sentRequest) {
			b := newBot(p, 7)
			b.say("one")
			req := b.request()
			req.Items.Bytes += by
			_, err := p.Complete(t.Context(), req, func(model.Event) {}, &model.Report{})
			if code, _ := modeltest.Code(err); code != "store_row_invalid" || len(*got) != 0 {
				t.Errorf("%v after %d requests", err, len(*got))
			}
		})
	}
}

// FuzzMessages reads any messages as the answer to one request, a line each.
func FuzzMessages(f *testing.F) {
	for _, line := range readScript(f, "W1.ws").messages {
		if text, ok := strings.CutPrefix(line, "< "); ok {
			f.Add([]byte(text), true)
		}
	}
	f.Add([]byte(strings.Join(says("resp_1", "a"), "\n")), true)
	f.Add([]byte(`{"type":"error","status":429,"error":{"code":"other"},"headers":{"retry-after":"2","x-ratelimit-limit-requests":10}}`), false)
	f.Add([]byte(`{"type":"error","status":1e9,"headers":[1],"error":"x"}`), false)
	f.Add([]byte(`{"type":"error","type":5,"status_code":"429","headers":{"a b":"\u0000"}}`), true)
	f.Fuzz(func(t *testing.T, stream []byte, continues bool) {
		var rep model.Report
		req := modeltest.Request("gpt-test-1")
		d := &talk{decoder: newDecoder(req, &rep), memory: &memory{id: "resp_0"}, continues: continues}
		for line := range bytes.Lines(stream) {
			outOfStep(line)
			_, err := d.Event(line, func(model.Event) {})
			if err == nil && !d.Ended() {
				continue
			}
			if err == nil {
				c, ferr := d.finish(func(model.Event) {})
				if (ferr == nil) != (c != nil) {
					t.Fatalf("%+v, %v", c, ferr)
				}
				d.remember(c)
				return
			}
			fate, header := d.Fate(err)
			limits(header)
			if fate == wire.Resend && (!continues || d.memory.id != "") {
				t.Fatal("a whole request is sent again")
			}
			var fail *model.Error
			if e, ok := err.(*model.Error); !ok || e.Code == "" || e.Retry < 0 || e.Retry > time.Hour {
				t.Fatalf("%v, %+v", err, fail)
			}
			return
		}
	})
}

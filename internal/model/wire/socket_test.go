package wire_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"agent/internal/model"
	"agent/internal/model/modeltest"
	"agent/internal/model/pace"
	"agent/internal/model/wire"
)

// words is a Talk that sends one message and whose events are words.
type words struct {
	lines
	ask  string
	fate wire.Fate
	sent int
}

func (w *words) Request(*wire.Socket) ([]byte, error) {
	w.sent++
	return []byte(w.ask), nil
}

func (w *words) Event(data []byte, sink func(model.Event)) (bool, error) {
	if word := string(data); strings.HasPrefix(word, "fail") {
		return true, model.Errorf("provider_http_400", "%s", word)
	}
	return w.lines.Event(data, sink)
}

func (w *words) Fate(error) (wire.Fate, http.Header) { return w.fate, nil }

func socketClient(t testing.TB, env wire.Env, url string) (*wire.Client, *wire.Sockets) {
	t.Helper()
	spec := modeltest.Spec(t, "p=responses-ws,"+url+",KEY", env)
	c, err := wire.NewClient(spec, env, wire.Family{
		Authorize: func(h http.Header, key string) { h.Set("authorization", "Bearer "+key) },
		Limits: func(h http.Header) (l pace.Limits) {
			if n, ok := wire.Figure(h.Get("x-limit")); ok {
				l[pace.Requests].Limit, l[pace.Requests].Remaining, l[pace.Requests].HasRemaining = n, n, true
			}
			return l
		},
		Code:      func(int, wire.Failure) string { return "" },
		RequestID: "x-request-id",
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, c.Sockets(func(b []byte) bool { return string(b) == "stray" })
}

var socketVars = map[string]string{"KEY": "the-key-of-the-test"}

const socketURL = "http://127.0.0.1:1/v1"

func socketCall(bot int64) *wire.SocketCall {
	return &wire.SocketCall{Path: "/responses", Header: http.Header{"X-Beta": {"b"}}, Bot: bot, Pool: "m", Bytes: 100, Stall: time.Minute}
}

// say makes one call that says a word, and gives its error.
func say(t testing.TB, k *wire.Sockets, bot int64, word string) error {
	t.Helper()
	var rep model.Report
	return k.Stream(t.Context(), socketCall(bot), &words{ask: word}, func(model.Event) {}, &rep)
}

// echoes answers every message with its words, then "end".
func echoes(ctx context.Context, c *websocket.Conn, _ int) {
	for {
		_, text, err := c.Read(ctx)
		if err != nil {
			return
		}
		for word := range strings.FieldsSeq(string(text) + " end") {
			if c.Write(ctx, websocket.MessageText, []byte(word)) != nil {
				return
			}
		}
	}
}

func open(k *wire.Sockets) string {
	raw := string(k.Status())
	return raw[strings.Index(raw, `"sockets"`):]
}

func TestSocketsAreKept(t *testing.T) {
	t.Parallel()
	bubble := func(name string, run func(t *testing.T, s *modeltest.SocketServer, c *wire.Client, k *wire.Sockets)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := modeltest.ServeSockets(t, socketVars, nil, echoes)
				defer s.Close()
				c, k := socketClient(t, s.Env, socketURL)
				run(t, s, c, k)
			})
		})
	}
	holds := func(t *testing.T, s *modeltest.SocketServer, k *wire.Sockets, opened, isOpen int) {
		t.Helper()
		synctest.Wait()
		if o, n := s.Counts(); o != opened || n != isOpen || open(k) != fmt.Sprintf(`"sockets":%d}`, isOpen) {
			t.Fatalf("%d made, %d open and %s; wanted %d and %d", o, n, open(k), opened, isOpen)
		}
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bubble("one for a bot, closed when it was idle for 60 s", func(t *testing.T, s *modeltest.SocketServer, _ *wire.Client, k *wire.Sockets) {
		for range 5 {
			must(t, say(t, k, 7, "a b c"))
			time.Sleep(59 * time.Second)
		}
		holds(t, s, k, 1, 1)
		must(t, say(t, k, 8, "a"))
		time.Sleep(time.Second / 2)
		holds(t, s, k, 2, 2)
		must(t, say(t, k, 7, "a"))
		time.Sleep(59*time.Second + 3*time.Second/4)
		holds(t, s, k, 2, 1) // the eighth's is gone, a sweep at most 5 s late
		time.Sleep(6 * time.Second)
		holds(t, s, k, 2, 0)
		must(t, say(t, k, 7, "a"))
		holds(t, s, k, 3, 1)
	})
	bubble("none is used past 55 minutes", func(t *testing.T, s *modeltest.SocketServer, _ *wire.Client, k *wire.Sockets) {
		for began := time.Now(); time.Since(began) < 55*time.Minute; time.Sleep(50 * time.Second) {
			must(t, say(t, k, 7, "a"))
		}
		holds(t, s, k, 1, 0) // closed as it became too old
		must(t, say(t, k, 7, "a"))
		holds(t, s, k, 2, 1)
	})
	bubble("a call without a bot has one of its own", func(t *testing.T, s *modeltest.SocketServer, _ *wire.Client, k *wire.Sockets) {
		must(t, say(t, k, 0, "a"))
		must(t, say(t, k, 0, "a"))
		holds(t, s, k, 2, 0)
	})
	bubble("of more than 1,024 that wait the one that waits longest is closed", func(t *testing.T, s *modeltest.SocketServer, _ *wire.Client, k *wire.Sockets) {
		for bot := range int64(1024) {
			must(t, say(t, k, bot+1, ""))
			time.Sleep(time.Millisecond)
		}
		holds(t, s, k, 1024, 1024)
		must(t, say(t, k, 1, ""))
		must(t, say(t, k, 2000, ""))
		holds(t, s, k, 1025, 1024)
		if k.Of(1) == nil || k.Of(2) != nil {
			t.Error("another than the second bot's was closed")
		}
	})
	bubble("a deleted bot's is closed", func(t *testing.T, s *modeltest.SocketServer, _ *wire.Client, k *wire.Sockets) {
		must(t, say(t, k, 7, "a"))
		k.Forget(8)
		holds(t, s, k, 1, 1)
		k.Forget(7)
		holds(t, s, k, 1, 0)
	})
	bubble("another credential closes it", func(t *testing.T, s *modeltest.SocketServer, c *wire.Client, k *wire.Sockets) {
		must(t, say(t, k, 7, "a"))
		c.SetCredential(token("second"))
		must(t, say(t, k, 7, "a"))
		holds(t, s, k, 2, 1)
	})
	bubble("a message that nobody waits for closes it where it is out of step", func(t *testing.T, s *modeltest.SocketServer, _ *wire.Client, k *wire.Sockets) {
		must(t, say(t, k, 7, "a end other"))
		holds(t, s, k, 1, 1)
		must(t, say(t, k, 7, "a end stray"))
		holds(t, s, k, 1, 0)
	})
	bubble("a refused request leaves it, another failure does not", func(t *testing.T, s *modeltest.SocketServer, _ *wire.Client, k *wire.Sockets) {
		var rep model.Report
		err := k.Stream(t.Context(), socketCall(7), &words{ask: "fail", fate: wire.Keep}, func(model.Event) {}, &rep)
		if code, _ := modeltest.Code(err); code != "provider_http_400" {
			t.Errorf("got %v", err)
		}
		holds(t, s, k, 1, 1)
		k.Stream(t.Context(), socketCall(7), &words{ask: "fail", fate: wire.Close}, func(model.Event) {}, &rep)
		holds(t, s, k, 1, 0)
	})
}

// token is a credential of a fixed value.
type token string

func (c token) Authorize(_ context.Context, req *http.Request) error {
	req.Header.Set("authorization", string(c))
	return nil
}

func (c token) Refused(_ context.Context, req *http.Request, status int) *model.Error {
	if req.Header.Get("authorization") != string(c) {
		return nil
	}
	return model.Errorf("provider_login_refreshed", "status %d", status)
}

func TestRefusedUpgrades(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string, header ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			w.Write([]byte(body))
			return true
		}
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		code   string
		detail string
	}{
		{"too fast", answer(429, `{"error":{"message":"Slow down, the-key-of-the-test."}}`, "retry-after", "2", "x-limit", "5"), "provider_http_429", "Slow down, [REDACTED]."},
		{"a long body says nothing", answer(500, strings.Repeat("x", 5000)), "provider_http_500", ""},
		{"a redirect is not followed", answer(307, "", "location", "http://127.0.0.1:2/v1/responses"), "provider_http_307", ""},
		{"no upgrade", answer(200, "hello"), "provider_http_200", "hello"},
		{"not signed in", answer(401, "who?"), "provider_http_401", "who?"},
		{
			"a 101 that is none", func(w http.ResponseWriter, r *http.Request) bool {
				c, buf, _ := http.NewResponseController(w).Hijack()
				defer c.Close()
				buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n")
				buf.Flush()
				return true
			}, "provider_connection_handshake", "the server's 101 opens no WebSocket: WebSocket protocol violation: invalid Sec-WebSocket-Accept",
		},
		{
			"no answer", func(w http.ResponseWriter, r *http.Request) bool {
				<-r.Context().Done()
				return true
			}, "provider_connection_timeout", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := modeltest.ServeSockets(t, socketVars, c.answer, echoes)
				defer s.Close()
				_, k := socketClient(t, s.Env, socketURL)
				began := time.Now()
				err := say(t, k, 7, "a")
				code, detail := modeltest.Code(err)
				if code != c.code || !strings.Contains(detail, c.detail) || c.detail == "" && c.code == "provider_http_500" && detail != "" {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took > 11*time.Second {
					t.Errorf("it took %s", took)
				}
				if open(k) != `"sockets":0}` {
					t.Error(open(k))
				}
				var e *model.Error
				if c.code == "provider_http_429" && (!errors.As(err, &e) || e.Retry != 2*time.Second || !strings.Contains(string(k.Status()), `"requests_per_minute":5`)) {
					t.Errorf("%+v, %s", e, k.Status())
				}
			})
		})
	}
	t.Run("the credential says what a 401 means", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := modeltest.ServeSockets(t, socketVars, answer(401, ""), echoes)
			defer s.Close()
			c, k := socketClient(t, s.Env, socketURL)
			c.SetCredential(token("tok"))
			if code, _ := modeltest.Code(say(t, k, 7, "a")); code != "provider_login_refreshed" {
				t.Errorf("got %s", code)
			}
		})
	})
	t.Run("one that never came to the provider costs nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := modeltest.ServeSockets(t, socketVars, func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("x-limit", "1")
				return false
			}, func(ctx context.Context, c *websocket.Conn, n int) { echoes(ctx, c, n) })
			_, k := socketClient(t, s.Env, socketURL)
			if err := say(t, k, 0, "a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // the one request a minute is there again
			s.Close()
			code, _ := modeltest.Code(say(t, k, 0, "a"))
			if code != "provider_connection_failed" || !strings.Contains(string(k.Status()), `"requests_available":1,`) {
				t.Errorf("%s; %s", code, k.Status())
			}
		})
	})
}

// raw plays a connection by its bytes.
func raw(play func(ctx context.Context, write func([]byte))) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		c, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return true
		}
		defer c.Close()
		fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			modeltest.Accept(r.Header.Get("sec-websocket-key")))
		buf.Flush()
		play(r.Context(), func(b []byte) { c.Write(b) })
		return true
	}
}

// memory is what the program has on its heap.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys)
}

func frameHeader(length uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{0x81, 127}, length)
}

func TestSocketBounds(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, before func(http.ResponseWriter, *http.Request) bool, play func(context.Context, *websocket.Conn, int), stall time.Duration) (model.Report, time.Duration, error) {
		t.Helper()
		var err error
		var rep model.Report
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			s := modeltest.ServeSockets(t, socketVars, before, play)
			defer s.Close()
			_, k := socketClient(t, s.Env, socketURL)
			call := socketCall(7)
			call.Stall = stall
			began := time.Now()
			err = k.Stream(t.Context(), call, &words{ask: strings.Repeat("ask ", 1<<16)}, func(model.Event) {}, &rep)
			took = time.Since(began)
			synctest.Wait()
			if open(k) != `"sockets":0}` {
				t.Error(open(k))
			}
		})
		return rep, took, err
	}
	after := func(play func(ctx context.Context, c *websocket.Conn)) func(context.Context, *websocket.Conn, int) {
		return func(ctx context.Context, c *websocket.Conn, _ int) {
			if _, _, err := c.Read(ctx); err == nil {
				play(ctx, c)
			}
		}
	}
	wants := func(t *testing.T, err error, code, detail string) {
		t.Helper()
		if c, d := modeltest.Code(err); c != code || !strings.Contains(d, detail) {
			t.Errorf("got %v", err)
		}
	}
	t.Run("a server that does not read", func(t *testing.T) {
		rep, took, err := run(t, raw(func(ctx context.Context, _ func([]byte)) { time.Sleep(time.Hour) }), nil, time.Minute)
		wants(t, err, "provider_stream_stalled", "no byte")
		if rep.Dispatched || took != time.Minute {
			t.Errorf("dispatched %v after %s", rep.Dispatched, took)
		}
	})
	t.Run("a server that says nothing", func(t *testing.T) {
		rep, took, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) { c.Read(ctx) }), time.Minute)
		wants(t, err, "provider_stream_stalled", "no byte")
		if !rep.Dispatched || took != time.Minute {
			t.Errorf("dispatched %v after %s", rep.Dispatched, took)
		}
	})
	t.Run("a server that drips the bytes of a message", func(t *testing.T) {
		_, took, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) {
			w, err := c.Writer(ctx, websocket.MessageText)
			for err == nil {
				_, err = w.Write(bytes.Repeat([]byte("x"), 5000))
				time.Sleep(10 * time.Second)
			}
		}), time.Minute)
		wants(t, err, "provider_stream_stalled", "only keep-alives")
		if took != 5*time.Minute {
			t.Errorf("after %s", took)
		}
	})
	t.Run("a server that only pings", func(t *testing.T) {
		_, took, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) {
			for closed := c.CloseRead(ctx); c.Ping(closed) == nil; {
				time.Sleep(10 * time.Second)
			}
		}), time.Minute)
		wants(t, err, "provider_stream_stalled", "only keep-alives")
		if took != 5*time.Minute {
			t.Errorf("after %s", took)
		}
	})
	t.Run("a message above 16 MiB", func(t *testing.T) {
		_, _, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) {
			c.Write(ctx, websocket.MessageText, bytes.Repeat([]byte("x"), 16<<20+1))
		}), time.Minute)
		wants(t, err, "provider_response_limit", "16 MiB")
	})
	t.Run("messages above 16 MiB together", func(t *testing.T) {
		_, _, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) {
			for c.Write(ctx, websocket.MessageText, bytes.Repeat([]byte("x"), 1<<20)) == nil {
			}
		}), time.Minute)
		wants(t, err, "provider_response_limit", "16 MiB")
	})
	t.Run("a claimed length is not believed", func(t *testing.T) {
		before := memory()
		_, _, err := run(t, raw(func(ctx context.Context, write func([]byte)) {
			write(frameHeader(1 << 40))
			time.Sleep(time.Hour)
		}), nil, time.Minute)
		wants(t, err, "provider_stream_stalled", "no byte")
		if grown := memory() - before; grown > 8<<20 {
			t.Errorf("%d bytes were taken", grown)
		}
	})
	t.Run("a binary message", func(t *testing.T) {
		_, _, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) { c.Write(ctx, websocket.MessageBinary, []byte("end")) }), time.Minute)
		wants(t, err, "provider_unexpected_binary", "3 bytes")
	})
	t.Run("a connection that is closed in the middle", func(t *testing.T) {
		_, _, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) {
			c.Write(ctx, websocket.MessageText, []byte("half"))
			c.Close(websocket.StatusGoingAway, "bye")
		}), time.Minute)
		wants(t, err, "missing_completion", "status 1001")
	})
	t.Run("one that is cut in the middle", func(t *testing.T) {
		_, _, err := run(t, nil, after(func(ctx context.Context, c *websocket.Conn) { c.Write(ctx, websocket.MessageText, []byte("half")) }), time.Minute)
		wants(t, err, "provider_stream_failed", "")
	})
}

func TestSocketCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := modeltest.ServeSockets(t, socketVars, nil, func(ctx context.Context, c *websocket.Conn, _ int) {
			c.Read(ctx)
			c.Write(ctx, websocket.MessageText, []byte("half"))
			c.Read(ctx)
		})
		defer s.Close()
		_, k := socketClient(t, s.Env, socketURL)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		began := time.Now()
		err := k.Stream(ctx, socketCall(7), &words{ask: "a"}, func(model.Event) { cancel(why) }, &model.Report{})
		synctest.Wait()
		if _, isOpen := s.Counts(); err != why || isOpen != 0 || time.Since(began) > 0 {
			t.Errorf("%v, %d open after %s", err, isOpen, time.Since(began))
		}
	})
}

func TestSocketReservations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var k *wire.Sockets
		var during atomic.Value
		s := modeltest.ServeSockets(t, socketVars, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("x-limit", "6")
			return false
		}, func(ctx context.Context, c *websocket.Conn, n int) { echoes(ctx, c, n) })
		defer s.Close()
		_, k = socketClient(t, s.Env, socketURL)
		err := k.Stream(t.Context(), socketCall(7), &words{ask: "a"}, func(model.Event) { during.Store(string(k.Status())) }, &model.Report{})
		if err != nil {
			t.Fatal(err)
		}
		// The headers of the 101 seed the pool and settle nothing.
		if got := during.Load().(string); !strings.Contains(got, `"requests_per_minute":6,"requests_available":5`) || !strings.Contains(got, `"reserved_requests":1`) {
			t.Errorf("during the call %s", got)
		}
		if got := string(k.Status()); !strings.Contains(got, `"requests_available":5`) || !strings.Contains(got, `"reserved_requests":0`) {
			t.Errorf("after it %s", got)
		}
		// A request that is sent again takes a reservation of its own.
		talk := &again{words{ask: "fail", fate: wire.Resend}}
		if err := k.Stream(t.Context(), socketCall(7), talk, func(model.Event) {}, &model.Report{}); err != nil || talk.sent != 2 {
			t.Errorf("%v after %d", err, talk.sent)
		}
		if got := string(k.Status()); !strings.Contains(got, `"requests_available":3`) || !strings.Contains(got, `"reserved_requests":0`) {
			t.Errorf("%s", got)
		}
		if opened, _ := s.Counts(); opened != 1 {
			t.Errorf("%d connections", opened)
		}
	})
}

// again is words that asks otherwise the second time.
type again struct{ words }

func (a *again) Request(s *wire.Socket) ([]byte, error) {
	b, err := a.words.Request(s)
	a.ask = "good"
	return b, err
}

func TestSocketPermits(t *testing.T) {
	t.Parallel()
	t.Run("the startup permit is held until the first event", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := modeltest.ServeSockets(t, socketVars, nil, func(ctx context.Context, c *websocket.Conn, _ int) {
				c.Read(ctx)
				c.Ping(c.CloseRead(ctx)) // no event
				time.Sleep(10 * time.Second)
				c.Write(ctx, websocket.MessageText, []byte("first"))
				time.Sleep(20 * time.Second)
				c.Write(ctx, websocket.MessageText, []byte("end"))
			})
			defer s.Close()
			dial := s.Env.Transports
			s.Env.Transports = wire.NewTransports(wire.Options{Connecting: 1, Dial: s.Dial()})
			defer dial.CloseIdle()
			_, k := socketClient(t, s.Env, socketURL)
			took := make(chan time.Duration, 2)
			began := time.Now()
			for bot := range int64(2) {
				go func() {
					if err := say(t, k, bot+1, "a"); err != nil {
						t.Error(err)
					}
					took <- time.Since(began)
				}()
			}
			if a, b := <-took, <-took; a != 30*time.Second || b != 40*time.Second {
				t.Errorf("%s and %s", a, b)
			}
			s.Env.Transports.CloseIdle()
		})
	})
}

func TestSocketOverTLS(t *testing.T) {
	t.Parallel()
	protocol := make(chan string, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol <- r.TLS.NegotiatedProtocol
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		echoes(r.Context(), c, 1)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	env := modeltest.Env(t, socketVars)
	env.Transports = wire.NewTransports(wire.Options{RootCAs: roots})
	t.Cleanup(env.Transports.CloseIdle)
	_, k := socketClient(t, env, s.URL+"/v1")
	if err := say(t, k, 7, "a"); err != nil {
		t.Fatal(err)
	}
	if got := <-protocol; got != "http/1.1" {
		t.Errorf("ALPN chose %q", got)
	}
}

func TestSocketThroughAProxy(t *testing.T) {
	t.Parallel()
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, nil); err == nil {
			defer c.CloseNow()
			echoes(r.Context(), c, 1)
		}
	}))
	t.Cleanup(target.Close)
	asked := make(chan string, 2)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		to, err := net.Dial("tcp", target.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		from, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		buf.WriteString("HTTP/1.1 200 OK\r\n\r\n")
		buf.Flush()
		go func() {
			io.Copy(to, buf)
			to.Close()
		}()
		io.Copy(from, to)
	}))
	t.Cleanup(proxy.Close)
	roots := x509.NewCertPool()
	roots.AddCert(target.Certificate())
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := modeltest.Env(t, socketVars)
	env.Transports = wire.NewTransports(wire.Options{RootCAs: roots, Proxy: http.ProxyURL(at)})
	t.Cleanup(env.Transports.CloseIdle)
	_, k := socketClient(t, env, "https://example.com/v1") // a name of the test's certificate
	if err := say(t, k, 7, "a b"); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "CONNECT example.com:443" {
		t.Errorf("the proxy was asked for %s", got)
	}
}

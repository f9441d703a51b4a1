package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"agent/internal/model"
	"agent/internal/model/modeltest"
	"agent/internal/model/pace"
	"agent/internal/model/wire"
)

// lines is a decoder whose frames are words: "ping" is a keep-alive, "end"
// ends, everything else is text.
type lines struct {
	ended bool
}

func (l *lines) Ended() bool { return l.ended }

func (l *lines) Event(data []byte, sink func(model.Event)) (bool, error) {
	switch word := string(data); {
	case word == "ping":
		return false, nil
	case l.ended:
		return false, model.Errorf("event_after_completion", "")
	case word == "end":
		l.ended = true
	default:
		sink(model.Event{Kind: model.EventText, Text: word})
	}
	return true, nil
}

func client(t *testing.T, base string) *wire.Client {
	t.Helper()
	env := modeltest.Env(t, map[string]string{"KEY": "sk-0123456789abcdef"})
	return clientOf(t, base, env)
}

func clientOf(t *testing.T, base string, env wire.Env) *wire.Client {
	t.Helper()
	c, err := wire.NewClient(modeltest.Spec(t, "p=responses,"+base+",KEY", env), env, wire.Family{
		HeaderWait: wire.HeaderWait,
		Authorize:  func(h http.Header, key string) { h.Set("authorization", "Bearer "+key) },
		Limits:     func(http.Header) pace.Limits { return pace.Limits{} },
		Code:       func(int, wire.Failure) string { return "" },
		RequestID:  "x-request-id",
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func call(items model.Items) *wire.Call {
	return &wire.Call{Path: "/x", Pool: "m", Prefix: []byte(`{"input":[`), Items: items, Suffix: []byte(`]}`)}
}

// run makes one attempt and gives its events' text and its error.
func run(t *testing.T, ctx context.Context, c *wire.Client, call *wire.Call) (string, model.Report, error) {
	t.Helper()
	var text strings.Builder
	var rep model.Report
	err := c.Stream(ctx, call, &lines{}, func(e model.Event) { text.WriteString(e.Text) }, &rep)
	return text.String(), rep, err
}

func sse(words ...string) []byte {
	return []byte("data: " + strings.Join(words, "\n\ndata: ") + "\n\n")
}

func TestStream(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	item := []byte(`{"a":"<&>"}`)
	t.Run("the body is exact, and so is its length", func(t *testing.T) {
		t.Parallel()
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("x-request-id", "r-1")
			modeltest.WriteSSE(w, sse("a", "b", "end"))
		})
		text, rep, err := run(t, ctx, client(t, s.URL), call(modeltest.Items(item, item)))
		req, body := s.Request(0)
		want := `{"input":[{"a":"<&>"},{"a":"<&>"}]}`
		if err != nil || text != "ab" || string(body) != want || req.ContentLength != int64(len(want)) || len(req.TransferEncoding) > 0 {
			t.Errorf("got %q, %v, body %s of %d", text, err, body, req.ContentLength)
		}
		if !rep.Dispatched || rep.SentMS == 0 || rep.RequestID != "r-1" {
			t.Errorf("report %+v", rep)
		}
		for name, want := range map[string]string{
			"user-agent": "agent/1.2.3", "accept": "text/event-stream",
			"content-type": "application/json", "authorization": "Bearer sk-0123456789abcdef", "accept-encoding": "",
		} {
			if got := req.Header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
	t.Run("a stream holds no instructions", func(t *testing.T) {
		t.Parallel()
		streaming, goOn := make(chan struct{}), make(chan struct{})
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			modeltest.WriteSSE(w, sse("a"))
			w.(http.Flusher).Flush()
			close(streaming)
			<-goOn
			w.Write(sse("end"))
		})
		c := call(modeltest.Items(item))
		c.Prefix = bytes.Repeat([]byte(" "), 1<<20)
		held := weak.Make(&c.Prefix[0])
		ended := make(chan error, 1)
		go func() {
			_, _, err := run(t, ctx, client(t, s.URL), c)
			ended <- err
		}()
		<-streaming
		for held.Value() != nil && t.Context().Err() == nil {
			runtime.GC() // until the client has seen the headers
		}
		close(goOn)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("a store that fails in the body is its own error", func(t *testing.T) {
		t.Parallel()
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {})
		broken := errors.New("storage_error")
		items := modeltest.Items(bytes.Repeat(item, 10_000))
		open := items.Open
		items.Open = func() (io.ReadCloser, error) {
			r, err := open()
			return io.NopCloser(io.MultiReader(io.LimitReader(r, 50_000), errReader{broken})), err
		}
		if _, _, err := run(t, ctx, client(t, s.URL), call(items)); err != broken {
			t.Errorf("got %v", err)
		}
	})
	for name, off := range map[string]int64{"fewer": 1, "more": -1} {
		t.Run("items that hold "+name+" bytes than recorded are a defect, never repeated", func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {})
			items := modeltest.Items(item)
			items.Bytes += off
			_, _, err := run(t, ctx, client(t, s.URL), call(items))
			var e *model.Error
			if !errors.As(err, &e) || e.Code != "store_row_invalid" || e.Retryable() || !strings.Contains(e.Detail, name) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("PV-60 a redirect is not followed", func(t *testing.T) {
		t.Parallel()
		other := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {})
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		})
		_, _, err := run(t, ctx, client(t, s.URL), call(modeltest.Items(item)))
		if code, _ := modeltest.Code(err); code != "provider_http_307" || other.Count() != 0 {
			t.Errorf("got %v, and the other host saw %d requests", err, other.Count())
		}
	})
	t.Run("a refused connection has the system's number", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(nil)
		s.Close()
		_, rep, err := run(t, ctx, client(t, s.URL), call(modeltest.Items(item)))
		if code, _ := modeltest.Code(err); !strings.HasPrefix(code, "provider_connection_os_") || rep.Dispatched {
			t.Errorf("got %v, %+v", err, rep)
		}
	})
	t.Run("PV-59 a key in a refusal is masked", func(t *testing.T) {
		t.Parallel()
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.WriteHeader(401)
			fmt.Fprint(w, `{"error":{"message":"bad key sk-0123456789abcdef"}}`)
		})
		_, _, err := run(t, ctx, client(t, s.URL), call(modeltest.Items(item)))
		if code, detail := modeltest.Code(err); code != "provider_http_401" || detail != "bad key [REDACTED]" {
			t.Errorf("got %v", err)
		}
	})
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, contentType, body string
		text, code, detail      string
	}{
		{"the last event and the end complete", "text/event-stream", "data: a\n\ndata: end\n\n", "a", "", ""},
		{"parameters of the type do not matter", "Text/Event-Stream; charset=utf-8", "data: end\n\n", "", "", ""},
		{"PV-75 without the last event the completion is missing", "text/event-stream", "data: a\n\n", "a", "missing_completion", ""},
		{"half a frame is cut", "text/event-stream", "data: a\n\ndata: en", "a", "truncated_sse_frame", ""},
		{"an event after the last is an error", "text/event-stream", "data: end\n\ndata: a\n\n", "", "event_after_completion", ""},
		{
			"PV-62 JSON on a 200 names status, type and message", "application/json", `{"error":{"message":"no stream"}}`,
			"", "provider_expected_sse", "HTTP 200, content-type application/json: no stream",
		},
		{
			"HTML on a 200 is no stream", "text/html", "<html>" + strings.Repeat("x", 5000),
			"", "provider_expected_sse", "HTTP 200, content-type text/html",
		},
		{"no type is decoded as a stream", "", "data: a\n\ndata: end\n\n", "a", "", ""},
		{"no type and no stream says so", "", `{"error":"nope"}`, "", "provider_expected_sse", "HTTP 200, no content-type: nope"},
		{"no type and a cut stream is a cut stream", "", "data: x", "", "truncated_sse_frame", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header()["Content-Type"] = nil
				if c.contentType != "" {
					w.Header().Set("content-type", c.contentType)
				}
				io.WriteString(w, c.body)
			})
			text, rep, err := run(t, context.Background(), client(t, s.URL), call(modeltest.Items([]byte("{}"))))
			code, detail := "", ""
			if err != nil {
				code, detail = modeltest.Code(err)
			}
			if text != c.text || code != c.code || c.detail != "" && detail != c.detail || !rep.Dispatched {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

func TestAStreamLeftOpenAfterItsLastEventCompletes(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		modeltest.WriteSSE(w, sse("a", "end"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if text, _, err := run(t, context.Background(), client(t, s.URL), call(modeltest.Items([]byte("{}")))); err != nil || text != "a" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestABrokenStreamFails(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		modeltest.WriteSSE(w, sse("a"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	_, _, err := run(t, context.Background(), client(t, s.URL), call(modeltest.Items([]byte("{}"))))
	if code, _ := modeltest.Code(err); code != "provider_stream_failed" {
		t.Errorf("got %v", err)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	t.Run("PV-65 an interrupt closes the request within 100 ms and no event follows", func(t *testing.T) {
		t.Parallel()
		closed := make(chan time.Time, 1)
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			modeltest.WriteSSE(w, sse("a", "b"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			closed <- time.Now()
		})
		stop := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(context.Background())
		var text strings.Builder
		var rep model.Report
		var cancelled time.Time
		err := client(t, s.URL).Stream(ctx, call(modeltest.Items([]byte("{}"))), &lines{}, func(e model.Event) {
			text.WriteString(e.Text)
			cancelled = time.Now()
			cancel(stop)
		}, &rep)
		if err != stop || text.String() != "a" {
			t.Errorf("got %v after %q", err, text.String())
		}
		if late := (<-closed).Sub(cancelled); late > 100*time.Millisecond {
			t.Errorf("PV-65: the server saw the end %v late", late)
		}
	})
}

func TestStalledStream(t *testing.T) {
	t.Parallel()
	t.Run("PV-17 a stalled stream fails and may be tried again", func(t *testing.T) {
		t.Parallel()
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			modeltest.WriteSSE(w, sse("a"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		stalling := call(modeltest.Items([]byte("{}")))
		stalling.Stall = 50 * time.Millisecond
		_, _, err := run(t, context.Background(), client(t, s.URL), stalling)
		var e *model.Error
		if !errors.As(err, &e) || e.Code != "provider_stream_stalled" || !e.Retryable() {
			t.Errorf("got %v", err)
		}
	})
}

func TestHeaderWait(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) { <-r.Context().Done() })
	env := modeltest.Env(t, map[string]string{"KEY": "k"})
	c, err := wire.NewClient(modeltest.Spec(t, "p=responses,"+s.URL, env), env, wire.Family{
		HeaderWait: 50 * time.Millisecond,
		Limits:     func(http.Header) pace.Limits { return pace.Limits{} },
		Code:       func(int, wire.Failure) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, rep, err := run(t, context.Background(), c, call(modeltest.Items([]byte("{}"))))
	if code, _ := modeltest.Code(err); code != "provider_connection_timeout" || !rep.Dispatched {
		t.Errorf("got %v, %+v", err, rep)
	}
}

func TestClosures(t *testing.T) {
	t.Parallel()
	refuse := func(status int, header, value string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(status)
		}
	}
	for _, c := range []struct {
		name          string
		status        int
		header, value string
		code          string
		park          time.Duration
	}{
		{"a 429 closes the pool for what it names", 429, "retry-after", "2", "provider_http_429", 2 * time.Second},
		{"a 429 that names nothing closes it for 1 s", 429, "", "", "provider_http_429", time.Second},
		{"a 529 closes it", 529, "", "", "provider_http_529", time.Second},
		{"PV-76 a 503 with retry-after closes it", 503, "retry-after", "3", "provider_http_503", 3 * time.Second},
		{"a 503 without does not", 503, "", "", "provider_http_503", 0},
		{"a 500 with retry-after does not", 500, "retry-after", "3", "provider_http_500", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, refuse(c.status, c.header, c.value))
			client := client(t, s.URL)
			_, _, err := run(t, context.Background(), client, call(modeltest.Items([]byte("{}"))))
			var e *model.Error
			if !errors.As(err, &e) || e.Code != c.code || !e.Retryable() {
				t.Fatalf("got %v", err)
			}
			_, rep, err := run(t, context.Background(), client, call(modeltest.Items([]byte("{}"))))
			if c.park == 0 {
				if err == model.ErrPaced || s.Count() != 2 {
					t.Errorf("the pool closed: %v", err)
				}
				return
			}
			if err != model.ErrPaced || rep.ParkFor > c.park || rep.ParkFor < c.park-time.Second/2 || rep.Dispatched || s.Count() != 1 {
				t.Errorf("got %v, %+v, %d requests", err, rep, s.Count())
			}
		})
	}
}

// ender is a decoder that ends with [DONE], and takes a whole answer.
type ender struct {
	lines
	mute  bool // [DONE] is not enough to end it
	done  int
	whole string
}

func (e *ender) Done() { e.done++; e.ended = e.ended || !e.mute }

func (e *ender) Whole(data []byte, sink func(model.Event)) (bool, error) {
	if !bytes.HasPrefix(data, []byte("{")) {
		return false, nil
	}
	e.whole = string(data)
	return true, nil
}

func TestAStreamThatEndsWithDone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		contentType, body string
		hold              bool
		whole, code       string
		done              int
	}{
		"[DONE] ends it":                           {"text/event-stream", "data: a\n\ndata: [DONE]\n\n", false, "", "", 1},
		"[DONE] ends it, and it stays open":        {"text/event-stream", "data: a\n\ndata: [DONE]\n\n", true, "", "", 1},
		"nothing counts behind it":                 {"text/event-stream", "data: a\n\ndata: [DONE]\n\ndata: b\n\ndata: [DONE]\n\n", true, "", "", 1},
		"it is not enough":                         {"text/event-stream", "data: [DONE]\n\n", true, "", "missing_completion", 1},
		"without it the completion is missing":     {"text/event-stream", "data: a\n\n", false, "", "missing_completion", 0},
		"an answer that comes at once":             {"application/json; charset=utf-8", `{"a":1}`, false, `{"a":1}`, "", 0},
		"another JSON body is no answer":           {"application/json", `"no"`, false, "", "provider_expected_sse", 0},
		"another type is no answer":                {"text/html", `{"a":1}`, false, "", "provider_expected_sse", 0},
		"an answer at once has at most a mebibyte": {"application/json", "{" + strings.Repeat(" ", 1<<20) + "}", false, "", "provider_response_limit", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("content-type", row.contentType)
				io.WriteString(w, row.body)
				w.(http.Flusher).Flush()
				if row.hold {
					<-r.Context().Done()
				}
			}))
			t.Cleanup(srv.Close)
			dec := &ender{mute: name == "it is not enough"}
			said := ""
			err := client(t, srv.URL).Stream(t.Context(), call(modeltest.Items()), dec, func(e model.Event) { said += e.Text }, &model.Report{})
			if len(said) > 1 {
				t.Errorf("it said %q", said)
			}
			code := ""
			if e, ok := err.(*model.Error); ok {
				code = e.Code
			}
			if code != row.code || code == "" && err != nil || dec.whole != row.whole || dec.done != row.done {
				t.Errorf("%v, whole %q, done %d", err, dec.whole, dec.done)
			}
		})
	}
}

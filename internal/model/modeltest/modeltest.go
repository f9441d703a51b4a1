// Package modeltest holds what the tests of the model families share: bodies
// that come in awkward pieces, requests in memory and servers that answer with
// a fixture. Only tests import it.
package modeltest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// File is a file of the test's testdata.
func File(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Items are items in memory.
func Items(items ...[]byte) model.Items {
	joined := bytes.Join(items, []byte(","))
	return model.Items{
		Bytes: int64(len(joined)),
		Count: len(items),
		Open:  func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(joined)), nil },
	}
}

// Request is a request for id whose call ids are all free.
func Request(id string, items ...[]byte) *model.Request {
	return &model.Request{
		Bot: "b", BotID: 7, Turn: 1, Model: id, AllowTools: true, Items: Items(items...),
		IDTaken: func(string) (bool, error) { return false, nil },
		NewID:   func(i int) string { return fmt.Sprintf("call_%012x", i+1) },
	}
}

// Outcome is what a stream ended as.
type Outcome struct {
	Completion *model.Completion
	Err        error
	Events     []model.Event
	Usage      *model.Usage
}

// Decoding runs a decoder over a reader as a provider does.
type Decoding func(r io.Reader) Outcome

// EverySplit feeds a stream whole, one byte at a time, and in two pieces at
// every boundary, and gives each outcome to check with the split's name.
func EverySplit(stream []byte, run Decoding, check func(split string, o Outcome)) {
	check("whole", run(bytes.NewReader(stream)))
	check("one byte at a time", run(Pieces(stream, 1)))
	for at := 1; at < len(stream); at++ {
		r := io.MultiReader(bytes.NewReader(stream[:at]), bytes.NewReader(stream[at:]))
		check(fmt.Sprintf("cut at byte %d", at), run(r))
	}
}

// Pieces reads b in pieces of n bytes.
func Pieces(b []byte, n int) io.Reader { return &pieces{b, n} }

type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), p.n)], p.b)
	p.b = p.b[n:]
	return n, nil
}

// Server is a provider on loopback that answers with what Answer writes.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

// Serve starts a server for the test's life. It reads each request whole
// before answer is called.
func Serve(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, n int)) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.bodies = append(s.bodies, body)
		n := len(s.requests)
		s.mu.Unlock()
		answer(w, r, n)
	}))
	t.Cleanup(s.Server.Close)
	return s
}

// Request is the n-th request from 0, and its body.
func (s *Server) Request(n int) (*http.Request, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[n], s.bodies[n]
}

// Count is how many requests came.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// WriteSSE answers 200 with an event stream.
func WriteSSE(w http.ResponseWriter, stream []byte) {
	w.Header().Set("content-type", "text/event-stream")
	w.Write(stream)
}

// WriteHTTP answers with a response written out as HTTP, its lines ending in
// LF.
func WriteHTTP(w http.ResponseWriter, text []byte) {
	head, body, _ := strings.Cut(string(text), "\n\n")
	crlf := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n"
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(crlf)), nil)
	if err != nil {
		panic(err)
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	io.WriteString(w, strings.TrimSuffix(body, "\n"))
}

// Env is an environment of its own, with the variables given.
func Env(t testing.TB, vars map[string]string) wire.Env {
	t.Helper()
	tr := wire.NewTransports(wire.Options{Connections: 4})
	t.Cleanup(tr.CloseIdle)
	return wire.Env{
		Transports: tr,
		Getenv:     func(name string) string { return vars[name] },
		Redact: func(s string) string {
			for _, v := range vars {
				s = strings.ReplaceAll(s, v, "[REDACTED]")
			}
			return s
		},
		Version: "1.2.3",
	}
}

// Spec parses one spec and resolves it.
func Spec(t testing.TB, text string, env wire.Env) model.Spec {
	t.Helper()
	specs, err := model.ParseSpecs([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	s, err := specs[0].Resolve(env.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Complete runs one attempt and gathers what it gives.
func Complete(t testing.TB, p model.Provider, req *model.Request) (Outcome, model.Report) {
	t.Helper()
	var o Outcome
	var rep model.Report
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	o.Completion, o.Err = p.Complete(ctx, req, func(e model.Event) { o.Events = append(o.Events, e) }, &rep)
	o.Usage = rep.Usage
	return o, rep
}

// Text is the joined text of the events of a kind.
func Text(events []model.Event, kind string) string {
	var b strings.Builder
	for _, e := range events {
		if e.Kind == kind {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

// Code is the code of an error and its detail.
func Code(err error) (code, detail string) {
	if e, ok := err.(*model.Error); ok {
		return e.Code, e.Detail
	}
	return fmt.Sprintf("%T", err), fmt.Sprint(err)
}

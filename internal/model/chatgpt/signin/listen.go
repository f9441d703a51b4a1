package signin

import (
	"context"
	_ "embed"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"agent/internal/model"
)

const (
	headerLimit = 64 << 10
	readTime    = 10 * time.Second
	// lastPage is how long the answer to the browser may take when the sign-in
	// is over.
	lastPage = 2 * time.Second
)

//go:embed page.html
var page string

// listener is the callback's, on 127.0.0.1.
type listener struct {
	net.Listener
	port int
}

// listen takes the first port that is free.
func listen(try []int) (*listener, error) {
	var names []string
	for _, port := range try {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return &listener{l, port}, nil
		}
		names = append(names, strconv.Itoa(port))
	}
	return nil, model.Errorf("login_port_unavailable",
		"no callback can be listened for on 127.0.0.1, port %s: another program has it. End that, or use --paste, which needs no port",
		strings.Join(names, " or "))
}

// callbackServer takes the one callback.
type callbackServer struct {
	http    *http.Server
	f       *flow
	answers chan url.Values // one, with the right state
	outcome chan error      // what came of it, for the person's page
	done    chan struct{}   // closed when serving has ended

	mu    sync.Mutex
	taken bool
}

func (f *flow) serve(l *listener) *callbackServer {
	s := &callbackServer{f: f, answers: make(chan url.Values, 1), outcome: make(chan error, 1), done: make(chan struct{})}
	s.http = &http.Server{
		Handler: s, MaxHeaderBytes: headerLimit,
		ReadTimeout: readTime, ReadHeaderTimeout: readTime, IdleTimeout: readTime,
		ErrorLog: log.New(io.Discard, "", 0), // what it says may quote a request
	}
	s.http.SetKeepAlivesEnabled(false)
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l)
	}()
	return s
}

// close ends the listener at once, and lets an answer that is under way reach
// the browser.
func (s *callbackServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastPage)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.done
}

func (s *callbackServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != callback:
		s.show(w, http.StatusNotFound, "Not found", "There is nothing at this address.")
	case r.Method != http.MethodGet:
		w.Header().Set("allow", http.MethodGet)
		s.show(w, http.StatusMethodNotAllowed, "Not allowed", "This address is for the sign-in's answer alone.")
	case !s.local(r.Host) || !s.f.stateIs(r.URL.Query().Get("state")) || !s.take():
		s.show(w, http.StatusBadRequest, "Not this sign-in", "This answer does not belong to the sign-in that is waiting. Use the newest address that agent login chatgpt printed.")
	default:
		s.answers <- r.URL.Query()
		s.tell(w, r)
	}
}

// take reports that the callback is the first of its state.
func (s *callbackServer) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.taken
	s.taken = true
	return first
}

// local reports a Host that is this listener: a page of another name that was
// led here is refused.
func (s *callbackServer) local(host string) bool {
	port := strings.TrimSuffix(strings.TrimPrefix(s.f.redirect, "http://localhost"), callback)
	return host == "localhost"+port || host == "127.0.0.1"+port
}

// tell waits for what comes of the answer and shows it.
func (s *callbackServer) tell(w http.ResponseWriter, r *http.Request) {
	select {
	case err := <-s.outcome:
		if err != nil {
			s.show(w, http.StatusOK, "Not signed in", "The sign-in failed; the terminal says why. You can close this page.")
			return
		}
		s.show(w, http.StatusOK, "Signed in", "You can close this page and go back to the terminal.")
	case <-r.Context().Done():
	}
}

// show writes a static page.
func (s *callbackServer) show(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	h.Set("content-type", "text/html; charset=utf-8")
	h.Set("connection", "close")
	h.Set("cache-control", "no-store")
	h.Set("referrer-policy", "no-referrer")
	h.Set("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(status)
	fmt.Fprint(w, strings.NewReplacer("TITLE", html.EscapeString(title), "TEXT", html.EscapeString(text)).Replace(page))
}

package wire

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// tlsServer is a server that counts its connections, and transports that
// trust it.
func tlsServer(t *testing.T, http2 bool, h http.HandlerFunc) (*httptest.Server, *Transports, *atomic.Int64) {
	t.Helper()
	var opened atomic.Int64
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	tr := NewTransports(Options{Connections: 64, RootCAs: pool})
	t.Cleanup(tr.CloseIdle)
	return s, tr, &opened
}

func get(tr *Transports, target string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	return tr.RoundTrip(req)
}

// burst makes n requests that are all in flight at once.
func burst(t *testing.T, tr *Transports, target string, n int, during func()) {
	t.Helper()
	responses := make(chan *http.Response, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			resp, err := get(tr, target)
			if err != nil {
				t.Error(err)
				return
			}
			responses <- resp
		})
	}
	wg.Wait()
	during()
	close(responses)
	for resp := range responses {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func TestShards(t *testing.T) {
	t.Parallel()
	const n = 200
	// The handler sends headers at once and ends when all have come.
	gate := func() http.HandlerFunc {
		var come atomic.Int64
		all := make(chan struct{})
		return func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			if come.Add(1) == n {
				close(all)
			}
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}
	}
	t.Run("PV-61 200 streams to an HTTP/2 host take four connections", func(t *testing.T) {
		t.Parallel()
		s, tr, opened := tlsServer(t, true, gate())
		burst(t, tr, s.URL, n, func() {
			if got := tr.InFlightByShard(); !slices.Equal(got, []int{64, 64, 64, 8}) {
				t.Errorf("in flight: %v", got)
			}
		})
		if got := opened.Load(); got > 4 {
			t.Errorf("%d connections", got)
		}
		if got := tr.InFlightByShard(); !slices.Equal(got, []int{0, 0, 0, 0}) {
			t.Errorf("in flight at the end: %v", got)
		}
	})
	t.Run("PV-61 200 streams to an HTTP/1.1 host all proceed", func(t *testing.T) {
		t.Parallel()
		s, tr, _ := tlsServer(t, false, gate())
		burst(t, tr, s.URL, n, func() {})
	})
	t.Run("when all shards are full the least loaded is taken", func(t *testing.T) {
		t.Parallel()
		tr := NewTransports(Options{Connections: 2})
		for range 128 {
			tr.takeShard()
		}
		tr.releaseShard(1)
		tr.takeShard()
		tr.releaseShard(1)
		tr.releaseShard(1)
		for range 3 {
			tr.takeShard()
		}
		if got := tr.InFlightByShard(); !slices.Equal(got, []int{65, 64}) && !slices.Equal(got, []int{64, 65}) {
			t.Errorf("in flight: %v", got)
		}
	})
}

func TestAHostWhoseFirstRequestFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	s, tr, _ := tlsServer(t, true, func(w http.ResponseWriter, r *http.Request) {})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.RoundTrip(req); err == nil {
		t.Fatal("a cancelled request went through")
	}
	resp, err := get(tr, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestAShardOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	s, tr, opened := tlsServer(t, true, func(w http.ResponseWriter, r *http.Request) {})
	for range 3 {
		resp, err := get(tr, s.URL)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		tr.CloseIdle()
	}
	if opened.Load() != 3 {
		t.Errorf("%d connections", opened.Load())
	}
}

func TestAConnectionThatIsBeingGivenUpHoldsNobody(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	s, tr, opened := tlsServer(t, true, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			w.(http.Flusher).Flush()
			<-end
		case "/goaway":
			w.Header().Set("connection", "close") // the server's wish that no more streams come
		}
	})
	defer close(end)
	long, err := get(tr, s.URL+"/long")
	if err != nil {
		t.Fatal(err)
	}
	defer long.Body.Close()
	for _, path := range []string{"/goaway", "/next", "/next"} {
		resp, err := get(tr, s.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if opened.Load() != 2 {
		t.Errorf("%d connections", opened.Load())
	}
}

func TestAnUntrustedServerIsATLSFailure(t *testing.T) {
	t.Parallel()
	s, _, _ := tlsServer(t, true, func(w http.ResponseWriter, r *http.Request) {})
	tr := NewTransports(Options{RootCAs: x509.NewCertPool()})
	t.Cleanup(tr.CloseIdle)
	_, err := get(tr, s.URL)
	if e := connectionError(err); e.Code != "provider_connection_tls" {
		t.Errorf("got %v", e)
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for active, want := range map[int]int{0: 64, 1: 1, 64: 1, 65: 2, 4096: 64, 1 << 20: 256} {
		if got := Connections(active); got != want {
			t.Errorf("%d turns: got %d shards, want %d", active, got, want)
		}
	}
}

func TestPermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := NewTransports(Options{Connecting: 1})
		release, err := tr.Permit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = tr.Permit(t.Context())
		if codeOf(err) != "provider_admission_timeout" || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		go func() {
			time.Sleep(5 * time.Second)
			release()
		}()
		if _, err = tr.Permit(t.Context()); err != nil {
			t.Errorf("after a release: %v", err)
		}
	})
}

func TestProxyInUse(t *testing.T) {
	t.Parallel()
	tr := NewTransports(Options{Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Hostname() == "127.0.0.1" {
			return nil, nil
		}
		return url.Parse("http://user:pass@proxy.test:3128")
	}})
	t.Cleanup(tr.CloseIdle)
	for target, want := range map[string]string{
		"https://api.example.test/v1": "http://proxy.test:3128",
		"http://127.0.0.1:1/v1":       "",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.ProxyInUse(u); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

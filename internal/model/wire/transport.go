// Package wire is the HTTP that every model provider shares: the set of
// transports, the streamed request body, event streams with their limits and
// clocks, WebSockets, error bodies, and model lists (providers.md 5, 8, 14, 18).
package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"agent/internal/model"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 60 * time.Second
	admissionTimeout = 60 * time.Second
	pingAfter        = 30 * time.Second
	pingTimeout      = 15 * time.Second

	headerLimit = 64 << 10
	// A connection keeps both for as long as it lives, a thousand turns a
	// thousand pairs. Larger pieces pass them by.
	writeSize    = 1 << 10
	connSize     = 2 << 10
	streamBuffer = 256 << 10 // a follower that reads slowly holds this much of one stream
	maxIdle      = 64        // idle HTTP/1.1 connections kept for one host
	shardStreams = 64
	maxShards    = 256
)

// Options configures a set of transports.
type Options struct {
	// Connections bounds the shards for https hosts, 1 to 256; see Connections.
	Connections int
	// Connecting bounds the requests that wait for response headers; 0: none.
	Connecting int
	// Proxy chooses the proxy of a request; nil: the environment's variables,
	// read once.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs replaces the system's roots; nil: the system's.
	RootCAs *x509.CertPool
	// Dial replaces the network; nil: the system's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Connections is how many shards a bound of maxActive turns calls for; 0 means
// unbounded.
func Connections(maxActive int) int {
	if maxActive <= 0 {
		return 64
	}
	return min(max((maxActive+shardStreams-1)/shardStreams, 1), maxShards)
}

// Transports is the one set of HTTP clients of a daemon. It is safe for
// concurrent use.
//
// An https host that speaks HTTP/2 is served by shards of one connection and
// 64 streams each: left alone, the standard transport dials a connection for
// each request of a burst. A host that speaks HTTP/1.1 and every http:// URL
// share a transport without a bound on connections.
type Transports struct {
	options Options
	permits chan struct{}
	plain   *http.Transport

	mu       sync.Mutex
	shards   []*http.Transport
	inFlight []int
	hosts    map[string]*host
	upgrade  *http.Transport // for WebSockets; nil until one is opened
	sockets  []*Sockets
}

// host is what is known of the protocol that an https host speaks.
type host struct {
	protocol string        // "" until a handshake named it, then h1 or h2
	probing  chan struct{} // closed when the request that went alone is through; nil: none
}

const (
	h1 = "h1"
	h2 = "h2"
)

// NewTransports makes the set; no connection is opened.
func NewTransports(o Options) *Transports {
	o.Connections = min(max(o.Connections, 1), maxShards)
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	t := &Transports{options: o, hosts: map[string]*host{}}
	if o.Connecting > 0 {
		t.permits = make(chan struct{}, o.Connecting)
	}
	t.plain = t.newTransport(false)
	return t
}

func (t *Transports) newTransport(shard bool) *http.Transport {
	dial := t.options.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	tr := &http.Transport{
		Proxy:                  t.options.Proxy,
		DialContext:            dial,
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: headerLimit,
		WriteBufferSize:        writeSize,
		ReadBufferSize:         connSize,
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.options.RootCAs},
	}
	tr.Protocols.SetHTTP1(true)
	if shard {
		tr.Protocols.SetHTTP2(true)
		tr.MaxConnsPerHost = 1
		tr.HTTP2 = &http.HTTP2Config{
			SendPingTimeout:           pingAfter,
			PingTimeout:               pingTimeout,
			MaxReceiveBufferPerStream: streamBuffer,
		}
	}
	return tr
}

// Permit waits for the right to have a request without response headers
// (--max-connecting), 60 s at most: provider_admission_timeout. The caller
// calls release once.
func (t *Transports) Permit(ctx context.Context) (release func(), err error) {
	if t.permits == nil {
		return func() {}, nil
	}
	release = func() { <-t.permits }
	select {
	case t.permits <- struct{}{}:
		return release, nil
	default:
	}
	timer := time.NewTimer(admissionTimeout)
	defer timer.Stop()
	select {
	case t.permits <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
		return nil, model.Errorf("provider_admission_timeout",
			"no startup permit in 60 s: --max-connecting allows %d requests to wait for their headers",
			t.options.Connecting)
	}
}

// RoundTrip sends one request and follows no redirect. The response's body
// must be closed: its stream counts as in flight until then.
func (t *Transports) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" {
		return t.plain.RoundTrip(req)
	}
	known, err := t.protocol(req.Context(), req.URL.Host)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	if known == h1 {
		return t.plain.RoundTrip(req)
	}
	return t.throughShard(req, known == "")
}

// protocol is the protocol of an https host. "" makes the caller the one
// request that goes alone; others wait for what it finds.
func (t *Transports) protocol(ctx context.Context, name string) (string, error) {
	for {
		t.mu.Lock()
		h := t.hosts[name]
		if h == nil {
			h = &host{}
			t.hosts[name] = h
		}
		if h.protocol != "" {
			defer t.mu.Unlock()
			return h.protocol, nil
		}
		if h.probing == nil {
			h.probing = make(chan struct{})
			t.mu.Unlock()
			return "", nil
		}
		probing := h.probing
		t.mu.Unlock()
		select {
		case <-probing:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// found records a host's protocol and lets the waiting requests go; "" when
// the request that went alone failed before its handshake.
func (t *Transports) found(name, protocol string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[name]
	if protocol != "" {
		h.protocol = protocol
	}
	if h.probing != nil {
		close(h.probing)
		h.probing = nil
	}
}

func (t *Transports) throughShard(req *http.Request, alone bool) (*http.Response, error) {
	name := req.URL.Host
	// The connection that was got, rather than a finished handshake, is asked:
	// behind an https proxy the first handshake is the proxy's.
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if conn, ok := info.Conn.(*tls.Conn); ok && conn.ConnectionState().NegotiatedProtocol != "h2" {
			t.found(name, h1)
		} else {
			t.found(name, h2)
		}
	}}
	i, transport := t.takeShard()
	resp, err := transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		t.releaseShard(i)
		if alone {
			t.found(name, "")
		}
		return nil, err
	}
	var once sync.Once
	resp.Body = &countedBody{resp.Body, func() { once.Do(func() { t.releaseShard(i) }) }}
	return resp, nil
}

// takeShard is the first shard with room, a new one while that is allowed,
// else the least loaded.
func (t *Transports) takeShard() (int, *http.Transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	least := 0
	for i, n := range t.inFlight {
		if n < shardStreams {
			t.inFlight[i]++
			return i, t.shards[i]
		}
		if n < t.inFlight[least] {
			least = i
		}
	}
	if len(t.shards) < t.options.Connections {
		least = len(t.shards)
		t.shards = append(t.shards, t.newTransport(true))
		t.inFlight = append(t.inFlight, 0)
	}
	t.inFlight[least]++
	return least, t.shards[least]
}

func (t *Transports) releaseShard(i int) {
	t.mu.Lock()
	t.inFlight[i]--
	t.mu.Unlock()
}

// InFlightByShard is how many streams each opened shard carries.
func (t *Transports) InFlightByShard() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]int{}, t.inFlight...)
}

// CloseIdle closes the connections that carry nothing.
func (t *Transports) CloseIdle() {
	t.plain.CloseIdleConnections()
	t.mu.Lock()
	for _, s := range t.shards {
		s.CloseIdleConnections()
	}
	sets := t.sockets
	t.mu.Unlock()
	for _, k := range sets {
		k.closeIdle()
	}
}

// ProxyInUse names the proxy that requests to u go through, without its
// credentials; "" when none.
func (t *Transports) ProxyInUse(u *url.URL) string {
	proxy, err := t.options.Proxy(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.Scheme + "://" + proxy.Host
}

// ProxyOf is ProxyInUse for a URL that is not parsed yet.
func (t *Transports) ProxyOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return t.ProxyInUse(u)
}

type countedBody struct {
	io.ReadCloser
	release func()
}

func (b *countedBody) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
}

package wire

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"agent/internal/model"
)

// upgradeTimeout bounds the wait for the answer to an upgrade, as the dial and
// the handshake before it are.
const upgradeTimeout = 10 * time.Second

// upgradeTransport is what WebSockets are opened through. It keeps no
// connection: one that was upgraded is not its own any more.
func (t *Transports) upgradeTransport() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.upgrade == nil {
		t.upgrade = t.newTransport(false)
		t.upgrade.DialTLSContext = dialHTTP1(t.upgrade)
		t.upgrade.ResponseHeaderTimeout = upgradeTimeout
		t.upgrade.DisableKeepAlives = true
	}
	return t.upgrade
}

// dialHTTP1 offers HTTP/1.1 alone: HTTP/2 has no upgrade. Left to itself the
// transport names no protocol for one, and the choice is the server's.
func dialHTTP1(tr *http.Transport) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		raw, err := tr.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := tr.TLSClientConfig.Clone()
		config.ServerName, config.NextProtos = host, []string{"http/1.1"}
		conn := tls.Client(raw, config)
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, err
		}
		return conn, nil
	}
}

// tap is the connection under a WebSocket. Every byte of it, a ping's too, tells
// the clocks of the call under way.
type tap struct {
	io.ReadWriteCloser
	clocks atomic.Pointer[stall]
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	t.passed(n)
	return n, err
}

func (t *tap) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	t.passed(n)
	return n, err
}

func (t *tap) passed(n int) {
	if clocks := t.clocks.Load(); clocks != nil && n > 0 {
		clocks.bytes()
	}
}

// upgrade is one attempt to open a WebSocket. The dialler of the library makes
// its one request through it.
type upgrade struct {
	client  *Client
	parent  context.Context // the call's
	reached atomic.Bool     // the request was written
	header  http.Header     // the answer's, nil without one
	refused *model.Error
	failed  error // the transport's
	tap     *tap
}

// RoundTrip sends the upgrade, follows nothing, and reads a refusal whole: of a
// part of it a credential could be told no more.
func (u *upgrade) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteHeaders: func() { u.reached.Store(true) }}
	ctx := httptrace.WithClientTrace(req.Context(), trace)
	resp, err := u.client.env.Transports.upgradeTransport().RoundTrip(req.WithContext(ctx))
	if err != nil {
		u.failed = err
		return nil, err
	}
	u.header = resp.Header
	if conn, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		u.tap = &tap{ReadWriteCloser: conn}
		resp.Body = u.tap
		return resp, nil
	}
	limit := time.AfterFunc(errorBodyTime, func() { resp.Body.Close() })
	defer limit.Stop()
	u.refused = u.client.refusal(u.parent, resp)
	resp.Body.Close()
	resp.Body = http.NoBody
	return resp, nil
}

// upgradeRequest is the request that opens a connection for call, complete but
// for what makes it an upgrade, and a digest of the credential in it.
func (k *Sockets) upgradeRequest(ctx context.Context, call *SocketCall) (*http.Request, [32]byte, error) {
	var digest [32]byte
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.client.base+call.Path, nil)
	if err != nil {
		return nil, digest, err
	}
	for name, values := range call.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if err := k.client.authorize(ctx, req); err != nil {
		return nil, digest, err
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		values := req.Header[name]
		if slices.Equal(values, call.Header[name]) {
			continue
		}
		for _, part := range append([]string{name}, values...) {
			io.WriteString(h, part)
			h.Write([]byte{0})
		}
	}
	return req, [32]byte(h.Sum(nil)), nil
}

// connect gives the bot's connection, or opens one.
func (a *socketAttempt) connect(ctx context.Context) (*Socket, error) {
	k := a.k
	req, credential, err := k.upgradeRequest(ctx, a.call)
	if err != nil {
		return nil, err
	}
	if s := k.take(a.call.Bot, credential); s != nil {
		return s, nil
	}
	u := &upgrade{client: k.client, parent: ctx}
	conn, _, err := websocket.Dial(ctx, req.URL.String(), &websocket.DialOptions{
		HTTPHeader:      req.Header,
		CompressionMode: websocket.CompressionDisabled,
		HTTPClient: &http.Client{
			Transport:     u,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	if err != nil {
		a.reached = u.reached.Load()
		a.rep.Dispatched = a.reached
		return nil, a.notConnected(ctx, u, err)
	}
	k.client.learn(u.header)
	a.grant.Seed(k.client.family.Limits(u.header))
	conn.SetReadLimit(messageLimit)
	s := &Socket{
		bot: a.call.Bot, conn: conn, tap: u.tap, credential: credential,
		requestID: u.header.Get(k.client.family.RequestID),
	}
	k.add(s)
	return s, nil
}

// notConnected is what a failed upgrade stands for. A refusal teaches the pool,
// unless the quota is spent: no waiting helps that.
func (a *socketAttempt) notConnected(ctx context.Context, u *upgrade, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case u.refused != nil:
		if u.refused.Code != "provider_quota_exhausted" {
			a.grant.Learn(a.k.client.family.Limits(u.header))
		}
		return u.refused
	case u.failed != nil:
		return a.k.client.withProxy(connectionError(u.failed))
	}
	return a.k.client.withProxy(&model.Error{
		Code: "provider_connection_handshake", Detail: handshakeDetail(err), Cause: err,
	})
}

// handshakeDetail is what was wrong with a 101: what the library says at heart,
// up to where it quotes a header.
func handshakeDetail(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	text := err.Error()
	if quoted := strings.IndexAny(text, "\"["); quoted > 0 {
		text = text[:quoted]
	}
	return "the server's 101 opens no WebSocket: " + strings.TrimRight(text, ": ")
}

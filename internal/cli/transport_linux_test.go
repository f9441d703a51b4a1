package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// The variables that name roots are the Go runtime's, which has them on every
// system that keeps its roots in files; macOS does not.

// farHost is a name that only the test's proxy can resolve.
const farHost = "models.example.test"

// authority is a certificate authority that nobody but a test knows.
type authority struct {
	pem  []byte
	cert tls.Certificate // a server's, of farHost and 127.0.0.1
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	make := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = key
		}
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test roots"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, rootKey := make(root, root, nil)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{farHost}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	leafDER, leafKey := make(leaf, root, rootKey)
	return &authority{
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}),
		cert: tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey},
	}
}

// serve is a model server behind TLS and HTTP/2.
func (a *authority) serve(t *testing.T, model http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(model)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.cert}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func wellModel(t *testing.T, key string) *fakemodel.Server {
	t.Helper()
	m, err := fakemodel.New(fakemodel.Options{Key: key, Handler: func(*fakemodel.Request) fakemodel.Reply { return fakemodel.Say("Well.") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); m.Verify(t) })
	return m
}

func TestRootsOfOnesOwn(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	const key = "key-of-the-tls-provider"
	s := a.serve(t, wellModel(t, key))
	dir := t.TempDir()
	file := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(file, a.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, variable string
		trusted        bool
	}{
		{"a server that nobody vouches for is refused", "SSL_CERT_FILE=/dev/null", false},
		{"SSL_CERT_FILE names the roots", "SSL_CERT_FILE=" + file, true},
		{"SSL_CERT_DIR names a folder of them", "SSL_CERT_DIR=" + dir, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "K="+key, row.variable)
			g.must("start", "--provider", "far=anthropic,"+s.URL+"/v1,K")
			if row.trusted {
				if out := g.must("run", "--new", "--bot", "B", "--model", "far/m", "hi"); !strings.Contains(out, `"status":"completed"`) {
					t.Errorf("it ended %s", out)
				}
				return
			}
			if code, detail := record(t, g).refused("far"); code != "provider_connection_tls" || !strings.Contains(detail, "unknown authority") {
				t.Errorf("%s: %s", code, detail)
			}
		})
	}
}

// refused runs a turn of a provider that cannot be reached and gives what its
// first attempt failed with.
func (k *recorder) refused(provider string) (code, detail string) {
	bot := "refused-" + provider
	k.ask("create", fmt.Sprintf(`,"bot":%q,"model":"%s/m","instructions":"","tools":[],"workspace":"/"`, bot, provider))
	k.ask("follow", fmt.Sprintf(`,"bot":%q,"after":0`, bot))
	k.send("submit", fmt.Sprintf(`,"bot":%q,"request_id":"r","prompt":"go"`, bot))
	for {
		l := k.retried(bot)
		if l == nil {
			continue
		}
		json.Unmarshal(l["error"], &code)
		json.Unmarshal(l["detail"], &detail)
		k.send("interrupt", fmt.Sprintf(`,"bot":%q,"turn":%s`, bot, l["turn"]))
		for k.ends[bot] == "" {
			k.line()
		}
		return code, detail
	}
}

// retried is the next line when it tells of a bot's failed attempt; the turn's
// end instead fails the test.
func (k *recorder) retried(bot string) map[string]json.RawMessage {
	l := k.line()
	if k.ends[bot] != "" {
		k.t.Fatalf("%s ended without another attempt: %s", bot, k.ends[bot])
	}
	if string(l["event"]) != `"retry"` {
		return nil
	}
	return l
}

// proxy is an HTTP proxy that sends everything to two servers, whatever the
// host, and remembers what it was asked.
type proxy struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // method and host
	auth   []string
	keys   []string // what came in the clear
	refuse string   // a status line to refuse with
}

func newProxy(t *testing.T, secure, plain string) *proxy {
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.auth = append(p.auth, r.Header.Get("Proxy-Authorization"))
		p.keys = append(p.keys, r.Header.Get("authorization"))
		refuse := p.refuse
		p.mu.Unlock()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if refuse != "" {
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n", refuse)
			return
		}
		to := secure
		if r.Method != http.MethodConnect {
			to = plain
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			t.Error(err)
			return
		}
		defer server.Close()
		if r.Method == http.MethodConnect {
			io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		} else {
			r.Header.Set("connection", "close")
			r.Write(server)
		}
		go io.Copy(server, conn)
		io.Copy(conn, server)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) was() (asked, auth, keys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked), slices.Clone(p.auth), slices.Clone(p.keys)
}

func (p *proxy) refuseWith(status string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = status
}

func TestProxies(t *testing.T) {
	t.Parallel()
	const key, password = "key-behind-the-proxy", "proxy-pass/word"
	a := newAuthority(t)
	near, plain := wellModel(t, ""), wellModel(t, key)
	secure := a.serve(t, wellModel(t, key))
	p := newProxy(t, secure.Listener.Addr().String(), strings.TrimSuffix(strings.TrimPrefix(plain.URL, "http://"), "/v1"))
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, a.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(p.URL, "http://", "http://person:proxy-pass%2Fword@", 1)
	g := newGround(t, "K="+key, "SSL_CERT_FILE="+roots, "HTTPS_PROXY="+with, "HTTP_PROXY="+with, "NO_PROXY=direct.example.test")
	start := g.must("start", "--provider", "far=anthropic,https://"+farHost+"/v1,K", "--provider", "clear=responses,http://plain.example.test/v1,K",
		"--provider", "direct=anthropic,https://direct.example.test/v1", "--provider", "near=responses,"+near.URL, "--provider", "scripted")
	t.Run("the ready line says which providers are behind the proxy", func(t *testing.T) {
		var ready protocol.Ready
		if err := json.Unmarshal([]byte(start), &ready); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"far": p.URL, "clear": p.URL, "direct": "", "near": "", "scripted": ""} {
			if got := ready.Providers[name].Proxy; got != want {
				t.Errorf("%s: the proxy is %q, want %q", name, got, want)
			}
		}
	})
	run := func(bot, provider string) {
		t.Helper()
		if out := g.must("run", "--new", "--bot", bot, "--model", provider+"/m", "hi"); !strings.Contains(out, `"status":"completed"`) {
			t.Errorf("%s: it ended %s", provider, out)
		}
	}
	t.Run("a host on the loopback is reached without it", func(t *testing.T) {
		run("A", "near")
		if asked, _, _ := p.was(); len(asked) > 0 {
			t.Errorf("the proxy was asked %q", asked)
		}
	})
	t.Run("an https host is tunnelled to, by its name and with the proxy's credentials", func(t *testing.T) {
		run("B", "far")
		asked, auth, keys := p.was()
		if !slices.Equal(asked, []string{"CONNECT " + farHost + ":443"}) || !strings.HasPrefix(auth[0], "Basic ") || keys[0] != "" {
			t.Errorf("the proxy was asked %q with %q and saw the key %q", asked, auth, keys)
		}
	})
	t.Run("PO-89 an http host is allowed, is marked, and its key travels in the clear", func(t *testing.T) {
		run("C", "clear")
		asked, _, keys := p.was()
		if len(asked) != 2 || asked[1] != "POST plain.example.test" || keys[1] != "Bearer "+key {
			t.Errorf("the proxy was asked %q and saw the keys %q", asked, keys)
		}
		if !strings.Contains(start, `"url":"http://plain.example.test/v1","transport":"http","plaintext":true`) ||
			strings.Contains(start, `"url":"https://`+farHost+`/v1","transport":"http","plaintext"`) {
			t.Errorf("ready %s", start)
		}
	})
	k := record(t, g)
	t.Run("an error names the proxy and shows none of its credentials", func(t *testing.T) {
		_, auth, _ := p.was()
		p.refuseWith("407 nobody knows person:" + password + " or person:proxy-pass%2Fword or " + auth[0])
		g.must("shutdown") // the connection that is open would serve
		g.must("start", "--provider", "far=anthropic,https://"+farHost+"/v1,K")
		k = record(t, g)
		code, detail := k.refused("far")
		if code != "provider_connection_failed" || !strings.Contains(detail, "through the proxy "+p.URL+")") || !strings.Contains(detail, "[REDACTED]") {
			t.Errorf("%s: %s", code, detail)
		}
	})
	found := map[string][]byte{"the socket": k.all.Bytes(), "the ready line": []byte(start)}
	g.written(t, found)
	for where, text := range found {
		for _, hidden := range []string{"proxy-pass", "pass%2F", "cGVyc29uOnByb3h5", key} {
			if at := bytes.Index(text, []byte(hidden)); at >= 0 {
				t.Errorf("%s holds %q: %.200q", where, hidden, text[max(0, at-100):])
			}
		}
	}
}

package modeltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Far is a host of the internet as a test has it: a server on loopback with a
// certificate for the host's name, and the proxy by which its name leads there.
// No other name leads anywhere.
type Far struct {
	Proxy *url.URL
	CAs   *x509.CertPool
	// Env has a program of its own come here by the host's name. SSL_CERT_FILE
	// is not honoured on every system.
	Env []string

	host string
	to   string
	mu   sync.Mutex
	seen []string
}

// NewFar starts a host for the test's life.
func NewFar(t testing.TB, host string, handler http.Handler) *Far {
	t.Helper()
	f := &Far{host: host}
	certificate := f.certify(t)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	f.to = server.Listener.Addr().String()
	proxy := httptest.NewServer(f)
	t.Cleanup(proxy.Close)
	f.Proxy, _ = url.Parse(proxy.URL)
	f.Env = append(f.Env, "HTTPS_PROXY="+proxy.URL, "NO_PROXY=")
	return f
}

// certify makes the host's certificate, which is its own authority.
func (f *Far) certify(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: f.host}, DNSNames: []string{f.host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f.CAs = x509.NewCertPool()
	f.CAs.AppendCertsFromPEM(text)
	f.Env = []string{"SSL_CERT_FILE=" + path, "SSL_CERT_DIR="}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Asked are the names that the proxy was asked for, each once.
func (f *Far) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := slices.Clone(f.seen)
	slices.Sort(asked)
	return slices.Compact(asked)
}

// ServeHTTP is the proxy.
func (f *Far) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Host)
	f.mu.Unlock()
	if r.Method != http.MethodConnect || r.Host != f.host+":443" {
		http.Error(w, "no way there", http.StatusForbidden)
		return
	}
	there, err := net.Dial("tcp", f.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(there, buffered)
		there.Close()
	}()
	io.Copy(here, there)
}

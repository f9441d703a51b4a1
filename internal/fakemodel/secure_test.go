package fakemodel

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestSecure(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Models: []string{"one"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := s.Secure()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(x.Roots) {
		t.Fatal("its roots are no certificate")
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer c.CloseIdleConnections()
	resp, err := c.Get(x.URL + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 || !strings.Contains(string(body), `"id":"one"`) || x.Connections() != 1 {
		t.Errorf("%s by %s over %d connections, %v", body, resp.Proto, x.Connections(), err)
	}
}

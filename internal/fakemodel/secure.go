package fakemodel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Secure is a server's second address, by TLS and HTTP/2 with a certificate of
// its own that is good for a day.
type Secure struct {
	// URL is the base URL for a provider, https://127.0.0.1:PORT/v1.
	URL string
	// Roots is the certificate to trust, as PEM.
	Roots []byte

	http   *http.Server
	opened atomic.Int64
}

// Secure opens the address; what comes to it is answered as by s. The caller
// closes it before s.
func (s *Server) Secure() (*Secure, error) {
	der, key, err := selfSigned()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	x := &Secure{
		URL:   "https://" + l.Addr().String() + "/v1",
		Roots: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
	x.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				x.opened.Add(1)
			}
		},
	}
	go x.http.ServeTLS(l, "", "")
	return x, nil
}

// Connections is how many were opened so far.
func (x *Secure) Connections() int64 { return x.opened.Load() }

// Close ends every connection.
func (x *Secure) Close() error { return x.http.Close() }

// selfSigned makes a certificate for 127.0.0.1 that vouches for itself.
func selfSigned() (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test model server"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return der, key, err
}

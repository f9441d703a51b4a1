package fakemodel

import (
	"net"
	"net/http"
)

// Loopback serves a handler on a free port of 127.0.0.1 until close is called,
// which ends its connections too. It is for a model server that is lenient
// where this one is strict; nothing that ships may listen.
func Loopback(h http.Handler) (url string, close func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	return "http://" + l.Addr().String(), s.Close, nil
}

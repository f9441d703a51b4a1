package tool

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"agent/protocol"
)

// fetchClient gives the client of all fetches. It keeps nothing between two of
// them: no cookies, no connections. HTTP/2 is left out, since its receive
// windows would hold a page in memory.
var fetchClient = sync.OnceValue(func() *http.Client {
	t := &http.Transport{
		Proxy:                  fetchProxy,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: headerLimit,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
})

// fetchProxy is the proxy that the environment names, and none for this
// machine.
func fetchProxy(req *http.Request) (*url.URL, error) {
	host := strings.ToLower(strings.TrimSuffix(req.URL.Hostname(), "."))
	ip := net.ParseIP(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback() {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// checkRedirect looks at each address that a page leads on to. via holds the
// requests made so far.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return failuref(protocol.FetchRedirectLimit, "the page leads on more than %d times, last to %s", maxRedirects, shown(req.URL.Redacted()))
	}
	if f := checkURL(req.URL); f != nil {
		f.Detail = "the page leads on to " + shown(req.URL.Redacted()) + ": " + f.Detail
		return f
	}
	if n := len(req.URL.String()); n > maxURL {
		return failuref(protocol.InvalidURL, "the page leads on to an address of %d bytes; at most %d are followed", n, maxURL)
	}
	req.Header.Del("Referer") // where the bot came from is nobody's business
	return nil
}

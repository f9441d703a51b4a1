package tool

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agent/protocol"
)

var (
	//go:embed web_fetch.md
	fetchText string
	//go:embed web_fetch.json
	fetchParameters string
)

// fetchTool gets a web page (runtime.md 11, web_fetch). It runs in the daemon
// and outside every sandbox.
var fetchTool = &builtin[fetchArgs]{
	name: "web_fetch", description: fetchText, parameters: fetchParameters, check: checkFetch, run: runFetch,
}

type fetchArgs struct {
	URL       arg[string] `json:"url"`
	TimeoutMS arg[int64]  `json:"timeout_ms"`
}

const (
	maxURL         = 4096        // bytes
	maxBody        = 4 << 20     // bytes read of a page, packed and unpacked
	fetchTimeMS    = 30_000      // when no time is given
	maxFetchTimeMS = 60_000      //
	maxFetched     = 4 * maxBody // bytes of text made of it: three for one, and what links grow by
	maxRedirects   = 10          //
	maxType        = 256         // bytes shown of a page's type
	maxReason      = 512         // bytes shown of why a fetch failed
	headerLimit    = 64 << 10    // bytes of an answer's headers
)

func checkFetch(a *fetchArgs) *Failure {
	if f := first(required("url", a.URL), within("timeout_ms", a.TimeoutMS, 1, maxFetchTimeMS)); f != nil {
		return f
	}
	if n := len(a.URL.value); n > maxURL {
		return invalidf("url is %d bytes; at most %d are taken", n, maxURL)
	}
	_, f := parseFetchURL(a.URL.value)
	return f
}

// parseFetchURL reads an address that may be fetched.
func parseFetchURL(text string) (*url.URL, *Failure) {
	u, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the address itself may hold a secret
		}
		return nil, failuref(protocol.InvalidURL, "url cannot be read: %v", err)
	}
	return u, checkURL(u)
}

// checkURL refuses what is not fetched, of the call and of each redirect.
func checkURL(u *url.URL) *Failure {
	switch {
	case u.Scheme == "":
		return failuref(protocol.InvalidURL, "url must begin with https:// or http://")
	case u.Scheme != "http" && u.Scheme != "https":
		return failuref(protocol.FetchSchemeUnsupported, "only http and https are fetched, not %s", shown(u.Scheme))
	case u.Hostname() == "":
		return failuref(protocol.InvalidURL, "url names no host")
	case u.User != nil:
		return failuref(protocol.InvalidURL, "url holds a user name or password; pages are fetched without")
	}
	return nil
}

// errFetchTime is the cause of a fetch's end when its time is over.
var errFetchTime = errors.New("the fetch took too long")

func runFetch(ctx context.Context, env *Env, a *fetchArgs) Result {
	limit := time.Duration(a.TimeoutMS.or(fetchTimeMS)) * time.Millisecond
	within, cancel := context.WithTimeoutCause(ctx, limit, errFetchTime)
	defer cancel()
	r, err := env.fetch(within, a.URL.value)
	if err != nil {
		f := fetchFailure(within, limit, err)
		// What a server sent may be quoted in it, at any length.
		f.Detail = cut(string(env.Redact.Bytes([]byte(f.Detail))), maxReason)
		r = env.refuse(f)
	}
	r.External = true
	return r
}

// fetchFailure is why a page was not fetched.
func fetchFailure(ctx context.Context, limit time.Duration, err error) *Failure {
	var f *Failure
	var outer *url.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(context.Cause(ctx), errFetchTime):
		return failuref(protocol.FetchTimeout, "the page was not there within %v", limit)
	case ctx.Err() != nil:
		return failuref(protocol.Cancelled, "the turn ended before the page was there")
	case errors.As(err, &outer):
		err = outer.Err
	}
	return failuref(protocol.FetchFailed, "%v", err)
}

// fetch gets a page and turns it into text as it comes: what is held of it is
// what the capture keeps.
func (e *Env) fetch(ctx context.Context, address string) (Result, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Result{}, err
	}
	req.Header.Set("User-Agent", "agent")
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip") // set here, so that the packed bytes are bounded, too
	res, err := fetchClient().Do(req)
	if err != nil {
		return Result{}, err
	}
	defer res.Body.Close()
	kept := newCapture(e, "body")
	p, err := readPage(res, kept)
	out := kept.finish()
	if err == nil && (out.over || p.over) {
		p.truncated = true
	}
	if err != nil {
		dropFile(out)
		return Result{}, err
	}
	return e.fetched(address, res, p, out), nil
}

// dropFile removes what a stream that is not reported has spilled.
func dropFile(c captured) {
	if c.artifact != nil && c.artifact.File != "" {
		(&spill{path: c.artifact.File}).remove()
	}
}

// fetched is what the model is told (runtime.md 11, web_fetch).
func (e *Env) fetched(address string, res *http.Response, p pageRead, body captured) Result {
	clean := func(text string) string {
		return string(e.Redact.Bytes([]byte(strings.ToValidUTF8(text, replacement))))
	}
	b := make([]byte, 0, len(body.preview)+1<<10)
	b = appendQuoted(append(b, `{"url":`...), clean(address))
	b = appendQuoted(append(b, `,"final_url":`...), clean(res.Request.URL.String()))
	b = strconv.AppendInt(append(b, `,"status":`...), int64(res.StatusCode), 10)
	b = appendQuoted(append(b, `,"content_type":`...), clean(p.contentType[:min(len(p.contentType), maxType)]))
	b = appendQuoted(append(b, `,"text":`...), body.preview)
	b = strconv.AppendBool(append(b, `,"truncated":`...), p.truncated)
	var r Result
	if a := body.artifact; a != nil {
		r.Artifacts = []Artifact{*a}
		b = appendList(b, "artifacts", []string{e.reference(a.Stream)})
		if a.File != "" {
			b = appendList(b, "files", []string{a.File})
		}
	}
	r.Output = string(append(b, '}'))
	return r
}

// bounded reads at most left bytes; cut says that there were more.
type bounded struct {
	r    io.Reader
	left int64
	cut  bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.left == 0 {
		var one [1]byte
		n, err := io.ReadFull(b.r, one[:])
		b.cut = b.cut || n > 0
		if n > 0 {
			err = io.EOF
		}
		return 0, err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

package fakemodel

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"agent/internal/model"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is a request that passed every check. It is read only.
type Request struct {
	Seq       int64 // 1 for the first request, refused ones counted
	Family    model.Family
	Header    http.Header
	Bytes     int64  // of the body
	Body      []byte // with Options.Bodies
	Identity  string
	Model     string
	System    string
	CacheKey  string // responses
	Effort    string
	MaxTokens int64
	Tools     []string
	ToolsOff  bool // schemas are sent, calls are disabled
	Refresh   bool // keeps the cache warm and asks for no answer
	Items     int
	First     string // a digest of the first item
	Prompt    string // the latest user text, at most 64 KiB of it
	Result    string // the latest tool result, at most 64 KiB of it
	Rounds    int    // answers since the latest user text
	// AfterResult says that the last item is a tool result and not a user's.
	AfterResult bool

	prefix   key             // of all items
	passed   map[key]bool    // prefixes that an answer or an earlier request ends
	ids      map[string]bool // call ids in it
	exchange *exchange
}

// Ready identities of a conversation.
var (
	ByModel     = func(r *Request) string { return r.Model }
	BySystem    = func(r *Request) string { return r.System }
	ByCacheKey  = func(r *Request) string { return r.CacheKey }
	ByFirstItem = func(r *Request) string { return r.First }
)

// Violation is one thing that was wrong with a request.
type Violation struct {
	Request int64  // its number
	Reason  string // a short name
	Where   string // the place in the body, "" for the request as a whole
	Detail  string
}

func (v *Violation) Error() string {
	s := fmt.Sprintf("request %d: %s", v.Request, v.Reason)
	if v.Where != "" {
		s += " at " + v.Where
	}
	if v.Detail != "" {
		s += ": " + v.Detail
	}
	return s
}

func fault(reason, where, format string, args ...any) error {
	return &Violation{Reason: reason, Where: where, Detail: fmt.Sprintf(format, args...)}
}

const keptText = 64 << 10

func familyOf(r *http.Request) model.Family {
	if r.URL.Path == chatPath {
		return model.FamilyChat
	}
	if r.URL.Path == "/v1/responses" || r.Header.Get("anthropic-version") == "" && r.URL.Path != "/v1/messages" {
		return model.FamilyResponses
	}
	return model.FamilyAnthropic
}

// upload notes that a body ended before its Content-Length, which is what an
// interrupted client looks like and no fault of the request.
type upload struct {
	r      io.Reader
	broken bool
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	u.broken = u.broken || err != nil && err != io.EOF
	return n, err
}

// check reads a request to its end. Its error is a *Violation, or errLeft.
func (s *Server) check(r *http.Request) (*Request, error) {
	s.mu.Lock()
	s.seq++
	seq := s.seq
	s.mu.Unlock()
	req := &Request{Seq: seq, Family: familyOf(r), Header: r.Header, Bytes: r.ContentLength}
	err := s.checkAll(r, req)
	// What is left unread would keep the client from its answer.
	io.Copy(io.Discard, r.Body)
	if err == nil {
		return req, nil
	}
	if err == errLeft {
		return nil, err
	}
	v, ok := err.(*Violation)
	if !ok {
		v = &Violation{Reason: "invalid_json", Detail: err.Error()}
	}
	v.Request = seq
	return nil, v
}

func (s *Server) checkAll(r *http.Request, req *Request) error {
	if err := checkLine(r); err != nil {
		return err
	}
	if err := checkHeaders(r, req.Family, s.opts.Key); err != nil {
		return err
	}
	upload := &upload{r: r.Body}
	body := io.Reader(upload)
	var kept bytes.Buffer
	if s.opts.Bodies && s.opts.Keep > 0 {
		body = io.TeeReader(body, &kept)
	}
	c := newChecker(s.history, &s.opts, req)
	if err := c.body(body); err != nil {
		if upload.broken {
			return errLeft
		}
		return err
	}
	req.Body = kept.Bytes()
	return checkAgainstBody(r, req)
}

func checkLine(r *http.Request) error {
	switch {
	case r.URL.Path != "/v1/messages" && r.URL.Path != "/v1/responses" && r.URL.Path != chatPath:
		return fault("wrong_path", "", "%s", r.URL.Path)
	case r.Method != http.MethodPost:
		return fault("wrong_method", "", "%s", r.Method)
	case r.URL.RawQuery != "":
		return fault("wrong_path", "", "a query: %s", r.URL.RawQuery)
	case len(r.TransferEncoding) > 0 || r.ContentLength < 0:
		return fault("chunked_body", "", "the body has no Content-Length")
	case r.ContentLength == 0:
		return fault("empty_body", "", "")
	}
	return nil
}

func checkHeaders(r *http.Request, family model.Family, key string) error {
	if got := r.Header.Values("content-type"); !slices.Equal(got, []string{"application/json"}) {
		return fault("wrong_content_type", "", "%q", got)
	}
	if e := r.Header.Get("accept-encoding"); e != "" && e != "identity" {
		return fault("compression_asked", "", "accept-encoding is %q", e)
	}
	credential, other := "authorization", "x-api-key"
	want := "Bearer " + key
	if family == model.FamilyAnthropic {
		credential, other, want = other, credential, key
		if got := r.Header.Values("anthropic-version"); !slices.Equal(got, []string{"2023-06-01"}) {
			return fault("wrong_version", "", "anthropic-version is %q", got)
		}
	}
	if len(r.Header.Values(other)) > 0 {
		return fault("unexpected_credential", "", "header %s", other)
	}
	got := r.Header.Values(credential)
	switch {
	case key == "" && len(got) > 0:
		return fault("unexpected_credential", "", "header %s, and no key was named", credential)
	case key != "" && !slices.Equal(got, []string{want}):
		return fault("wrong_credential", "", "header %s", credential)
	}
	return nil
}

// checkAgainstBody looks at the headers whose value depends on the body.
func checkAgainstBody(r *http.Request, req *Request) error {
	accept := "text/event-stream"
	if req.Refresh {
		accept = "application/json"
	}
	if got := r.Header.Values("accept"); !slices.Equal(got, []string{accept}) {
		return fault("wrong_accept", "", "accept is %q, wanted %q", got, accept)
	}
	if req.Family == model.FamilyResponses {
		if got := r.Header.Get("session-id"); got != req.CacheKey {
			return fault("wrong_session_id", "", "session-id is %q and prompt_cache_key %q", got, req.CacheKey)
		}
	}
	return nil
}

func beta(h http.Header, name string) bool {
	for _, line := range h.Values("anthropic-beta") {
		for part := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(part) == name {
				return true
			}
		}
	}
	return false
}

// checker walks a request's body once. It holds one item at a time.
type checker struct {
	history *history
	opts    *Options
	req     *Request

	n         int
	prefix    key
	expected  []issued // what the server answered to the items so far
	pending   []string // calls without a result yet
	answering bool     // results of the pending calls have begun
	marks     int      // cache marks
	lastRole  string
	reasoning bool // responses: a reasoning item waits for its output
	paused    bool // the last answer was a pause of the provider
	ownBefore bool // the item before is the server\'s
	chat      chatState
	fields    object
}

func newChecker(h *history, opts *Options, req *Request) *checker {
	req.ids = make(map[string]bool)
	return &checker{history: h, opts: opts, req: req, expected: h.after(key{})}
}

// body reads the whole body: one object whose items are streamed.
func (c *checker) body(r io.Reader) error {
	dec := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(dec)
	// Names are looked at here; what a model wrote may have them twice.
	dec.Reset(r, jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return fault("invalid_json", "", "the body is no object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	list := "messages"
	if c.req.Family == model.FamilyResponses {
		list = "input"
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if _, twice := c.fields.get(name); twice {
			return fault("duplicate_field", name, "")
		}
		if name == list {
			c.fields = append(c.fields, member{name: name})
			err = c.items(dec, list)
		} else {
			var v jsontext.Value
			if v, err = dec.ReadValue(); err == nil {
				c.fields = append(c.fields, member{name, v.Clone()})
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if dec.PeekKind() != 0 {
		return fault("trailing_bytes", "", "something stands after the body's object")
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return fault("trailing_bytes", "", "after the body's object: %v", err)
	}
	switch c.req.Family {
	case model.FamilyResponses:
		return c.responsesFields()
	case model.FamilyChat:
		return c.chatFields()
	}
	return c.anthropicFields()
}

func (c *checker) items(dec *jsontext.Decoder, list string) error {
	if dec.PeekKind() != '[' {
		return fault("wrong_type", list, "an array is wanted")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		where := fmt.Sprintf("%s[%d]", list, c.n)
		switch c.req.Family {
		case model.FamilyResponses:
			err = c.responsesItem(raw, where)
		case model.FamilyChat:
			err = c.chatItem(raw, where)
		default:
			err = c.anthropicItem(raw, where)
		}
		if err != nil {
			return err
		}
		c.n++
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if c.req.Items, c.req.prefix = c.n, c.prefix; c.chat.system {
		c.req.Items--
	}
	switch {
	case c.req.Items == 0:
		return fault("no_items", list, "")
	case len(c.pending) > 0:
		return fault("tool_result_missing", list, "no result for %s", strings.Join(c.pending, ", "))
	case c.reasoning:
		return fault("reasoning_without_output", list, "the last item is a reasoning item")
	case c.lastRole == "assistant" && !c.paused:
		return fault("ends_with_assistant", list, "the last item must be a user's or a tool's")
	}
	return c.chatThoughts()
}

// call enters a tool call of the history.
func (c *checker) call(id, where string) error {
	if !idForm.MatchString(id) {
		return fault("invalid_call_id", where, "%q", id)
	}
	if c.req.ids[id] {
		return fault("duplicate_call_id", where, "%s was used before", id)
	}
	c.req.ids[id] = true
	c.pending = append(c.pending, id)
	return nil
}

// result enters the result of a call.
func (c *checker) result(id, where string) error {
	i := slices.Index(c.pending, id)
	switch {
	case i >= 0:
		c.pending = slices.Delete(c.pending, i, i+1)
		c.answering = len(c.pending) > 0
		return nil
	case c.req.ids[id]:
		return fault("tool_result_misplaced", where, "%s was answered before, or its place has passed", id)
	}
	return fault("tool_result_unknown", where, "no call %q", id)
}

// settled refuses what may not stand before all calls are answered.
func (c *checker) settled(where, what string) error {
	if len(c.pending) > 0 {
		return fault("tool_result_missing", where, "%s stands before the result of %s", what, strings.Join(c.pending, ", "))
	}
	return nil
}

// advance puts one item into the prefix. own says that it is in the server's
// name, and then it must be what the server said at this place.
func (c *checker) advance(raw []byte, own bool, where string) error {
	if c.req.First == "" {
		c.req.First = fmt.Sprintf("%x", sum(raw))
	}
	fp := sum(raw)
	c.paused = false
	if own {
		var err error
		if fp, err = c.own(raw, where); err != nil {
			return err
		}
		if !c.ownBefore {
			c.req.Rounds++
		}
	}
	c.ownBefore = own
	c.prefix = chain(c.prefix, fp)
	c.expected = c.history.after(c.prefix)
	if own || c.history.ended(c.prefix) {
		if c.req.passed == nil {
			c.req.passed = make(map[key]bool)
		}
		c.req.passed[c.prefix] = true
	}
	return nil
}

// own checks an item in the server's name and gives its fingerprint.
func (c *checker) own(raw []byte, where string) (key, error) {
	fp := fingerprint(c.req.Family, raw, 0)
	for _, x := range c.expected {
		if x.fp != fp {
			continue
		}
		if x.exact && x.raw != sum(raw) {
			return fp, fault("item_changed", where, "the item means the same as the one issued and has other bytes")
		}
		c.paused = x.pause
		return fp, nil
	}
	if c.opts.Foreign {
		return fp, nil
	}
	known, paused := c.history.issuedAnywhere(c.req.Family, raw)
	switch {
	case !known:
		return fp, fault("item_not_issued", where, "this server never issued it: %s", clip(raw))
	case !c.opts.Window && len(c.expected) > 0:
		return fp, fault("item_changed", where, "another item was issued at this place, or this one with other thinking or call ids")
	case !c.opts.Window:
		return fp, fault("history_changed", where, "it was issued after other items than those before it here")
	}
	c.paused = paused
	return fp, nil
}

func clip(raw []byte) string {
	if len(raw) > 160 {
		return string(raw[:160]) + "…"
	}
	return string(raw)
}

// said notes the latest user text.
func (c *checker) said(text string) {
	c.req.Prompt, c.req.Rounds, c.req.AfterResult = cut(text), 0, false
}

func (c *checker) resulted(text string) {
	c.req.Result, c.req.AfterResult = cut(text), true
}

func cut(s string) string {
	if len(s) > keptText {
		// A copy, so that the rest of a long text is not kept alive.
		return strings.Clone(s[:keptText])
	}
	return s
}

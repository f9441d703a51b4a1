package responses

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// Event takes one message: an event of section 7, or an error that wraps what
// HTTP would have answered (providers.md 8).
func (t *talk) Event(data []byte, sink func(model.Event)) (content bool, err error) {
	content, err = t.decoder.Event(data, sink)
	if err == nil {
		return content, nil
	}
	switch kindOf(data) {
	case "response.failed", "response.incomplete":
		t.over = true
	case "error":
		t.over, t.refused = true, true
		if fail, ok := err.(*model.Error); ok {
			err = t.wrapped(data, fail)
		}
	}
	return content, err
}

// kindOf is the type of an event, "" where it cannot be read.
func kindOf(data []byte) string {
	var ev struct {
		Type model.Loose[string] `json:"type"`
	}
	if json.Unmarshal(data, &ev, wire.Lenient) != nil {
		return ""
	}
	return ev.Type.Value
}

// wrapped is the error of an error event with what it says beside section 7's:
// the status that HTTP would have had, and its headers.
func (t *talk) wrapped(data []byte, e *model.Error) *model.Error {
	var ev struct {
		Status     model.Count                            `json:"status"`
		StatusCode model.Count                            `json:"status_code"`
		Headers    model.Loose[map[string]jsontext.Value] `json:"headers"`
	}
	if json.Unmarshal(data, &ev, wire.Lenient) != nil {
		return e
	}
	header := headerOf(ev.Headers.Value)
	said := wire.ParseFailure(data, "application/json")
	status := ev.Status.N
	if status == 0 {
		status = ev.StatusCode.N
	}
	switch {
	case said.Says("previous_response_not_found") && t.continues && t.streamed.length == 0 && len(t.items) == 0:
		t.unknown = true
	case said.Says("websocket_connection_limit_reached"):
		e.Code, t.over = "provider_socket_expired", false
	case e.Code == "provider_quota_exhausted":
		return e // its headers teach nothing
	case e.Code == "provider_context_exceeded" || e.Code == "provider_rate_limited":
	case status >= 100 && status <= 999 && status/100 != 2:
		e.Code = fmt.Sprintf("provider_http_%d", status)
	}
	t.headers = header
	if d := wire.RetryAfter(header, time.Now()); d > 0 {
		e.Retry = d
	} else if e.Retry == 0 && (e.Pace() || e.Code == "provider_http_529") {
		e.Retry = wire.NamedDelay(e.Detail)
	}
	return e
}

// headerOf reads the headers of an error event, whose values are texts or
// numbers. Others are left out.
func headerOf(given map[string]jsontext.Value) http.Header {
	h := http.Header{}
	for name, v := range given {
		switch v.Kind() {
		case '"':
			var s string
			if json.Unmarshal(v, &s, wire.Lenient) == nil {
				h.Set(name, s)
			}
		case '0':
			h.Set(name, string(v))
		}
	}
	return h
}

// Fate is what an error leaves of the connection. It serves on where the server
// ended the response by an event of its own; one that broke the protocol is not
// read on.
func (t *talk) Fate(error) (wire.Fate, http.Header) {
	headers := t.headers
	t.headers = nil
	switch {
	case t.unknown:
		t.memory.forget()
		t.unknown, t.over, t.refused = false, false, false
		return wire.Resend, headers
	case t.over:
		return wire.Keep, headers
	}
	return wire.Close, headers
}

// outOfStep reports whether a message that no call waited for belongs to a
// response: then the next call's could not be told from it. Others, such as
// codex.rate_limits and keepalive, say nothing to us.
func outOfStep(data []byte) bool {
	kind := kindOf(data)
	return kind == "" || kind == "error" || strings.HasPrefix(kind, "response.")
}

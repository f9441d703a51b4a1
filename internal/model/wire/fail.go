package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
)

const (
	errorBodyLimit = 4 << 10
	detailLimit    = 512
	// longestDelay bounds what a provider may name. A pool that is closed parks
	// every turn of its model, and nobody can open it: a provider that means
	// longer says so again in an hour, and one that errs costs an hour.
	longestDelay = time.Hour
)

// Lenient decodes what a provider sends: it may double names, and mangles
// invalid UTF-8 rather than end a turn for it.
var Lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Mangled reports whether decoding a frame put U+FFFD into text that the frame
// did not spell: bytes that are no UTF-8, or half a surrogate pair.
func Mangled(text string, frame []byte) bool {
	return strings.Contains(text, "\uFFFD") && !bytes.Contains(frame, []byte("\uFFFD")) &&
		!bytes.Contains(bytes.ToLower(frame), []byte(`\ufffd`))
}

// connectionError classifies a failure to reach a provider (providers.md 19).
func connectionError(err error) *model.Error {
	var known *model.Error
	if errors.As(err, &known) {
		return known
	}
	e := &model.Error{Code: "provider_connection_failed", Detail: err.Error(), Cause: err}
	var timeout net.Error
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e.Code = "provider_connection_timeout"
	case errors.As(err, &errno):
		e.Code = fmt.Sprintf("provider_connection_os_%d", int(errno))
	case isTLS(err):
		e.Code = "provider_connection_tls"
	}
	return e
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		alert        tls.AlertError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &alert) || errors.As(err, &record) ||
		strings.Contains(err.Error(), "remote error: tls:")
}

// streamError classifies a failure of an established stream.
func streamError(err error) *model.Error {
	var known *model.Error
	if errors.As(err, &known) {
		return known
	}
	return &model.Error{Code: "provider_stream_failed", Detail: err.Error(), Cause: err}
}

// Failure is what an error body or an error event says, as far as it is
// recognised. Code and Type are the words of its error object, for the
// family's table.
type Failure struct {
	Message  string
	Code     string
	Type     string
	ResetsAt int64 // when a plan's limit ends, Unix seconds; 0: not said
}

// Says reports whether the code or the type is one of words.
func (f Failure) Says(words ...string) bool {
	for _, w := range words {
		if f.Code == w || f.Type == w {
			return true
		}
	}
	return false
}

// readFailure reads an error body: at most 4 KiB, and nothing of a longer,
// interrupted or unreadable one, since a part may end inside a credential.
func readFailure(r io.Reader, contentType string) Failure {
	text, err := io.ReadAll(io.LimitReader(r, errorBodyLimit+1))
	if err != nil || len(text) > errorBodyLimit {
		return Failure{}
	}
	return ParseFailure(text, contentType)
}

// ParseFailure recognises the forms of providers.md 5 in a whole error body.
func ParseFailure(text []byte, contentType string) Failure {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || !utf8.Valid(text) {
		return Failure{}
	}
	if bytes.IndexByte([]byte(`{["`), text[0]) < 0 {
		media, _, _ := mime.ParseMediaType(contentType)
		if strings.HasSuffix(media, "json") {
			return Failure{}
		}
		return Failure{Message: string(text)}
	}
	if text[0] == '"' {
		var s string
		if json.Unmarshal(text, &s) != nil {
			return Failure{}
		}
		return Failure{Message: s}
	}
	return parseFailureObject(text)
}

func parseFailureObject(text []byte) Failure {
	var b struct {
		Error   jsontext.Value `json:"error"`
		Message jsontext.Value `json:"message"`
		Detail  jsontext.Value `json:"detail"`
		Code    jsontext.Value `json:"code"`
		Type    jsontext.Value `json:"type"`
		Resets  jsontext.Value `json:"resets_at"`
	}
	if json.Unmarshal(text, &b, Lenient) != nil {
		return Failure{}
	}
	f := Failure{Code: word(b.Code), Type: word(b.Type), ResetsAt: moment(b.Resets)}
	if len(b.Error) > 0 && b.Error[0] == '{' {
		inner := parseFailureObject(b.Error)
		f.Message = inner.Message
		f.ResetsAt = max(f.ResetsAt, inner.ResetsAt)
		f.Code, f.Type = either(inner.Code, f.Code), either(inner.Type, f.Type)
	}
	f.Message = either(f.Message, either(word(b.Error), either(word(b.Message), word(b.Detail))))
	return f
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// word is a JSON string or number as text, else "".
func word(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	switch v.Kind() {
	case '"':
		var s string
		if json.Unmarshal(v, &s, Lenient) == nil {
			return s
		}
	case '0':
		return string(v)
	}
	return ""
}

// moment is Unix seconds that a date can show, else 0.
func moment(v jsontext.Value) int64 {
	if n := number(v); n >= 1 && n < 1<<38 {
		return int64(n)
	}
	return 0
}

// cutDetail redacts first and cuts after: a cut must not leave the part of a
// credential that the redactor no longer knows.
func cutDetail(redact func(string) string, detail string) string {
	if redact != nil {
		detail = redact(detail)
	}
	if utf8.RuneCountInString(detail) <= detailLimit {
		return detail
	}
	return string([]rune(detail)[:detailLimit])
}

// RetryAfter is the delay that a response's headers name, 0 when none:
// retry-after-ms, or retry-after in seconds or as a date.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, ok := Figure(h.Get("retry-after-ms")); ok {
		return delay(ms / 1000)
	}
	value := h.Get("retry-after")
	if s, ok := Figure(value); ok {
		return delay(s)
	}
	if at, err := http.ParseTime(strings.TrimSpace(value)); err == nil {
		return delay(at.Sub(now).Seconds())
	}
	return 0
}

// Figure is a header's number, 0 or more; infinity and what is no number are
// none.
func Figure(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 0)
}

// delay turns seconds into a duration between 0 and longestDelay.
func delay(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), longestDelay.Seconds()) * float64(time.Second))
}

var tryAgainRule = regexp.MustCompile(`(?i)try again in ([0-9.]+(?:ms|us|s|m|h)(?:[0-9.]+(?:ms|s|m))*|[0-9.]+ ?(?:milliseconds|seconds?|minutes?))`)

// NamedDelay is the delay in a message such as "try again in 2.1s"; 0: none.
func NamedDelay(message string) time.Duration {
	m := tryAgainRule.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	if d, err := time.ParseDuration(m[1]); err == nil {
		return min(max(d, 0), longestDelay)
	}
	digits := strings.TrimRight(m[1], " abcdefghijklmnopqrstuvwxyz")
	n, ok := Figure(digits)
	if !ok {
		return 0
	}
	switch unit := m[1][len(digits):]; {
	case strings.Contains(unit, "milli"):
		n /= 1000
	case strings.Contains(unit, "minute"):
		n *= 60
	}
	return delay(n)
}

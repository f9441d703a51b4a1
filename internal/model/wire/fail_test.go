package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestConnectionError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		code string
	}{
		{"a deadline", fmt.Errorf("dial: %w", context.DeadlineExceeded), "provider_connection_timeout"},
		{"a network timeout", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "provider_connection_timeout"},
		{
			"an errno anywhere in the chain", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
			fmt.Sprintf("provider_connection_os_%d", int(syscall.ECONNREFUSED)),
		},
		{"an unknown authority", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "provider_connection_tls"},
		{"a TLS alert", tls.AlertError(42), "provider_connection_tls"},
		{"anything else", io.ErrUnexpectedEOF, "provider_connection_failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := connectionError(c.err)
			if e.Code != c.code || !errors.Is(e, c.err) || e.Detail == "" || !e.Retryable() {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestParseFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body, contentType string
		want                    Failure
	}{
		{"an error object", `{"error":{"message":"m","type":"t","code":"c"}}`, "application/json", Failure{Message: "m", Code: "c", Type: "t"}},
		{"an Anthropic body", `{"type":"error","error":{"type":"rate_limit_error","message":"Slow"}}`, "", Failure{Message: "Slow", Type: "rate_limit_error"}},
		{"a plan's limit with its end", `{"error":{"type":"usage_limit_reached","message":"m","resets_at":1767323045}}`, "", Failure{Message: "m", Type: "usage_limit_reached", ResetsAt: 1767323045}},
		{"an error string", `{"error":"text"}`, "application/json", Failure{Message: "text"}},
		{"a message", `{"object":"error","message":"m"}`, "application/json", Failure{Message: "m"}},
		{"a FastAPI detail", `{"detail":"d"}`, "application/json", Failure{Message: "d"}},
		{"a detail that is no string gives nothing", `{"detail":[{"loc":1}]}`, "application/json", Failure{}},
		{"a JSON string", `"s"`, "application/json", Failure{Message: "s"}},
		{"a numeric code", `{"error":{"message":"m","code":503}}`, "application/json", Failure{Message: "m", Code: "503"}},
		{"plain text", "Bad gateway\n", "text/plain", Failure{Message: "Bad gateway"}},
		{"plain text that says it is JSON gives nothing", "Bad gateway", "application/json", Failure{}},
		{"an array gives nothing", `["x"]`, "application/json", Failure{}},
		{"a cut object gives nothing", `{"error":{"message":"m`, "application/json", Failure{}},
		{"text that is not UTF-8 gives nothing", "\xff\xfe", "text/plain", Failure{}},
		{"an empty body gives nothing", "", "text/plain", Failure{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ParseFailure([]byte(c.body), c.contentType); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestErrorDetails(t *testing.T) {
	t.Parallel()
	const key = "sk-secret-0123456789"
	redact := func(s string) string { return strings.ReplaceAll(s, key, "[REDACTED]") }
	t.Run("PV-59 a body of 5 KiB that ends in the key gives no detail", func(t *testing.T) {
		t.Parallel()
		body := `{"error":{"message":"` + strings.Repeat("x", 5<<10) + key + `"}}`
		if f := readFailure(strings.NewReader(body), "application/json"); f != (Failure{}) {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("PV-59 a key in it twice is masked twice", func(t *testing.T) {
		t.Parallel()
		got := cutDetail(redact, key+strings.Repeat("x", 360)+key)
		if strings.Contains(got, key) || strings.Count(got, "[REDACTED]") != 2 || len(got) > 512 {
			t.Errorf("got %q", got)
		}
	})
	t.Run("redaction comes before the cut", func(t *testing.T) {
		t.Parallel()
		got := cutDetail(redact, strings.Repeat("é", 505)+key)
		if strings.Contains(got, "sk-") || len([]rune(got)) != 512 {
			t.Errorf("got %q", got)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, header, value string
		want                time.Duration
	}{
		{"seconds", "retry-after", "2", 2 * time.Second},
		{"fractions of seconds", "retry-after", "1.5", 1500 * time.Millisecond},
		{"a date", "retry-after", "Fri, 02 Jan 2026 03:04:15 GMT", 10 * time.Second},
		{"a date that is past", "retry-after", "Fri, 02 Jan 2026 03:04:00 GMT", 0},
		{"milliseconds", "retry-after-ms", "250", 250 * time.Millisecond},
		{"nonsense names none", "retry-after", "soon", 0},
		{"a negative figure names none", "retry-after", "-3", 0},
		{"no number names none", "retry-after", "NaN", 0},
		{"an absurd figure is bounded", "retry-after", "1e300", longestDelay},
		{"half a million seconds are bounded", "retry-after", "500000", time.Hour},
		{"a far date is bounded", "retry-after", "Fri, 02 Jan 2099 03:04:15 GMT", time.Hour},
		{"absurd milliseconds are bounded", "retry-after-ms", "1e18", time.Hour},
		{"infinity names none", "retry-after", "inf", 0},
		{"infinity in full names none", "retry-after", "Infinity", 0},
		{"what is past every number names none", "retry-after", "1e400", 0},
		{"infinite milliseconds name none", "retry-after-ms", "+Inf", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := RetryAfter(http.Header{http.CanonicalHeaderKey(c.header): {c.value}}, now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestNamedDelay(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]time.Duration{
		"Rate limit reached for gpt-test-1: try again in 1.5s.": 1500 * time.Millisecond,
		"Please try again in 20ms. Visit":                       20 * time.Millisecond,
		"Please try again in 6m0s":                              6 * time.Minute,
		"Try again in 12 seconds":                               12 * time.Second,
		"try again in 2 minutes":                                2 * time.Minute,
		"try again later":                                       0,
		"try again in 1.2.3s":                                   0,
		"try again in 900h":                                     time.Hour,
		"try again in 99999999999999h":                          time.Hour,
		"try again in " + strings.Repeat("9", 400) + " seconds": 0,
	} {
		if got := NamedDelay(message); got != want {
			t.Errorf("%q: got %v, want %v", message, got, want)
		}
	}
}

func FuzzParseFailure(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"m","type":"t","code":1}}`), "application/json")
	f.Add([]byte(`"x"`), "text/plain")
	f.Add([]byte("try again in 6m0s"), "text/plain")
	for _, name := range []string{"anthropic/testdata/A4-429.http", "anthropic/testdata/A4-529.http", "responses/testdata/R3-429.http", "responses/testdata/R3-quota.http"} {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := strings.Cut(string(text), "\n\n")
		f.Add([]byte(body), "application/json")
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		got := ParseFailure(body, contentType)
		if d := NamedDelay(got.Message); d < 0 || d > longestDelay {
			t.Fatalf("delay %v", d)
		}
	})
}

package model

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is a failed model call (providers.md 19). Detail holds no credential,
// no URL query and no header, and at most 512 characters.
type Error struct {
	Code   string
	Detail string
	// Retry is the delay that the provider asked for; 0 when it named none.
	Retry time.Duration
	Cause error
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Code
	}
	return e.Code + ": " + e.Detail
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error; format may be "".
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// ErrPaced is returned when a closed pool kept a call from being sent.
var ErrPaced = errors.New("the provider's pool is closed")

// Retryable reports whether the turn loop may make the call again
// (providers.md 18).
func (e *Error) Retryable() bool {
	switch e.Code {
	case "provider_rate_limited", "provider_stream_failed", "provider_stream_stalled",
		"truncated_sse_frame", "missing_completion", "provider_admission_timeout",
		"provider_socket_expired", "provider_login_refreshed":
		return true
	}
	return e.Pace() || strings.HasPrefix(e.Code, "provider_http_5") ||
		strings.HasPrefix(e.Code, "provider_connection_")
}

// Pace reports whether the provider refused for pace: such a call may be made
// 64 times, spaced by the pool alone.
func (e *Error) Pace() bool {
	return e.Code == "provider_http_429" || e.Code == "provider_rate_limited"
}

package secret

import (
	"fmt"
	"log/slog"
)

// Mark stands for every masked span.
const Mark = "[REDACTED]"

// MinValue is the shortest value, in bytes, that is masked or compared:
// shorter ones would wreck ordinary text (approvals.md 20.2).
const MinValue = 8

// Value is a secret. However it is printed, logged or encoded it shows as
// Mark; Reveal is the only way to its bytes.
type Value struct{ text string }

// NewValue wraps a secret.
func NewValue(text string) Value { return Value{text} }

// Reveal returns the secret itself.
func (v Value) Reveal() string { return v.text }

// Format hides the value from every verb of package fmt.
func (v Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Mark)) }

// String hides the value.
func (v Value) String() string { return Mark }

// LogValue hides the value from structured logs.
func (v Value) LogValue() slog.Value { return slog.StringValue(Mark) }

// MarshalText hides the value from JSON and every other text encoding.
func (v Value) MarshalText() ([]byte, error) { return []byte(Mark), nil }

// Hidden makes a type that embeds it print, log and encode as Mark, whole: for
// what holds secrets in fields that package fmt would otherwise reach into.
type Hidden struct{}

// Format hides the value from every verb of package fmt.
func (Hidden) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Mark)) }

// String hides the value.
func (Hidden) String() string { return Mark }

// LogValue hides the value from structured logs.
func (Hidden) LogValue() slog.Value { return slog.StringValue(Mark) }

// MarshalText hides the value from JSON and every other text encoding.
func (Hidden) MarshalText() ([]byte, error) { return []byte(Mark), nil }

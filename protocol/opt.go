package protocol

import (
	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Opt is a request field that may be absent, null or a value. Its zero value
// is absent. Only configure tells null from absent (section 1): there null
// clears, everywhere else both mean "not given" and Get says so for both.
type Opt[T any] struct {
	state optState
	value T
}

type optState uint8

const (
	optAbsent optState = iota
	optNull
	optSet
)

// Set is an Opt with a value.
func Set[T any](v T) Opt[T] { return Opt[T]{optSet, v} }

// Null is an Opt that is sent as null.
func Null[T any]() Opt[T] { return Opt[T]{state: optNull} }

// Get is the value, and whether there is one: false when absent or null.
func (o Opt[T]) Get() (v T, ok bool) { return o.value, o.state == optSet }

// Or is the value, or def when there is none.
func (o Opt[T]) Or(def T) T {
	if o.state == optSet {
		return o.value
	}
	return def
}

// IsZero reports that the field is absent; it serves the omitzero tag.
func (o Opt[T]) IsZero() bool { return o.state == optAbsent }

// IsNull reports that null was given.
func (o Opt[T]) IsNull() bool { return o.state == optNull }

// MarshalJSONTo writes the value, or null when there is none.
func (o Opt[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if o.state != optSet {
		return enc.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(enc, o.value)
}

// UnmarshalJSONFrom reads null or a value.
func (o *Opt[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*o = Opt[T]{}
	if dec.PeekKind() == 'n' {
		o.state = optNull
		_, err := dec.ReadToken()
		return err
	}
	o.state = optSet
	return json.UnmarshalDecode(dec, &o.value)
}

// inner is what the appender of this package writes.
func (o Opt[T]) inner() (v any, ok bool) { return o.value, o.state == optSet }

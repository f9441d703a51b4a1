package model

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxCount bounds every figure of a usage report: far above what a model can
// process in one call, and so low that no sum of a bot's life overflows.
const MaxCount = 1 << 40

// Count is a figure of a usage report as a provider sends it: a whole number,
// brought to 0..MaxCount. Anything else, a fraction, a text, null, counts as
// not reported; an answer never fails for it.
type Count struct {
	N     int64
	Known bool
}

// UnmarshalJSONFrom implements the decoder's interface.
func (c *Count) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*c = Count{}
	digits := bytes.TrimPrefix(v, []byte("-"))
	if v.Kind() != '0' || len(bytes.Trim(digits, "0123456789")) > 0 {
		return nil
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	switch {
	case len(digits) < len(v):
		n = 0 // below nothing
	case err != nil:
		n = MaxCount // past an int64
	}
	*c = Count{N: min(n, MaxCount), Known: true}
	return nil
}

// Bound brings every figure of u to 0..MaxCount and the parts of its input to
// the input. What sums up several figures passes it before anyone sees it.
func (u *Usage) Bound() {
	for _, n := range []*int64{&u.Input, &u.Output, &u.Cached, &u.CacheWrite, &u.CacheWrite1h, &u.Reasoning, &u.WebSearches} {
		*n = min(max(*n, 0), MaxCount)
	}
	u.Cached = min(u.Cached, u.Input)
	u.CacheWrite = min(u.CacheWrite, u.Input)
	u.CacheWrite1h = min(u.CacheWrite1h, u.CacheWrite)
	for i := range u.Models {
		m := &u.Models[i]
		for _, n := range []*int64{&m.Input, &m.Output, &m.Cached, &m.CacheWrite} {
			*n = min(max(*n, 0), MaxCount)
		}
	}
}

// Loose is a member that an answer is whole without: of another type than T it
// counts as absent.
type Loose[T any] struct {
	Value T
	Given bool
}

// UnmarshalJSONFrom implements the decoder's interface.
func (l *Loose[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*l = Loose[T]{}
	var value T
	if v.Kind() != 'n' && json.Unmarshal(v, &value, json.JoinOptions(tolerant...)) == nil {
		*l = Loose[T]{value, true}
	}
	return nil
}

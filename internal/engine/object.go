package engine

import (
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// object builds one JSON object by hand: events are written for each step of
// each turn, and raw values must keep their bytes.
type object struct{ b []byte }

func newObject() *object { return &object{b: append(make([]byte, 0, 128), '{')} }

func (o *object) key(k string) {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, k...)
	o.b = append(o.b, '"', ':')
}

func (o *object) str(k, v string) *object {
	o.key(k)
	o.b, _ = jsontext.AppendQuote(o.b, v) // invalid UTF-8 becomes U+FFFD
	return o
}

// orNull is str, with null for "".
func (o *object) orNull(k, v string) *object {
	if v == "" {
		return o.null(k)
	}
	return o.str(k, v)
}

// opt is str, left out when "".
func (o *object) opt(k, v string) *object {
	if v == "" {
		return o
	}
	return o.str(k, v)
}

func (o *object) int(k string, v int64) *object {
	o.key(k)
	o.b = strconv.AppendInt(o.b, v, 10)
	return o
}

// intOrNull is int, with null for 0.
func (o *object) intOrNull(k string, v int64) *object {
	if v == 0 {
		return o.null(k)
	}
	return o.int(k, v)
}

func (o *object) bool(k string, v bool) *object {
	o.key(k)
	o.b = strconv.AppendBool(o.b, v)
	return o
}

func (o *object) null(k string) *object {
	o.key(k)
	o.b = append(o.b, "null"...)
	return o
}

func (o *object) raw(k string, v []byte) *object {
	o.key(k)
	o.b = append(o.b, v...)
	return o
}

// member is raw under a name that comes from outside.
func (o *object) member(name string, v []byte) *object {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b, _ = jsontext.AppendQuote(o.b, name)
	o.b = append(append(o.b, ':'), v...)
	return o
}

func (o *object) strs(k string, v []string) *object {
	o.key(k)
	o.b = append(o.b, '[')
	for i, s := range v {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b, _ = jsontext.AppendQuote(o.b, s)
	}
	o.b = append(o.b, ']')
	return o
}

// facts adds the members of an error's facts.
func (o *object) facts(f map[string]json.RawMessage) *object {
	for _, k := range sortedKeys(f) {
		o.raw(k, f[k])
	}
	return o
}

func (o *object) done() json.RawMessage { return append(o.b, '}') }

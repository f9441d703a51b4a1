package model

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Span is the place of a value in the bytes it was found in: [Start, End).
type Span struct{ Start, End int }

// Of is the value itself.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End] }

// Members calls each with every member of the JSON object in raw and the place
// of its value, in order, until it returns false. A doubled name is called
// twice. It copies nothing but the names.
func Members(raw []byte, each func(name string, value Span) bool) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), tolerant...)
	if err := open(dec, '{'); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		value, err := readSpan(dec)
		if err != nil {
			return err
		}
		if !each(text, value) {
			return nil
		}
	}
	_, err := dec.ReadToken()
	return err
}

// Elements calls each with the place of every element of the JSON array in
// raw, until it returns false.
func Elements(raw []byte, each func(value Span) bool) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), tolerant...)
	if err := open(dec, '['); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		value, err := readSpan(dec)
		if err != nil {
			return err
		}
		if !each(value) {
			return nil
		}
	}
	_, err := dec.ReadToken()
	return err
}

var tolerant = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

func open(dec *jsontext.Decoder, kind jsontext.Kind) error {
	tok, err := dec.ReadToken()
	if err == nil && tok.Kind() != kind {
		err = Errorf("invalid_provider_response", "a JSON %v was expected, not a %v", kind, tok.Kind())
	}
	return err
}

func readSpan(dec *jsontext.Decoder) (Span, error) {
	value, err := dec.ReadValue()
	end := int(dec.InputOffset())
	return Span{end - len(value), end}, err
}

// MendEscapes is raw with each escape of half a surrogate pair made that of
// U+FFFD, which is as long; raw itself when there is none. JSON's grammar has
// such escapes, and strict parsers refuse them.
func MendEscapes(raw []byte) []byte {
	out := raw
	for i := 0; i+1 < len(raw); {
		if raw[i] != '\\' {
			i++
			continue
		}
		unit, ok := escapedUnit(raw[i:])
		switch {
		case !ok:
			i += 2
			continue
		case utf16.IsSurrogate(unit):
			next, ok := escapedUnit(raw[min(i+escapeLen, len(raw)):])
			if ok && utf16.DecodeRune(unit, next) != utf8.RuneError {
				i += 2 * escapeLen
				continue
			}
			if &out[0] == &raw[0] {
				out = bytes.Clone(raw)
			}
			copy(out[i:], `\ufffd`)
		}
		i += escapeLen
	}
	return out
}

const escapeLen = len(`\u0000`)

// escapedUnit is the UTF-16 unit of the \u escape that b begins with.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < escapeLen || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:escapeLen]), 16, 16)
	return rune(n), err == nil
}

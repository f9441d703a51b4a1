// Package action writes the resolved action that a step of the tool host shows: a JSON
// object whose keys stand in the order in which they were given. One action always has
// the same bytes, so that a step which the person overturned is known again; so nothing
// in it is a time or a counter (companions.md 2.1).
package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"agent/protocol"
)

// The bounds of an action, in bytes.
const (
	MaxBytes = 64 << 10 // of the whole object
	MaxText  = 16 << 10 // of any one text in it
)

// minText is how short a text may be made so that the whole fits.
const minText = 512

// Action is a resolved action under way. Its zero value is ready for use.
type Action struct{ parts []part }

type part struct {
	key   string
	value any
	long  bool // a text that may be cut
}

// Add gives a key a value that is shown whole: a name, a path, a number, a list.
func (a *Action) Add(key string, value any) { a.parts = append(a.parts, part{key, value, false}) }

// Opt is Add for a value that is left out when it is the zero one.
func Opt[T comparable](a *Action, key string, value T) {
	if value != *new(T) {
		a.Add(key, value)
	}
}

// Text gives a key a text that may be long. Past MaxText its first part is shown, and
// beside it KEY_bytes, KEY_sha256 and KEY_note tell of the whole.
func (a *Action) Text(key, text string) { a.parts = append(a.parts, part{key, text, true}) }

// Bytes is the object. Where the texts would make it longer than MaxBytes all of them
// are cut shorter. invalid_arguments for one that is too long even so.
func (a *Action) Bytes() (json.RawMessage, error) {
	for limit := MaxText; limit >= minText; limit /= 2 {
		out, err := a.within(limit)
		if err != nil || len(out) <= MaxBytes {
			return out, err
		}
	}
	return nil, protocol.Fail("invalid_arguments", fmt.Sprintf("what was asked for has too many names and paths to be shown in %d bytes; ask for less at once", MaxBytes))
}

func (a *Action) within(limit int) (json.RawMessage, error) {
	var b strings.Builder
	b.WriteByte('{')
	put := func(key string, value any) error {
		text, err := marshal(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, _ := marshal(key)
		b.WriteString(name + ":" + text)
		return nil
	}
	for _, p := range a.parts {
		text, isText := p.value.(string)
		if !p.long || !isText || len(text) <= limit {
			if err := put(p.key, p.value); err != nil {
				return nil, err
			}
			continue
		}
		sum := sha256.Sum256([]byte(text))
		shown := Cut(text, limit)
		for _, of := range []part{
			{key: p.key, value: shown},
			{key: p.key + "_bytes", value: len(text)},
			{key: p.key + "_sha256", value: hex.EncodeToString(sum[:])},
			{key: p.key + "_note", value: fmt.Sprintf("cut: the first %d of %d bytes are shown", len(shown), len(text))},
		} {
			if err := put(of.key, of.value); err != nil {
				return nil, err
			}
		}
	}
	b.WriteByte('}')
	return json.RawMessage(b.String()), nil
}

// marshal is JSON without the escaping of HTML, which nobody who reads it needs.
func marshal(value any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// Cut is the longest beginning of a text of at most max bytes that ends between
// characters.
func Cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max]
}

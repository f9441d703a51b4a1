package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// quoteLimit bounds how much of bad arguments is quoted to the model.
const quoteLimit = 1024

// Safe makes the calls of one response safe to store and to send again
// (providers.md 5): a strict provider later accepts every call, whatever the
// model wrote. It is used by one goroutine.
type Safe struct {
	req  *Request
	seen map[string]bool
	next int
}

// NewSafe begins a response to req.
func NewSafe(req *Request) *Safe { return &Safe{req: req, seen: map[string]bool{}} }

// Call makes one call safe; calls come in the order of the response. mangled
// says that bytes of raw were lost because they were not UTF-8. An error is
// the store's, from Request.IDTaken.
func (s *Safe) Call(id, name string, raw []byte, mangled bool) (Call, error) {
	index := s.next
	s.next++
	c := Call{ID: id, Name: name}
	c.Arguments, c.Invalid = SafeArguments(raw, mangled)
	taken := id == "" || s.seen[id]
	if !taken {
		var err error
		if taken, err = s.req.IDTaken(id); err != nil {
			return Call{}, err
		}
	}
	if taken {
		c.ID, c.ProviderID = s.req.NewID(index), id
	}
	s.seen[c.ID] = true
	return c, nil
}

// SafeArguments gives arguments that are a JSON object: raw itself, byte for
// byte, when it is one; {} without a fault when raw is blank; else {} with
// what was wrong, quoting at most 1 KiB of raw. A doubled name is no fault.
func SafeArguments(raw []byte, mangled bool) (args json.RawMessage, invalid string) {
	text := bytes.Trim(raw, " \t\r\n")
	if len(text) == 0 && !mangled {
		return json.RawMessage("{}"), ""
	}
	fault := argumentsFault(raw, text, mangled)
	if fault == "" {
		return json.RawMessage(raw), ""
	}
	return json.RawMessage("{}"), "the arguments " + fault + "; what came was: " + quoted(raw)
}

func argumentsFault(raw, text []byte, mangled bool) string {
	if mangled || !utf8.Valid(raw) {
		return "are not valid UTF-8"
	}
	if text[0] != '{' {
		if kind := jsontext.Value(text); kind.IsValid(jsontext.AllowDuplicateNames(true)) {
			return "are " + kindWords(text[0]) + ", not a JSON object"
		}
		return "are not a JSON object"
	}
	value := jsontext.Value(text)
	if value.IsValid(jsontext.AllowDuplicateNames(true)) {
		return ""
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	_, err := dec.ReadValue()
	if err == nil {
		return "go on after the JSON object's end"
	}
	return "are not valid JSON (" + strings.TrimPrefix(err.Error(), "jsontext: ") + ")"
}

func kindWords(first byte) string {
	switch first {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	default:
		return "a number"
	}
}

// quoted is at most quoteLimit bytes of raw, as valid UTF-8.
func quoted(raw []byte) string {
	cut := raw
	if len(cut) > quoteLimit {
		cut = cut[:quoteLimit]
		for range utf8.UTFMax - 1 {
			if utf8.RuneStart(raw[len(cut)]) {
				break
			}
			cut = cut[:len(cut)-1]
		}
	}
	text := strings.ToValidUTF8(string(cut), "?")
	if len(cut) < len(raw) {
		text += " [...]"
	}
	return text
}

// AppendString appends s as a JSON string without HTML escaping, the only way
// the daemon writes one; invalid UTF-8 becomes U+FFFD.
func AppendString[Bytes ~[]byte | ~string](dst []byte, s Bytes) []byte {
	// A long text would otherwise be copied again and again as dst grows.
	dst = slices.Grow(dst, len(s)+len(s)/16+64)
	dst, _ = jsontext.AppendQuote(dst, s) // the error only tells of U+FFFD
	return dst
}

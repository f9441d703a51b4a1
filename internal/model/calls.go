package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// quoteLimit bounds how much of bad arguments is quoted to the model, and
	// shownLimit how much of a provider's id or name is kept for display.
	quoteLimit = 1024
	shownLimit = 256
	// nameLimit is the longest id or name that every provider takes back.
	nameLimit = 64
	// depthLimit is how deep arguments may nest: parsers in use stop at 128,
	// counting the request around them.
	depthLimit = 100
)

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
	if !isName(name) {
		c.Name, c.ProviderName = s.standIn(name), cut(name, shownLimit)
	}
	taken := !isName(id) || s.seen[id]
	if !taken {
		var err error
		if taken, err = s.req.IDTaken(id); err != nil {
			return Call{}, err
		}
	}
	if taken {
		c.ID, c.ProviderID = s.req.NewID(index), cut(id, shownLimit)
	}
	s.seen[c.ID] = true
	return c, nil
}

// isName reports whether an id or a tool's name is of the form that every
// provider takes back: ^[A-Za-z0-9_-]{1,64}$.
func isName(text string) bool {
	return text != "" && len(text) <= nameLimit && strings.IndexFunc(text, notInName) < 0
}

func notInName(r rune) bool {
	return !(r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
}

// SafeName is a name of the form that every provider takes back, made from one
// that is not: what is not allowed in it is replaced by _, and it is cut.
func SafeName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if notInName(r) {
			return '_'
		}
		return r
	}, cut(name, nameLimit))
	if safe == "" {
		return "_"
	}
	return safe
}

// standIn is SafeName where that is none of the request's tools: nobody is to
// take the call for one of such a tool.
func (s *Safe) standIn(name string) string {
	safe := SafeName(name)
	for slices.Contains(s.req.ToolNames, safe) {
		safe = cut("_"+safe, nameLimit)
		if strings.Trim(safe, "_") == "" {
			break
		}
	}
	return safe
}

// cut is at most n bytes of text, in whole characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// SafeArguments gives arguments that are a JSON object: raw itself, byte for
// byte, when it is one that every parser reads alike; {} without a fault when
// raw is blank; else {} with what was wrong, quoting at most 1 KiB of raw.
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
		return Fault(text)
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	_, err := dec.ReadValue()
	if err == nil {
		return "go on after the JSON object's end"
	}
	return "are not valid JSON (" + strings.TrimPrefix(err.Error(), "jsontext: ") + ")"
}

// Fault is what parsers that are stricter than JSON's grammar refuse in a value,
// worded to follow what the value is; "" for nothing. Stored, it would make every
// later request of the conversation fail, of which the value is a part.
func Fault(value []byte) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(value))
	for {
		tok, err := dec.ReadToken()
		switch {
		case err == io.EOF:
			return ""
		case errors.Is(err, jsontext.ErrDuplicateName):
			return "name a member twice"
		case err != nil:
			return "are not valid JSON (" + strings.TrimPrefix(err.Error(), "jsontext: ") + ")"
		case dec.StackDepth() > depthLimit:
			return fmt.Sprintf("nest deeper than %d levels", depthLimit)
		case tok.Kind() == '0' && outOfRange(tok.String()):
			return "hold a number that is out of range"
		}
	}
}

func outOfRange(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
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
	shown := cut(string(raw[:min(len(raw), quoteLimit+1)]), quoteLimit)
	text := strings.ToValidUTF8(shown, "?")
	if len(shown) < len(raw) {
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

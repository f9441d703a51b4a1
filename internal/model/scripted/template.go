package scripted

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"agent/internal/model"

	"github.com/go-json-experiment/json/jsontext"
)

// maxOutput bounds the encoded output of one response (providers.md 5).
const maxOutput = 768 << 10

// piece is a run of plain text, or with a name the place of a substitution.
type piece struct{ text, name string }

// split cuts a template into pieces. $$ is a dollar; a dollar that starts
// neither $$ nor ${name} is itself.
func split(s string) []piece {
	var out []piece
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			out = append(out, piece{text: plain.String()})
			plain.Reset()
		}
	}
	closed := true
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			plain.WriteString(s)
			flush()
			return out
		}
		plain.WriteString(s[:i])
		rest := s[i+1:]
		end := -1
		if rest[0] == '{' && closed {
			end = strings.IndexByte(rest, '}')
			closed = end >= 0 // looked for once in vain is enough
		}
		switch {
		case rest[0] == '$':
			plain.WriteByte('$')
			s = rest[1:]
		case end > 1:
			flush()
			out = append(out, piece{name: rest[1:end]})
			s = rest[end+1:]
		default:
			plain.WriteByte('$')
			s = rest
		}
	}
}

// expander puts values into templates and stops once a response would grow
// past its bound.
type expander struct {
	value func(name string) string
	room  int
}

func (e *expander) text(s string) (string, error) {
	if !strings.Contains(s, "$") {
		return s, e.take(len(s))
	}
	var b strings.Builder
	for _, p := range split(s) {
		t := p.text
		if p.name != "" {
			t = e.value(p.name)
		}
		if err := e.take(len(t)); err != nil {
			return "", err
		}
		b.WriteString(t)
	}
	return b.String(), nil
}

func (e *expander) take(n int) error {
	if e.room -= n; e.room < 0 {
		return errTooLong()
	}
	return nil
}

func errTooLong() error {
	return model.Errorf("provider_output_limit", "the step's output is over %d KiB", maxOutput>>10)
}

// arguments expands the string values inside a JSON object. All other bytes
// stay as they are, so that a value never becomes JSON structure.
func (e *expander) arguments(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '$') < 0 {
		return raw, e.take(len(raw))
	}
	var out []byte
	done := 0
	err := eachStringAt(raw, func(start, end int, s string) error {
		if !strings.Contains(s, "$") {
			return nil
		}
		t, err := e.text(s)
		if err != nil {
			return err
		}
		out = append(out, raw[done:start]...)
		out = appendText(out, t)
		done = end
		return nil
	})
	if err != nil {
		return nil, err
	}
	return append(out, raw[done:]...), nil
}

func eachString(raw []byte, f func(string) error) error {
	return eachStringAt(raw, func(_, _ int, s string) error { return f(s) })
}

// eachStringAt calls f for every string value (names are not values) with its
// place in raw.
func eachStringAt(raw []byte, f func(start, end int, s string) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		before := int(dec.InputOffset())
		token, err := dec.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if token.Kind() != '"' || isName(dec) {
			continue
		}
		end := int(dec.InputOffset())
		start := before + bytes.IndexByte(raw[before:end], '"')
		if err := f(start, end, token.String()); err != nil {
			return err
		}
	}
}

// isName reports whether the string just read is an object's member name: the
// names and values of an object are counted together.
func isName(dec *jsontext.Decoder) bool {
	kind, length := dec.StackIndex(dec.StackDepth())
	return kind == '{' && length%2 == 1
}

// clipBytes cuts s to at most n bytes, between characters.
func clipBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

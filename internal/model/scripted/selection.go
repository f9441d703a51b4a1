package scripted

import (
	"fmt"
	"io"
	"strings"

	"agent/internal/model"

	"github.com/go-json-experiment/json/jsontext"
)

// selection finds the anchor and the step of a request while its items pass
// by once (providers.md 13). It keeps the anchor's text, the latest tool
// result and the values captured, whatever the length of the request.
type selection struct {
	model *entry

	// named is the last user item that a script other than any matches. Once
	// there is one, no any counts.
	named *anchor
	other *anchor // the last user item, for the script any

	assistants int
	images     int
	last       []byte // output of the latest tool result
	text       []byte // scratch
}

// anchor is a user item that a script answers.
type anchor struct {
	script  *dialogue
	prompt  string
	values  map[string]string // groups and captures
	n       int               // assistant items since
	pending *step             // the step whose results are passing by
	results []byte            // their outputs, kept only for its captures
}

func (s *selection) anchor() *anchor {
	if s.named != nil {
		return s.named
	}
	return s.other
}

// read takes all items of a request.
func (s *selection) read(items model.Items) error {
	r, err := items.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	dec := jsontext.NewDecoder(io.MultiReader(strings.NewReader("["), r, strings.NewReader("]")))
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; dec.PeekKind() == '{'; i++ {
		if err := s.item(dec); err != nil {
			return fmt.Errorf("item %d of the request: %w", i, err)
		}
	}
	if _, err := dec.ReadToken(); err != nil { // the closing bracket
		return err
	}
	if a := s.anchor(); a != nil {
		a.settle()
	}
	return nil
}

// item reads one item; its fields may stand in any order.
func (s *selection) item(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var role string
	s.text = s.text[:0]
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		switch name.String() {
		case "role":
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			role = token.String()
		case "text", "output":
			if role == "assistant" {
				err = dec.SkipValue()
			} else {
				err = s.readText(dec)
			}
		case "images":
			err = s.countImages(dec)
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	switch role {
	case "user":
		s.user(withoutSender(string(s.text)))
	case "assistant":
		s.assistant()
	case "tool":
		s.tool()
	}
	return nil
}

func (s *selection) readText(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	s.text, err = jsontext.AppendUnquote(s.text[:0], raw)
	return err
}

func (s *selection) countImages(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if err := dec.SkipValue(); err != nil {
			return err
		}
		s.images++
	}
	_, err := dec.ReadToken()
	return err
}

func (s *selection) user(text string) {
	for i := range s.model.Scripts {
		d := &s.model.Scripts[i]
		if d.Match.Any != nil {
			continue
		}
		if values, ok := d.Match.match(text); ok {
			s.named, s.other = &anchor{script: d, prompt: text, values: values}, nil
			return
		}
	}
	if s.named == nil && s.model.any != nil {
		s.other = &anchor{script: s.model.any, prompt: text, values: map[string]string{}}
	}
}

func (s *selection) assistant() {
	s.assistants++
	a := s.anchor()
	if a == nil {
		return
	}
	a.settle()
	a.pending = a.script.step(a.n)
	a.n++
}

func (s *selection) tool() {
	// The two buffers trade places, so neither is copied.
	s.last, s.text = s.text, s.last
	a := s.anchor()
	if a == nil || a.pending == nil || len(a.pending.captures) == 0 {
		return
	}
	if len(a.results) > 0 {
		a.results = append(a.results, '\n')
	}
	a.results = append(a.results, s.last...)
}

// settle takes the captures of the step whose results are complete.
func (a *anchor) settle() {
	if a.pending != nil {
		for name, re := range a.pending.captures {
			a.values[name] = ""
			if m := re.FindSubmatch(a.results); m != nil {
				a.values[name] = string(m[min(1, len(m)-1)])
			}
		}
	}
	a.pending, a.results = nil, a.results[:0]
}

// match reports whether text fits, with the values of a regex's groups.
func (m *match) match(text string) (map[string]string, bool) {
	values := map[string]string{}
	switch {
	case m.Prefix != nil:
		return values, strings.HasPrefix(text, *m.Prefix)
	case m.Equals != nil:
		return values, text == *m.Equals
	case m.Contains != nil:
		return values, strings.Contains(text, *m.Contains)
	case m.re == nil:
		return nil, false
	}
	groups := m.re.FindStringSubmatch(text)
	if groups == nil {
		return nil, false
	}
	for i, name := range m.re.SubexpNames() {
		values[fmt.Sprint(i)] = groups[i]
		if name != "" {
			values[name] = groups[i]
		}
	}
	return values, true
}

// withoutSender leaves out the line that the daemon puts before a message that
// is not the person's (approvals.md 22). The person's own lines that begin
// like it carry a mark, so none of theirs is taken for one.
func withoutSender(text string) string {
	line, rest, ok := strings.Cut(text, "\n")
	added := strings.HasSuffix(line, ", not from the person:") &&
		(strings.HasPrefix(line, "Message from agent ") || strings.HasPrefix(line, "Event from "))
	if ok && added {
		return rest
	}
	return text
}

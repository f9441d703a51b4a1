package headless

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"agent/protocol"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed fit_standing.md
var fitStanding string

//go:embed fit_wanted.md
var fitWanted string

//go:embed fit_again.md
var fitAgain string

// MaxSchema bounds the schema that a reply is held to, in bytes: it stands in the bot's
// instructions.
const MaxSchema = 16 << 10

// maxFault bounds what is said of a reply that does not fit, in bytes.
const maxFault = 2 << 10

// Fit is the schema that a reply must satisfy. It is safe for concurrent use.
type Fit struct {
	text     string
	resolved *jsonschema.Resolved
}

// NewFit reads a JSON Schema. It is whole in itself: nothing that it refers to is
// fetched. Errors are usage.
func NewFit(name string, text []byte) (*Fit, error) {
	if len(text) > MaxSchema {
		return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("the schema %s has %d bytes; at most %d", name, len(text), MaxSchema))
	}
	if err := shallow(text); err != nil {
		return nil, protocol.Fail(protocol.UsageError, "the schema "+name+": "+err.Error())
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, protocol.Fail(protocol.UsageError, "the schema "+name+": "+err.Error())
	}
	if err := checkForms(&s); err != nil {
		return nil, protocol.Fail(protocol.UsageError, "the schema "+name+": "+err.Error())
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, protocol.Fail(protocol.UsageError, "the schema "+name+": "+err.Error())
	}
	return &Fit{strings.TrimSpace(string(text)), resolved}, nil
}

// Check is the value of a reply, or why it does not fit. One fence around the whole
// reply is passed over.
func (f *Fit) Check(reply string) (json.RawMessage, error) {
	text := unfenced(strings.TrimSpace(reply))
	dec := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return nil, errors.New("it is no JSON value: " + clipped(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	if err := shallow(raw); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, errors.New("it is no JSON value: " + clipped(err))
	}
	if err := f.resolved.Validate(value); err != nil {
		return nil, errors.New(clipped(err))
	}
	return raw, nil
}

func clipped(err error) string {
	text, short := cut(err.Error(), maxFault)
	if short {
		text += "…"
	}
	return text
}

// unfenced is what stands in a fence that is all there is.
func unfenced(text string) string {
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	language, body, ok := strings.Cut(rest, "\n")
	body, closed := strings.CutSuffix(strings.TrimRight(body, " \t\r\n"), "```")
	if !ok || !closed || strings.ContainsAny(language, "`{[\"") || strings.Contains(body, "```") {
		return text
	}
	return strings.TrimSpace(body)
}

// Standing is what a bot that is made for the run is told of the schema; Wanted what
// any other is told with the prompt; Again what is sent after a reply that did not fit.
func (f *Fit) Standing() string { return strings.ReplaceAll(fitStanding, "SCHEMA", f.text) }
func (f *Fit) Wanted() string   { return strings.ReplaceAll(fitWanted, "SCHEMA", f.text) }
func (f *Fit) Again(why error) string {
	before, after, _ := strings.Cut(fitAgain, "WHY")
	return before + why.Error() + strings.ReplaceAll(after, "SCHEMA", f.text)
}

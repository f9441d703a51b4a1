package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"agent/internal/model"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// script is a checked script file. It is never changed once loaded.
type script struct {
	Version int       `json:"version"`
	Models  modelList `json:"models"`
}

// entry is one model of the file.
type entry struct {
	name          string
	ContextTokens int64      `json:"context_tokens"`
	PaceMS        int64      `json:"pace_ms"`
	Scripts       []dialogue `json:"scripts"`
	any           *dialogue  // the one whose match is any
}

// dialogue is one of a model's scripts: what it answers to, and its steps.
type dialogue struct {
	Match      match  `json:"match"`
	Steps      []step `json:"steps"`
	RepeatLast bool   `json:"repeat_last"`
}

type match struct {
	Prefix   *string `json:"prefix"`
	Equals   *string `json:"equals"`
	Contains *string `json:"contains"`
	Regex    *string `json:"regex"`
	Any      *bool   `json:"any"`
	re       *regexp.Regexp
}

type step struct {
	Text      *string           `json:"text"`
	Thinking  *string           `json:"thinking"`
	Calls     []scriptCall      `json:"calls"`
	Without   *string           `json:"without"`
	Capture   map[string]string `json:"capture"`
	Usage     *usage            `json:"usage"`
	DelayMS   int64             `json:"delay_ms"`
	PaceMS    *int64            `json:"pace_ms"`
	Error     *failure          `json:"error"`
	Cut       *cut              `json:"cut"`
	WebSearch *webSearch        `json:"web_search"`
	Fallback  *fallback         `json:"fallback"`
	Expect    *expect           `json:"expect"`
	captures  map[string]*regexp.Regexp
}

type scriptCall struct {
	Tool      string         `json:"tool"`
	Arguments jsontext.Value `json:"arguments"`
	ID        string         `json:"id"`
}

type usage struct {
	Input        *int64 `json:"input_tokens"`
	Output       *int64 `json:"output_tokens"`
	Cached       int64  `json:"cached_input_tokens"`
	CacheWrite   *int64 `json:"cache_write_tokens"`
	CacheWrite1h int64  `json:"cache_write_1h_tokens"`
	Reasoning    *int64 `json:"reasoning_tokens"`
}

type failure struct {
	Code         string `json:"code"`
	Detail       string `json:"detail"`
	Status       int    `json:"status"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	Attempts     *int   `json:"attempts"`
}

// cut is written as its kind alone or as {"kind":K,"attempts":N}.
type cut struct {
	Kind     string `json:"kind"`
	Attempts *int   `json:"attempts"`
}

func (c *cut) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &c.Kind)
	}
	type plain cut
	return json.UnmarshalDecode(dec, (*plain)(c))
}

type webSearch struct {
	Query   string   `json:"query"`
	Sources []source `json:"sources"`
}

type source struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

type fallback struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type expect struct {
	Tools                *[]string `json:"tools"`
	Reasoning            *string   `json:"reasoning"`
	Images               *int      `json:"images"`
	InstructionsContains *string   `json:"instructions_contains"`
	LastResultContains   *string   `json:"last_result_contains"`
	Items                *int      `json:"items"`
}

// modelList keeps the order of the file, which is the order of the listing.
type modelList []*entry

func (l *modelList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return json.UnmarshalDecode(dec, new(map[string]entry)) // says what was wanted
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		e := &entry{name: name.String()}
		if err := json.UnmarshalDecode(dec, e); err != nil {
			return err
		}
		*l = append(*l, e)
	}
	_, err := dec.ReadToken()
	return err
}

func (s *script) model(name string) *entry {
	for _, e := range s.Models {
		if e.name == name {
			return e
		}
	}
	return nil
}

func (s *script) modelNames() string {
	names := make([]string, len(s.Models))
	for i, e := range s.Models {
		names[i] = e.name
	}
	return strings.Join(names, ", ")
}

// step gives the step for the nth answer, nil past the end.
func (d *dialogue) step(n int) *step {
	if n < len(d.Steps) {
		return &d.Steps[n]
	}
	if d.RepeatLast {
		return &d.Steps[len(d.Steps)-1]
	}
	return nil
}

// parse reads and checks a script file. Its error is an *model.Error with code
// invalid_script whose detail starts with the JSON path of the fault.
func parse(data []byte) (*script, error) {
	var s script
	if err := json.Unmarshal(data, &s, json.RejectUnknownMembers(true)); err != nil {
		return nil, invalid("%s", decodeFault(data, err))
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return &s, nil
}

func invalid(format string, args ...any) *model.Error {
	e := model.Errorf("invalid_script", format, args...)
	e.Detail = clip(e.Detail, 512)
	return e
}

// clip cuts s to at most n characters.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// decodeFault says in the file's terms what the decoder refused.
func decodeFault(data []byte, err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		what := syntax.Err.Error()
		if errors.Is(err, jsontext.ErrDuplicateName) {
			what = "this name stands here twice"
		}
		return at(syntax.JSONPointer) + position(data, syntax.ByteOffset) + ": not valid JSON: " + what
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return "$: " + err.Error()
	}
	where := at(semantic.JSONPointer) + position(data, semantic.ByteOffset)
	if errors.Is(err, json.ErrUnknownName) {
		return where + ": no such field here"
	}
	return fmt.Sprintf("%s: %s is wanted here, this is %s", where, wanted(semantic.GoType), kindName(semantic.JSONKind))
}

// at turns a JSON pointer into the path people write: models.demo.scripts[0].
func at(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 31); err == nil {
			fmt.Fprintf(&b, "[%s]", token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	if b.Len() == 0 {
		return "$"
	}
	return b.String()
}

func position(data []byte, offset int64) string {
	before := data[:min(max(offset, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf(" (line %d, column %d)", line, column)
}

func wanted(t reflect.Type) string {
	if t == nil {
		return "another value"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '0':
		return "a number that does not fit"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "something else"
}

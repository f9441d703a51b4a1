package protocol

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Request is one decoded line. ID is echoed as it was written. Params is a
// pointer to the request type of Op: *Create, *Submit, *StatsRequest and so on.
type Request struct {
	ID     stdjson.RawMessage
	Op     string
	Params any

	given fieldSet
}

// Has reports whether an optional text was given, for those whose empty value
// is an error rather than "not given": workspace, model, delivery, origin,
// reasoning, sandbox, created_by, approver, compaction_model, by, tag, step,
// reason, stream.
func (r *Request) Has(field string) bool { return r.given.has(field) }

// ParseRequest decodes one request line (section 1), with or without its
// newline. It checks that the line is an object, then id, then op, then the
// op's fields. The error is invalid_json or invalid_request_id and is answered
// with a null id. Nothing of the result points into line.
func ParseRequest(line []byte) (Request, *Error) {
	head, err := scanRequest(line)
	if err != nil {
		return Request{}, err
	}
	if err := checkID(head.id); err != nil {
		return Request{}, err
	}
	name, err := opName(head.op)
	if err != nil {
		return Request{}, err
	}
	o := operations[name]
	if missing := o.required &^ head.given; missing != 0 {
		for _, field := range o.names {
			if missing.has(field) {
				return Request{}, badField(field, "is required")
			}
		}
	}
	params, failed := o.decode(line, head.given)
	if failed != nil {
		return Request{}, explain(failed)
	}
	return Request{ID: bytes.Clone(head.id), Op: name, Params: params, given: head.given}, nil
}

// requestHead is what the first reading of a line finds. Its values point into
// the line.
type requestHead struct {
	id, op []byte
	given  fieldSet // present and not null
}

// scanRequest reads the whole line once, as the proof that it is an object and
// nothing more, and notes which fields it has.
func scanRequest(line []byte) (requestHead, *Error) {
	var head requestHead
	if tooDeep(line) {
		return head, Fail(InvalidJSON, "nested deeper than "+strconv.Itoa(MaxDepth)+" levels")
	}
	s := scanners.Get().(*scanner)
	defer s.release()
	s.buf = *bytes.NewBuffer(line)
	s.dec.Reset(&s.buf)
	if s.dec.PeekKind() != '{' {
		if _, err := s.dec.ReadToken(); err != nil {
			return head, explain(err)
		}
		return head, Fail(InvalidJSON, "not an object")
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return head, explain(err)
	}
	for s.dec.PeekKind() != '}' {
		if err := head.member(s); err != nil {
			return head, explain(err)
		}
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return head, explain(err)
	}
	if _, err := s.dec.ReadToken(); err == nil {
		return head, Fail(InvalidJSON, "more than one value on the line")
	} else if !errors.Is(err, io.EOF) {
		return head, explain(err)
	}
	return head, nil
}

func (h *requestHead) member(s *scanner) error {
	quoted, err := s.dec.ReadValue()
	if err != nil {
		return err
	}
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		if name, err = jsontext.AppendUnquote(s.name[:0], quoted); err != nil {
			return err
		}
		s.name = name
	}
	isID, isOp, bit := string(name) == "id", string(name) == "op", fieldBits[string(name)]
	value, err := s.dec.ReadValue()
	if err != nil {
		return err
	}
	switch {
	case isID:
		h.id = bytes.Clone(value)
	case isOp:
		h.op = bytes.Clone(value)
	case value.Kind() != 'n':
		h.given |= bit
	}
	return nil
}

// scanner is a decoder that is used again and again.
type scanner struct {
	dec  *jsontext.Decoder
	buf  bytes.Buffer
	name []byte
}

var scanners = sync.Pool{New: func() any { return &scanner{dec: jsontext.NewDecoder(strings.NewReader(""))} }}

func (s *scanner) release() {
	s.buf = bytes.Buffer{}
	s.dec.Reset(&s.buf)
	if cap(s.name) > 1<<10 {
		s.name = nil
	}
	scanners.Put(s)
}

// tooDeep reports nesting past MaxDepth without building anything. On a line
// that is no JSON its answer does not matter.
func tooDeep(line []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func checkID(id jsontext.Value) *Error {
	switch id.Kind() {
	case '0':
		if n, err := wireInteger(id); err == nil && n >= 0 && id[0] != '-' {
			return nil
		}
	case '"':
		if text, err := jsontext.AppendUnquote(nil, []byte(id)); err == nil && len(text) <= MaxRequestID {
			return nil
		}
	}
	return Fail(InvalidRequestID, "id must be an integer from 0 to 2^53-1, or a string of at most 128 bytes")
}

func opName(op jsontext.Value) (string, *Error) {
	if op == nil {
		return "", badField("op", "is required")
	}
	if op.Kind() != '"' {
		return "", badField("op", "must be a string")
	}
	name, err := jsontext.AppendUnquote(nil, []byte(op))
	if err != nil {
		return "", explain(err)
	}
	if _, ok := operations[string(name)]; !ok {
		return "", Fail(InvalidJSON, "unknown op "+short(string(name)))
	}
	return string(name), nil
}

var (
	errWrongType    = errors.New("has the wrong type")
	errNotAnInteger = errors.New("must be an integer, without fraction or exponent, below 2^53")
)

// wireInteger reads an integer as section 1 has it.
func wireInteger(v jsontext.Value) (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n > MaxInteger || n < -MaxInteger {
		return 0, errNotAnInteger
	}
	return n, nil
}

// wireIntegers reads every int64 of a request by wireInteger; null leaves 0.
var wireIntegers = sync.OnceValue(func() json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, n *int64) error {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		switch value.Kind() {
		case 'n':
			*n = 0
			return nil
		case '0':
			*n, err = wireInteger(value)
			return err
		}
		return errWrongType
	}))
})

// strict are the options for a request whose syntax scanRequest has proved.
var strict = sync.OnceValue(func() json.Options {
	return json.JoinOptions(json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true), wireIntegers())
})

func badField(field, what string) *Error { return Fail(InvalidJSON, field+" "+what) }

// explain makes a decoder's error one line that names the field.
func explain(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		field := short(pointerField(sem.JSONPointer))
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return Fail(InvalidJSON, "unknown field "+field)
		case errors.Is(err, errNotAnInteger):
			return badField(field, errNotAnInteger.Error())
		}
		return badField(field, errWrongType.Error())
	}
	if errors.Is(err, io.EOF) {
		return Fail(InvalidJSON, "not JSON: the line is blank")
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		return Fail(InvalidJSON, "not JSON: "+short(strings.TrimPrefix(syn.Err.Error(), "jsontext: "))+" at byte "+strconv.FormatInt(syn.ByteOffset, 10))
	}
	return Fail(InvalidJSON, "not JSON: "+short(err.Error()))
}

// pointerField turns /gates/0/tag into gates.0.tag.
func pointerField(p jsontext.Pointer) string {
	var parts []string
	for part := range p.Tokens() {
		parts = append(parts, part)
	}
	return strings.Join(parts, ".")
}

// short bounds what of a request is repeated in a detail.
func short(s string) string { return cutText(s, 120) }

// cutText is s, or its first n bytes, in whole characters, with a mark.
func cutText(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

package protocol

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"strconv"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Incoming is one line from a daemon: the ready line, a notification, or an
// answer. Exactly one of Ready, Event and Answer is set.
type Incoming struct {
	Ready  *Ready
	Event  *Event
	Answer *Reply
}

// A Reply is an answer. ID is as the daemon wrote it, null when it could not
// read the request's. Err is nil on success.
type Reply struct {
	ID     stdjson.RawMessage
	Result stdjson.RawMessage
	Err    *Error
}

// Number is the id as a number, when it is one.
func (r *Reply) Number() (uint64, bool) {
	n, err := strconv.ParseUint(string(r.ID), 10, 64)
	return n, err == nil
}

// Reader reads a daemon's lines, of at most MaxLine, typed. What it returns is
// the caller's. It is not safe for concurrent use.
type Reader struct {
	lines *LineReader
}

// NewReader reads from r. Close gives its buffer back.
func NewReader(r io.Reader) *Reader { return &Reader{NewLineReader(r)} }

// Next is the next message. It ends with io.EOF, ErrLineTooLong,
// ErrLineTruncated, or the transport's error; a line that is none of the three
// shapes is invalid_json.
func (r *Reader) Next() (Incoming, error) {
	line, err := r.lines.Next()
	if err != nil {
		return Incoming{}, err
	}
	return ParseMessage(line)
}

// Close gives the buffer back; it does not close the transport.
func (r *Reader) Close() { r.lines.Close() }

// ParseMessage types one line. The message has its own copy of the bytes.
func ParseMessage(line []byte) (Incoming, error) {
	line = bytes.Clone(line)
	var head struct {
		Event  *string            `json:"event"`
		ID     stdjson.RawMessage `json:"id"`
		Result stdjson.RawMessage `json:"result"`
		Error  *string            `json:"error"`
	}
	if err := json.Unmarshal(line, &head, jsontext.AllowDuplicateNames(true)); err != nil {
		return Incoming{}, Fail(InvalidJSON, "a line of the daemon is no message: "+short(err.Error()))
	}
	switch {
	case head.ID != nil && head.Result != nil:
		return Incoming{Answer: &Reply{ID: head.ID, Result: head.Result}}, nil
	case head.ID != nil && head.Error != nil:
		var members map[string]jsontext.Value
		if err := json.Unmarshal(line, &members); err != nil {
			return Incoming{}, Fail(InvalidJSON, short(err.Error()))
		}
		delete(members, "id")
		return Incoming{Answer: &Reply{ID: head.ID, Err: errorOf(members)}}, nil
	case head.Event != nil && *head.Event == KindReady:
		var ready Ready
		if err := json.Unmarshal(line, &ready); err != nil {
			return Incoming{}, Fail(InvalidJSON, "the ready line cannot be read: "+short(err.Error()))
		}
		ready.Line = line
		return Incoming{Ready: &ready}, nil
	case head.Event != nil:
		e, err := parseEvent(line)
		return Incoming{Event: e}, err
	}
	return Incoming{}, Fail(InvalidJSON, "a line of the daemon is neither an answer nor a notification")
}

// errorOf makes an Error of an object with error, detail and facts.
func errorOf(members map[string]jsontext.Value) *Error {
	e := &Error{}
	for name, value := range members {
		switch name {
		case "error":
			e.Code = Code(unquoted(value))
		case "detail":
			e.Detail = unquoted(value)
		default:
			if e.Facts == nil {
				e.Facts = map[string]stdjson.RawMessage{}
			}
			e.Facts[name] = stdjson.RawMessage(value)
		}
	}
	return e
}

func unquoted(v jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, []byte(v))
	if v.Kind() != '"' {
		return ""
	}
	return string(text)
}

// Decode unmarshals the result into v. A name given twice is let pass: a raw
// value within, such as the arguments a model wrote, may hold one.
func (r *Reply) Decode(v any) error {
	if err := json.Unmarshal(r.Result, v, jsontext.AllowDuplicateNames(true)); err != nil {
		return &Error{Code: InvalidJSON, Detail: "the answer cannot be read: " + short(err.Error()), Cause: err}
	}
	return nil
}

package protocol

import (
	"encoding/json"
	"errors"
)

// Error is a refusal by the daemon, or a failure made by the client. Op is the
// operation, empty when none was under way. Facts holds the answer's further
// keys undecoded. Unwrap gives the cause of a client-made one, if any.
type Error struct {
	Code   Code
	Detail string
	Op     string
	Facts  map[string]json.RawMessage
	Cause  error
}

// Error is "code" or "code: detail".
func (e *Error) Error() string {
	if e.Detail == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Detail
}

// Is matches a Code, or an *Error of the same code.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return e.Code == t
	case *Error:
		return e.Code == t.Code
	}
	return false
}

func (e *Error) Unwrap() error { return e.Cause }

// Fact decodes one fact into v and reports whether it was there.
func (e *Error) Fact(name string, v any) (bool, error) {
	raw, ok := e.Facts[name]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal(raw, v)
}

// With adds a fact and returns e. It is for whoever makes the error. Text in v
// that is no UTF-8 is marked with U+FFFD; a v that JSON cannot hold panics.
func (e *Error) With(name string, v any) *Error {
	raw, err := Append(nil, v)
	if err != nil && err != error(errNotUTF8) {
		panic("protocol: fact " + name + ": " + err.Error())
	}
	if e.Facts == nil {
		e.Facts = map[string]json.RawMessage{}
	}
	e.Facts[name] = raw
	return e
}

// Fail makes an Error of a code and a detail for people, which may be "".
func Fail(code Code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// CodeOf is the code in err's chain, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return ""
}

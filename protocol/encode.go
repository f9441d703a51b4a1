package protocol

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The daemon's lines. Each of these functions appends one whole line, its
// newline included, to dst and returns it. None checks MaxLine: whoever sends
// the line does (an answer over it becomes response_size_limit).

// AppendResult appends the answer of a request that succeeded. result is a
// struct of this package, a json.RawMessage, which is spliced byte for byte, or
// an Appender; nil is null. The error tells of text that is no UTF-8.
func AppendResult(dst []byte, id json.RawMessage, result any) ([]byte, error) {
	dst = append(dst, `{"id":`...)
	dst = appendID(dst, id)
	dst = append(dst, `,"result":`...)
	dst, err := Append(dst, result)
	return append(dst, "}\n"...), err
}

// AppendError appends the answer of a request that failed. A nil id is null,
// an empty detail left out, and facts become further keys. A detail over
// MaxDetail, which repeats something of the request, is cut to its first part:
// a refusal always fits a line.
func AppendError(dst []byte, id json.RawMessage, e *Error) []byte {
	if len(e.Detail) > MaxDetail {
		e = &Error{Code: e.Code, Detail: cutText(e.Detail, MaxDetail), Facts: e.Facts}
	}
	dst = append(dst, `{"id":`...)
	dst = appendID(dst, id)
	dst = append(dst, ',')
	dst = appendErrorMembers(dst, e)
	return append(dst, "}\n"...)
}

func appendID(dst []byte, id json.RawMessage) []byte {
	if len(id) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// appendErrorMembers appends error, detail and the facts, sorted.
func appendErrorMembers(dst []byte, e *Error) []byte {
	dst = append(dst, `"error":`...)
	dst = appendText(dst, string(e.Code))
	if e.Detail != "" {
		dst = append(dst, `,"detail":`...)
		dst = appendText(dst, e.Detail)
	}
	names := make([]string, 0, len(e.Facts))
	for name := range e.Facts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		dst = append(dst, ',')
		dst = appendText(dst, name)
		dst = append(dst, ':')
		a := appender{dst: dst}
		a.raw(e.Facts[name])
		dst = a.dst
	}
	return dst
}

// appendText quotes s; what is not UTF-8 in it becomes U+FFFD.
func appendText(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// AppendEvent appends a durable event. Turn 0 is null. data is the encoded
// data and is spliced byte for byte.
func AppendEvent(dst []byte, cursor int64, bot string, turn int64, kind string, data json.RawMessage) []byte {
	dst = append(dst, `{"cursor":`...)
	dst = strconv.AppendInt(dst, cursor, 10)
	dst = append(dst, `,"bot":`...)
	dst = appendText(dst, bot)
	if turn == 0 {
		dst = append(dst, `,"turn":null,"event":`...)
	} else {
		dst = append(dst, `,"turn":`...)
		dst = strconv.AppendInt(dst, turn, 10)
		dst = append(dst, `,"event":`...)
	}
	dst = appendText(dst, kind)
	dst = append(dst, `,"data":`...)
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	dst = append(dst, data...)
	return append(dst, "}\n"...)
}

// AppendLive appends a live notification of kind with the fields of v, one of
// the types of this package that are named for it, at the top level. It carries
// "durable":false, except follow_live. For ready see AppendReady.
func AppendLive(dst []byte, kind string, v any) ([]byte, error) {
	dst = append(dst, `{"event":`...)
	dst = appendText(dst, kind)
	if kind != KindFollowLive {
		dst = append(dst, `,"durable":false`...)
	}
	dst, err := appendMembers(dst, v)
	return append(dst, "}\n"...), err
}

// AppendDelta appends a delta of a turn's text, without reflection: it is the
// line sent most.
func AppendDelta(dst []byte, kind, bot string, turn int64, text string) []byte {
	dst = append(dst, `{"event":`...)
	dst = appendText(dst, kind)
	dst = append(dst, `,"bot":`...)
	dst = appendText(dst, bot)
	dst = append(dst, `,"turn":`...)
	dst = strconv.AppendInt(dst, turn, 10)
	dst = append(dst, `,"durable":false,"text":`...)
	dst = appendText(dst, text)
	return append(dst, "}\n"...)
}

// AppendReady appends the ready line. It sets Event, Protocol and Durability.
func AppendReady(dst []byte, r *Ready) ([]byte, error) {
	filled := *r
	filled.Event, filled.Protocol, filled.Durability = KindReady, Version, "sqlite_full"
	dst, err := Append(dst, &filled)
	return append(dst, '\n'), err
}

// AppendRequest appends a request line. params is a struct of this package, or
// anything else that encodes as an object, or nil; its members stand beside id
// and op. A request over MaxLine, or one whose params are no JSON object, is
// refused here and dst returned as it was.
func AppendRequest(dst []byte, id uint64, op string, params any) ([]byte, error) {
	start := len(dst)
	out := append(dst, `{"id":`...)
	out = strconv.AppendUint(out, id, 10)
	out = append(out, `,"op":`...)
	out = appendText(out, op)
	out, err := appendMembers(out, params)
	out = append(out, "}\n"...)
	if err == nil {
		err = checkRequest(out[start:])
	}
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Code: InvalidJSON, Detail: err.Error(), Cause: err}
		}
		e = &Error{Code: e.Code, Detail: e.Detail, Op: op, Cause: e.Cause}
		return dst, e
	}
	return out, nil
}

func checkRequest(line []byte) error {
	if len(line) > MaxLine {
		return Fail(InputLineLimitOrTruncation, "the request has "+strconv.Itoa(len(line))+" bytes, at most "+strconv.Itoa(MaxLine)+" fit a line")
	}
	if !jsontext.Value(line).IsValid() {
		return Fail(InvalidJSON, "the request holds a value that is no JSON, or a name twice")
	}
	return nil
}

// appendMembers appends ,"name":value for each member of v's object.
func appendMembers(dst []byte, v any) ([]byte, error) {
	if v == nil {
		return dst, nil
	}
	at := len(dst)
	dst, err := Append(dst, v)
	if err != nil {
		return dst, err
	}
	if string(dst[at:]) == "null" || string(dst[at:]) == "{}" {
		return dst[:at], nil
	}
	if dst[at] != '{' {
		return dst, Fail(InvalidJSON, "the parameters are no JSON object")
	}
	dst[at] = ','
	return dst[:len(dst)-1], nil
}

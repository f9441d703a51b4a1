package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"

	"agent/client/termsafe"
	"agent/protocol"

	"github.com/go-json-experiment/json/jsontext"
)

// errOutputClosed is a stdout that went away: exit 1, and nothing is said,
// since whoever closed it knows (section 5).
var errOutputClosed error = protocol.Fail(protocol.OutputClosed, "nobody reads the output any more")

// write writes to stdout at once.
func (a *app) write(b []byte) error {
	_, err := a.stdout.Write(b)
	return outputError(err)
}

func outputError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return errOutputClosed
	}
	return err
}

// printObject prints an answer as one line, or indented with --pretty.
func (a *app) printObject(object json.RawMessage) error {
	if !a.pretty {
		return a.write(append(termsafe.AppendJSON(nil, object), '\n'))
	}
	indented := jsontext.Value(bytes.Clone(object))
	err := indented.Indent(jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true),
		jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false))
	if err != nil {
		return a.write(append(termsafe.AppendJSON(nil, object), '\n'))
	}
	return a.write(append(termsafe.AppendJSONLines(nil, indented), '\n'))
}

// ask sends one request and prints its answer whole, every field in the
// daemon's order.
func (a *app) ask(ctx context.Context, link *link, op string, params any) error {
	object, err := link.raw(ctx, op, params)
	if err != nil {
		return err
	}
	return a.printObject(object)
}

// array writes one JSON array, entry by entry as pages arrive, so that memory
// does not grow with the list. It writes nothing before the first entry or
// end: a list that fails at once leaves stdout empty.
type array struct {
	a    *app
	buf  []byte
	open bool
}

func (l *array) add(entry json.RawMessage) {
	if l.open {
		l.buf = append(l.buf, ',')
	} else {
		l.buf = append(l.buf, '[')
		l.open = true
	}
	l.buf = termsafe.AppendJSON(l.buf, entry)
}

// flush writes what was added.
func (l *array) flush() error {
	err := l.a.write(l.buf)
	l.buf = l.buf[:0]
	return err
}

func (l *array) end() error {
	if !l.open {
		l.buf = append(l.buf, '[')
	}
	l.buf = append(l.buf, "]\n"...)
	return l.flush()
}

// entries are the values of the array that an answer has under name, and the
// value of another of its members.
func entries(answer json.RawMessage, name, next string) (list []json.RawMessage, after json.RawMessage, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return nil, nil, protocol.Fail(protocol.InvalidJSON, "the answer cannot be read: "+err.Error())
	}
	if err := json.Unmarshal(members[name], &list); err != nil {
		return nil, nil, protocol.Fail(protocol.InvalidJSON, "the answer has no list "+name+": "+err.Error())
	}
	if after = members[next]; string(after) == "null" {
		after = nil
	}
	return list, after, nil
}

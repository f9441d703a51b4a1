package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"agent/client/termsafe"
	"agent/internal/place"
	"agent/protocol"

	"github.com/go-json-experiment/json/jsontext"
)

// usagef is a line that is wrong: exit 2, before any file, socket or store was
// touched.
func usagef(format string, args ...any) *protocol.Error {
	return protocol.Fail(protocol.UsageError, fmt.Sprintf(format, args...))
}

// coded gives every failure a code. Those of other packages carry theirs; a
// bare error of the system is one of reading or writing a named file.
func coded(err error) *protocol.Error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return e
	}
	var p *place.Error
	if errors.As(err, &p) {
		return &protocol.Error{Code: protocol.Code(p.Code), Detail: p.Detail, Cause: err}
	}
	code := protocol.CodeOf(err)
	var path *fs.PathError
	if code == "" && errors.As(err, &path) {
		code = "file_error"
	} else if code == "" {
		code = "failed"
	}
	return &protocol.Error{Code: code, Detail: err.Error(), Cause: err}
}

// fullDisk is how the detail of storage_error begins when there was no room. It
// has the codes of the store alone (protocol.md 18), which tell a person nothing.
const fullDisk = "sqlite_primary=13 sqlite_extended=13"

// advised adds to a failure of the wire what a person can do about it.
func advised(e *protocol.Error) *protocol.Error {
	if e.Code != protocol.StorageError || e.Detail != fullDisk {
		return e
	}
	told := *e
	told.Detail += ": the disk that holds the store is full; make room, then send it again"
	return &told
}

// say writes the one line of a failure and gives the exit status.
func (a *app) say(err error) int {
	e := advised(coded(err))
	var line []byte
	if a.plain || a.pretty {
		line = append(line, "agent: "...)
		line = append(line, termsafe.OneLine(e.Error())...)
	} else {
		line = appendError(line, e)
	}
	a.stderr.Write(append(line, '\n'))
	if e.Code == protocol.UsageError {
		return 2
	}
	return 1
}

// appendError is an error as the wire has it: code, detail, facts by name.
func appendError(dst []byte, e *protocol.Error) []byte {
	dst = append(dst, `{"error":`...)
	dst = appendText(dst, string(e.Code))
	if e.Detail != "" {
		dst = appendText(append(dst, `,"detail":`...), e.Detail)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Facts)) {
		if name == "error" || name == "detail" {
			continue
		}
		dst = appendText(append(dst, ','), name)
		dst = termsafe.AppendJSON(append(dst, ':'), e.Facts[name])
	}
	return append(dst, '}')
}

// appendText quotes text as JSON of section 5.
func appendText(dst []byte, s string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, s) // bad UTF-8 becomes U+FFFD
	return termsafe.AppendJSON(dst, quoted)
}

// withFact adds a fact to an error of any kind.
func withFact(err error, name string, value any) *protocol.Error {
	e := *coded(err)
	e.Facts = maps.Clone(e.Facts)
	return e.With(name, value)
}

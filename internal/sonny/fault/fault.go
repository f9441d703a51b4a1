package fault

import (
	"errors"
	"strings"

	"agent/internal/place"
	"agent/protocol"
)

// Where is at which part of Sonny words are read: what can be done differs.
type Where int

const (
	Screen Where = iota // its commands and keys
	Verb                // the verbs of sonny on the line of a shell
	Exec                // the flags of sonny exec
)

// Told is err with a code and with words that hold at w. err stays in its chain. nil of
// nil.
func (w Where) Told(err error) *protocol.Error {
	if err == nil {
		return nil
	}
	e := coded(err)
	if isTold(err) {
		return e
	}
	told := *e
	told.Detail, told.Cause = w.detail(err, e), &source{err}
	if OfDisk(err) && (e.Code == failed || e.Code == "") {
		told.Code = protocol.StorageError
	}
	return &told
}

// Words are an error in one text, as the screen shows it: what a disk keeps from being
// written without a code, all else with the code that it has.
func (w Where) Words(err error) string {
	text := err.Error()
	if isTold(err) {
		return text
	}
	if t, of, ok := disk(err); ok {
		return of.within(text, of.words(t))
	}
	if t, rest, ok := store(err); ok {
		return strings.Replace(text, coded(err).Error(), storeWords(t, rest), 1)
	}
	var e *protocol.Error
	if errors.As(err, &e) {
		said := *e
		said.Detail = w.Detail(e)
		text = strings.Replace(text, e.Error(), said.Error(), 1)
	}
	return unstored(plainly(err, text))
}

// Detail is what the daemon says, in the words that hold at w.
func (w Where) Detail(e *protocol.Error) string {
	detail := e.Detail
	if e.Code == protocol.DaemonPaused {
		detail = paused(e, detail)
	}
	for _, r := range refusals[e.Code] {
		detail = r.here(detail, w)
	}
	return unstored(detail)
}

// detail is what a coded error says: all that is known of a disk, and else the words of the
// code.
func (w Where) detail(err error, e *protocol.Error) string {
	if t, of, ok := disk(err); ok {
		return of.within(e.Detail, of.words(t))
	}
	if t, rest, ok := store(err); ok {
		return storeWords(t, rest)
	}
	return plainly(err, w.Detail(e))
}

// source is what an error was told of: its words are not put into others again.
type source struct{ error }

func (s *source) Unwrap() error { return s.error }

func isTold(err error) bool {
	var s *source
	return errors.As(err, &s)
}

// failed is the code of what has none.
const failed protocol.Code = "failed"

// coded gives every failure a code. Those of other packages carry theirs.
func coded(err error) *protocol.Error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return e
	}
	var p *place.Error
	if errors.As(err, &p) {
		return &protocol.Error{Code: protocol.Code(p.Code), Detail: p.Detail, Cause: err}
	}
	if code := protocol.CodeOf(err); code != "" {
		return &protocol.Error{Code: code, Detail: err.Error(), Cause: err}
	}
	return &protocol.Error{Code: failed, Detail: err.Error(), Cause: err}
}

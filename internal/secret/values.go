package secret

import (
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Named is a secret with the variable or setting it comes from.
type Named struct {
	Name  string
	Value Value
}

// Values is the set of known values and the first of the redactor's passes:
// it masks every occurrence of each (approvals.md 20.2). The zero set is empty
// and ready. It is safe for concurrent use; the set only grows, and a stream
// that is under way uses what was added from its next write on.
//
// A pass is anything with Bytes and Stream. Passes chain by nesting: the
// stream of the first writes into the stream of the second.
type Values struct {
	mu       sync.Mutex
	patterns []string
	found    atomic.Pointer[automaton] // nil while the set is empty
}

// Add takes values in. Each is trimmed, and one with line breaks counts as its
// lines. It returns the names of those that are left out, wholly or in part,
// for being shorter than MinValue; empty ones and empty lines are not named.
func (v *Values) Add(values ...Named) (short []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	grown := false
	for _, named := range values {
		tooShort := false
		for _, line := range lines(named.Value.text) {
			switch {
			case len(line) < MinValue:
				tooShort = true
			case strings.Contains(Mark, line) || slices.Contains(v.patterns, line):
				// Masking a piece of the mark would mask masks.
			default:
				v.patterns = append(v.patterns, line)
				grown = true
			}
		}
		if tooShort {
			short = append(short, named.Name)
		}
	}
	if grown {
		v.found.Store(newAutomaton(v.patterns))
	}
	return short
}

func lines(text string) []string {
	split := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	out := split[:0]
	for _, line := range split {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// Bytes returns b with every known value masked; b itself when there is none.
func (v *Values) Bytes(b []byte) []byte {
	a := v.found.Load()
	if a == nil {
		return b
	}
	_, spans := a.scan(0, 0, b, nil)
	if len(spans) == 0 {
		return b
	}
	out := make([]byte, 0, len(b)+len(spans)*len(Mark))
	at := int64(0)
	for _, s := range spans {
		out = append(out, b[at:s.start]...)
		out = append(out, Mark...)
		at = s.end
	}
	return append(out, b[at:]...)
}

// Stream returns a writer that masks what passes through it into w, wherever
// the writes are split: the pieces joined equal Bytes of the whole, and a byte
// that may yet turn out to belong to a value is held back. What is held is
// never more than the longest value. Close passes on what is held; it does not
// close w. The writer is for one goroutine at a time.
func (v *Values) Stream(w io.Writer) io.WriteCloser {
	return &stream{values: v, to: w}
}

// stream is a masking writer under way. Offsets count from the first byte ever
// written.
type stream struct {
	values *Values
	to     io.Writer
	found  *automaton
	at     int32  // node after the last byte read
	read   int64  // bytes read
	passed int64  // bytes decided on and passed on; a mark counts as what it hides
	tail   []byte // the bytes from passed to read, between two writes
	spans  []span // found and not yet passed on
	out    []byte // what one piece with marks comes to, so that it is one write
	err    error
}

// piece bounds how much is read before the spans found are passed on, and so
// how many there can be.
const piece = 4 << 10

func (s *stream) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.renew()
	if s.found == nil {
		s.read += int64(len(p))
		s.passed = s.read
		return s.to.Write(p)
	}
	written := 0
	for written < len(p) {
		n := min(piece, len(p)-written)
		s.write(p[written : written+n])
		if s.err != nil {
			return written, s.err
		}
		written += n
	}
	return written, nil
}

// renew takes up a set that has grown. The bytes held are read again, so that
// a new value that began among them is found.
func (s *stream) renew() {
	now := s.values.found.Load()
	if now == s.found {
		return
	}
	s.found = now
	s.at, s.spans = now.scan(0, s.read-int64(len(s.tail)), s.tail, s.spans)
}

func (s *stream) write(p []byte) {
	s.at, s.spans = s.found.scan(s.at, s.read, p, s.spans)
	s.read += int64(len(p))
	undecided := s.read - int64(s.found.nodes[s.at].begun)
	s.pass(undecided, p)
	s.keep(undecided, p)
}

// pass sends on everything before limit, with p the newest bytes read.
func (s *stream) pass(limit int64, p []byte) {
	if len(s.spans) == 0 {
		s.emit(limit, p, s.send)
		return
	}
	s.out = s.out[:0]
	gather := func(b []byte) { s.out = append(s.out, b...) }
	done := 0
	for _, next := range s.spans {
		s.emit(min(next.start, limit), p, gather)
		if next.end > limit {
			break // it may still grow: its mark waits
		}
		gather([]byte(Mark))
		s.passed = next.end
		done++
	}
	s.spans = slices.Delete(s.spans, 0, done)
	if len(s.spans) == 0 {
		s.emit(limit, p, gather)
	}
	s.send(s.out)
}

// emit sends the text from passed to limit, which lies in the tail, in p, or
// across both.
func (s *stream) emit(limit int64, p []byte, send func([]byte)) {
	if limit <= s.passed {
		return
	}
	border := s.read - int64(len(p)) // where p starts
	if s.passed < border {
		from := int64(len(s.tail)) - (border - s.passed)
		send(s.tail[from : from+min(limit, border)-s.passed])
	}
	if limit > border {
		send(p[max(s.passed, border)-border : limit-border])
	}
	s.passed = limit
}

// keep holds the bytes from undecided on for the next write.
func (s *stream) keep(undecided int64, p []byte) {
	border := s.read - int64(len(p))
	if undecided >= border {
		s.tail = append(s.tail[:0], p[undecided-border:]...)
		return
	}
	drop := int64(len(s.tail)) - (border - undecided)
	s.tail = append(slices.Delete(s.tail, 0, int(drop)), p...)
}

func (s *stream) send(b []byte) {
	if s.err == nil && len(b) > 0 {
		_, s.err = s.to.Write(b)
	}
}

func (s *stream) Close() error {
	if s.found != nil {
		s.pass(s.read, nil)
		s.tail = s.tail[:0]
	}
	return s.err
}

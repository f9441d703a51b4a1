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
	if v.found.Load() == nil {
		return b
	}
	return masked(b, []pass{&valuesPass{values: v}})
}

// Stream returns a writer that masks what passes through it into w, wherever
// the writes are split: the pieces joined equal Bytes of the whole, and a byte
// that may yet turn out to belong to a value is held back. What is held is
// never more than the longest value. Close passes on what is held; it does not
// close w. The writer is for one goroutine at a time.
func (v *Values) Stream(w io.Writer) io.WriteCloser {
	return newChain(w, []pass{&valuesPass{values: v}})
}

// valuesPass masks known values in one stream. Offsets count from the first
// byte that ever came.
type valuesPass struct {
	values *Values
	found  *automaton
	at     int32  // node after the last byte read
	read   int64  // bytes read
	passed int64  // bytes decided on and passed on; a mark counts as what it hides
	tail   []byte // the bytes from passed to read, between two runs
	spans  []span // found and not yet passed on
}

func (s *valuesPass) held() int { return len(s.tail) }

func (s *valuesPass) run(in *text, end bool, out *text) {
	s.renew()
	if s.found == nil {
		s.read += int64(len(in.b))
		s.passed = s.read
		out.add(in.b)
		return
	}
	p := in.b
	s.at, s.spans = s.found.scan(s.at, s.read, p, s.spans)
	s.read += int64(len(p))
	undecided := s.read
	if !end {
		undecided -= int64(s.found.nodes[s.at].begun)
	}
	s.pass(undecided, p, out)
	s.keep(undecided, p)
}

// renew takes up a set that has grown. The bytes held are read again, so that
// a new value that began among them is found.
func (s *valuesPass) renew() {
	now := s.values.found.Load()
	if now == s.found {
		return
	}
	s.found = now
	s.at, s.spans = now.scan(0, s.read-int64(len(s.tail)), s.tail, s.spans)
}

// pass sends on everything before limit, with p the newest bytes read.
func (s *valuesPass) pass(limit int64, p []byte, out *text) {
	done := 0
	for _, next := range s.spans {
		s.emit(min(next.start, limit), p, out)
		if next.end > limit {
			break // it may still grow: its mark waits
		}
		out.mark(knownValue)
		s.passed = next.end
		done++
	}
	s.spans = slices.Delete(s.spans, 0, done)
	if len(s.spans) == 0 {
		s.emit(limit, p, out)
		s.spans = nil
	}
}

// emit sends the text from passed to limit, which lies in the tail, in p, or
// across both.
func (s *valuesPass) emit(limit int64, p []byte, out *text) {
	if limit <= s.passed {
		return
	}
	border := s.read - int64(len(p)) // where p starts
	if s.passed < border {
		from := int64(len(s.tail)) - (border - s.passed)
		out.add(s.tail[from : from+min(limit, border)-s.passed])
	}
	if limit > border {
		out.add(p[max(s.passed, border)-border : limit-border])
	}
	s.passed = limit
}

// keep holds the bytes from undecided on for the next run.
func (s *valuesPass) keep(undecided int64, p []byte) {
	border := s.read - int64(len(p))
	if undecided >= border {
		s.tail = append(s.tail[:0], p[undecided-border:]...)
		return
	}
	drop := int64(len(s.tail)) - (border - undecided)
	s.tail = append(slices.Delete(s.tail, 0, int(drop)), p...)
}

package secret

import (
	"bytes"
	"sort"
)

// text is what goes from pass to pass: bytes, and which of the marks among
// them were put in on the way. Those stand for something that this redaction
// found; a mark that the text brought along stands for what an earlier one
// found, and masking around it again would mask more each time.
type text struct {
	b     []byte
	marks []mark // the marks put in, ascending
}

// mark is a mark that was put in: where in the text it begins, and what it
// stands for.
type mark struct {
	at   int
	kind kind
}

// kind is what a mark stands for.
type kind byte

const (
	knownValue kind = iota
	privateKey
	urlCredential
	fieldValue
	tokenValue
)

// marksFrom is the place in marks of the first that begins at or behind at.
func marksFrom(marks []mark, at int) int {
	return sort.Search(len(marks), func(i int) bool { return marks[i].at >= at })
}

func (t *text) add(b []byte) { t.b = append(t.b, b...) }

func (t *text) mark(k kind) {
	t.marks = append(t.marks, mark{len(t.b), k})
	t.b = append(t.b, Mark...)
}

func (t *text) reset() { t.b, t.marks = t.b[:0], t.marks[:0] }

// pass is one of the redactor's passes under way over one stream.
type pass interface {
	// run takes in more of the text, and appends to out what is decided of it:
	// at the text's end, all. It keeps nothing of in's memory.
	run(in *text, end bool, out *text)
	// held is how many bytes are kept for the next run.
	held() int
}

// window is the stretch of a text that a pass looks at: what was passed on and
// may still explain what comes, what is undecided, and what is new.
//
// The bytes live in borrowed memory during a run and in their own, no larger
// than needed, between two.
type window struct {
	text
	sent int // b[:sent] has been passed on, or masked
	rest text
}

// spare is how much unused memory a window keeps between two runs, and own is
// from how much kept text on it works in its own memory, in bytes: what is kept
// for long, an open private key, is not copied at every write.
const (
	spare = 512
	own   = 4 << 10
)

// open borrows memory, and adds what is new to what was kept.
func (w *window) open(memory, in *text) {
	shift := len(w.rest.b)
	w.text = w.rest
	if shift < own {
		memory.reset()
		memory.add(w.rest.b)
		memory.marks = append(memory.marks, w.rest.marks...)
		w.text = *memory
	}
	w.add(in.b)
	for _, m := range in.marks {
		w.marks = append(w.marks, mark{m.at + shift, m.kind})
	}
}

// close keeps what lies behind from, and gives the memory back. Positions in
// the window move down by from.
func (w *window) close(memory *text, from int) {
	kept := text{b: w.b[from:], marks: w.marks[marksFrom(w.marks, from):]}
	for i := range kept.marks {
		kept.marks[i].at -= from
	}
	if len(w.rest.b) < own {
		*memory = w.text
	} else {
		if from == 0 { // it lies where it is kept
			w.rest, w.text = w.text, text{}
			return
		}
		w.rest = text{b: w.b, marks: w.marks}
	}
	if cap(w.rest.b) > 2*len(kept.b)+spare {
		w.rest.b = nil
	}
	w.rest.b = append(w.rest.b[:0], kept.b...)
	w.rest.marks = append(w.rest.marks[:0], kept.marks...)
	if len(kept.marks) == 0 {
		w.rest.marks = nil
	}
	w.sent -= from
	w.text = text{}
}

func (w *window) held() int { return len(w.rest.b) }

// send passes on everything before to.
func (w *window) send(to int, out *text) {
	if to <= w.sent {
		return
	}
	shift := len(out.b) - w.sent
	for i := marksFrom(w.marks, w.sent); i < len(w.marks) && w.marks[i].at+len(Mark) <= to; i++ {
		out.marks = append(out.marks, mark{w.marks[i].at + shift, w.marks[i].kind})
	}
	out.add(w.b[w.sent:to])
	w.sent = to
}

// mask passes on what lies before from, and a mark in place of from to to.
func (w *window) mask(from, to int, k kind, out *text) {
	w.send(from, out)
	out.mark(k)
	w.sent = to
}

// drop leaves out what lies before to: a mark stands for it already.
func (w *window) drop(to int) { w.sent = max(w.sent, to) }

// brought reports whether b[from:to] holds a mark that the text brought along.
func (w *window) brought(from, to int) bool {
	for {
		i := bytes.Index(w.b[from:to], []byte(Mark))
		if i < 0 {
			return false
		}
		if at := marksFrom(w.marks, from+i); at == len(w.marks) || w.marks[at].at != from+i {
			return true
		}
		from += i + len(Mark)
	}
}

package secret

import (
	"io"
	"sync"
)

// Redactor masks secrets in what tools return (approvals.md 20). Four passes
// run in order, each on what the one before leaves: known values, private keys,
// credentials in URLs, and values after fields that are named like secrets.
//
// What is masked once stays as it is when it is masked again, with one
// exception: where the END of a private key lies more than 64 KiB behind its
// BEGIN, and comes within that limit by what was masked between, the lines that
// were left between the two are masked the second time.
//
// It is safe for concurrent use.
type Redactor struct{ known *Values }

// NewRedactor returns a redactor whose first pass is known. Values added to it
// later count from then on.
func NewRedactor(known *Values) *Redactor { return &Redactor{known} }

func (r *Redactor) passes() []pass {
	return []pass{&valuesPass{values: r.known}, &keysPass{}, &urlsPass{}, newFieldsPass()}
}

// Bytes returns b with secrets masked; b itself when there are none. b is a
// whole text: what it breaks off is judged by the rules for a text's end.
func (r *Redactor) Bytes(b []byte) []byte { return masked(b, r.passes()) }

// Stream returns a writer that masks what passes through it into w, wherever
// the writes are split: the pieces joined equal Bytes of the whole, and no byte
// that belongs to something masked ever reaches w. What may yet turn out to
// belong to a secret is held back until that is decided, never for a time: at
// most the longest known value, a private key of 64 KiB, a URL of 4 KiB and 1
// KiB of a field together. That is the most that is held, too, however long a
// secret is: the 256 KiB at which what is shown live would stop (20.7) are never
// reached. Close passes on what is held; it does not close w. The writer is
// for one goroutine at a time.
func (r *Redactor) Stream(w io.Writer) io.WriteCloser { return newChain(w, r.passes()) }

// piece bounds how much of a write is looked at in one go, in bytes, and with
// it the memory that a stream borrows.
const piece = 16 << 10

// chain is passes over one stream.
type chain struct {
	to     io.Writer
	passes []pass
	err    error
	done   bool
}

func newChain(to io.Writer, passes []pass) *chain { return &chain{to: to, passes: passes} }

// scratch is the memory of one run: what goes into a pass and what comes out.
type scratch struct{ in, out, window text }

// maxScratch is how much memory is kept for the next run, in bytes.
const maxScratch = 256 << 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func borrow() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) giveBack() {
	if cap(s.in.b)+cap(s.out.b)+cap(s.window.b) <= maxScratch {
		scratches.Put(s)
	}
}

func (c *chain) Write(p []byte) (int, error) {
	written := 0
	for c.err == nil && written < len(p) {
		n := min(piece, len(p)-written)
		c.run(p[written:written+n], false)
		if c.err == nil {
			written += n
		}
	}
	return written, c.err
}

// Close ends the text. Closing twice is closing once.
func (c *chain) Close() error {
	if c.err == nil && !c.done {
		c.done = true
		c.run(nil, true)
	}
	return c.err
}

func (c *chain) run(p []byte, end bool) {
	s := borrow()
	defer s.giveBack()
	if out := through(s, c.passes, p, end); len(out.b) > 0 {
		_, c.err = c.to.Write(out.b)
	}
}

// through takes p through all passes. The result lives in s.
func through(s *scratch, passes []pass, p []byte, end bool) *text {
	in, out := &s.in, &s.out
	in.reset()
	in.add(p)
	for _, pass := range passes {
		out.reset()
		pass.run(in, end, out)
		in, out = out, in
	}
	return in
}

// masked is a whole text through all passes; b itself where nothing is masked.
func masked(b []byte, passes []pass) []byte {
	if len(b) == 0 {
		return b
	}
	s := borrow()
	defer s.giveBack()
	var whole []byte
	found := false
	for at := 0; at < len(b); {
		n := min(piece, len(b)-at)
		out := through(s, passes, b[at:at+n], at+n == len(b))
		if whole == nil && !found && len(out.b) > 0 {
			whole = make([]byte, 0, len(b)+len(Mark))
		}
		found = found || len(out.marks) > 0
		whole = append(whole, out.b...)
		at += n
	}
	if !found {
		return b
	}
	return whole
}

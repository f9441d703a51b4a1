package tool

import (
	"io"
	"sync"
	"unicode/utf8"
)

// bufferSize is the size of the buffers that text is moved through.
const bufferSize = 16 << 10

// buffers are shared by all streams; one is held only while bytes are moved,
// never while waiting for some.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

const replacement = "\uFFFD"

// repairer passes text on with every byte that is no UTF-8 as U+FFFD, also
// where a character is split between writes. Close passes on a character that
// was broken off; it does not close w.
type repairer struct {
	w    io.Writer
	part [utf8.UTFMax]byte // a character whose end has not been written yet
	n    int
}

func newRepairer(w io.Writer) *repairer { return &repairer{w: w} }

func (r *repairer) Write(p []byte) (int, error) {
	total := len(p)
	for r.n > 0 && len(p) > 0 {
		r.part[r.n] = p[0]
		r.n++
		p = p[1:]
		if err := r.settle(false); err != nil {
			return 0, err
		}
	}
	whole, rest := splitBroken(p)
	r.n += copy(r.part[r.n:], rest)
	return total, writeValid(r.w, whole)
}

// Close ends the text.
func (r *repairer) Close() error { return r.settle(true) }

// settle passes on what of the part is decided; at the end all is.
func (r *repairer) settle(end bool) error {
	for r.n > 0 && (end || utf8.FullRune(r.part[:r.n])) {
		c, size := utf8.DecodeRune(r.part[:r.n])
		out := r.part[:size]
		if c == utf8.RuneError && size == 1 {
			out = []byte(replacement)
		}
		if _, err := r.w.Write(out); err != nil {
			return err
		}
		copy(r.part[:], r.part[size:r.n])
		r.n -= size
	}
	return nil
}

// splitBroken cuts off the bytes at p's end that may be the start of a
// character.
func splitBroken(p []byte) (whole, rest []byte) {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return p[:i], p[i:]
			}
			break
		}
	}
	return p, nil
}

// writeValid writes p with its bad bytes replaced, in one piece where there
// are none.
func writeValid(w io.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if utf8.Valid(p) {
		_, err := w.Write(p)
		return err
	}
	out := make([]byte, 0, len(p)+64)
	for len(p) > 0 {
		c, size := utf8.DecodeRune(p)
		if c == utf8.RuneError && size == 1 {
			out = append(out, replacement...)
		} else {
			out = append(out, p[:size]...)
		}
		p = p[size:]
	}
	_, err := w.Write(out)
	return err
}

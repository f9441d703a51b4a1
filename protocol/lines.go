package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrLineTooLong and ErrLineTruncated are how a LineReader ends at a line over
// MaxLine and at a last line without a newline. Both wrap the wire's code
// input_line_limit_or_truncation, and errors.Is tells them apart.
var (
	ErrLineTooLong   = fmt.Errorf("%w: a line is longer than %d bytes", InputLineLimitOrTruncation, MaxLine)
	ErrLineTruncated = fmt.Errorf("%w: the last line has no newline", InputLineLimitOrTruncation)
)

// The sizes of a line buffer. A session holds the smallest while it waits for
// input, and the others only while a line needs them.
var lineBuffers = [...]struct {
	size int
	pool sync.Pool
}{{size: 4 << 10}, {size: 24 << 10}, {size: 96 << 10}, {size: 384 << 10}, {size: MaxLine}}

// A LineReader yields the lines of a stream, one at a time and each at most
// MaxLine long. It is not safe for concurrent use.
type LineReader struct {
	r     io.Reader
	held  *[]byte // nil: none
	buf   []byte  // *held
	class int     // of buf in lineBuffers
	start int     // the next unread byte
	seen  int     // bytes from start on known to hold no newline
	end   int
	err   error // how it ended
}

// NewLineReader reads lines from r. Call Close when done.
func NewLineReader(r io.Reader) *LineReader { return &LineReader{r: r} }

// Next is the next line without its newline; it is valid until the next call.
// The error is io.EOF at a clean end, ErrLineTooLong, ErrLineTruncated, or the
// stream's own; after one it stays.
func (l *LineReader) Next() ([]byte, error) {
	for {
		unseen := l.buf[l.start+l.seen : l.end]
		if i := bytes.IndexByte(unseen, '\n'); i >= 0 {
			line := l.buf[l.start : l.start+l.seen+i]
			l.start += len(line) + 1
			l.seen = 0
			return line, nil
		}
		l.seen = l.end - l.start
		if l.err != nil {
			return nil, l.finish()
		}
		if l.seen >= MaxLine {
			l.err = ErrLineTooLong
			return nil, l.finish()
		}
		l.makeRoom()
		l.read()
	}
}

// Buffered reports whether a further whole line is already there, so that a
// caller can batch what it does between two reads.
func (l *LineReader) Buffered() bool {
	return bytes.IndexByte(l.buf[l.start+l.seen:l.end], '\n') >= 0
}

// Close gives the buffer back. It does not close the stream. Next then says
// io.ErrClosedPipe, or how the stream had ended.
func (l *LineReader) Close() {
	if l.err == nil {
		l.err = io.ErrClosedPipe
	}
	l.start, l.seen, l.end = 0, 0, 0
	l.giveBack()
}

// finish turns the end of the stream within a line into ErrLineTruncated.
func (l *LineReader) finish() error {
	if errors.Is(l.err, io.EOF) && l.seen > 0 {
		l.err = ErrLineTruncated
	}
	l.start, l.seen, l.end = 0, 0, 0
	l.giveBack()
	return l.err
}

func (l *LineReader) read() {
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// makeRoom sees to it that at least one byte can be read: in the smallest
// buffer that holds what is there.
func (l *LineReader) makeRoom() {
	class := 0
	for lineBuffers[class].size <= l.seen {
		class++
	}
	if l.buf != nil && class == l.class {
		if l.start > 0 {
			copy(l.buf, l.buf[l.start:l.end])
			l.start, l.end = 0, l.seen
		}
		return
	}
	next := takeLineBuffer(class)
	copy(*next, l.buf[l.start:l.end])
	l.giveBack()
	l.held, l.buf, l.class, l.start, l.end = next, *next, class, 0, l.seen
}

func (l *LineReader) giveBack() {
	if l.held != nil {
		lineBuffers[l.class].pool.Put(l.held)
		l.held, l.buf = nil, nil
	}
}

func takeLineBuffer(class int) *[]byte {
	if b, ok := lineBuffers[class].pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, lineBuffers[class].size)
	return &b
}

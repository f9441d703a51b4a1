package wire

import (
	"bytes"
	"io"
	"sync"

	"agent/internal/model"
)

const (
	frameLimit    = 2 << 20
	responseLimit = 16 << 20
	readSize      = 1 << 10
	keptSize      = 64 << 10 // a buffer grown above this is not pooled
)

// sseBuffers are the buffers of one stream.
type sseBuffers struct {
	read [readSize]byte
	line []byte // a line that did not come in one read
	data []byte // the data lines of the frame, joined
}

var ssePool = sync.Pool{New: func() any { return new(sseBuffers) }}

// SSE reads an event stream frame by frame within the limits of providers.md
// 5. It holds pooled buffers until Close. It is used by one goroutine.
//
// It scans its own 1 KiB buffer, filled from the connection's, rather than read up to an LF, since a line may
// also end in a CR alone, after which nothing may come for long.
type SSE struct {
	from io.Reader
	buf  *sseBuffers
	todo []byte // read and not yet scanned
	err  error  // the reader's, once it gave one

	total   int  // bytes of the response
	inFrame int  // bytes since the last empty line
	hasData bool // a data line came in this frame
	sawCR   bool // the last line ended in CR: an LF that follows belongs to it
	begun   bool // the first line is past

	onDone func() // told of [DONE], behind which nothing counts; nil: [DONE] is skipped
	over   bool   // it came
}

// NewSSE reads frames from r.
func NewSSE(r io.Reader) *SSE { return &SSE{from: r, buf: ssePool.Get().(*sseBuffers)} }

// OnDone has the stream end with [DONE]: Next tells of it, once, and gives none of what
// is behind it.
func (s *SSE) OnDone(f func()) { s.onDone = f }

// Close gives the buffers back; what Next returned is invalid then.
func (s *SSE) Close() {
	if cap(s.buf.line) > keptSize {
		s.buf.line = nil
	}
	if cap(s.buf.data) > keptSize {
		s.buf.data = nil
	}
	ssePool.Put(s.buf)
	s.buf = nil
}

// Next is the data of the next frame that has any, valid until the next call;
// [DONE] is none. At the end it is io.EOF. Its own failures are
// *model.Error: truncated_sse_frame, sse_frame_limit, provider_response_limit;
// others are the reader's.
func (s *SSE) Next() ([]byte, error) {
	s.startFrame()
	for {
		line, err := s.readLine()
		if err != nil {
			return nil, err
		}
		if len(line) > 0 {
			s.field(line)
			continue
		}
		data, ok := s.buf.data, s.hasData
		done := ok && string(bytes.TrimSpace(data)) == "[DONE]"
		if ok && !done && !s.over {
			s.inFrame, s.hasData = 0, false
			return data, nil
		}
		if done && s.onDone != nil && !s.over {
			s.over = true
			s.onDone()
		}
		s.startFrame()
	}
}

func (s *SSE) startFrame() {
	s.inFrame, s.hasData = 0, false
	s.buf.data = s.buf.data[:0]
}

// field takes one line. Only data lines count: the JSON itself names the type.
func (s *SSE) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return
	}
	if s.hasData {
		s.buf.data = append(s.buf.data, '\n')
	}
	s.hasData = true
	s.buf.data = append(s.buf.data, bytes.TrimPrefix(value, []byte(" "))...)
}

// readLine is the next line without its end, valid until the next call.
func (s *SSE) readLine() ([]byte, error) {
	s.buf.line = s.buf.line[:0]
	for {
		s.dropLF()
		if err := s.fill(); err != nil {
			return nil, err
		}
		end := lineEnd(s.todo)
		part := s.todo
		if end >= 0 {
			part = s.todo[:end]
		}
		if s.inFrame += len(part) + 1; s.inFrame > frameLimit {
			return nil, model.Errorf("sse_frame_limit", "a frame of the stream is longer than 2 MiB")
		}
		if end < 0 {
			s.buf.line = append(s.buf.line, part...)
			s.todo = nil
			continue
		}
		s.sawCR = s.todo[end] == '\r'
		s.todo = s.todo[end+1:]
		if len(s.buf.line) > 0 {
			s.buf.line = append(s.buf.line, part...)
			part = s.buf.line
		}
		if !s.begun {
			s.begun = true
			part = bytes.TrimPrefix(part, []byte("\xef\xbb\xbf"))
		}
		return part, nil
	}
}

// lineEnd is the place of the first CR or LF, or -1.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		b = b[:end]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// fill reads more, dropping an LF that belongs to a CR before it.
func (s *SSE) fill() error {
	for len(s.todo) == 0 {
		if s.err != nil {
			return s.atEnd()
		}
		n, err := s.from.Read(s.buf.read[:])
		s.todo, s.err = s.buf.read[:n], err
		if s.total += n; s.total > responseLimit {
			return model.Errorf("provider_response_limit", "the response is longer than 16 MiB")
		}
		s.dropLF()
	}
	return nil
}

func (s *SSE) dropLF() {
	if s.sawCR && len(s.todo) > 0 {
		s.sawCR = false
		if s.todo[0] == '\n' {
			s.todo = s.todo[1:]
		}
	}
}

func (s *SSE) atEnd() error {
	if s.err == io.EOF && (s.hasData || len(s.buf.line) > 0) {
		return model.Errorf("truncated_sse_frame", "the stream ended inside a frame")
	}
	return s.err
}

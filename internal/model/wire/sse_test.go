package wire

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"agent/internal/model"
)

// readFrames gives every frame of a stream and what ended it.
func readFrames(r io.Reader) (frames []string, err error) {
	s := NewSSE(r)
	defer s.Close()
	for {
		data, err := s.Next()
		if err == io.EOF {
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(data))
	}
}

func codeOf(err error) string {
	var e *model.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSSE(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		frames       []string
		code         string
	}{
		{"lines may end in LF", "data: a\n\ndata: b\n\n", []string{"a", "b"}, ""},
		{"lines may end in CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, ""},
		{"lines may end in CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}, ""},
		{"line ends may be mixed", "data: a\r\n\ndata: b\n\r\n", []string{"a", "b"}, ""},
		{"only one leading space is removed", "data:  a \n\ndata:b\n\n", []string{" a ", "b"}, ""},
		{"several data lines join with LF", "data: a\ndata: b\n\n", []string{"a\nb"}, ""},
		{"other fields and comments are ignored", ": hi\nevent: x\nid: 1\nretry: 2\ndatax: no\ndata: a\n\n", []string{"a"}, ""},
		{"a frame without data is none", "event: ping\n\n: c\n\n\n\n", nil, ""},
		{"[DONE] is skipped", "data: a\n\ndata: [DONE]\n\n", []string{"a"}, ""},
		{"an empty data line counts", "data\n\ndata:\n\n", []string{"", ""}, ""},
		{"a byte order mark is dropped", "\xef\xbb\xbfdata: a\n\n", []string{"a"}, ""},
		{"a frame without its empty line is cut", "data: a\n\ndata: b\n", []string{"a"}, "truncated_sse_frame"},
		{"a line without its end is cut", "data: a\n\nda", []string{"a"}, "truncated_sse_frame"},
		{"a whole comment at the end is not", "data: a\n\n: bye\n", []string{"a"}, ""},
		{"a frame of 2 MiB is too long", "data: " + strings.Repeat("x", frameLimit) + "\n\n", nil, "sse_frame_limit"},
		{"ignored lines count for the frame's length", strings.Repeat(":"+strings.Repeat("x", 1023)+"\n", 2049), nil, "sse_frame_limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			readers := map[string]io.Reader{
				"whole":         strings.NewReader(c.stream),
				"data with EOF": iotest.DataErrReader(strings.NewReader(c.stream)),
				"small pieces":  &sized{strings.NewReader(c.stream), 1 + len(c.stream)/10_000},
			}
			for name, r := range readers {
				frames, err := readFrames(r)
				if strings.Join(frames, "|") != strings.Join(c.frames, "|") || len(frames) != len(c.frames) || codeOf(err) != c.code {
					t.Errorf("%s: got %q and %v, want %q and %q", name, frames, err, c.frames, c.code)
				}
			}
			for at := 1; at < len(c.stream) && len(c.stream) < 1000; at++ {
				frames, err := readFrames(io.MultiReader(strings.NewReader(c.stream[:at]), strings.NewReader(c.stream[at:])))
				if strings.Join(frames, "|") != strings.Join(c.frames, "|") || codeOf(err) != c.code {
					t.Errorf("cut at %d: got %q and %v", at, frames, err)
				}
			}
		})
	}
}

func TestSSEDoesNotWaitForAnLFAfterCR(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	go w.Write([]byte("data: a\r\r"))
	s := NewSSE(r)
	defer s.Close()
	if data, err := s.Next(); err != nil || string(data) != "a" {
		t.Fatalf("got %q and %v", data, err)
	}
}

func TestSSEResponseLimit(t *testing.T) {
	t.Parallel()
	frame := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	frames, err := readFrames(strings.NewReader(strings.Repeat(frame, 17)))
	if codeOf(err) != "provider_response_limit" || len(frames) != 15 {
		t.Fatalf("got %d frames and %v", len(frames), err)
	}
}

func TestSSEGivesTheReadersError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := readFrames(io.MultiReader(strings.NewReader("data: a\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

// repeat is a stream of n equal frames that exists nowhere whole.
type repeat struct {
	frame []byte
	n     int
	rest  []byte
}

func (r *repeat) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.rest = r.frame
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestSSEHoldsNoMoreForALongStream(t *testing.T) {
	const events = 100_000
	s := NewSSE(&repeat{frame: []byte("data: {\"type\":\"x\",\"delta\":\"" + strings.Repeat("y", 100) + "\"}\n\n"), n: events})
	defer s.Close()
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := 1; ; n++ {
		if _, err := s.Next(); err == io.EOF {
			if n != events {
				t.Fatalf("%d frames", n)
			}
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 256<<10 {
		t.Fatalf("%d bytes were allocated for %d events", grown, events)
	}
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("data: a\n\ndata: b\r\n\r\n"), 1)
	f.Add([]byte(": c\revent: x\rdata: 1\rdata: 2\r\r"), 3)
	f.Add([]byte("\xef\xbb\xbfdata\n\ndata: [DONE]\n\nda"), 2)
	for _, name := range []string{"anthropic/testdata/A2.sse", "anthropic/testdata/S1.sse", "responses/testdata/R2.sse"} {
		stream, err := os.ReadFile("../" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream, 7)
	}
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		size = 1 + abs(size)%97
		whole, err := readFrames(bytes.NewReader(stream))
		cut, cutErr := readFrames(&sized{bytes.NewReader(stream), size})
		if strings.Join(whole, "\x00") != strings.Join(cut, "\x00") || codeOf(err) != codeOf(cutErr) {
			t.Fatalf("whole: %q %v; in pieces of %d: %q %v", whole, err, size, cut, cutErr)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

type sized struct {
	r io.Reader
	n int
}

func (s *sized) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.n)]) }

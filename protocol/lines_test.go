package protocol

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readLines reads all lines and how they end.
func readLines(r io.Reader) (lines []string, err error) {
	l := NewLineReader(r)
	defer l.Close()
	for {
		line, err := l.Next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", MaxLine-1)
	for _, row := range []struct {
		name, input string
		lines       []string
		err         error
	}{
		{"nothing is a clean end", "", nil, io.EOF},
		{"lines come one at a time", "a\n\nbc\n", []string{"a", "", "bc"}, io.EOF},
		{"a last line without a newline is told from a clean end", "a\nbc", []string{"a"}, ErrLineTruncated},
		{"a line of 1,048,576 bytes with its newline fits", full + "\nb\n", []string{full, "b"}, io.EOF},
		{"PR-5 a line of 1,048,577 bytes is too long", "a\n" + full + "x\n", []string{"a"}, ErrLineTooLong},
		{"a line that never ends is too long", full + full, nil, ErrLineTooLong},
		{
			"lines around the sizes of the buffers", strings.Repeat("a", 4095) + "\n" + strings.Repeat("b", 4096) + "\n" + strings.Repeat("c", 65536) + "\nd\n",
			[]string{strings.Repeat("a", 4095), strings.Repeat("b", 4096), strings.Repeat("c", 65536), "d"},
			io.EOF,
		},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "by halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
		} {
			t.Run(row.name+", "+how, func(t *testing.T) {
				t.Parallel()
				lines, err := readLines(wrap(strings.NewReader(row.input)))
				if !errors.Is(err, row.err) || !equalStrings(lines, row.lines) {
					t.Errorf("%d lines, %v", len(lines), err)
				}
			})
		}
	}
	t.Run("both faults are the wire's code", func(t *testing.T) {
		t.Parallel()
		if CodeOf(ErrLineTooLong) != InputLineLimitOrTruncation || CodeOf(ErrLineTruncated) != InputLineLimitOrTruncation {
			t.Error("another code")
		}
	})
	t.Run("the stream's own error is passed on and stays", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("broken")
		l := NewLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
		if line, err := l.Next(); err != nil || string(line) != "a" {
			t.Fatalf("%s %v", line, err)
		}
		for range 2 {
			if _, err := l.Next(); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("a big buffer is given back when the next read has to wait", func(t *testing.T) {
		t.Parallel()
		l := NewLineReader(io.MultiReader(strings.NewReader(full+"\n"), strings.NewReader("b\n")))
		defer l.Close()
		if _, err := l.Next(); err != nil || l.class != len(lineBuffers)-1 {
			t.Fatalf("class %d, %v", l.class, err)
		}
		if line, err := l.Next(); err != nil || string(line) != "b" || l.class != 0 || len(l.buf) != 4<<10 {
			t.Errorf("%s %v in a buffer of %d", line, err, len(l.buf))
		}
	})
	t.Run("a stream that yields nothing for ever is an error", func(t *testing.T) {
		t.Parallel()
		l := NewLineReader(emptyReader{})
		if _, err := l.Next(); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("Buffered tells of a further whole line", func(t *testing.T) {
		t.Parallel()
		l := NewLineReader(strings.NewReader("a\nb\nc"))
		defer l.Close()
		want := []bool{true, false}
		for _, more := range want {
			if _, err := l.Next(); err != nil || l.Buffered() != more {
				t.Errorf("buffered %v, %v", l.Buffered(), err)
			}
		}
	})
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nbc\n"), uint16(1))
	f.Add([]byte("no end"), uint16(3))
	f.Add(bytes.Repeat([]byte("x"), 9000), uint16(5000))
	f.Add([]byte("\n\n\n"), uint16(2))
	f.Fuzz(func(t *testing.T, input []byte, chunk uint16) {
		lines, err := readLines(&chunkReader{input, int(chunk)%8192 + 1})
		rest := bytes.Split(input, []byte("\n"))
		last := rest[len(rest)-1]
		whole := rest[:len(rest)-1]
		for i, line := range whole {
			if len(line) >= MaxLine {
				whole, last = whole[:i], line
				break
			}
		}
		if len(lines) != len(whole) {
			t.Fatalf("%d lines of %d", len(lines), len(whole))
		}
		for i := range whole {
			if lines[i] != string(whole[i]) {
				t.Fatalf("line %d is %q", i, lines[i])
			}
		}
		want := io.EOF
		switch {
		case len(last) >= MaxLine:
			want = ErrLineTooLong
		case len(last) > 0:
			want = ErrLineTruncated
		}
		if !errors.Is(err, want) {
			t.Fatalf("ended with %v, wanted %v", err, want)
		}
	})
}

// chunkReader yields at most n bytes a read.
type chunkReader struct {
	left []byte
	n    int
}

func (c *chunkReader) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(c.n, len(c.left))])
	c.left = c.left[n:]
	return n, nil
}

func TestReaderTypesLines(t *testing.T) {
	t.Parallel()
	r := NewReader(strings.NewReader(`{"event":"ready","protocol":3,"pid":1}` + "\n" +
		`{"id":1,"result":null}` + "\n" + `{"id":null,"error":"invalid_json"}` + "\n" + `{"event":"paused","durable":false,"by":"x"}` + "\n" + `{"x":1}` + "\n"))
	defer r.Close()
	first, err := r.Next()
	if err != nil || first.Ready == nil || first.Ready.PID != 1 {
		t.Fatalf("%+v %v", first, err)
	}
	second, err := r.Next()
	if n, ok := second.Answer.Number(); err != nil || n != 1 || !ok || string(second.Answer.Result) != "null" {
		t.Fatalf("%+v %v", second, err)
	}
	third, err := r.Next()
	if _, ok := third.Answer.Number(); err != nil || ok || !errors.Is(third.Answer.Err, InvalidJSON) {
		t.Fatalf("%+v %v", third, err)
	}
	if fourth, err := r.Next(); err != nil || fourth.Event.Kind != KindPaused {
		t.Fatalf("%+v %v", fourth, err)
	}
	if _, err := r.Next(); !errors.Is(err, InvalidJSON) {
		t.Fatalf("got %v", err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v", err)
	}
}

package secret

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// known is the known value of these tests.
const known = "sk-known-0123456789"

func redactor(t testing.TB, values ...string) *Redactor {
	return NewRedactor(set(t, append(values, known)...))
}

// mask redacts a text as a whole and in pieces of many sizes, and a second
// time, and fails where these disagree.
func mask(t testing.TB, r *Redactor, in string) string {
	t.Helper()
	got := string(r.Bytes([]byte(in)))
	if again := string(r.Bytes([]byte(got))); again != got {
		t.Errorf("AP-77 a second time\n %q\nbecame\n %q\nof %q", got, again, in)
	}
	for _, size := range []int{1, 2, 3, 5, 7, 16, 61, 257} {
		if size > len(in) && size > 1 {
			break
		}
		var out bytes.Buffer
		w := r.Stream(&out)
		for chunk := range slices.Chunk([]byte(in), size) {
			if n, err := w.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("wrote %d of %d: %v", n, len(chunk), err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != got {
			t.Errorf("in pieces of %d\n %q\nbecame\n %q\ninstead of\n %q", size, in, out.String(), got)
		}
	}
	return got
}

// rows are texts and what becomes of them; M stands for the mark.
type rows []struct{ name, in, want string }

func (all rows) check(t *testing.T) {
	t.Helper()
	r := redactor(t)
	for _, row := range all {
		t.Run(row.name, func(t *testing.T) {
			if got, want := mask(t, r, row.in), strings.ReplaceAll(row.want, "§", Mark); got != want {
				t.Errorf("%q\n got  %q\n want %q", row.in, got, want)
			}
		})
	}
}

// cpuTime is the processor time that this program has used.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkRedactor(b *testing.B) {
	lines := map[string]string{
		"log":   "2024-05-01 12:00:00 INFO server/handler.go:128 request served in 12 ms, status=200 skipped=3\n",
		"prose": "The quick brown fox jumps over the lazy dog, and then it goes home to sleep for a while.\n",
		"json":  `{"time":"2024-05-01T12:00:00Z","level":"info","msg":"request served","status":200,"url":"https://example.org/a/b?c=d"}` + "\n",
		"code":  "\tif err := f.Close(); err != nil { return fmt.Errorf(\"closing: %w\", err) } // a-b --flag x\n",
	}
	r := redactor(b, "sk-ant-api03-"+strings.Repeat("x9K", 30), "sk-proj-"+strings.Repeat("Ab3", 50))
	for name, line := range lines {
		b.Run(name, func(b *testing.B) {
			text := []byte(strings.Repeat(line, (16<<10)/len(line)))
			w := r.Stream(io.Discard)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			start := cpuTime(b)
			for b.Loop() {
				w.Write(text)
			}
			// On a busy machine, processor time says more than the clock.
			b.ReportMetric(float64(len(text))*float64(b.N)/1e6/(cpuTime(b)-start).Seconds(), "cpu-MB/s")
		})
	}
}

package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func set(t testing.TB, values ...string) *Values {
	t.Helper()
	var v Values
	for i, text := range values {
		v.Add(Named{Name: fmt.Sprint("V", i), Value: NewValue(text)})
	}
	return &v
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		values []string
		in     string
		want   string
	}{
		{"a value anywhere is masked", []string{"sk-12345678"}, "key=sk-12345678!", "key=[REDACTED]!"},
		{"case counts", []string{"sk-abcdefgh"}, "SK-ABCDEFGH", "SK-ABCDEFGH"},
		{"overlapping values become one mark", []string{"abcdefgh", "efghijkl"}, "xabcdefghijklx", "x[REDACTED]x"},
		{"a value inside another is one mark", []string{"abcdefghijkl", "cdefghij"}, "abcdefghijkl", "[REDACTED]"},
		{"a chain of overlaps becomes one mark", []string{"abcdefgh", "ijklmnop", "ghijklmn"}, "abcdefghijklmnop", "[REDACTED]"},
		{"a longer value takes in two touching ones", []string{"abcdefgh", "ijklmnop", "abcdefghijklmnopq"}, "abcdefghijklmnopq", "[REDACTED]"},
		{"touching values stay two", []string{"abcdefgh"}, "abcdefghabcdefgh", "[REDACTED][REDACTED]"},
		{"a value that overlaps itself is one mark", []string{"aaaaaaaa"}, "aaaaaaaaaa", "[REDACTED]"},
		{"a broken-off value does not hide the next", []string{"aaaaaaab"}, "aaaaaaaaaaab", "aaaa[REDACTED]"},
		{"bytes that are no text are masked too", []string{"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8"}, "a\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8b", "a[REDACTED]b"},
		{"a pattern character is only itself", []string{".*.*.*.*"}, "abcdefgh .*.*.*.*", "abcdefgh [REDACTED]"},
		{"a value is trimmed", []string{"  sk-12345678\n"}, "sk-12345678", "[REDACTED]"},
		{"a value of lines counts as its lines", []string{"first-line\r\nsecond-line\n"}, "second-line first-line", "[REDACTED] [REDACTED]"},
		{"a short value masks nothing", []string{"1234567"}, "1234567", "1234567"},
		{"the mark is never masked again", []string{"REDACTED", "sk-12345678"}, "sk-12345678 REDACTED", "[REDACTED] REDACTED"},
		{"an empty set masks nothing", nil, "text", "text"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			v := set(t, row.values...)
			got := string(v.Bytes([]byte(row.in)))
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if again := string(v.Bytes([]byte(got))); again != got {
				t.Errorf("AP-77 a second pass changed %q to %q", got, again)
			}
			for size := 1; size <= len(row.in); size++ {
				if got := streamed(t, v, row.in, size); got != row.want {
					t.Errorf("in pieces of %d: got %q, want %q", size, got, row.want)
				}
			}
		})
	}
}

func TestBytesWithoutSecretIsTheSameSlice(t *testing.T) {
	t.Parallel()
	in := []byte("nothing here")
	if out := set(t, "sk-12345678").Bytes(in); &out[0] != &in[0] {
		t.Error("the text was copied")
	}
}

func TestAddNamesShortValues(t *testing.T) {
	t.Parallel()
	var v Values
	short := v.Add(
		Named{"GOOD", NewValue("long enough")},
		Named{"EMPTY", NewValue("")},
		Named{"SHORT", NewValue("1234567")},
		Named{"PARTLY", NewValue("long enough too\nx\n")},
	)
	if want := []string{"SHORT", "PARTLY"}; !slices.Equal(short, want) {
		t.Errorf("got %v, want %v", short, want)
	}
}

func streamed(t testing.TB, v *Values, text string, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := v.Stream(&out)
	for chunk := range slices.Chunk([]byte(text), max(1, size)) {
		if n, err := w.Write(chunk); n != len(chunk) || err != nil {
			t.Fatalf("wrote %d of %d: %v", n, len(chunk), err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestStreamHoldsNoMoreThanIsUndecided(t *testing.T) {
	t.Parallel()
	v := set(t, "sk-12345678")
	var out bytes.Buffer
	w := v.Stream(&out)
	for _, step := range []struct{ in, want string }{
		{"plain ", "plain "},
		{"sk-123", "plain "},
		{"x", "plain sk-123x"},
		{"sk-1234", "plain sk-123x"},
		{"5678", "plain sk-123x[REDACTED]"},
	} {
		if _, err := io.WriteString(w, step.in); err != nil {
			t.Fatal(err)
		}
		if out.String() != step.want {
			t.Errorf("after %q: %q, want %q", step.in, out.String(), step.want)
		}
	}
}

func TestStreamUsesValuesAddedMeanwhile(t *testing.T) {
	t.Parallel()
	v := set(t, "sk-12345678")
	var out bytes.Buffer
	w := v.Stream(&out)
	io.WriteString(w, "a sk-1234")
	v.Add(Named{"NEW", NewValue("1234-other")})
	io.WriteString(w, "-other sk-12345678 z")
	w.Close()
	if want := "a sk-[REDACTED] [REDACTED] z"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestStreamMemoryIsConstant(t *testing.T) {
	t.Parallel()
	v := set(t, strings.Repeat("a", 64))
	w := v.Stream(io.Discard).(*chain)
	chunk := bytes.Repeat([]byte("a"), 32<<10) // one span that never ends
	for range 64 {
		w.Write(chunk)
	}
	values := w.passes[0].(*valuesPass)
	if held := cap(values.tail) + 16*cap(values.spans); held > 1<<10 {
		t.Errorf("%d bytes held", held)
	}
}

// reference masks by looking at every place for every value.
func reference(values []string, text string) string {
	covered := make([]span, 0)
	for _, v := range values {
		for i := 0; i+len(v) <= len(text); i++ {
			if text[i:i+len(v)] == v {
				covered = append(covered, span{int64(i), int64(i + len(v))})
			}
		}
	}
	slices.SortFunc(covered, func(a, b span) int { return int(a.start - b.start) })
	var out strings.Builder
	at := int64(0)
	for i := 0; i < len(covered); {
		s := covered[i]
		for i++; i < len(covered) && covered[i].start < s.end; i++ {
			s.end = max(s.end, covered[i].end)
		}
		out.WriteString(text[at:s.start] + Mark)
		at = s.end
	}
	return out.String() + text[at:]
}

func FuzzStream(f *testing.F) {
	f.Add("aaaaaaaa", "aabaabaaab", "aaaaaaaabaabaaab xx", 3)
	f.Add("sk-12345678", "12345678", "key sk-12345678 and 12345678", 1)
	f.Add("", "x", "plain", 2)
	f.Fuzz(func(t *testing.T, one, two, text string, size int) {
		v := set(t, one, two)
		want := reference(v.patterns, text)
		if got := string(v.Bytes([]byte(text))); got != want {
			t.Errorf("whole: got %q, want %q", got, want)
		}
		if size < 1 || size > len(text) {
			size = 1
		}
		if got := streamed(t, v, text, size); got != want {
			t.Errorf("streamed: got %q, want %q", got, want)
		}
	})
}

func TestStreamOfRandomTextEqualsReference(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a' + byte(r.IntN(2))
		}
		return string(b)
	}
	for range 500 {
		v := set(t, random(8), random(9), random(12))
		text := random(200)
		want := reference(v.patterns, text)
		if got := streamed(t, v, text, 1+r.IntN(30)); got != want {
			t.Fatalf("values %q text %q: got %q, want %q", v.patterns, text, got, want)
		}
	}
}

func TestCostIsLinear(t *testing.T) {
	t.Parallel()
	v := set(t, strings.Repeat("a", 1000)+"b", strings.Repeat("ab", 700))
	cost := func(n int) time.Duration {
		best := time.Hour
		text := []byte(strings.Repeat("a", n))
		for range 3 {
			start := time.Now()
			v.Bytes(text)
			best = min(best, time.Since(start))
		}
		return best
	}
	if took := cost(1 << 20); took > 500*time.Millisecond {
		t.Errorf("1 MiB took %v", took)
	}
}

func TestValueIsHidden(t *testing.T) {
	t.Parallel()
	v := NewValue("sk-very-secret")
	holder := struct {
		Key Value
		Ptr *Value
	}{v, &v}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", v, "holder", holder)
	encoded, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{
		fmt.Sprint(v), fmt.Sprintf("%v %+v %#v %s %q %x %d", v, v, v, v, v, v, v),
		fmt.Sprintf("%v %+v %#v", holder, holder, holder), fmt.Sprint(Named{"N", v}),
		string(encoded), log.String(),
	} {
		if strings.Contains(shown, "very") || strings.Contains(shown, fmt.Sprintf("%x", "very")) {
			t.Errorf("shown: %s", shown)
		}
	}
	if v.Reveal() != "sk-very-secret" {
		t.Error("Reveal does not give the value")
	}
}

func BenchmarkStream(b *testing.B) {
	v := set(b, "sk-ant-api03-"+strings.Repeat("x9K", 30), "sk-proj-"+strings.Repeat("Ab3", 50), strings.Repeat("eyJhbGciOi", 200))
	line := "2024-05-01 12:00:00 INFO server/handler.go:128 request served in 12 ms, status=200 skipped=3\n"
	text := []byte(strings.Repeat(line, (32<<10)/len(line)))
	w := v.Stream(io.Discard)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w.Write(text)
	}
}

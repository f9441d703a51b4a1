package tool

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// repaired replaces each bad byte of the whole at once.
func repaired(p []byte) string {
	var out strings.Builder
	for len(p) > 0 {
		c, size := utf8.DecodeRune(p)
		out.WriteRune(c)
		p = p[size:]
	}
	return out.String()
}

func FuzzRepair(f *testing.F) {
	for _, seed := range []string{"caf\xe9 €", "\xe2\x82", "\xf0\x9f\x98", "\xf0\x9f\x98\x80x", "\xe2\xe2\x82\xac", "\xff\xc0\x80", "\xf0\x80"} {
		f.Add([]byte(seed), 1)
		f.Add([]byte(seed), 2)
	}
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		if size < 1 || size > 64 {
			size = 1
		}
		var out bytes.Buffer
		r := newRepairer(&out)
		for chunk := range slices.Chunk(text, size) {
			if n, err := r.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if want := repaired(text); out.String() != want {
			t.Errorf("%q in pieces of %d: got %q, want %q", text, size, out.String(), want)
		}
	})
}

func FuzzCapture(f *testing.F) {
	f.Add([]byte("ab€\xff"), 40000, 1000, false)
	f.Add([]byte("é"), 32769, 7, true)
	f.Add([]byte("a sk-12345678 b\n"), 70000, 16384, false)
	f.Fuzz(func(t *testing.T, unit []byte, times, size int, poor bool) {
		if len(unit) == 0 || len(unit) > 64 || times < 0 || times > 100_000 || size < 1 {
			t.Skip()
		}
		env, _ := newEnv(t, "sk-12345678")
		if poor {
			env.Captures = NewBudget(0)
		}
		text := bytes.Repeat(unit, times)
		c := newCapture(env, "stdout")
		for chunk := range slices.Chunk(text, max(size, 64)) {
			c.Write(chunk)
		}
		got := c.finish()
		want := string(env.Redact.Bytes([]byte(repaired(text))))
		if len(want) <= maxPreview {
			if got.preview != want || got.artifact != nil {
				t.Errorf("a short stream is not shown whole")
			}
			return
		}
		if !utf8.ValidString(got.preview) || got.artifact == nil || got.artifact.Bytes != int64(len(want)) {
			t.Fatalf("a long stream is cut badly")
		}
		head, rest, _ := strings.Cut(got.preview, "[")
		if !strings.HasPrefix(want, strings.TrimSuffix(head, "\n")) || rest == "" {
			t.Errorf("the head is not the stream's")
		}
		if got.artifact.File != "" {
			holds(t, got.artifact.File, want)
		} else if string(got.artifact.Data) != want {
			t.Errorf("the stream is not kept whole")
		}
	})
}

func TestCapturePreviewEndsOnCharacters(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	c := newCapture(env, "stdout")
	text := "x" + strings.Repeat("€", 50_000)
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	got := c.finish()
	head, rest, _ := strings.Cut(got.preview, "\n[")
	_, tail, _ := strings.Cut(rest, "]\n")
	if len(head) != 1+(halfShown-1)/3*3 || len(tail) != halfShown/3*3 || strings.ContainsRune(got.preview, utf8.RuneError) {
		t.Errorf("head of %d and tail of %d bytes", len(head), len(tail))
	}
}

func TestCaptureMemoryIsBounded(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	env.Captures = NewBudget(maxRow)
	one, two := newCapture(env, "stdout"), newCapture(env, "stderr")
	chunk := bytes.Repeat([]byte("a"), 1000)
	for range 1040 {
		one.Write(chunk)
		two.Write(chunk)
	}
	if held := cap(one.kept) + cap(two.kept); held > maxRow {
		t.Errorf("%d bytes held", held)
	}
	for _, c := range []*capture{one, two} {
		if got := c.finish(); got.artifact == nil || got.artifact.File != "" || len(got.artifact.Data) != 1_040_000 {
			t.Errorf("kept %+v", got.artifact)
		}
	}
	if left := takeAll(env.Captures); left != maxRow {
		t.Errorf("the budget has %d bytes", left)
	}
}

package tool

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func edit(t testing.TB, env *Env, path, old, new string, more ...any) Result {
	t.Helper()
	args := map[string]any{"path": path, "old": old, "new": new}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return call(t, env, "edit", args)
}

func TestEditKeepsWhatTheFileHad(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, before, old, new, after string }{
		{"one place is replaced", "a\nb\nc\n", "b", "x", "a\nx\nc\n"},
		{"text is removed", "a\nb\nc\n", "b\n", "", "a\nc\n"},
		{"RT-112 two lines by three in a CRLF file", "a\r\nb\r\nc\r\nd\r\n", "b\nc\n", "1\n2\n3\n", "a\r\n1\r\n2\r\n3\r\nd\r\n"},
		{"RT-112 the same, asked with CRLF", "a\r\nb\r\nc\r\nd\r\n", "b\r\nc\r\n", "1\r\n2\r\n3\r\n", "a\r\n1\r\n2\r\n3\r\nd\r\n"},
		{"RT-112 CRLF in the request is LF in a file of LF", "a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"},
		{"RT-112 lines put inside a CRLF line", "abc\r\n", "b", "1\n2", "a1\r\n2c\r\n"},
		{"RT-112 in a mixed file untouched lines keep theirs", "a\r\nb\nc\r\nd\n", "b", "x", "a\r\nx\nc\r\nd\n"},
		{"RT-112 lines that a replacement repeats keep theirs", "a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "1\na\n2\nb\nc\nd", "1\r\na\r\n2\r\nb\nc\r\nd\n"},
		{"RT-112 a new line in a mixed file follows the line before it", "a\n\r\nb\r\n", "a\n\nb\n", "a\nx\n\nb\n", "a\nx\n\r\nb\r\n"},
		{"RT-112 a line in the last place takes the ending of the line before", "a\r\nb\nc", "c", "c\nd", "a\r\nb\nc\nd"},
		{"RT-113 a mark stays the only one", byteOrderMark + "first\nsecond\n", "first", "1st", byteOrderMark + "1st\nsecond\n"},
		{"RT-113 a mark in the request is ignored", byteOrderMark + "first\n", byteOrderMark + "first", byteOrderMark + "1st", byteOrderMark + "1st\n"},
		{"RT-114 a middle line of a file without a final newline", "a\nb\nc", "b", "x", "a\nx\nc"},
		{"RT-114 its last line", "a\nb\nc", "c", "x", "a\nb\nx"},
		{"RT-114 its last line, asked with a newline", "a\nb\nc", "c\n", "x\n", "a\nb\nx"},
		{"RT-114 its last lines, asked with a newline, in a CRLF file", "a\r\nb\r\nc", "b\nc\n", "x\ny\nz\n", "a\r\nx\r\ny\r\nz"},
		{"a newline alone is text", "a\r\nb\r\n", "a\nb", "a b", "a b\r\n"},
		{"a lone CR is text", "a\rb\n", "a\rb", "c", "c\n"},
		{"characters stay whole", "naïve €\n", "ï", "i", "naive €\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			path := file(t, env, "f", row.before)
			r := ok(t, edit(t, env, "f", row.old, row.new))
			holds(t, path, row.after)
			if r.Output != "Replaced 1 occurrence in f." {
				t.Errorf("got %s", r.Output)
			}
			if len(r.Seen) != 1 || r.Seen[0].Path != path || r.Seen[0].Hash != sha256.Sum256([]byte(row.after)) || r.Seen[0].Size != int64(len(row.after)) {
				t.Errorf("remembered %+v", r.Seen)
			}
		})
	}
}

func TestEditEverywhere(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	path := file(t, env, "f", "a\r\na\nba\n")
	if r := ok(t, edit(t, env, "f", "a\n", "x\ny\n", "replace_all", true)); r.Output != "Replaced 3 occurrences in f." {
		t.Errorf("got %s", r.Output)
	}
	holds(t, path, "x\r\ny\r\nx\ny\nbx\ny\n")
}

func TestEditRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, content, old, new, code, says string }{
		{"RT-32 text that occurs twice", "a b a", "a", "x", "edit_target_ambiguous", "2 times"},
		{"RT-32 text that overlaps itself", "aaa", "aa", "x", "edit_target_ambiguous", "2 times"},
		{"RT-115 a Latin-1 file", "caf\xe9 au lait", "lait", "x", "file_not_utf8", "byte 3"},
		{"a UTF-16 file", "\xff\xfea\x00", "a", "x", "file_not_utf8", "UTF-16"},
		{"text that is not there", "one\ntwo\n", "three", "x", "edit_target_not_found", `no line is like its first, "three"`},
		{"a line that differs in blanks", "if x {\n\treturn\n}\n", "if x {\n    return\n}", "x", "edit_target_not_found", `line 2 is near and differs in blanks: the file has "\treturn"`},
		{"a line that differs in quotes", "say “hello”\n", `say "hello"`, "x", "edit_target_not_found", "line 1 is near and differs in quotes"},
		{"a line that differs in letter case", "a\nfunc Read()\n", "func read()", "x", "edit_target_not_found", "line 2 is near and differs in letter case"},
		{"a line that differs in two ways", "Say  'x'\n", `Say "X"`, "x", "edit_target_not_found", "blanks and quotes and letter case"},
		{"lines that go on differently", "one\ntwo\nthree\n", "one\ntwo\nfour", "x", "edit_target_not_found", `agrees with it from line 1 on, but at line 3 the file has "three", old has "four"`},
		{"trailing blanks", "one  \ntwo\n", "one\ntwo", "x", "edit_target_not_found", "line 1 is near and differs in blanks"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			path := file(t, env, "f", row.content)
			failed(t, edit(t, env, "f", row.old, row.new), row.code, row.says)
			holds(t, path, row.content)
		})
	}
	t.Run("RT-31 a result past 4 MiB", func(t *testing.T) {
		t.Parallel()
		for _, content := range []string{strings.Repeat("a", 5), strings.Repeat("a\n", 100) + "b\r\n", strings.Repeat("a", 3<<20)} {
			env, _ := newEnv(t)
			path := file(t, env, "f", content)
			r := edit(t, env, "f", "a", strings.Repeat("x\n", 512<<10), "replace_all", true)
			failed(t, r, "tool_output_limit", "nothing was changed")
			holds(t, path, content)
		}
	})
	t.Run("odd targets", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		failed(t, edit(t, env, "absent", "a", "b"), "file_unreadable", "absent: no such file")
		failed(t, edit(t, env, ".", "a", "b"), "file_not_regular", "a folder")
		file(t, env, "big", strings.Repeat("a", maxFile+1))
		failed(t, edit(t, env, "big", "a", "b"), "file_too_large", "4194305")
	})
	t.Run("a detail is redacted", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t, "sk-12345678")
		file(t, env, "f", "key  sk-12345678\n")
		failed(t, edit(t, env, "f", "key sk-12345678", "x"), "edit_target_not_found", "[REDACTED]")
	})
}

func TestWhatIsNearIsShownMasked(t *testing.T) {
	t.Parallel()
	const key = "sk-live-0123456789abcdefghij"
	// The line is cut within the key where it is shown.
	line := "name" + strings.Repeat(" ", 180) + key
	env, _ := newEnv(t, key)
	file(t, env, "f", "first\n"+line+"\n")
	for _, r := range []Result{
		edit(t, env, "f", "NAME  "+key, "x"),
		edit(t, env, "f", "first\nother", "x"),
		patch(t, env, update("f", "@@\n first\n-other\n")),
	} {
		var e struct{ Error, Detail string }
		if err := json.Unmarshal([]byte(r.Output), &e); err != nil || !strings.HasSuffix(e.Error, "not_found") {
			t.Fatalf("%v: %s", err, r.Output)
		}
		if strings.Contains(e.Detail, "  sk-live") {
			t.Errorf("a part of the key is shown: %s", e.Detail)
		}
	}
}

func TestEditOfManyPlacesIsQuick(t *testing.T) {
	t.Parallel()
	body := []byte(strings.Repeat("a\r\n", 1<<16) + "b\n")
	start := time.Now()
	_, n, f := unmasked.replaceText(body, "a\n", "b\n", true)
	if n != 1<<16 || f != nil {
		t.Fatal(n, f)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzReplaceText(f *testing.F) {
	for _, seed := range [][3]string{
		{"a\r\nb\nc\r\nd", "b\nc", "x\ny\nz"},
		{"aaa", "aa", "b"},
		{"a\nb", "b\n", "c\n"},
		{"\xef\xbb\xbfa", "a", "b"},
		{"a\r\r\nb", "\r\n", "x"},
		{"a\n\r\nb\n", "\n", "\n\n"},
	} {
		f.Add(seed[0], seed[1], seed[2], true)
		f.Add(seed[0], seed[1], seed[2], false)
	}
	f.Fuzz(func(t *testing.T, data, old, new string, all bool) {
		if old == "" || !utf8.ValidString(data) || !utf8.ValidString(old) || !utf8.ValidString(new) {
			t.Skip()
		}
		out, n, failure := unmasked.replaceText([]byte(data), old, new, all)
		plain := func(s string) string {
			return strings.ReplaceAll(strings.TrimPrefix(s, byteOrderMark), "\r\n", "\n")
		}
		text, from, to := plain(data), plain(old), plain(new)
		if failure != nil {
			if c := strings.Count(text, from); c == 1 && from != "" && len(data)+len(new) < maxFile && failure.Code != "edit_target_ambiguous" {
				t.Errorf("refused: %v", failure)
			}
			return
		}
		if strings.Count(text, from) == 0 {
			if from = strings.TrimSuffix(from, "\n"); !strings.HasSuffix(text, from) || n != 1 {
				t.Fatalf("replaced %d of nothing", n)
			}
			text = strings.TrimSuffix(text, from)
			text, from = text+"\x00", "\x00"
			to = strings.TrimSuffix(to, "\n")
			if strings.Count(text, "\x00") > 1 {
				t.Skip()
			}
		}
		want := strings.ReplaceAll(text, from, to)
		// A CR that comes to stand before a LF is an ending only by accident.
		if !strings.Contains(plain(new), "\r") && !strings.Contains(plain(data), "\r") {
			if got := plain(string(out)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if !strings.Contains(strings.ReplaceAll(data, "\r\n", ""), "\n") && strings.Contains(data, "\r\n") &&
				strings.Contains(strings.ReplaceAll(string(out), "\r\n", ""), "\n") {
				t.Errorf("a lone LF in %q", out)
			}
		}
		if strings.HasPrefix(data, byteOrderMark) != strings.HasPrefix(string(out), byteOrderMark) && !strings.HasPrefix(want, byteOrderMark) {
			t.Errorf("the mark of %q became %q", data, out)
		}
	})
}

func TestEditIsWrittenAtomically(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	path := file(t, env, "f", "old")
	before, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	ok(t, edit(t, env, "f", "old", "new"))
	holds(t, path, "new")
	b := make([]byte, 3)
	if _, err := before.ReadAt(b, 0); err != nil || string(b) != "old" {
		t.Errorf("who had the file open sees %q, %v", b, err)
	}
}

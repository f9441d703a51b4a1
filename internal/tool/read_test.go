package tool

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadText(t *testing.T) {
	t.Parallel()
	numbered := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%6d\tline %d\n", i, i)
		}
		return b.String()
	}
	var lines strings.Builder
	for i := 1; i <= 1200; i++ {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	for _, row := range []struct {
		name, content string
		args          []any
		want          string
	}{
		{"lines are numbered", "a\nb\n", nil, "     1\ta\n     2\tb\n"},
		{"a last line without an ending is a line", "a\nb", nil, "     1\ta\n     2\tb\n"},
		{"CRLF is not shown, another CR is", "a\r\nb\rc\r\n", nil, "     1\ta\n     2\tb\rc\n"},
		{"empty lines count", "\n\na\n", nil, "     1\t\n     2\t\n     3\ta\n"},
		{"an empty file", "", nil, "[the file is empty]\n"},
		{"a secret is masked before lines are numbered", "x sk-line-one\ny\n", nil, "     1\tx [REDACTED]\n     2\ty\n"},
		{"500 lines when no limit is given", lines.String(), nil, numbered(1, 500) + "[lines 1 to 500 of 1200]\n"},
		{"a page in the middle", lines.String(), []any{"offset", 10, "limit", 2}, numbered(10, 11) + "[lines 10 to 11 of 1200]\n"},
		{"a page at the end", lines.String(), []any{"offset", 1199, "limit", 10}, numbered(1199, 1200) + "[lines 1199 to 1200 of 1200]\n"},
		{"an offset past the end", "a\n", []any{"offset", 2}, "[offset 2 is past the end: the file has 1 lines]\n"},
		{"an offset past all numbers", "a\n", []any{"offset", int64(9223372036854775807)}, "[offset 9223372036854775807 is past the end: the file has 1 lines]\n"},
		{"bad bytes are shown as replacement characters", "a\xff\xe2\x82\n", nil, "     1\ta\uFFFD\uFFFD\uFFFD\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t, "sk-line-one")
			path := file(t, env, "f", row.content)
			r := ok(t, read(t, env, "f", row.args...))
			if r.Output != row.want {
				t.Errorf("got %.300q, want %.300q", r.Output, row.want)
			}
			if len(r.Seen) != 1 || r.Seen[0].Path != path || r.Seen[0].Hash != sha256.Sum256([]byte(row.content)) ||
				r.Seen[0].Size != int64(len(row.content)) || r.Seen[0].Inode != inode(t, path) {
				t.Errorf("remembered %+v", r.Seen)
			}
		})
	}
}

func TestReadLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80_000)
	t.Run("RT-30 a first line that fits no page", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		file(t, env, "f", long+"\nb\n")
		failed(t, read(t, env, "f"), "read_line_too_long", "line 1 ")
		if r := ok(t, read(t, env, "f", "offset", 2)); r.Output != "     2\tb\n[lines 2 to 2 of 2]\n" {
			t.Errorf("got %q", r.Output)
		}
	})
	t.Run("RT-30 the same as second line ends the page", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		file(t, env, "f", "a\n"+long+"\nb\n")
		r := ok(t, read(t, env, "f"))
		if want := "     1\ta\n[the page is full; go on with offset 2]\n[lines 1 to 1 of 3]\n"; r.Output != want {
			t.Errorf("got %q, want %q", r.Output, want)
		}
	})
	t.Run("a page is at most 64 KiB with its notices, and pages join to the whole", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		var content strings.Builder
		for i := range 3000 {
			content.WriteString(strings.Repeat("é", i%200) + "\n")
		}
		file(t, env, "f", content.String())
		var joined strings.Builder
		for offset, pages := 1, 0; offset <= 3000; pages++ {
			r := ok(t, read(t, env, "f", "offset", offset, "limit", 5000))
			if len(r.Output) > maxPage || !utf8.ValidString(r.Output) {
				t.Fatalf("a page of %d bytes", len(r.Output))
			}
			for line := range strings.Lines(r.Output) {
				if _, text, ok := strings.Cut(line, "\t"); ok {
					joined.WriteString(text)
					offset++
				}
			}
			if pages > 100 {
				t.Fatal("no end")
			}
		}
		if joined.String() != content.String() {
			t.Error("the pages do not join to the whole")
		}
	})
	t.Run("a file of 4 MiB is read, a longer one is not", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		file(t, env, "f", strings.Repeat("a\n", maxFile/2))
		ok(t, read(t, env, "f"))
		file(t, env, "g", strings.Repeat("a\n", maxFile/2)+"a")
		failed(t, read(t, env, "g"), "file_too_large", "4194305")
	})
}

func TestReadKeptOutput(t *testing.T) {
	t.Parallel()
	env, w := newEnv(t)
	w.artifacts["7/call/with/slash/stdout"] = "a\nb\n"
	w.results[12] = strings.Repeat("é", 5000)
	args := func(ref string) map[string]any { return map[string]any{"artifact": ref} }
	if r := ok(t, call(t, env, "read", args("7/call/with/slash/stdout"))); r.Output != "     1\ta\n     2\tb\n" || len(r.Seen) != 0 {
		t.Errorf("got %q", r.Output)
	}
	r := ok(t, call(t, env, "read", args("result/12")))
	var joined strings.Builder
	for line := range strings.Lines(r.Output) {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if len(text) > pieceSize {
			t.Errorf("a piece of %d bytes", len(text))
		}
		joined.WriteString(text)
	}
	if joined.String() != w.results[12] {
		t.Error("the pieces do not join to the whole")
	}
	failed(t, call(t, env, "read", args("8/c/stdout")), "artifact_not_found", "no such stream")
	failed(t, call(t, env, "read", args("result/13")), "result_not_found", "")
	for _, bad := range []string{"", "7", "7/c", "7//stdout", "0/c/stdout", "07/c/stdout", "7/c/other", "result/", "result/x", "result/-1", "result/1/2"} {
		failed(t, call(t, env, "read", args(bad)), "invalid_artifact_reference", "TURN/CALL_ID/STREAM")
	}
}

func TestReadArguments(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	for _, row := range []struct {
		args       map[string]any
		code, says string
	}{
		{map[string]any{}, "invalid_tool_arguments", "either path or artifact"},
		{map[string]any{"path": "a", "artifact": "result/1"}, "invalid_tool_arguments", "either path or artifact"},
		{map[string]any{"path": "a", "offset": 0}, "invalid_tool_arguments", "offset"},
		{map[string]any{"path": "a", "limit": 5001}, "invalid_tool_arguments", "1 to 5000"},
		{map[string]any{"path": ""}, "invalid_path", "empty"},
		{map[string]any{"path": "a\x00b"}, "invalid_path", "NUL"},
		{map[string]any{"path": strings.Repeat("a", 4097)}, "invalid_path", "4097"},
		{map[string]any{"path": "absent"}, "file_unreadable", "absent: no such file"},
	} {
		failed(t, call(t, env, "read", row.args), row.code, row.says)
	}
	for _, name := range []string{"write", "edit"} {
		args := map[string]any{"path": "", "content": "", "old": "a", "new": ""}
		if name == "write" {
			delete(args, "old")
			delete(args, "new")
		} else {
			delete(args, "content")
		}
		failed(t, call(t, env, name, args), "invalid_path", "empty")
	}
	failed(t, write(t, env, "f", strings.Repeat("a", maxWrite+1)), "tool_input_limit", "1048577")
	failed(t, edit(t, env, "f", "a", strings.Repeat("a", maxWrite+1)), "tool_input_limit", "1048577")
	failed(t, edit(t, env, "f", "", "a"), "invalid_tool_arguments", "empty")
}

func FuzzPager(f *testing.F) {
	f.Add("a\nb\r\nc", int64(2), int64(1), false, 1)
	f.Add(strings.Repeat("é", 5000), int64(1), int64(5), true, 7)
	f.Fuzz(func(t *testing.T, text string, from, limit int64, pieces bool, size int) {
		if from < 1 || limit < 1 || limit > maxLines || size < 1 || !utf8.ValidString(text) {
			t.Skip()
		}
		p := newPager(from, limit)
		p.pieces = pieces
		for len(text) > 0 {
			n := min(size, len(text))
			p.Write([]byte(text[:n]))
			text = text[n:]
		}
		p.Close()
		page, failure := p.text("it")
		if failure == nil && (len(page) > maxPage || page != "" && !strings.HasSuffix(page, "\n")) {
			t.Errorf("a page of %d bytes", len(page))
		}
	})
}

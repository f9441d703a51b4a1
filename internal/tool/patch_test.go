package tool

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func patch(t testing.TB, env *Env, sections ...string) Result {
	t.Helper()
	return call(t, env, "apply_patch", map[string]any{"patch": envelope(sections...)})
}

func envelope(sections ...string) string {
	return "*** Begin Patch\n" + strings.Join(sections, "") + "*** End Patch\n"
}

func update(path, hunks string) string { return "*** Update File: " + path + "\n" + hunks }

func TestPatchKeepsWhatTheFileHad(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, before, hunks, after string }{
		{"a line is replaced", "a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
		{"RT-112 a CRLF file keeps CRLF everywhere", "a\r\nb\r\nc\r\nd\r\n", "@@\n a\n-b\n-c\n+1\n+2\n+3\n d\n", "a\r\n1\r\n2\r\n3\r\nd\r\n"},
		{"RT-112 in a mixed file untouched lines keep theirs", "a\r\nb\nc\r\nd\n", "@@\n-b\n+B\n c\n+x\n", "a\r\nB\nc\r\nx\r\nd\n"},
		{"RT-112 a line that comes takes the ending of the one it follows", "a\nb\r\nc\n", "@@\n a\n b\n+x\n+y\n", "a\nb\r\nx\r\ny\r\nc\n"},
		{"a line at the start takes the file's first ending", "a\r\nb\n", "@@\n+x\n a\n", "x\r\na\r\nb\n"},
		{"RT-113 a mark stays, once, when the first line is replaced", byteOrderMark + "a\nb\n", "@@\n-a\n+A\n", byteOrderMark + "A\nb\n"},
		{"RT-113 a mark in the request is none of the text", byteOrderMark + "a\nb\n", "@@\n-" + byteOrderMark + "a\n+" + byteOrderMark + "A\n b\n", byteOrderMark + "A\nb\n"},
		{"RT-114 no final newline stays so after a change in the middle", "a\nb\nc", "@@\n a\n-b\n+B\n", "a\nB\nc"},
		{"RT-114 no final newline stays so after a change of the last line", "a\nb", "@@\n a\n-b\n+B\n", "a\nB"},
		{"RT-114 a line at the end is neither joined nor followed by an empty one", "a\nb", "@@\n b\n+c\n", "a\nb\nc"},
		{"RT-114 a line at the end of a file with a final newline", "a\nb\n", "@@\n b\n+c\n*** End of File\n", "a\nb\nc\n"},
		{"RT-114 a line at the end of a CRLF file without a final newline", "a\r\nb", "@@\n b\n+c\n", "a\r\nb\r\nc"},
		{"the last line of a file without a final newline goes", "a\nb", "@@\n-b\n", "a"},
		{"a final newline is taken away", "a\nb\n", "@@\n-b\n+b\n\\ No newline at end of file\n", "a\nb"},
		{"a final newline is added", "a\r\nb", "@@\n-b\n\\ No newline at end of file\n+b\n", "a\r\nb\r\n"},
		{"a final newline is missing before and after", "a\nb", "@@\n-a\n+A\n b\n\\ No newline at end of file\n", "A\nb"},
		{"two empty lines at the end stay", "a\n\n\n", "@@\n-a\n+b\n", "b\n\n\n"},
		{"an empty file gets lines", "", "@@\n+a\n+b\n", "a\nb\n"},
		{"all lines go", "a\nb\n", "@@\n-a\n-b\n", ""},
		{"only the mark is left", byteOrderMark + "a", "@@\n-a\n", byteOrderMark},
		{"blanks at the end of lines need not match, and stay in lines that stay", "a  \nb\t\nc\n", "@@\n a\n-b\n+B\n", "a  \nB\nc\n"},
		{"blanks at both ends need not match", "  a\n\tb\n", "@@\n a\n-b\n+B\n", "  a\nB\n"},
		{"an exact match further on comes before a near one", "x \ny\nx\ny\n", "@@\n x\n-y\n+Y\n", "x \ny\nx\nY\n"},
		{"a match but for trailing blanks comes before one but for both", " x\nx \n", "@@\n-x\n+y\n", " x\ny\n"},
		{"hunks apply in order, each after the one before", "x\na\nx\na\n", "@@\n x\n-a\n+1\n@@\n x\n-a\n+2\n", "x\n1\nx\n2\n"},
		{"the line after @@ narrows the search", "f:\n x\ng:\n x\n", "@@ g:\n- x\n+ y\n", "f:\n x\ng:\n y\n"},
		{"two of them narrow it one after the other", "A\nf\nx\nB\nf\nx\n", "@@ B\n@@ f\n-x\n+y\n", "A\nf\nx\nB\nf\ny\n"},
		{"one that stands before the last hunk narrows nothing", "f:\na\nb\n", "@@ f:\n-a\n+A\n@@ f:\n-b\n+B\n", "f:\nA\nB\n"},
		{"lines that only come go after the line of @@", "f:\na\n", "@@ f:\n+x\n", "f:\nx\na\n"},
		{"lines that only come, with nothing to say where, go to the end", "a\nb\n", "@@\n+c\n", "a\nb\nc\n"},
		{"End of File takes the last place", "x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n"},
		{"an empty line may have lost its blank", "a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n"},
		{"a line that begins like the envelope", "*** a\n", "@@\n-*** a\n+*** End Patch\n", "*** End Patch\n"},
		{"a hunk with a beginning that recurs", "a\na\nb\na\na\na\nb\nc\n", "@@\n a\n a\n a\n b\n-c\n", "a\na\nb\na\na\na\nb\n"},
	} {
		for _, ending := range []string{lf, crlf} {
			name := row.name
			if ending == crlf {
				name += ", the patch in CRLF"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				env, w := newEnv(t)
				path := file(t, env, "f", row.before)
				text := strings.ReplaceAll(envelope(update("f", row.hunks)), lf, ending)
				ok(t, call(t, env, "apply_patch", map[string]any{"patch": text}))
				holds(t, path, row.after)
				if got := w.seen[path]; got.Hash != sha256.Sum256([]byte(row.after)) {
					t.Error("what was written is not remembered")
				}
				noTemporary(t, env.Workspace)
			})
		}
	}
}

func TestPatchIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, patch, code, says string }{
		{"no envelope", "@@\n-a\n", "patch_invalid", "line 1 of the patch"},
		{"nothing at all", "", "patch_invalid", "line 1 of the patch"},
		{"no section", envelope(), "patch_invalid", "line 2 of the patch: the patch has no section"},
		{"no end", "*** Begin Patch\n*** Delete File: f\n", "patch_invalid", "line 3 of the patch: the patch ends without"},
		{"something after the end", envelope("*** Delete File: f\n") + "x", "patch_invalid", "line 4 of the patch"},
		{"an unknown section", envelope("*** Rename File: f\n"), "patch_invalid", "line 2 of the patch: it must begin a section"},
		{"a section without path", envelope("*** Delete File:\n"), "patch_invalid", "line 2 of the patch: the path is missing"},
		{"a NUL in a path", envelope("*** Delete File: a\x00b\n"), "invalid_path", "line 2 of the patch: path holds a NUL"},
		{"a path that is too long", envelope("*** Delete File: " + strings.Repeat("a", 4097) + "\n"), "invalid_path", "4097 bytes"},
		{"an update without hunk", envelope("*** Update File: f\n"), "patch_invalid", "line 3 of the patch: the update of \"f\" has no hunk"},
		{"a hunk without @@", envelope(update("f", " a\n-b\n")), "patch_invalid", "line 3 of the patch: a hunk begins with @@"},
		{"a hunk without lines", envelope(update("f", "@@ a\n")), "patch_invalid", "has no lines"},
		{"a hunk's line without its sign", envelope(update("f", "@@\n a\nb\n")), "patch_invalid", "line 5 of the patch"},
		{"a new file's line without plus", envelope("*** Add File: g\n+a\nb\n"), "patch_invalid", "line 4 of the patch"},
		{"a line after the end without newline", envelope(update("f", "@@\n+a\n\\ No newline at end of file\n b\n")), "patch_invalid", "line 6 of the patch"},
		{"no newline after no line", envelope(update("f", "@@\n\\ No newline at end of file\n")), "patch_invalid", "line 4 of the patch"},
		{"too many sections", envelope(strings.Repeat("*** Delete File: f\n", 1001)), "patch_invalid", "line 1002 of the patch: a patch has at most 1000"},
		{"too long a patch", envelope(update("f", "@@\n-"+strings.Repeat("a", 1<<20)+"\n")), "tool_input_limit", "1048576"},
		{"lines that are not there", envelope(update("f", "@@\n-nothing\n")), "patch_context_not_found", `f: hunk 1 (line 3 of the patch): its lines are not in the file; no line of the file is like the first of them, "nothing"`},
		{"a line that differs", envelope(update("f", "@@\n a\n-c\n")), "patch_context_not_found", `line 2 of the file is "b", the hunk has "c"`},
		{"the second hunk before the first", envelope(update("f", "@@\n-b\n@@\n-a\n")), "patch_context_not_found", "f: hunk 2 (line 5 of the patch): its lines are not after the hunk before"},
		{"lines that are not at the end", envelope(update("f", "@@\n-a\n*** End of File\n")), "patch_context_not_found", "not at the end of the file"},
		{"more lines than the file has, at its end", envelope(update("f", "@@\n a\n a\n a\n-b\n*** End of File\n")), "patch_context_not_found", "not at the end of the file"},
		{"line numbers after @@", envelope(update("f", "@@ -1,2 +1,2 @@\n-a\n")), "patch_context_not_found", "without line numbers"},
		{"an update of nothing", envelope(update("none", "@@\n-a\n")), "patch_target_missing", "none: there is no such file"},
		{"a removal of nothing", envelope("*** Delete File: none\n"), "patch_target_missing", "none"},
		{"a file that is removed twice", envelope("*** Delete File: f\n", "*** Delete File: ./f\n"), "patch_target_missing", "./f"},
		{"an addition over a file", envelope("*** Add File: f\n+x\n"), "patch_target_exists", "f exists"},
		{"an addition over a folder", envelope("*** Add File: dir\n+x\n"), "patch_target_exists", "dir exists"},
		{"an addition over a folder, named as one", envelope("*** Add File: dir/\n+x\n"), "patch_target_exists", "dir/ exists"},
		{"an addition of a folder", envelope("*** Add File: new/\n+x\n"), "file_not_regular", "names a folder"},
		{"an addition over a dangling link", envelope("*** Add File: dangling\n+x\n"), "patch_target_exists", "dangling exists"},
		{"an addition below a file", envelope("*** Add File: f/x\n+x\n"), "io_error", "not a directory"},
		{"an addition below a file of the same patch", envelope("*** Add File: n\n+x\n", "*** Add File: n/x\n+x\n"), "io_error", "is a file by an earlier section"},
		{"an addition over a folder of the same patch", envelope("*** Add File: n/x\n+x\n", "*** Add File: n\n+x\n"), "patch_target_exists", "n exists"},
		{"two additions of one file", envelope("*** Add File: n\n+x\n", "*** Add File: dir/../n\n+x\n"), "patch_target_exists", "dir/../n exists"},
		{"a move over a file", envelope("*** Update File: f\n*** Move to: g\n"), "patch_target_exists", "g exists"},
		{"a move over a folder", envelope("*** Update File: f\n*** Move to: dir\n@@\n-a\n"), "patch_target_exists", "dir exists"},
		{"a move onto itself", envelope("*** Update File: f\n*** Move to: ./f\n"), "patch_target_exists", "./f exists"},
		{"an update of a folder", envelope(update("dir", "@@\n-a\n")), "file_not_regular", "a folder"},
		{"a removal of a folder", envelope("*** Delete File: dir\n"), "file_not_regular", "a folder"},
		{"RT-115 a Latin-1 file", envelope(update("latin", "@@\n-caf\n")), "file_not_utf8", "latin: byte 3 is not UTF-8"},
		{"RT-115 a move of a Latin-1 file", envelope("*** Update File: latin\n*** Move to: n\n"), "file_not_utf8", "byte 3"},
		{"a UTF-16 file", envelope(update("wide", "@@\n-a\n")), "file_not_utf8", "UTF-16"},
		{"too large a file", envelope(update("large", "@@\n-a\n")), "file_too_large", "large"},
		{"too large a result", envelope(update("full", "@@\n+"+strings.Repeat("a", 1<<10)+"\n")), "tool_output_limit", "full"},
	} {
		t.Run("RT-34 "+row.name+", after a section that fits", func(t *testing.T) {
			t.Parallel()
			env, w := newEnv(t)
			file(t, env, "first", "1\n")
			file(t, env, "f", "a\nb\n")
			file(t, env, "g", "a\nb\n")
			file(t, env, "latin", "caf\xe9\n")
			file(t, env, "wide", "\xff\xfea\x00")
			if strings.HasPrefix(row.name, "too large") {
				file(t, env, "large", strings.Repeat("a", maxFile+1))
				file(t, env, "full", strings.Repeat("a\n", maxFile/2))
			}
			if err := os.Mkdir(filepath.Join(env.Workspace, "dir"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("nowhere", filepath.Join(env.Workspace, "dangling")); err != nil {
				t.Fatal(err)
			}
			before := tree(t, env.Workspace)
			failed(t, call(t, env, "apply_patch", map[string]any{"patch": row.patch}), row.code, row.says)
			if row.code != "patch_invalid" && row.code != "invalid_path" && row.code != "tool_input_limit" {
				text := strings.Replace(row.patch, "*** Begin Patch\n", "*** Begin Patch\n*** Add File: added/x\n+x\n"+update("first", "@@\n-1\n+2\n"), 1)
				r := call(t, env, "apply_patch", map[string]any{"patch": text})
				failed(t, r, row.code, "")
			}
			if now := tree(t, env.Workspace); now != before {
				t.Errorf("the disk changed:\n%s\nbefore:\n%s", now, before)
			}
			if len(w.seen) > 0 {
				t.Errorf("remembered %v", w.seen)
			}
		})
	}
}

// tree lists what a folder holds, with hashes.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %x\n", name, sha256.Sum256(data))
			return nil
		}
		fmt.Fprintln(&b, name, d.Type())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// applied is the result of a patch, as "action path +added -removed" each.
func applied(t testing.TB, r Result) string {
	t.Helper()
	var out struct {
		Applied []struct {
			Path, Action   string
			Added, Removed int
		}
	}
	if err := json.Unmarshal([]byte(ok(t, r).Output), &out); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range out.Applied {
		all = append(all, fmt.Sprintf("%s %s +%d -%d", a.Action, a.Path, a.Added, a.Removed))
	}
	return strings.Join(all, ", ")
}

func TestPatchSections(t *testing.T) {
	t.Parallel()
	const (
		a = "one\ntwo\nthree\n"
		b = "x\n"
	)
	for _, row := range []struct {
		name     string
		sections string
		result   string
		files    map[string]string // all that there are afterwards
	}{
		{
			"one of each kind", "*** Add File: new/c\n+c\n*** Delete File: b\n" + update("a", "@@\n one\n-two\n+2\n+zwei\n"),
			"add new/c +1 -0, delete b +0 -1, update a +2 -1",
			map[string]string{"a": "one\n2\nzwei\nthree\n", "new/c": "c\n"},
		},
		{
			"a file that is changed and moved", "*** Update File: a\n*** Move to: d/e/f\n@@\n-two\n",
			"move d/e/f +0 -1",
			map[string]string{"b": b, "d/e/f": "one\nthree\n"},
		},
		{
			"a file that is only moved", "*** Update File: a\n*** Move to: c\n",
			"move c +0 -0",
			map[string]string{"b": b, "c": a},
		},
		{
			"an empty file and one without final newline", "*** Add File: c\n*** Add File: d\n+d\n\\ No newline at end of file\n",
			"add c +0 -0, add d +1 -0",
			map[string]string{"a": a, "b": b, "c": "", "d": "d"},
		},
		{
			"several sections of one file, each from its start", update("a", "@@\n-three\n+3\n") + update("./a", "@@\n-one\n+1\n") + update("a", "@@\n 1\n-two\n"),
			"update a +1 -1, update ./a +1 -1, update a +0 -1",
			map[string]string{"a": "1\n3\n", "b": b},
		},
		{
			"a file that is added and then changed", "*** Add File: c\n+1\n+2\n" + update("c", "@@\n 1\n-2\n+3\n"),
			"add c +2 -0, update c +1 -1",
			map[string]string{"a": a, "b": b, "c": "1\n3\n"},
		},
		{
			"a file that is moved and then changed", "*** Update File: a\n*** Move to: c\n" + update("c", "@@\n-one\n"),
			"move c +0 -0, update c +0 -1",
			map[string]string{"b": b, "c": "two\nthree\n"},
		},
		{
			"a file that is changed, then moved", update("a", "@@\n-one\n") + "*** Update File: a\n*** Move to: c\n@@\n-two\n",
			"update a +0 -1, move c +0 -1",
			map[string]string{"b": b, "c": "three\n"},
		},
		{
			"a file that is removed and added anew", "*** Delete File: a\n*** Add File: a\n+new\n" + update("a", "@@\n+more\n"),
			"delete a +0 -3, add a +1 -0, update a +1 -0",
			map[string]string{"a": "new\nmore\n", "b": b},
		},
		{
			"a file that is added and removed", "*** Add File: c\n+c\n*** Delete File: c\n",
			"add c +1 -0, delete c +0 -1",
			map[string]string{"a": a, "b": b},
		},
		{
			"two files that change places", "*** Update File: a\n*** Move to: c\n*** Update File: b\n*** Move to: a\n*** Update File: c\n*** Move to: b\n",
			"move c +0 -0, move a +0 -0, move b +0 -0",
			map[string]string{"a": b, "b": a},
		},
		{
			"a file under the place of a removed one elsewhere", "*** Delete File: b\n*** Add File: sub/b\n+b\n" + update("a", "@@\n-one\n"),
			"delete b +0 -1, add sub/b +1 -0, update a +0 -1",
			map[string]string{"a": "two\nthree\n", "sub/b": "b\n"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, w := newEnv(t)
			file(t, env, "a", a)
			file(t, env, "b", b)
			if err := os.Chmod(filepath.Join(env.Workspace, "a"), 0o750); err != nil {
				t.Fatal(err)
			}
			if got := applied(t, patch(t, env, row.sections)); got != row.result {
				t.Errorf("result %s, want %s", got, row.result)
			}
			want := newTree(t, row.files)
			if got := tree(t, env.Workspace); got != want {
				t.Errorf("the disk holds\n%s\nwant\n%s", got, want)
			}
			for path, s := range w.seen {
				data, err := os.ReadFile(path)
				if err == nil && s.Hash != sha256.Sum256(data) {
					t.Errorf("%s is remembered as something else", path)
				}
			}
			for name := range row.files {
				path := filepath.Join(env.Workspace, name)
				if _, known := w.seen[path]; !known && name != "a" && name != "b" {
					t.Errorf("%s is not remembered", name)
				}
			}
			if info, err := os.Stat(filepath.Join(env.Workspace, "d/e/f")); err == nil && info.Mode().Perm() != 0o750 {
				t.Errorf("the moved file has mode %v", info.Mode())
			}
		})
	}
}

// newTree is the tree of a fresh folder with these files.
func newTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return tree(t, dir)
}

func TestPatchOfLinks(t *testing.T) {
	t.Parallel()
	t.Run("an update through a link changes its end and keeps the link", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "end", "a\n")
		link := filepath.Join(env.Workspace, "link")
		if err := os.Symlink("end", link); err != nil {
			t.Fatal(err)
		}
		ok(t, patch(t, env, update("link", "@@\n-a\n+b\n"), update("end", "@@\n-b\n+c\n")))
		holds(t, path, "c\n")
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Error("the link is gone")
		}
	})
	t.Run("the removal of a link leaves what it leads to", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "end", "a\n")
		if err := os.Symlink("end", filepath.Join(env.Workspace, "link")); err != nil {
			t.Fatal(err)
		}
		ok(t, patch(t, env, "*** Delete File: link\n"))
		holds(t, path, "a\n")
		if got := entries(t, env.Workspace); len(got) != 1 {
			t.Errorf("left: %v", got)
		}
	})
}

// crossing makes a link in the workspace to a folder elsewhere, and gives that
// folder's parent: what "link/.." is.
func crossing(t testing.TB, env *Env) string {
	t.Helper()
	parent := filepath.Join(filepath.Dir(env.Workspace), "elsewhere")
	if err := os.MkdirAll(filepath.Join(parent, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(parent, "deep"), filepath.Join(env.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	return parent
}

func TestTheParentOfALinkedFolderIsWhereItLeads(t *testing.T) {
	t.Parallel()
	t.Run("a patch takes two files of one name for two", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		parent := crossing(t, env)
		near := file(t, env, "x", "near\n")
		far := file(t, env, "../elsewhere/x", "far\n")
		ok(t, patch(t, env, update("link/../x", "@@\n+1\n"), update("x", "@@\n+2\n"), "*** Add File: link/../y\n+far\n", "*** Add File: y\n+near\n"))
		holds(t, far, "far\n1\n")
		holds(t, near, "near\n2\n")
		holds(t, filepath.Join(parent, "y"), "far\n")
		holds(t, filepath.Join(env.Workspace, "y"), "near\n")
		ok(t, patch(t, env, "*** Delete File: link/../x\n"))
		holds(t, near, "near\n2\n")
	})
	t.Run("a write is over the file that was read, and makes folders where it leads", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		parent := crossing(t, env)
		near := file(t, env, "x", "near\n")
		far := file(t, env, "../elsewhere/x", "far\n")
		ok(t, read(t, env, "link/../x"))
		ok(t, write(t, env, "link/../x", "new\n"))
		holds(t, far, "new\n")
		holds(t, near, "near\n")
		failed(t, write(t, env, "x", "new\n"), "file_changed", "have not read it")
		ok(t, write(t, env, "link/../a/b", "new\n"))
		holds(t, filepath.Join(parent, "a", "b"), "new\n")
		ok(t, write(t, env, "none/../c", "new\n"))
		holds(t, filepath.Join(env.Workspace, "c"), "new\n")
		if got := entries(t, env.Workspace); !slices.Equal(got, []string{"c", "link", "x"}) {
			t.Errorf("the workspace holds %v", got)
		}
		failed(t, write(t, env, "x/../d", "new\n"), "io_error", "not a directory")
	})
}

// shut makes a folder that takes no new file, and its file unwritable.
func shut(t testing.TB, env *Env, dir, name string) {
	t.Helper()
	full := filepath.Join(env.Workspace, dir)
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	path := file(t, env, filepath.Join(dir, name), "a\n")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(full, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(full, 0o755) })
}

func TestPatchThatIsWrittenInPart(t *testing.T) {
	t.Parallel()
	// A name that is too long for the disk shows only when the file is made; it
	// fails for root, too.
	long := strings.Repeat("n", 300)
	t.Run("RT-120 what was and what was not applied is listed as it is on the disk", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		one := file(t, env, "one", "a\n")
		four := file(t, env, "four", "a\n")
		r := patch(t, env, update("one", "@@\n-a\n+b\n"), "*** Add File: two\n+2\n", "*** Add File: made/for/"+long+"\n+x\n", update("four", "@@\n-a\n+b\n"), update("one", "@@\n-b\n+c\n"))
		failed(t, r, "patch_partial", "\napplied:\nupdate one\nadd two\nupdate one\nnot applied:\nadd made/for/"+long+"\nupdate four")
		holds(t, one, "c\n")
		holds(t, filepath.Join(env.Workspace, "two"), "2\n")
		holds(t, four, "a\n")
		if got := entries(t, env.Workspace); len(got) != 3 {
			t.Errorf("the workspace has %v", got)
		}
		if len(w.seen) != 2 {
			t.Errorf("remembered %v", w.seen)
		}
	})
	t.Run("a first section that cannot be written is its own failure", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		one := file(t, env, "one", "a\n")
		failed(t, patch(t, env, "*** Add File: "+long+"\n+x\n", update("one", "@@\n-a\n+b\n")), "io_error", "file name too long")
		holds(t, one, "a\n")
	})
	t.Run("a move whose new place cannot be made leaves the old one", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		one := file(t, env, "one", "a\n")
		two := file(t, env, "two", "a\n")
		r := patch(t, env, update("two", "@@\n-a\n+b\n"), "*** Update File: one\n*** Move to: d/"+long+"\n")
		failed(t, r, "patch_partial", "applied:\nupdate two\nnot applied:\nmove one to d/")
		holds(t, one, "a\n")
		holds(t, two, "b\n")
	})
	if os.Geteuid() == 0 {
		return // permissions stop nobody here
	}
	t.Run("RT-120 a file that may not be written, and one that may not be removed", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		one := file(t, env, "one", "a\n")
		shut(t, env, "shut", "f")
		r := patch(t, env, update("one", "@@\n-a\n+b\n"), update("shut/f", "@@\n-a\n+b\n"))
		failed(t, r, "patch_partial", "(io_error: shut/f: permission denied)\napplied:\nupdate one\nnot applied:\nupdate shut/f")
		r = patch(t, env, update("one", "@@\n-b\n+c\n"), "*** Update File: shut/f\n*** Move to: moved\n")
		failed(t, r, "patch_partial", "applied:\nupdate one\nnot applied:\nmove shut/f to moved")
		holds(t, one, "c\n")
		holds(t, filepath.Join(env.Workspace, "shut/f"), "a\n")
		if _, err := os.Lstat(filepath.Join(env.Workspace, "moved")); err == nil {
			t.Error("the new place of the file that did not move is still there")
		}
	})
}

func TestPatchesOfTheSameFilesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	const bots, rounds = 6, 20
	lines := ""
	for i := range bots {
		lines += fmt.Sprintf("bot %d: 0\n", i)
	}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		file(t, env, name, lines)
	}
	var wg sync.WaitGroup
	for i, e := range others(t, env, bots) {
		wg.Go(func() {
			for round := range rounds {
				var sections []string
				for j := range names { // each bot in another order
					name := names[(i+j*(1+i%2))%len(names)]
					sections = append(sections, update(name, fmt.Sprintf("@@\n-bot %d: %d\n+bot %d: %d\n", i, round, i, round+1)))
				}
				ok(t, patch(t, e, sections...))
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		holds(t, filepath.Join(env.Workspace, name), strings.ReplaceAll(lines, ": 0", fmt.Sprint(": ", rounds)))
	}
}

func TestPatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	path := file(t, env, "f", "a\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := callContext(t, ctx, env, "apply_patch", map[string]any{"patch": envelope(update("f", "@@\n-a\n+b\n"))})
	failed(t, r, "cancelled", "the turn ended")
	holds(t, path, "a\n")
}

func TestPatchIsPlannedInBoundedTime(t *testing.T) {
	t.Parallel()
	const blanks = 1 << 19 // lines that are looked at for each place
	for _, row := range []struct{ name, hunks string }{
		{"with a file walked through for each hunk", strings.Repeat("@@\n-x\n", 100_000)},
		{"with a file walked through for each line after @@", strings.Repeat("@@ top\n", 100_000) + "+x\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			content := "top\n" + strings.Repeat(" x\n", blanks)
			path := file(t, env, "f", content)
			sections, f := parsePatch(envelope(update("f", row.hunks)))
			if f != nil {
				t.Fatal(f)
			}
			began := time.Now()
			_, f = env.planWithin(t.Context(), 100*time.Millisecond, sections)
			if f == nil || f.Code != "tool_input_limit" || !strings.Contains(f.Detail, "nothing was written") {
				t.Errorf("got %v", f)
			}
			if took := time.Since(began); took > 20*time.Second { // it would take an hour
				t.Errorf("it took %v", took)
			}
			holds(t, path, content)
		})
	}
}

func TestPatchOfManyLinesIsQuick(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	file(t, env, "f", strings.Repeat("\n", maxFile))
	hunk := "@@\n" + strings.Repeat("\n", 100_000) + "-x\n"
	failed(t, patch(t, env, update("f", hunk)), "patch_context_not_found", "hunk 1")
}

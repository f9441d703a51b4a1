package place

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func mustBe(t *testing.T, path string, perm os.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != perm {
		t.Fatalf("%s has mode %#o, want %#o", path, info.Mode().Perm(), perm)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// folder is a test's folder with no symlink on its way.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestHome(t *testing.T) {
	me, err := user.LookupId(itoa(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, home, want string }{
		{"HOME is taken as it is", "/some/home", "/some/home"},
		{"an unset HOME gives the password database's folder", "", me.HomeDir},
		{"a relative HOME gives the password database's folder", "home", me.HomeDir},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("HOME", row.home)
			got, err := Home()
			if err != nil || got != row.want {
				t.Fatalf("Home() = %q, %v; want %q", got, err, row.want)
			}
		})
	}
}

func TestAgentDir(t *testing.T) {
	for _, mask := range []int{0, 0o777} {
		t.Run("PO-13 RT-85 ~/.agent is 0700 when made, whatever the umask", func(t *testing.T) {
			home := folder(t)
			t.Setenv("HOME", home)
			dir, err := underUmask(mask, MakeAgentDir)
			if err != nil || dir != home+"/.agent" {
				t.Fatalf("MakeAgentDir() = %q, %v", dir, err)
			}
			mustBe(t, dir, 0o700)
			if store, err := DefaultStore(); err != nil || store != dir+"/state.sqlite" {
				t.Fatalf("DefaultStore() = %q, %v", store, err)
			}
		})
	}
	t.Run("PO-13 an existing ~/.agent keeps its mode", func(t *testing.T) {
		home := folder(t)
		t.Setenv("HOME", home)
		if err := os.Mkdir(home+"/.agent", 0o755); err != nil {
			t.Fatal(err)
		}
		os.Chmod(home+"/.agent", 0o755)
		if _, err := MakeAgentDir(); err != nil {
			t.Fatal(err)
		}
		mustBe(t, home+"/.agent", 0o755)
	})
	t.Run("a file in its place is refused", func(t *testing.T) {
		home := folder(t)
		t.Setenv("HOME", home)
		write(t, home+"/.agent", "")
		if _, err := MakeAgentDir(); codeOf(err) != codeInvalidStorePath {
			t.Fatalf("error is %v", err)
		}
	})
}

func TestCanonical(t *testing.T) {
	dir := folder(t)
	real := dir + "/real"
	os.MkdirAll(real+"/deep", 0o700)
	write(t, real+"/store", "")
	os.Symlink(real, dir+"/alias")
	os.Symlink(real+"/store", dir+"/link")
	os.Symlink(dir+"/nowhere", dir+"/dangling")
	os.Symlink(dir+"/loop", dir+"/loop")
	os.Symlink(real+"/deep", dir+"/deep")
	t.Chdir(dir)
	long := func(n int) string { // of n bytes, in names that a file system takes
		path := real + strings.Repeat("/"+strings.Repeat("x", 99), 4)
		return path[:min(len(path), n-2)] + "/" + strings.Repeat("y", n-min(len(path), n-2)-1)
	}

	for _, row := range []struct{ name, in, want, code string }{
		{"a plain path stays", real + "/store", real + "/store", ""},
		{"a relative path becomes absolute", "real/store", real + "/store", ""},
		{"a symlink to the file is resolved", dir + "/link", real + "/store", ""},
		{"a symlinked folder is resolved before the store exists", "alias/new", real + "/new", ""},
		{"several missing names are appended as they are", "alias/a/b.sqlite", real + "/a/b.sqlite", ""},
		{"dots are dropped", "./alias/./new", real + "/new", ""},
		{"going up from a symlink means from its target", "deep/../store", real + "/store", ""},
		{"going up from a missing folder is refused", "gone/../store", "", codeInvalidStorePath},
		{"a dangling symlink is refused", "dangling", "", codeStoreUnresolved},
		{"a dangling symlink on the way is refused", "dangling/store", "", codeStoreUnresolved},
		{"an endless symlink is refused", "loop", "", codeStoreUnresolved},
		{"a folder is refused", "real", "", codeInvalidStorePath},
		{"the longest path that SQLite opens stays", long(504), long(504), ""},
		{"a longer one is refused", long(505), "", codeInvalidStorePath},
		{"a trailing slash is refused", "real/new/", "", codeInvalidStorePath},
		{"a file as a folder is refused", "real/store/x", "", codeInvalidStorePath},
		{"an empty path is refused", "", "", codeInvalidStorePath},
		{"a NUL byte is refused", "a\x00b", "", codeInvalidStorePath},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Canonical(row.in)
			if got != row.want || codeOf(err) != row.code {
				t.Fatalf("Canonical(%q) = %q, %v; want %q, %q", row.in, got, err, row.want, row.code)
			}
		})
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"/a/b", "../x", "a//b/./c", "a/..", "/", "\x00", "..", "./", "x/../../y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Canonical(in)
		if err != nil {
			if codeOf(err) == "" {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		if !filepath.IsAbs(got) || filepath.Clean(got) != got || strings.IndexByte(got, 0) >= 0 {
			t.Fatalf("Canonical(%q) = %q", in, got)
		}
		if again, err := Canonical(got); err != nil || again != got {
			t.Fatalf("Canonical(%q) = %q, again %q, %v", in, got, again, err)
		}
	})
}

func TestFileSystem(t *testing.T) {
	t.Run("the nearest existing parent is asked", func(t *testing.T) {
		dir := folder(t)
		want, _, err := systemFileSystem(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, network, err := FileSystem(dir + "/not/yet/there")
		if err != nil || got != want || network {
			t.Fatalf("FileSystem = %q, %v, %v; want %q", got, network, err, want)
		}
	})
	t.Run("RT-121 what the system says is handed on", func(t *testing.T) {
		old := statFileSystem
		defer func() { statFileSystem = old }()
		statFileSystem = func(path string) (string, bool, error) {
			if path != "/net" {
				return "", false, &os.PathError{Op: "statfs", Path: path, Err: os.ErrNotExist}
			}
			return "nfs", true, nil
		}
		name, network, err := FileSystem("/net/a/b")
		if name != "nfs" || !network || err != nil {
			t.Fatalf("FileSystem = %q, %v, %v", name, network, err)
		}
	})
}

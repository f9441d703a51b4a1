package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// underUmask calls f with a umask. The umask is the process's: no test here
// runs in parallel.
func underUmask[T any](mask int, f func() (T, error)) (T, error) {
	old := unix.Umask(mask)
	defer unix.Umask(old)
	return f()
}

func TestOpenPrivate(t *testing.T) {
	const make = os.O_RDWR | os.O_CREATE
	t.Run("a made file is 0600 whatever the umask", func(t *testing.T) {
		for _, mask := range []int{0, 0o022, 0o777} {
			path := folder(t) + "/f"
			f, err := underUmask(mask, func() (*os.File, error) { return OpenPrivate(path, make) })
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			mustBe(t, path, 0o600)
		}
	})
	t.Run("a looser file is tightened and keeps its content", func(t *testing.T) {
		path := folder(t) + "/f"
		write(t, path, "kept")
		os.Chmod(path, 0o666)
		f, err := OpenPrivate(path, make)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		mustBe(t, path, 0o600)
		if got, _ := os.ReadFile(path); string(got) != "kept" {
			t.Fatalf("content is %q", got)
		}
	})
	t.Run("a symlink is not followed", func(t *testing.T) {
		dir := folder(t)
		write(t, dir+"/target", "")
		os.Symlink(dir+"/target", dir+"/link")
		if _, err := OpenPrivate(dir+"/link", make); !errors.Is(err, syscall.ELOOP) {
			t.Fatalf("error is %v", err)
		}
	})
	t.Run("a FIFO is refused and does not hang", func(t *testing.T) {
		path := folder(t) + "/fifo"
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenPrivate(path, os.O_RDWR); err == nil {
			t.Fatal("opened")
		}
	})
}

func TestWritePrivate(t *testing.T) {
	dir := folder(t)
	path := dir + "/f"
	for _, text := range []string{"first", "second, which replaces it", ""} {
		_, err := underUmask(0, func() (struct{}, error) { return struct{}{}, WritePrivate(path, []byte(text)) })
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, path, 0o600)
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Fatalf("content is %q, want %q", got, text)
		}
	}
	t.Run("a symlink is replaced and its target stays", func(t *testing.T) {
		write(t, dir+"/target", "untouched")
		os.Symlink(dir+"/target", dir+"/link")
		if err := WritePrivate(dir+"/link", []byte("new")); err != nil {
			t.Fatal(err)
		}
		mustBe(t, dir+"/link", 0o600)
		if got, _ := os.ReadFile(dir + "/target"); string(got) != "untouched" {
			t.Fatalf("target is %q", got)
		}
	})
	t.Run("a failure leaves no temporary file", func(t *testing.T) {
		sub := folder(t)
		os.Mkdir(sub+"/taken", 0o700)
		write(t, sub+"/taken/x", "") // so that a rename onto it fails
		if err := WritePrivate(sub+"/taken", nil); err == nil {
			t.Fatal("replaced a folder")
		}
		left, _ := filepath.Glob(sub + "/.*")
		if len(left) != 0 {
			t.Fatalf("left %s", strings.Join(left, ", "))
		}
	})
}

func TestMakePrivateDir(t *testing.T) {
	dir := folder(t)
	t.Run("it is 0700 whatever the umask", func(t *testing.T) {
		_, err := underUmask(0, func() (struct{}, error) { return struct{}{}, MakePrivateDir(dir + "/new") })
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, dir+"/new", 0o700)
	})
	t.Run("a looser one is tightened", func(t *testing.T) {
		os.Chmod(dir+"/new", 0o755)
		if err := MakePrivateDir(dir + "/new"); err != nil {
			t.Fatal(err)
		}
		mustBe(t, dir+"/new", 0o700)
	})
	t.Run("a symlink is refused", func(t *testing.T) {
		os.Symlink(dir+"/new", dir+"/link")
		if err := MakePrivateDir(dir + "/link"); err == nil {
			t.Fatal("accepted")
		}
	})
}

func TestLock(t *testing.T) {
	path := folder(t) + "/x.owner-lock"
	first, err := Lock(path, "taken_code")
	if err != nil {
		t.Fatal(err)
	}
	mustBe(t, path, 0o600)
	t.Run("a held lock is refused with the caller's code", func(t *testing.T) {
		if _, err := Lock(path, "taken_code"); codeOf(err) != "taken_code" {
			t.Fatalf("error is %v", err)
		}
	})
	t.Run("a lock given up can be taken, and its file stayed", func(t *testing.T) {
		before, _ := os.Stat(path)
		first.Close()
		second, err := Lock(path, "taken_code")
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		after, _ := os.Stat(path)
		if !os.SameFile(before, after) {
			t.Fatal("the lock file was replaced")
		}
	})
	t.Run("a lock given up is free though a child still holds the descriptor", func(t *testing.T) {
		lock, err := Lock(path, "taken_code")
		if err != nil {
			t.Fatal(err)
		}
		inherited, err := unix.Dup(int(lock.file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(inherited)
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := Lock(path, "taken_code")
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	})
	t.Run("a symlink is not followed", func(t *testing.T) {
		dir := folder(t)
		os.Symlink(path, dir+"/link")
		if _, err := Lock(dir+"/link", "taken_code"); !errors.Is(err, syscall.ELOOP) {
			t.Fatalf("error is %v", err)
		}
	})
}

func TestMakeOwnDir(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("open", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, dir string
		mode      fs.FileMode
		refused   bool
	}{
		{"a new one is 0700", "new", 0o700, false},
		{"one that is there keeps its mode", "open", 0o755, false},
		{"a link is refused", "link", 0o755, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(dir, row.dir)
			if err := MakeOwnDir(path); (err != nil) != row.refused {
				t.Fatalf("got %v", err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != row.mode {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

func TestLockWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(path, "held")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("one that stays held is told at the limit", func(t *testing.T) {
		var told *Error
		if _, err := LockWithin(path, "held", time.Millisecond); !errors.As(err, &told) || told.Code != "held" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one that is given up is taken", func(t *testing.T) {
		taken := make(chan error)
		go func() {
			lock, err := LockWithin(path, "held", time.Minute)
			if err == nil {
				err = lock.Close()
			}
			taken <- err
		}()
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-taken; err != nil {
			t.Error(err)
		}
	})
}

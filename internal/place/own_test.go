package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("text"), 0o640), os.Chmod(at("file"), 0o640),
		os.Symlink("file", at("link")), unix.Mkfifo(at("fifo"), 0o600), os.Mkdir(at("folder"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	data, mode, err := ReadOwn(at("file"), 4)
	if string(data) != "text" || mode != 0o640 || err != nil {
		t.Errorf("%q, %o, %v", data, mode, err)
	}
	if _, _, err := ReadOwn(at("none"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for name, why := range map[string]string{"link": "is a link", "fifo": "not a regular file", "folder": "not a regular file"} {
		if _, _, err := ReadOwn(at(name), 4); !errors.Is(err, ErrNotOwn) || !strings.Contains(err.Error(), at(name)+" ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := ReadOwn(at("file"), 3); !errors.Is(err, ErrNotOwn) || !strings.Contains(err.Error(), "longer than 3 bytes") {
		t.Errorf("a file that is too long: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(at("file"), 1, 1); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadOwn(at("file"), 4); !errors.Is(err, ErrNotOwn) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("another's file: %v", err)
		}
	}
}

func TestCreatePrivateReplacesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := CreatePrivate(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := CreatePrivate(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if data, mode, err := ReadOwn(path, 9); string(data) != "first" || mode != 0o600 || err != nil {
		t.Errorf("%q, %o, %v", data, mode, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAFoldersLockIsHeldByOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		second, err := LockDir(dir)
		select {
		case <-held:
		default:
			done <- errors.New("two had the lock")
			return
		}
		if err == nil {
			err = second.Close()
		}
		done <- err
	}()
	close(held)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

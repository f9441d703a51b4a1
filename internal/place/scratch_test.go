package place

import (
	"os"
	"path/filepath"
	"testing"
)

func TestScratch(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "scratch")
	if err := SweepScratch(dir); err != nil {
		t.Fatalf("none yet: %v", err)
	}
	first, err := NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, first.Path} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	kept := filepath.Join(first.Path, "message.md")
	elsewhere := filepath.Join(t.TempDir(), "mine")
	left := filepath.Join(dir, "left", "by", "a", "crash")
	for _, path := range []string{filepath.Dir(left), elsewhere} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{kept, left, filepath.Join(elsewhere, "file"), filepath.Join(dir, "file")} {
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	second, err := NewScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 || second.Path == first.Path {
		t.Errorf("beside those in use there is %v, %v", list, err)
	}
	for _, path := range []string{kept, filepath.Join(elsewhere, "file")} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
	for _, s := range []*Scratch{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

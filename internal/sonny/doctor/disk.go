package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"agent/client/worktree"

	"golang.org/x/sys/unix"
)

const (
	leastFree  = 1 << 30 // below it doctor warns, in bytes
	maxMeasure = 50_000  // files of a folder that are counted
)

// disk says what the store, the snapshots and the worktrees take, and what is free.
func (d *Doctor) disk(ctx context.Context) finding {
	store := d.o.Reach.Target.Store
	parts := []struct {
		name string
		size size
	}{
		{"store", fileSize(store)},
		{"write-ahead log", fileSize(store + "-wal")},
		{"snapshots", treeSize(ctx, filepath.Join(d.agentDir(), "snapshots"))},
		{"worktrees", treeSize(ctx, worktree.RootOf(store))},
	}
	detail := ""
	for i, p := range parts {
		if i > 0 {
			detail += ", "
		}
		detail += p.name + " " + p.size.String()
	}
	free, err := freeAt(filepath.Dir(store))
	if err != nil {
		return warn("how much is free cannot be told: "+err.Error(), "see to it that the store's folder is there").with(detail)
	}
	summary := bytes(free) + " free"
	if free < leastFree {
		return warn(summary+", less than 1 GiB", "make room: a store that cannot be written keeps no turn").with(detail)
	}
	return okf("%s", summary).with(detail)
}

// size is a number of bytes; more says that not all was counted.
type size struct {
	bytes int64
	more  bool
}

func (s size) String() string {
	if s.more {
		return "more than " + bytes(s.bytes)
	}
	return bytes(s.bytes)
}

func fileSize(path string) size {
	info, err := os.Lstat(path)
	if err != nil {
		return size{}
	}
	return size{bytes: info.Size()}
}

// treeSize adds up a folder's files, as far as maxMeasure of them. No link is followed.
func treeSize(ctx context.Context, dir string) (s size) {
	n := 0
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read takes nothing that could be told
		}
		if n++; n > maxMeasure || ctx.Err() != nil {
			s.more = true
			return fs.SkipAll
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			s.bytes += info.Size()
		}
		return nil
	})
	return s
}

// freeAt is what the caller may still write to the file system of a folder, or of the
// nearest above it that exists.
func freeAt(dir string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	for err == unix.ENOENT && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &st)
	}
	return int64(st.Bavail) * int64(st.Bsize), err
}

// bytes is a size for people.
func bytes(n int64) string {
	for _, unit := range []struct {
		least int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.least {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.least), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

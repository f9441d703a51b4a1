package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agent/protocol"
)

// FilesDir is the folder of spilled output, STORE.files, with a folder BOT_ID
// for each bot. It exists once something was spilled.
func (s *Store) FilesDir() string { return s.path + ".files" }

// SpillName is the name under which a row keeps a spill file: BOT_ID/NAME,
// below FilesDir, so that a store can be moved. path is absolute; one that does
// not lie there is store_row_invalid.
func (s *Store) SpillName(path string) (string, error) {
	name, ok := strings.CutPrefix(path, s.FilesDir()+"/")
	if !ok || !isSpillName(name) {
		return "", protocol.Fail(protocol.StoreRowInvalid, "a spill file outside the store's folder")
	}
	return name, nil
}

// SpillPath is the absolute path of a spill file from its row.
func (s *Store) SpillPath(name string) (string, error) {
	if !isSpillName(name) {
		return "", protocol.Fail(protocol.StoreRowInvalid, "a row names a spill file outside the store's folder")
	}
	return filepath.Join(s.FilesDir(), name), nil
}

// isSpillName reports whether name is a folder and a file and nothing else.
func isSpillName(name string) bool {
	return strings.Count(name, "/") == 1 && filepath.IsLocal(name) && filepath.Clean(name) == name
}

var qSpillNamed = stmt("SELECT 1 FROM artifacts WHERE file = ?")

// Sweep removes the spill files no row names, which a kill left behind, and
// folders that are empty then. It runs at start, before any tool may spill, and
// returns how many files it removed.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	root, err := os.OpenRoot(s.FilesDir()) // no link in it can lead elsewhere
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fileError(err)
	}
	defer root.Close()
	bots, err := names(root, ".")
	if err != nil {
		return 0, fileError(err)
	}
	for _, bot := range bots {
		n, err := s.sweepBot(ctx, root, bot)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

func (s *Store) sweepBot(ctx context.Context, root *os.Root, bot string) (removed int, err error) {
	info, err := root.Lstat(bot)
	if err != nil {
		return 0, fileError(err)
	}
	if !info.IsDir() {
		return 1, fileError(root.Remove(bot))
	}
	files, err := names(root, bot)
	if err != nil {
		return 0, fileError(err)
	}
	for _, file := range files {
		name := bot + "/" + file
		named, err := s.spillNamed(ctx, name)
		if err != nil {
			return removed, err
		}
		if named {
			continue
		}
		if err := root.RemoveAll(name); err != nil {
			return removed, fileError(err)
		}
		removed++
	}
	root.Remove(bot) // works when it is empty
	return removed, nil
}

func (s *Store) spillNamed(ctx context.Context, name string) (named bool, err error) {
	err = s.Read(ctx, "sweep", func(r *Reader) error {
		named, err = one(r.conn, qSpillNamed, nil, name)
		return err
	})
	return named, err
}

// names lists a folder below root.
func names(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.Readdirnames(-1)
	if err == io.EOF {
		err = nil
	}
	return list, err
}

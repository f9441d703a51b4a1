package place

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// statFileSystem asks the system; tests replace it.
var statFileSystem = systemFileSystem

// FileSystem is the type of the file system that path lies on or would lie on
// (its nearest existing parent's), and whether it is a network or shared one,
// which cannot keep the promises of a write-ahead log (runtime.md 23). A type
// it does not know is not one. It opens and makes nothing.
func FileSystem(path string) (name string, network bool, err error) {
	for {
		name, network, err = statFileSystem(path)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return name, network, err
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "", false, err
		}
		path = parent
	}
}

package skill

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/place"
	"agent/internal/sonny/fault"
	"agent/protocol"
)

// readFiles reads those of the named files that a folder has. What stands in a
// file's place and is no regular file of the person's own of at most 256 KiB, or
// lies behind a link, is odd: its path, and what it is.
func readFiles(dir string, names []string) (now files, odd []string) {
	now = files{}
	for _, file := range names {
		text, there, err := readOne(dir, file)
		switch {
		case err != nil && !slices.Contains(odd, err.Error()):
			odd = append(odd, err.Error())
		case there:
			now[file] = text
		}
	}
	return now, odd
}

// readOne reads a file; each folder on the way to it is a real one.
func readOne(dir, file string) (text string, there bool, err error) {
	at := dir
	for _, part := range strings.Split(path.Dir(file), "/") {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		if !info.IsDir() {
			return "", false, errors.New(at + " is not a folder")
		}
	}
	data, _, err := place.ReadOwn(filepath.Join(dir, file), MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(data), err == nil, err
}

// readTree reads every file below a folder; none where it is not there.
func readTree(dir string) (files, []string) {
	var names []string
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || leftover(d.Name()) {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []string{err.Error()}
	}
	return readFiles(dir, names)
}

// writeTree makes a folder's files those of to, where they were those of from. A
// folder that is empty then goes.
func writeTree(dir string, from, to files) error {
	for file, text := range to {
		if was, had := from[file]; had && was == text {
			continue
		}
		if err := makeBelow(dir, path.Dir(file)); err != nil {
			return asLeft(err)
		}
		if err := place.WritePrivate(filepath.Join(dir, file), []byte(text)); err != nil {
			return asLeft(err)
		}
	}
	for file := range from {
		if _, stays := to[file]; stays {
			continue
		}
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return asLeft(err)
		}
		removeEmpty(dir, path.Dir(file))
	}
	return nil
}

// makeAgents makes ~/.agents, which may be a link of the person's to a folder.
func makeAgents(home string) error {
	dir := filepath.Join(home, ".agents")
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	return asLeft(place.MakeOwnDir(dir))
}

// makeBelow makes a folder and those in it down to sub.
func makeBelow(dir, sub string) error {
	at := dir
	for _, part := range strings.Split("./"+sub, "/") {
		at = filepath.Join(at, part) // "." is the folder itself
		if err := place.MakeOwnDir(at); err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes the folders from sub up to dir, as far as they are empty.
func removeEmpty(dir, sub string) {
	for ; ; sub = path.Dir(sub) {
		if os.Remove(filepath.Join(dir, sub)) != nil || sub == "." {
			return // the first that is not empty, or the last
		}
	}
}

// leftover reports whether a file is one that a write which was cut short has left.
func leftover(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// asLeft is an error of a file or folder that is in the way; nil of nil.
func asLeft(err error) error {
	if err == nil {
		return nil
	}
	if fault.OfDisk(err) {
		return err // nothing is in the way
	}
	detail := err.Error()
	var p *fs.PathError
	if errors.As(err, &p) {
		detail = p.Path + ": " + p.Err.Error()
	}
	return protocol.Fail(codeLeft, detail+"; put it right, or move it away")
}

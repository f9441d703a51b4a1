package fault

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"agent/internal/sonny/screen/human"
)

// plainly puts a sentence in the place of the system's words in a text of err: where a
// file, a folder or a program could not be reached or begun.
func plainly(err error, text string) string {
	words, whole := unreached(err)
	if words == "" {
		return text
	}
	return strings.Replace(text, whole.Error(), words, 1)
}

// unreached is what in err's chain could not be reached or begun, with a sentence for it;
// "" for none.
func unreached(err error) (words string, whole error) {
	var looked *exec.Error
	if errors.As(err, &looked) && errors.Is(looked.Err, exec.ErrNotFound) {
		return "there is no program " + looked.Name + " on your PATH: install it, or name another", looked
	}
	var at *fs.PathError
	if !errors.As(err, &at) {
		return "", nil
	}
	path := human.Path(at.Path)
	if at.Op == "fork/exec" {
		return begun(path, at.Err), at
	}
	return reached(path, at.Err), at
}

// reached says what keeps a path from being read; "" where the system's words are best.
func reached(path string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + " is not there"
	case errors.Is(err, syscall.ENOTDIR):
		return path + " is not there: a part of that path is a file, and no folder"
	case errors.Is(err, syscall.EISDIR):
		return path + " is a folder, and no file"
	case errors.Is(err, syscall.ELOOP):
		return path + " leads round in a circle of links"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "a name in " + path + " is longer than a file's may be"
	case errors.Is(err, fs.ErrPermission):
		return path + " may not be read by you: give yourself the right to (chmod u+r, and u+x for a folder)"
	}
	return ""
}

// begun is the same of a program.
func begun(path string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the program " + path + " is not there, or the one that its first line names"
	case errors.Is(err, fs.ErrPermission):
		return path + " may not be run by you: chmod u+x makes it a program"
	case errors.Is(err, syscall.ENOEXEC):
		return path + " is no program for this machine; a script begins with a line such as #!/bin/sh"
	}
	return reached(path, err)
}

// Package envfile reads ~/.agent/env, the file of variables that whoever
// starts a daemon hands over to it (approvals.md 18).
//
// The file is UTF-8 text of at most 64 KiB with lines NAME=VALUE, an optional
// leading "export ", blank lines and # comments. One matching pair of quotes
// around a value is removed; there are no escapes and no expansion. A later
// line wins, and an empty value sets nothing. A file that others could read is
// refused, and then nothing of it is used.
package envfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"agent/internal/place"
	"agent/protocol"
)

// MaxSize is the greatest size of the file, in bytes.
const MaxSize = 64 << 10

// Var is one variable of the file.
type Var struct{ Name, Value string }

// DefaultPath is ~/.agent/env.
func DefaultPath() (string, error) {
	dir, err := place.AgentDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "env"), nil
}

// Read returns the variables of a file, each name once with its last value, in
// the order of those lines. A missing file is empty. Errors:
// env_file_permissions, when group or others have any right on it;
// env_file_invalid, naming the path and the line, never the text.
func Read(path string) ([]Var, error) {
	// Non-blocking: a FIFO must be refused, not waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, syscall.ELOOP) {
		return nil, invalid("%s is a link; put the file itself there", path)
	}
	if err != nil {
		return nil, invalid("%s cannot be opened: %v", path, errors.Unwrap(err))
	}
	defer f.Close()
	if err := check(path, f); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, invalid("%s cannot be read: %v", path, errors.Unwrap(err))
	}
	return Parse(path, text)
}

// check asks the open file, before its content is read, so that no other can
// take its place in between.
func check(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return invalid("%s cannot be read: %v", path, errors.Unwrap(err))
	}
	switch owner := info.Sys().(*syscall.Stat_t).Uid; {
	case !info.Mode().IsRegular():
		return invalid("%s is not a regular file", path)
	case int(owner) != os.Geteuid():
		return invalid("%s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return protocol.Fail(protocol.EnvFilePermissions,
			fmt.Sprintf("%s can be read by others (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path))
	}
	return nil
}

// Parse reads the file's text. path stands in errors alone.
func Parse(path string, text []byte) ([]Var, error) {
	switch {
	case len(text) > MaxSize:
		return nil, invalid("%s is larger than %d bytes", path, MaxSize)
	case !utf8.Valid(text):
		return nil, invalid("%s is not UTF-8", path)
	case bytes.IndexByte(text, 0) >= 0:
		return nil, invalid("%s holds a NUL byte", path)
	}
	var vars []Var
	number := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := assignment(line)
		if !ok {
			return nil, invalid("%s:%d is no NAME=VALUE", path, number)
		}
		vars = slices.DeleteFunc(vars, func(v Var) bool { return v.Name == name })
		vars = append(vars, Var{name, value})
	}
	return vars, nil
}

func assignment(line string) (name, value string, ok bool) {
	if rest, found := strings.CutPrefix(line, "export "); found {
		line = strings.TrimLeft(rest, " \t")
	}
	name, value, ok = strings.Cut(line, "=")
	if !ok || !ValidName(name) {
		return "", "", false
	}
	return name, unquote(strings.TrimSpace(value)), true
}

// ValidName reports whether s may name a variable: letters, digits and _, not beginning
// with a digit.
func ValidName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func unquote(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}

// Fill returns env with the variables it leaves out or empty: the environment
// wins over the file, and an empty value of the file sets nothing. env is as
// os.Environ gives it and is not changed.
func Fill(env []string, vars []Var) []string {
	out := slices.Clone(env)
	for _, v := range vars {
		if v.Value == "" || Get(env, v.Name) != "" {
			continue
		}
		out = slices.DeleteFunc(out, func(entry string) bool { return strings.HasPrefix(entry, v.Name+"=") })
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}

// Get is a variable's value in an environment, or "". The last entry counts.
func Get(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func invalid(format string, args ...any) error {
	return protocol.Fail(protocol.EnvFileInvalid, fmt.Sprintf(format, args...))
}

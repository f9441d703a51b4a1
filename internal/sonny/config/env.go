package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"agent/client/envfile"
	"agent/internal/place"
	"agent/protocol"
)

// SetEnv gives a variable a value in a file as ~/.agent/env, which is made when
// missing. Every other line stays as it is; the variable is left with one line, in the
// place of its last. The value is literal, one line, and may not be empty. Errors:
// usage for a name or a value that cannot stand there, those of envfile.Read, and
// env_file_invalid past 64 KiB. No error holds the value.
func SetEnv(path, name, value string) error {
	switch {
	case !envfile.ValidName(name):
		return failf(protocol.UsageError, "%q is no name of a variable", name)
	case value == "":
		return failf(protocol.UsageError, "%s has no value; sonny env unset %s takes it out", name, name)
	case !utf8.ValidString(value) || strings.ContainsAny(value, "\x00\r\n"):
		return failf(protocol.UsageError, "the value of %s must be one line of UTF-8", name)
	}
	_, err := changeEnv(path, name, `"`+value+`"`)
	return err
}

// UnsetEnv takes a variable out of such a file and reports whether it was there.
func UnsetEnv(path, name string) (bool, error) {
	if !envfile.ValidName(name) {
		return false, failf(protocol.UsageError, "%q is no name of a variable", name)
	}
	return changeEnv(path, name, "")
}

// changeEnv leaves a variable with one line of a quoted value, or with none.
func changeEnv(path, name, quoted string) (bool, error) {
	return rewrite(path, func() ([]byte, []byte, error) {
		old, err := envText(path)
		if err != nil {
			return nil, nil, err
		}
		now := withAssignment(old, name, quoted)
		if len(now) > envfile.MaxSize {
			return nil, nil, failf(protocol.EnvFileInvalid, "%s would be longer than %d bytes", path, envfile.MaxSize)
		}
		return old, now, nil
	})
}

// envText is the text of a file that envfile takes.
func envText(path string) ([]byte, error) {
	if _, err := envfile.Read(path); err != nil {
		return nil, err
	}
	text, _, err := place.ReadOwn(path, envfile.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failf(protocol.EnvFileInvalid, "%w", err)
	}
	// What was checked may be another's by now.
	if _, err := envfile.Parse(path, text); err != nil {
		return nil, err
	}
	return text, nil
}

func withAssignment(text []byte, name, quoted string) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	last := -1
	for i, l := range lines {
		if assigns(l, name) {
			last = i
		}
	}
	var out []byte
	for i, l := range lines {
		switch {
		case i == last && quoted != "":
			out = append(out, reassigned(l, quoted)...)
		case !assigns(l, name):
			out = append(out, l...)
		}
	}
	if last >= 0 || quoted == "" {
		return out
	}
	if n := len(out); n > 0 && out[n-1] != '\n' {
		out = append(out, '\n')
	}
	return fmt.Appendf(out, "%s=%s\n", name, quoted)
}

// assigns reports whether a line of the file gives a variable a value.
func assigns(line []byte, name string) bool {
	vars, err := envfile.Parse("", line)
	return err == nil && len(vars) == 1 && vars[0].Name == name
}

// reassigned is a line with another value, and what stands before and behind it.
func reassigned(line []byte, quoted string) []byte {
	head := line[:bytes.IndexByte(line, '=')+1]
	end := len(line) - len(bytes.TrimRight(line, "\r\n"))
	return slices.Concat(head, []byte(quoted), line[len(line)-end:])
}

// HiddenEnv are the variables of such a file that an environment, as os.Environ gives
// it, has another value for: the environment's holds. They are names alone.
func HiddenEnv(vars []envfile.Var, environ []string) []string {
	var hidden []string
	for _, v := range vars {
		if held := envfile.Get(environ, v.Name); held != "" && v.Value != "" && held != v.Value {
			hidden = append(hidden, v.Name)
		}
	}
	return hidden
}

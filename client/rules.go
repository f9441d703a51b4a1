package client

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"agent/protocol"
)

// ReadRules reads command rules for create and configure (sandbox.md 8.1): one
// file, or the files of a folder that are named *.rules, in byte order of their
// names and not of folders below it. A path that does not exist is an empty set;
// an empty path is not.
// The daemon parses them; here each is a regular file of UTF-8, and they are at
// most 256 with 256 KiB together. What cannot be read, or is more, is
// rules_unreadable, whose detail names the file.
//
// A program that gives a bot the rules of a folder reads it again before each
// turn that it submits, and configures the bot where the result is another. It
// sends UnreadableRules where there is an error, or where the daemon answers
// invalid_rules or rules_limit: old rules must not stay in force.
func ReadRules(path string) (*protocol.Rules, error) {
	r := &protocol.Rules{Files: []protocol.RuleFile{}}
	info, err := os.Stat(path)
	switch {
	case path == "": // an unset setting must not read as no rules
		return nil, protocol.Fail(protocol.RulesUnreadable, "the command rules have no path")
	case absent(path, err):
		return r, nil
	case err != nil:
		return nil, rulesUnreadable(path, err)
	case !info.IsDir():
		if err := addRules(r, path); err != nil {
			return nil, err
		}
		return r, nil
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, rulesUnreadable(path, err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".rules") || e.IsDir() {
			continue
		}
		if err := addRules(r, filepath.Join(path, e.Name())); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// UnreadableRules is the mark that a bot gets in place of rules that could not
// be read or do not parse: each of its shell commands is refused, and the
// refusal tells err, of which it keeps the first 1,024 bytes.
func UnreadableRules(err error) *protocol.Rules {
	reason := err.Error()
	var known *protocol.Error
	if errors.As(err, &known) && known.Detail != "" {
		reason = known.Detail
	}
	if len(reason) > protocol.MaxReason {
		reason = reason[:protocol.MaxReason]
	}
	return &protocol.Rules{Unreadable: true, Reason: strings.ToValidUTF8(reason, "")}
}

// absent reports whether there is nothing at path, not even a link that leads
// nowhere: what was to be there is then unknown.
func absent(path string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err = os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// addRules reads one more file, as far as the room that is left.
func addRules(r *protocol.Rules, path string) error {
	if len(r.Files) == protocol.MaxRuleFiles {
		return rulesUnreadable(path, fmt.Errorf("it is one more than the %d files that rules may be", protocol.MaxRuleFiles))
	}
	room := protocol.MaxRuleText
	for _, f := range r.Files {
		room -= len(f.Text)
	}
	text, err := readRegular(path, room+1)
	switch {
	case err != nil:
		return rulesUnreadable(path, err)
	case len(text) > room:
		return rulesUnreadable(path, fmt.Errorf("with it the rules are over %d bytes", protocol.MaxRuleText))
	case !utf8.Valid(text) || !utf8.ValidString(filepath.Base(path)):
		return rulesUnreadable(path, errors.New("it, or its name, is not UTF-8"))
	}
	r.Files = append(r.Files, protocol.RuleFile{Name: filepath.Base(path), Text: string(text)})
	return nil
}

// readRegular reads a regular file, at most that many bytes of it.
func readRegular(path string, most int) ([]byte, error) {
	// Non-blocking: a FIFO must be refused, not waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, int64(most)))
}

func rulesUnreadable(path string, err error) error {
	why := err
	var p *fs.PathError
	if errors.As(err, &p) {
		why = p.Err
	}
	return coded(protocol.RulesUnreadable, fmt.Sprintf("the command rules %s cannot be read: %v", strings.ToValidUTF8(path, "\uFFFD"), why), err)
}

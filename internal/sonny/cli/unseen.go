package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"agent/client/envfile"
	"agent/protocol"

	"golang.org/x/term"
)

// unseen reads a value: typed without being shown at a terminal, else the whole of
// standard input without a newline at its end.
func (a *app) unseen(name string) (string, error) {
	if f, ok := a.stdin.(*os.File); ok && isTerminal(f) {
		return a.typedUnseen(f, name)
	}
	value, err := io.ReadAll(io.LimitReader(a.stdin, envfile.MaxSize+1))
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r"), nil
}

// typedUnseen asks at a terminal. The echo ends before the question is printed, so that
// nothing typed ahead of it shows.
func (a *app) typedUnseen(f *os.File, name string) (string, error) {
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(f.Fd()), before)
	fmt.Fprintf(a.stderr, "%s (not shown): ", name)
	value, err := typedLine(f)
	fmt.Fprint(a.stderr, "\r\n")
	return value, err
}

// The keys of a terminal that gives them as they are pressed.
const (
	ctrlC, ctrlD, ctrlH, ctrlU = 0x03, 0x04, 0x08, 0x15
	backspace                  = 0x7f
)

// typedLine reads keys up to Enter. Backspace and Ctrl+U rub out; Ctrl+C ends it, and
// Ctrl+D where nothing is typed.
func typedLine(r io.Reader) (string, error) {
	var line []byte
	var key [1]byte
	for len(line) <= envfile.MaxSize {
		if _, err := io.ReadFull(r, key[:]); err != nil {
			return "", protocol.Fail("interrupted", "the input ended before Enter; nothing was changed")
		}
		switch c := key[0]; {
		case c == '\r' || c == '\n':
			return string(line), nil
		case c == ctrlC, c == ctrlD && len(line) == 0:
			return "", protocol.Fail("interrupted", "nothing was changed")
		case c == ctrlH || c == backspace:
			_, size := utf8.DecodeLastRune(line)
			line = line[:len(line)-size]
		case c == ctrlU:
			line = line[:0]
		default:
			line = append(line, c)
		}
	}
	return "", usagef("the value is longer than %d bytes", envfile.MaxSize)
}

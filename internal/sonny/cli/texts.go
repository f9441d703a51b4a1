package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unicode/utf8"

	"agent/client/instructions"
	"agent/protocol"
)

// maxText bounds a file of instructions that a setting names, in bytes.
const maxText = 64 << 10

// compaction are the instructions that a setting names: built in, none, or a file's.
func compaction(setting string) (string, error) {
	switch setting {
	case "auto":
		return instructions.Compaction(), nil
	case "off":
		return "", nil
	}
	return readText(setting)
}

// readText reads a small file of the person's, without waiting for a writer.
func readText(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case !info.Mode().IsRegular():
		err = errors.New("is no regular file")
	case err != nil:
	case len(text) > maxText:
		err = fmt.Errorf("is longer than %d KiB", maxText>>10)
	case !utf8.Valid(text):
		err = errors.New("is not UTF-8")
	}
	if err != nil {
		return "", protocol.Fail(protocol.InstructionsUnreadable, path+": "+err.Error())
	}
	return string(text), nil
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"agent/client/instructions"
	"agent/internal/sonny/lead"
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

// compose gives a lead's instructions and says what is in them.
func compose(f *lead.Folder, project string) (text, parts string, err error) {
	source := ""
	if f.Repo.Linked() {
		source = f.Repo.Source()
	}
	c, err := instructions.Compose(instructions.Options{Workspace: f.Path, Source: source, Project: project})
	if err != nil {
		return "", "", err
	}
	var words []string
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{c.Parts.AgentsFiles, "AGENTS.md", "AGENTS.md"}, {c.Parts.Skills, "skill", "skills"},
		{c.Parts.Roles, "role", "roles"}, {c.Parts.Facts, "memory fact", "memory facts"},
	} {
		switch {
		case p.n == 1 || p.n > 0 && p.one == p.many:
			words = append(words, fmt.Sprintf("%d %s", p.n, p.one))
		case p.n > 0:
			words = append(words, fmt.Sprintf("%d %s", p.n, p.many))
		}
	}
	if len(words) == 0 {
		words = []string{"the preamble alone"}
	}
	return c.Text, strings.Join(words, " · "), nil
}

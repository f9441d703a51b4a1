package instructions

import (
	"errors"
	"path/filepath"
	"strings"

	"agent/internal/place"
	"agent/internal/secret"
	"agent/protocol"
)

// maxProjectFile bounds .agents/project.toml, maxProject a project's name, in
// bytes.
const (
	maxProjectFile = 64 << 10
	maxProject     = 64
)

// ProjectName is the name of the project that a folder, which is a real path,
// belongs to: what .agents/project.toml of the nearest folder at or above it says,
// else one made of the folder's own name. The way up ends where that of Compose does.
// A file that cannot be read, that is another user's, or that names no project, is
// instructions_unreadable.
func ProjectName(folder string) (string, error) {
	name, _, err := StatedProject(folder)
	return name, err
}

// StatedProject is ProjectName, and whether a project.toml said it.
func StatedProject(folder string) (name string, stated bool, err error) {
	above, _ := place.Above(folder)
	for _, dir := range append([]string{folder}, above...) {
		path := inAgents(dir, "project.toml")
		f, err := readSmall(path, maxProjectFile)
		if err == nil && f != nil && theirs(path) {
			err = unreadable(path, errors.New("it belongs to another user, and its name says whose memory is read"))
		}
		if err != nil {
			return "", false, err
		}
		if f != nil {
			name, err := namedBy(path)
			return name, true, err
		}
	}
	return projectOf(filepath.Base(folder)), false, nil
}

// namedBy is the name that a project.toml says.
func namedBy(path string) (string, error) {
	fields, err := secret.ReadConfig(path)
	if err != nil {
		return "", protocol.Fail(protocol.InstructionsUnreadable, escaped(path)+" is no TOML: its name says whose memory is read")
	}
	name, ok := fields["name"].(string)
	if !ok || !validProject(name) {
		return "", protocol.Fail(protocol.InstructionsUnreadable, escaped(path)+
			" has no good name: name is "+projectRule)
	}
	return name, nil
}

// projectRule is what validProject checks, for people.
const projectRule = "1 to 64 of A-Z a-z 0-9 - _ ., begins with neither . nor - and does not end with ."

func validProject(name string) bool {
	return len(name) <= maxProject && protocol.ValidBotName(name) && !strings.HasSuffix(name, ".")
}

// ProjectOf is the project's name that a folder's own name gives: what is no letter, no
// digit and neither - nor _ becomes a -.
func ProjectOf(folder string) string { return projectOf(filepath.Base(folder)) }

// projectOf makes a project's name of a folder's.
func projectOf(base string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && letterOrDigit(byte(r)) || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, base)
	name = strings.Trim(name, "-_")
	if len(name) > maxProject {
		name = name[:maxProject]
	}
	if name == "" {
		return "project"
	}
	return name
}

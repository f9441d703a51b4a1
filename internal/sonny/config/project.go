package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/place"
)

// MaxProject is the greatest size of project.toml, in bytes.
const MaxProject = 64 << 10

// Project is a checkout's .agents/project.toml (sonny.md 3.4). Nothing in it widens
// what a bot may do: a checkout does not choose how far it is trusted.
type Project struct {
	Path string // of the file; not written

	Name             string
	Coordinator      string // NAME.lead, or "" when not given
	Model            string
	Reasoning        string
	ThreadsModel     string
	ThreadsReasoning string
	ThreadsIn        string // "worktree", "project", or ""
	NoCommonsInvites bool   // commons_invites = false
}

// ProjectKey is one key of project.toml.
type ProjectKey struct {
	Name, Means string
	Sets        string // the key of config.toml that it goes before, or ""

	kind kind
	text func(*Project) *string // nil for commons_invites
}

// Must says what a value must be.
func (k *ProjectKey) Must() string { return k.kind.must }

// ProjectName reports whether a text may name a project: 1 to 64 letters, digits, -, _
// and ., not beginning with . or - and not ending with .
func ProjectName(s string) bool {
	return projectName(s) && !strings.HasSuffix(s, ".")
}

var projectName = matching(`[A-Za-z0-9_][A-Za-z0-9._-]{0,63}`)

// ProjectKeys are all keys of project.toml, in the order of the reference. It must not
// be changed.
var ProjectKeys = []ProjectKey{
	{"name", "the project's name; required", "", one("1 to 64 letters, digits, -, _ and ., not beginning with . or - and not ending with .", ProjectName), func(p *Project) *string { return &p.Name }},
	{"coordinator", "NAME.lead", "", line, func(p *Project) *string { return &p.Coordinator }},
	{"model", "the model of new leads here", "model", modelRef, func(p *Project) *string { return &p.Model }},
	{"reasoning", "their reasoning effort", "effort", effort, func(p *Project) *string { return &p.Reasoning }},
	{"threads_model", "the model of tasks", "tasks.model", modelRef, func(p *Project) *string { return &p.ThreadsModel }},
	{"threads_reasoning", "their reasoning effort", "tasks.effort", effort, func(p *Project) *string { return &p.ThreadsReasoning }},
	{"threads_in", "where tasks work", "tasks.in", choice("worktree", "project"), func(p *Project) *string { return &p.ThreadsIn }},
	{"commons_invites", "false keeps this project out of commons invites", "", boolean, nil},
}

// ProjectFile is the path of a folder's project.toml.
func ProjectFile(folder string) string { return filepath.Join(folder, ".agents", "project.toml") }

// FindProject reads the project.toml of the nearest folder at or above an absolute
// folder; nil when none has one. The way up ends below a folder that others write, or
// every sandboxed bot (place.Above). Errors are ReadProject's.
func FindProject(folder string) (*Project, error) {
	above, _ := place.Above(folder)
	for _, dir := range append([]string{folder}, above...) {
		if p, err := ReadProject(ProjectFile(dir)); p != nil || err != nil {
			return p, err
		}
	}
	return nil, nil
}

// ReadProject reads a project.toml; nil when there is none. Errors: project_invalid,
// naming the file and the key that is unknown, missing or wrong.
func ReadProject(path string) (*Project, error) {
	text, _, err := place.ReadOwn(path, MaxProject)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, place.ErrNotOwn):
		return nil, failf(ProjectInvalid, "%w", err)
	case err != nil:
		return nil, failf(ProjectInvalid, "%s cannot be read: %w", path, err)
	}
	return ParseProject(path, text)
}

// ParseProject reads the text of a project.toml. path stands in the errors, which are
// ReadProject's.
func ParseProject(path string, text []byte) (*Project, error) {
	d, err := parse(text)
	if err != nil {
		return nil, failf(ProjectInvalid, "%s: %w", path, err)
	}
	p := &Project{Path: path}
	for _, name := range slices.Sorted(maps.Keys(d.tree)) {
		if why := p.take(name, d.tree[name]); why != "" {
			return nil, failf(ProjectInvalid, "%s:%d: %s %s", path, d.lineOf([]string{name}), KeyText([]string{name}), why)
		}
	}
	if why := p.fault(); why != "" {
		return nil, failf(ProjectInvalid, "%s: %s", path, why)
	}
	return p, nil
}

// take takes one key in and says what is wrong with it.
func (p *Project) take(name string, value any) string {
	k := projectKey(name)
	if k == nil {
		return "is no key of project.toml, which holds " + projectKeyNames()
	}
	taken, ok := k.kind.take(value)
	switch {
	case !ok:
		return "must be " + k.Must()
	case k.text == nil:
		p.NoCommonsInvites = taken == false
	default:
		*k.text(p) = taken.(string)
	}
	return ""
}

func (p *Project) fault() string {
	switch {
	case p.Name == "":
		return "name is missing"
	case p.Coordinator != "" && p.Coordinator != p.Name+".lead":
		return fmt.Sprintf("coordinator must be %q, or left out", p.Name+".lead")
	}
	return ""
}

func projectKey(name string) *ProjectKey {
	for i := range ProjectKeys {
		if ProjectKeys[i].Name == name {
			return &ProjectKeys[i]
		}
	}
	return nil
}

func projectKeyNames() string {
	names := make([]string, len(ProjectKeys))
	for i, k := range ProjectKeys {
		names[i] = k.Name
	}
	return strings.Join(names, ", ")
}

// settings are those of config.toml that the file goes before.
func (p *Project) settings() (out []Stated) {
	for _, k := range ProjectKeys {
		if k.Sets != "" && *k.text(p) != "" {
			out = append(out, Stated{Key: k.Sets, Value: *k.text(p)})
		}
	}
	return out
}

// Text is the project as a project.toml.
func (p *Project) Text() string {
	var b strings.Builder
	for _, k := range ProjectKeys {
		switch {
		case k.text == nil && p.NoCommonsInvites:
			b.WriteString(k.Name + " = false\n")
		case k.text != nil && *k.text(p) != "":
			b.WriteString(k.Name + " = " + quote(*k.text(p)) + "\n")
		}
	}
	return b.String()
}

// WriteProject makes a folder's project.toml, whole or not at all. It never replaces
// one: then the error is fs.ErrExist. Other errors: project_invalid for a project that
// ReadProject would refuse, or an .agents that is no folder of the person's.
func WriteProject(folder string, p *Project) error {
	path := ProjectFile(folder)
	text := []byte(p.Text())
	if _, err := ParseProject(path, text); err != nil {
		return err
	}
	if err := agentsFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := place.CreatePrivate(path, text); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// agentsFolder makes a checkout's .agents when it is missing. A link could lead the
// file elsewhere.
func agentsFolder(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Mkdir(dir, 0o700)
	}
	if err == nil && !info.IsDir() {
		return failf(ProjectInvalid, "%s is no folder", dir)
	}
	return err
}

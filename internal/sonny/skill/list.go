package skill

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/client/instructions"
	"agent/protocol"

	"github.com/aymanbagabas/go-udiff"
)

// A Row is one skill as sonny skills list shows it.
type Row struct {
	Name        string `json:"name"`
	From        string `json:"from"` // folder, person, or sonny for a shipped one that nobody has changed
	Path        string `json:"path"` // "" for a shipped one that is not there
	Description string `json:"description"`
	State       State  `json:"state,omitempty"` // of a shipped name: current, updated (an update is to come), yours, left
	InIndex     bool   `json:"in_index"`        // bots are told of it
	Error       string `json:"error,omitempty"` // what keeps it from being read
}

// List is every skill that concerns a workspace, by name: those that bots there can
// open, and those that Sonny ships and the person has removed. disabled are the
// names that the settings keep out of the index. Both folders are real paths. Errors
// are those of instructions.Skills.
func (k *Skills) List(workspace string, disabled []string) ([]Row, error) {
	entries, err := instructions.Skills(workspace, k.home)
	if err != nil {
		return nil, err
	}
	var rows []Row
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.Name] = true
		rows = append(rows, k.row(e, slices.Contains(disabled, e.Name)))
	}
	for name := range k.shipped {
		if !seen[name] {
			rows = append(rows, Row{Name: name, From: "sonny", State: k.state(name)})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

func (k *Skills) row(e instructions.Entry, disabled bool) Row {
	r := Row{Name: e.Name, From: "folder", Path: e.Path, Description: e.Description}
	if strings.HasPrefix(e.Path, filepath.Join(k.home, ".agents", "skills")+"/") {
		r.From = "person"
		if _, ok := k.shipped[e.Name]; ok {
			r.State = k.state(e.Name)
		}
		if r.State == Current || r.State == Updated {
			r.From = "sonny"
		}
	}
	if e.Err != nil {
		r.Error = e.Err.Error()
		return r
	}
	r.InIndex = !disabled && !e.Front.True("disable-model-invocation")
	return r
}

// state is what an update would find of a shipped skill. It changes nothing.
func (k *Skills) state(name string) State {
	if there(k.mark(name)) {
		return Yours
	}
	ship := k.shipped[name]
	record, _ := readTree(k.record(name))
	now, odd := readFiles(k.folder(name), slices.Sorted(maps.Keys(allOf(record, ship))))
	switch {
	case len(odd) > 0:
		return Left
	case !k.asWritten(name, now, record, ship):
		return Yours
	case maps.Equal(now, ship):
		return Current
	}
	return Updated
}

// Diff is how the person's copy of a shipped skill differs from what this build
// ships, as a unified diff; "" where it does not. invalid_name.
func (k *Skills) Diff(name string) (string, error) {
	ship, ok := k.shipped[name]
	if !ok {
		return "", k.unknown(name)
	}
	var b strings.Builder
	now, odd := readFiles(k.folder(name), slices.Sorted(maps.Keys(ship)))
	for _, what := range odd {
		b.WriteString(what + "\n")
	}
	for _, file := range slices.Sorted(maps.Keys(ship)) {
		if isOdd(odd, filepath.Join(k.folder(name), file)) {
			continue
		}
		b.WriteString(udiff.Unified("shipped/"+name+"/"+file, filepath.Join(k.folder(name), file), ship[file], now[file]))
	}
	return b.String(), nil
}

func isOdd(odd []string, path string) bool {
	return slices.ContainsFunc(odd, func(what string) bool { return strings.HasPrefix(what, path+" ") })
}

// A RoleRow is one role as sonny roles list shows it.
type RoleRow struct {
	Name        string   `json:"name"`
	From        string   `json:"from"` // folder, person, or sonny for one that is built in
	Path        string   `json:"path"` // "" for one that is built in
	Description string   `json:"description"`
	Model       string   `json:"model,omitempty"`
	Effort      string   `json:"effort,omitempty"`
	Tools       []string `json:"tools,omitempty"`
	Error       string   `json:"error,omitempty"`
}

// Roles is every role that concerns a workspace, by name; a file of a built-in
// role's name stands for it. Errors are those of instructions.Roles.
func Roles(workspace, home string) ([]RoleRow, error) {
	entries, err := instructions.Roles(workspace, home)
	if err != nil {
		return nil, err
	}
	var rows []RoleRow
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.Name] = true
		rows = append(rows, roleRow(e, home))
	}
	for name, text := range BuiltInRoles() {
		if !seen[name] {
			m, _, _ := instructions.ParseFrontMatter(text)
			rows = append(rows, RoleRow{Name: name, From: "sonny", Description: m.Text("description"), Tools: m.List("tools")})
		}
	}
	slices.SortFunc(rows, func(a, b RoleRow) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

func roleRow(e instructions.Entry, home string) RoleRow {
	r := RoleRow{Name: e.Name, From: "folder", Path: e.Path, Description: e.Description}
	if filepath.Dir(e.Path) == filepath.Join(home, ".agents", "agents") {
		r.From = "person"
	}
	if e.Err != nil {
		r.Error = e.Err.Error()
		return r
	}
	r.Model, r.Effort, r.Tools = e.Front.Text("model"), e.Front.Text("effort"), e.Front.List("tools")
	return r
}

// EditableRole is the person's file for a role, and, where there is none yet, the text of
// the built-in one that it would begin as; "" for a file that is there. Nothing is made.
// profile_not_found for a role that neither is built in nor has a file of the person's;
// invalid_name; skill_left for a link or the like in its place.
func EditableRole(home, name string) (path, text string, err error) {
	if !instructions.ValidRole(name) {
		return "", "", protocol.Fail(protocol.InvalidName, "the role "+name+": its name is letters, digits, -, _ and ., and does not begin with a dot")
	}
	path = filepath.Join(home, ".agents", "agents", name+".md")
	switch info, err := os.Lstat(path); {
	case err == nil && !info.Mode().IsRegular():
		return "", "", protocol.Fail(codeLeft, path+" is not a regular file; move it away, or edit what it leads to")
	case err == nil:
		return path, "", nil
	}
	text, ok := BuiltInRoles()[name]
	if !ok {
		return "", "", protocol.Fail(protocol.ProfileNotFound, "there is no role "+name+" of yours and none that is built in; make "+path+" to have one")
	}
	return path, text, nil
}

// KeepRole makes the person's file for a role. skill_left where it cannot be written.
func KeepRole(home, name, text string) error {
	if err := makeAgents(home); err != nil {
		return err
	}
	return writeTree(filepath.Join(home, ".agents", "agents"), nil, files{name + ".md": text})
}

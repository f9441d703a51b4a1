package instructions

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// maxDescription is how much of a description an index shows, in characters.
const maxDescription = 160

// builtinRoles are the terminal client's own, which no index shows: nobody starts
// an agent in one.
var builtinRoles = []string{"lead", "home", "cleanup"}

// An Entry is a skill or a role that was found.
type Entry struct {
	Name        string
	Path        string // of its file
	Description string // one line of at most 160 characters
	Front       *FrontMatter
	Err         error // instructions_unreadable: what keeps it from being read; Front is then nil
}

// Skills lists the skills that bots of a workspace are shown, by name: each
// NAME/SKILL.md in .agents/skills of the workspace, then of the person's home. A
// name that the workspace has is the workspace's, whatever is the matter with it
// there. Both folders are real paths. Errors: instructions_limit,
// instructions_unreadable for what concerns a whole folder.
func Skills(workspace, home string) ([]Entry, error) {
	return find(workspace, home, "skills", func(dir string, e os.DirEntry) (Entry, bool) {
		s := Entry{Name: e.Name(), Path: filepath.Join(dir, e.Name())}
		if !shellPlain(s.Name) {
			return s, false
		}
		folder, err := leadsToFolder(s.Path, e)
		if err == nil && folder {
			s.Path = filepath.Join(s.Path, "SKILL.md")
			folder, err = exists(s.Path)
		}
		s.Err = err
		return s, folder || err != nil
	})
}

// SkillsLeftOut are the folders of skills that no bot is shown, since a shell could not pass
// their names unquoted: their paths. Errors are those of Skills.
func SkillsLeftOut(workspace, home string) (paths []string, err error) {
	for _, top := range tops(workspace, home) {
		dir := inAgents(top, "skills")
		list, err := entries(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			path := filepath.Join(dir, e.Name())
			if there, err := exists(filepath.Join(path, "SKILL.md")); !shellPlain(e.Name()) && (there || err != nil) {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// Roles lists the roles that bots of a workspace are shown, by name: each NAME.md
// in .agents/agents, found as Skills are. The terminal client's own are among
// them where they have a file.
func Roles(workspace, home string) ([]Entry, error) {
	return Files(workspace, home, "agents")
}

// Files lists the NAME.md of a folder of .agents, found as Skills are, each NAME
// one that a role may have.
func Files(workspace, home, folder string) ([]Entry, error) {
	return find(workspace, home, folder, func(dir string, e os.DirEntry) (Entry, bool) {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		return Entry{Name: name, Path: filepath.Join(dir, e.Name())}, ok && ValidRole(name)
	})
}

// find lists what is in a folder of .agents, of the workspace first and then of
// the person's. named gives an entry's name and file, or whatever kept it from
// being looked at; false for one that is none.
func find(workspace, home, folder string, named func(dir string, e os.DirEntry) (Entry, bool)) ([]Entry, error) {
	var found []Entry
	for _, top := range tops(workspace, home) {
		dir := inAgents(top, folder)
		list, err := entries(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			f, ok := named(dir, e)
			if !ok || slices.ContainsFunc(found, func(o Entry) bool { return o.Name == f.Name }) {
				continue
			}
			if f.readHead() {
				found = append(found, f)
			}
		}
	}
	slices.SortFunc(found, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// readHead reads what the entry's file says of itself; false where it has gone.
func (f *Entry) readHead() bool {
	if f.Err != nil {
		return true
	}
	head, err := readHead(f.Path)
	if head == nil {
		f.Err = err
		return err != nil
	}
	m, text, _ := ParseFrontMatter(head.text)
	f.Front, f.Description = m, described(m, text)
	return true
}

// tops are the folders whose .agents count, the nearest first.
func tops(workspace, home string) []string {
	if workspace == home {
		return []string{home}
	}
	return []string{workspace, home}
}

// skills adds a line for each skill.
func (c *composer) skills() error {
	found, err := Skills(c.agentsTop(), c.Home)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(s Entry) bool { return slices.Contains(c.HiddenSkills, s.Name) })
	c.parts.Skills, err = c.index("\n# Skills\n\nOpen one with `read` when its subject comes up.\n\n", found, func(s Entry) bool {
		return !s.Front.True("disable-model-invocation")
	})
	return err
}

// roles adds a line for each role.
func (c *composer) roles() error {
	found, err := Roles(c.agentsTop(), c.Home)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(r Entry) bool { return slices.Contains(builtinRoles, r.Name) })
	c.parts.Roles, err = c.index("\n# Roles\n\n"+
		"`\"$AGENT_BIN\" run --detach --new --profile ROLE --bot NAME -- TASK` starts an agent in one.\n\n",
		found, func(Entry) bool { return true })
	return err
}

// index adds a line for each of the found that is shown, below a heading, and says
// how many these were.
func (c *composer) index(heading string, found []Entry, shown func(Entry) bool) (n int, err error) {
	for _, f := range found {
		if f.Err != nil {
			return n, f.Err
		}
		if !shown(f) {
			continue
		}
		line := "- " + f.Name + ": " + f.Description + " (" + escaped(f.Path) + ")\n"
		if n == 0 {
			line = heading + line
		}
		if err := c.add(f.Path, int64(len(line)), line); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// described is what an index says of a file: its description, else the first line
// of its body that is not empty.
func described(m *FrontMatter, text string) string {
	description := m.Text("description")
	for line := range strings.SplitSeq(text, "\n") {
		if description != "" {
			break
		}
		description = strings.TrimSpace(line)
	}
	return oneLine(description, maxDescription)
}

// oneLine is text on one line, of at most that many characters.
func oneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	n := 0
	for i := range text {
		if n == most {
			return strings.TrimSpace(text[:i])
		}
		n++
	}
	return text
}

// leadsToFolder reports whether an entry is a folder, or a link to one.
func leadsToFolder(path string, e os.DirEntry) (bool, error) {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir(), nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("it is a link to nothing")
	}
	if err != nil {
		return false, unreadable(path, err)
	}
	return info.IsDir(), nil
}

// shellPlain reports whether a shell takes a name as it is, without quotes.
func shellPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; !letterOrDigit(c) && !strings.ContainsRune("_-.,:@%+=", rune(c)) {
			return false
		}
	}
	return name != ""
}

func letterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

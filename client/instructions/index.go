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

// indexed is a skill or a role that was found.
type indexed struct{ name, path string }

// skills adds a line for each skill: NAME/SKILL.md in .agents/skills.
func (c *composer) skills() error {
	found, err := c.find("skills", func(dir string, e os.DirEntry) (string, string, error) {
		path := filepath.Join(dir, e.Name())
		if !shellPlain(e.Name()) {
			return "", "", nil
		}
		folder, err := leadsToFolder(path, e)
		if err != nil || !folder {
			return "", "", err
		}
		path = filepath.Join(path, "SKILL.md")
		there, err := exists(path)
		if err != nil || !there {
			return "", "", err
		}
		return e.Name(), path, nil
	})
	if err != nil {
		return err
	}
	c.parts.Skills, err = c.index("\n# Skills\n\nOpen one with `read` when its subject comes up.\n\n", found, func(m *FrontMatter) bool {
		return !m.True("disable-model-invocation")
	})
	return err
}

// roles adds a line for each role: NAME.md in .agents/agents.
func (c *composer) roles() error {
	found, err := c.find("agents", func(dir string, e os.DirEntry) (string, string, error) {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || !validRole(name) || slices.Contains(builtinRoles, name) {
			return "", "", nil
		}
		return name, filepath.Join(dir, e.Name()), nil
	})
	if err != nil {
		return err
	}
	c.parts.Roles, err = c.index("\n# Roles\n\n"+
		"`\"$AGENT_BIN\" run --detach --new --profile ROLE --bot NAME -- TASK` starts an agent in one.\n\n", found, nil)
	return err
}

// find lists what is in a folder of .agents, of the workspace first and then of
// the person's: a name that the workspace has is the workspace's, whatever is the
// matter with it there. named gives an entry's name and file, or "" for one that
// is none.
func (c *composer) find(folder string, named func(dir string, e os.DirEntry) (name, path string, err error)) ([]indexed, error) {
	var found []indexed
	for _, top := range c.tops() {
		dir := inAgents(top, folder)
		list, err := entries(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			name, path, err := named(dir, e)
			if err != nil {
				return nil, err
			}
			if name != "" && !slices.ContainsFunc(found, func(f indexed) bool { return f.name == name }) {
				found = append(found, indexed{name, path})
			}
		}
	}
	slices.SortFunc(found, func(a, b indexed) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// tops are the folders whose .agents count, the nearest first.
func (c *composer) tops() []string {
	if c.Workspace == c.Home {
		return []string{c.Home}
	}
	return []string{c.Workspace, c.Home}
}

// index adds a line for each of the found whose front matter is shown, below a
// heading, and says how many these were.
func (c *composer) index(heading string, found []indexed, shown func(*FrontMatter) bool) (n int, err error) {
	for _, f := range found {
		head, err := readHead(f.path)
		if err != nil {
			return n, err
		}
		if head == nil {
			continue // it has gone
		}
		m, text, _ := ParseFrontMatter(head.text)
		if shown != nil && !shown(m) {
			continue
		}
		line := "- " + f.name + ": " + described(m, text) + " (" + escaped(f.path) + ")\n"
		if n == 0 {
			line = heading + line
		}
		if err := c.add(f.path, int64(len(line)), line); err != nil {
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

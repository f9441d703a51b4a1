package instructions

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agent/internal/place"
)

// agentsFile is what a folder's AGENTS.md is called.
const agentsFile = "AGENTS.md"

// agentsFiles adds the AGENTS.md files, the person's first and the nearest last,
// and the line that ends them.
func (c *composer) agentsFiles() error {
	end := "\n" + EndLine + "\n"
	c.room -= len(end) // it always comes
	var seen []os.FileInfo
	for _, dir := range c.agentsDirs() {
		path := c.agentsFileOf(dir)
		heading := "\n" + headingOf(path) + "\n\n"
		f, err := c.readOurs(path, c.room-len(heading))
		if err != nil {
			return err
		}
		again := func(info os.FileInfo) bool { return os.SameFile(info, f.info) }
		if f == nil || f.blank() || slices.ContainsFunc(seen, again) {
			continue
		}
		seen = append(seen, f.info)
		if err := c.add(path, f.info.Size(), heading+body(f.text)); err != nil {
			return err
		}
		c.parts.AgentsFiles++
	}
	c.text.WriteString(end)
	return nil
}

// agentsFileOf is the path of a folder's AGENTS.md, or of what is read in its place.
func (c *composer) agentsFileOf(dir string) string {
	own := filepath.Join(dir, agentsFile)
	for _, name := range append([]string{agentsFile}, c.Fallbacks...) {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil && filepath.Base(path) == name {
			return path
		}
	}
	return own
}

// readOurs reads an AGENTS.md; nil where there is none, and where it is another user's,
// or a link of theirs: what such a file says would be taken for the person's standing
// orders.
func (c *composer) readOurs(path string, room int) (*file, error) {
	if theirs(path) {
		c.leave(path, "it belongs to another user")
		return nil, nil
	}
	f, err := readText(path, room)
	if f != nil && place.Foreign(f.info) { // it was put there since
		c.leave(path, "it belongs to another user")
		return nil, nil
	}
	return f, err
}

// theirs reports whether a file, or the link at its place, is another user's. Of what
// cannot be looked at the reading says what is wrong.
func theirs(path string) bool {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		if info, err := look(path); err == nil && place.Foreign(info) {
			return true
		}
	}
	return false
}

// leave notes a file that is not taken.
func (c *composer) leave(path, why string) {
	if !slices.ContainsFunc(c.left, func(l Left) bool { return l.Path == path }) {
		c.left = append(c.left, Left{path, why})
	}
}

// agentsDirs are the folders whose AGENTS.md counts, in reading order.
func (c *composer) agentsDirs() []string {
	dirs := []string{filepath.Join(c.Home, ".agents")}
	if c.OwnOnly {
		return dirs
	}
	var ways []way
	if c.Source != "" {
		ways = append(ways, upFrom(c.Source, ""))
	}
	ways = append(ways, upFrom(c.Workspace, c.Top))
	ways[len(ways)-1].dirs = append(ways[len(ways)-1].dirs, c.Workspace)
	for _, w := range ways {
		for _, dir := range w.dirs {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	for _, w := range ways {
		c.leaveAbove(w.stop, dirs)
	}
	return dirs
}

// way is what counts of the folders above one, the farthest first, and where it ended.
type way struct {
	dirs []string
	stop *place.Stop
}

// upFrom is the way up from a folder, which leads no farther than to top where one is
// given and the folder lies in it.
func upFrom(folder, top string) way {
	dirs, stop := place.Above(folder)
	if folder == top {
		dirs, stop = nil, &place.Stop{Dir: filepath.Dir(top), Why: beside}
	} else if i := slices.Index(dirs, top); i >= 0 {
		dirs, stop = dirs[:i+1], &place.Stop{Dir: filepath.Dir(top), Why: beside}
	}
	slices.Reverse(dirs)
	return way{dirs, stop}
}

// beside is why nothing counts that stands above a worktree.
const beside = "bots write beside their worktrees"

// leaveAbove notes the AGENTS.md files of the folder that a way ended at and of those
// above it, but for those that another way leads to.
func (c *composer) leaveAbove(stop *place.Stop, dirs []string) {
	if stop == nil {
		return
	}
	for _, dir := range fromRoot(stop.Dir) {
		path := c.agentsFileOf(dir)
		if _, err := os.Lstat(path); err == nil && !slices.Contains(dirs, dir) {
			c.leave(path, stop.Why)
		}
	}
}

// fromRoot are the folders from the file system's root down to dir.
func fromRoot(dir string) (dirs []string) {
	for ; ; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == filepath.Dir(dir) {
			slices.Reverse(dirs)
			return dirs
		}
	}
}

package instructions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/protocol"
)

// mode sets a folder's mode, named from the top.
func (w *world) mode(name string, mode os.FileMode) {
	w.t.Helper()
	if err := os.Chmod(filepath.Join(w.top, name), mode); err != nil {
		w.t.Fatal(err)
	}
}

// gives gives a file away, or a link itself, where the test may: only root can.
func (w *world) gives(name string, uid, gid int) {
	w.t.Helper()
	if err := os.Lchown(filepath.Join(w.top, name), uid, gid); err != nil {
		w.t.Fatal(err)
	}
}

// taken are the AGENTS.md files of a text, named from the top.
func (w *world) taken(c *Composed) (names []string) {
	for _, s := range AgentsSections(c.Text) {
		names = append(names, strings.TrimPrefix(s.Path, w.top+"/"))
	}
	return names
}

// leftOut are those that were passed over, with why, named from the top.
func (w *world) leftOut(c *Composed) (said []string) {
	for _, l := range c.Left {
		if rest, below := strings.CutPrefix(l.Path, w.top+"/"); below {
			said = append(said, rest+": "+strings.ReplaceAll(l.Why, w.top+"/", ""))
		}
	}
	return said
}

// PO-113: what stands where others write is nobody's standing order.
func TestWhatOthersMayWriteIsNoOrder(t *testing.T) {
	const workspace, nearer = "a/shared/b/work/AGENTS.md", "a/shared/b/AGENTS.md"
	for _, row := range []struct {
		name  string
		root  bool // only root can make it so
		make  func(*world)
		taken []string
		left  []string
	}{
		{"folders that the person alone writes", false, func(w *world) { w.mode("a/shared", 0o755) }, []string{"a/AGENTS.md", "a/shared/AGENTS.md", nearer, workspace}, nil},
		{
			"one that everybody writes, as /tmp", false, func(w *world) { w.mode("a/shared", 0o777|os.ModeSticky) },
			[]string{nearer, workspace},
			[]string{"a/AGENTS.md: everybody may write a/shared", "a/shared/AGENTS.md: everybody may write a/shared"},
		},
		{
			"the folder of temporary files, which every sandbox lets its bot write", false, func(w *world) { w.t.Setenv("TMPDIR", filepath.Join(w.top, "a/shared")) },
			[]string{nearer, workspace},
			[]string{"a/AGENTS.md: every bot may write a/shared", "a/shared/AGENTS.md: every bot may write a/shared"},
		},
		{
			"that folder by another name", false, func(w *world) {
				w.link("shared", "a/alias")
				w.t.Setenv("TMPDIR", filepath.Join(w.top, "a/alias"))
			},
			[]string{nearer, workspace},
			[]string{"a/AGENTS.md: every bot may write a/shared", "a/shared/AGENTS.md: every bot may write a/shared"},
		},
		{
			"one that a group writes", true, func(w *world) {
				w.gives("a/shared", os.Geteuid(), 4242)
				w.mode("a/shared", 0o775)
			},
			[]string{nearer, workspace},
			[]string{"a/AGENTS.md: a group may write a/shared", "a/shared/AGENTS.md: a group may write a/shared"},
		},
		{
			"one of another user's, with their file", true, func(w *world) {
				w.mode("a/shared", 0o755)
				w.gives("a/shared", 4242, 4242)
				w.gives("a/shared/AGENTS.md", 4242, 4242)
			},
			[]string{nearer, workspace},
			[]string{"a/AGENTS.md: a/shared belongs to another user", "a/shared/AGENTS.md: a/shared belongs to another user"},
		},
		{
			"another user's file in a folder of the person's", true, func(w *world) { w.gives("a/shared/AGENTS.md", 4242, 4242) },
			[]string{"a/AGENTS.md", nearer, workspace},
			[]string{"a/shared/AGENTS.md: it belongs to another user"},
		},
		{
			"another user's file that nobody could read, and that is none", true, func(w *world) {
				w.write("a/shared/b/AGENTS.md", "\xff")
				w.gives("a/shared/b/AGENTS.md", 4242, 4242)
			},
			[]string{"a/AGENTS.md", "a/shared/AGENTS.md", workspace},
			[]string{nearer + ": it belongs to another user"},
		},
		{
			"another user's link to a file of the person's", true, func(w *world) {
				w.write("notes.md", "Private.")
				if err := os.Remove(filepath.Join(w.top, workspace)); err != nil {
					w.t.Fatal(err)
				}
				w.link(filepath.Join(w.top, "notes.md"), workspace)
				w.gives(workspace, 4242, 4242)
			},
			[]string{"a/AGENTS.md", "a/shared/AGENTS.md", nearer},
			[]string{workspace + ": it belongs to another user"},
		},
		{
			"the workspace itself, whose files the person is asked about", false, func(w *world) { w.mode("a/shared/b/work", 0o777) },
			[]string{"a/AGENTS.md", "a/shared/AGENTS.md", nearer, workspace},
			nil,
		},
	} {
		if row.root && os.Geteuid() != 0 {
			continue // only root gives a file away
		}
		t.Run("PO-113 "+row.name, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"a/AGENTS.md", "a/shared/AGENTS.md", nearer, workspace} {
				w.write(name, "Of "+name)
			}
			row.make(w)
			o := w.options()
			o.Workspace = filepath.Join(w.top, "a/shared/b/work")
			c := w.compose(o)
			if got := w.taken(c); !slices.Equal(got, row.taken) {
				t.Errorf("taken: %q", got)
			}
			if got := w.leftOut(c); !slices.Equal(got, row.left) {
				t.Errorf("left: %q", got)
			}
		})
	}
}

// Sandboxed bots write /tmp whatever its owner and its mode are.
func TestTheFolderOfTemporaryFilesIsNobodys(t *testing.T) {
	t.Parallel()
	for _, tmp := range []string{"/tmp", "/var/tmp"} {
		real, err := filepath.EvalSymlinks(tmp)
		if err != nil {
			t.Fatal(err)
		}
		if way := upFrom(filepath.Join(real, "a"), ""); len(way.dirs) != 0 || way.stop == nil || way.stop.Dir != real || way.stop.Why != "every bot may write "+real {
			t.Errorf("%s: %+v", tmp, way)
		}
	}
}

// A project's worktrees lie in a folder that its bots write.
func TestNothingIsTakenFromBesideAWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"code/AGENTS.md", "home/AGENTS.md", "home/.agent/worktrees/demo/AGENTS.md", "home/.agent/worktrees/demo/fix/AGENTS.md", "home/.agent/worktrees/demo/fix/sub/AGENTS.md"} {
		w.write(name, "Of "+name)
	}
	top := filepath.Join(w.home, ".agent/worktrees/demo/fix")
	for _, row := range []struct {
		name, workspace, source string
		taken                   []string
	}{
		{"a task's", "", w.workspace, []string{"code/AGENTS.md", "home/.agent/worktrees/demo/fix/AGENTS.md"}},
		{"a folder of it", "sub", w.workspace, []string{"code/AGENTS.md", "home/.agent/worktrees/demo/fix/AGENTS.md", "home/.agent/worktrees/demo/fix/sub/AGENTS.md"}},
		{"one whose source nobody knows", "", "", []string{"home/.agent/worktrees/demo/fix/AGENTS.md"}},
		{"one whose source lies below what is above it as well", "", filepath.Join(w.home, "demo"), []string{"home/AGENTS.md", "home/.agent/worktrees/demo/fix/AGENTS.md"}},
	} {
		o := w.options()
		o.Workspace, o.Source, o.Top = filepath.Join(top, row.workspace), row.source, top
		c := w.compose(o)
		if got := w.taken(c); !slices.Equal(got, row.taken) {
			t.Errorf("%s: taken: %q", row.name, got)
		}
		if left := w.leftOut(c); !slices.Contains(left, "home/.agent/worktrees/demo/AGENTS.md: "+beside) || slices.Contains(left, "home/AGENTS.md: "+beside) != !slices.Contains(row.taken, "home/AGENTS.md") {
			t.Errorf("%s: left: %q", row.name, left)
		}
	}
}

// The file says whose memory is read.
func TestAProjectIsNotNamedByOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("code/.agents/project.toml", "name = \"theirs\"\n")
	w.mode("code", 0o777)
	if name, stated, err := StatedProject(w.workspace); name != "demo" || stated || err != nil {
		t.Errorf("%q, %v, %v", name, stated, err)
	}
	w.mode("code", 0o700)
	if name, stated, err := StatedProject(w.workspace); name != "theirs" || !stated || err != nil {
		t.Errorf("%q, %v, %v", name, stated, err)
	}
	if os.Geteuid() != 0 {
		return // only root gives a file away
	}
	w.gives("code/.agents/project.toml", 4242, 4242)
	if _, _, err := StatedProject(w.workspace); protocol.CodeOf(err) != protocol.InstructionsUnreadable || !strings.Contains(err.Error(), "another user") {
		t.Errorf("another user's: %v", err)
	}
}

func TestWhatStandsInForAnAgentsFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("code/CLAUDE.md", "Upper, by another name.")
	w.write("code/RULES.md", "Not read: the first name counts.")
	w.write("code/demo/AGENTS.md", "Own.")
	w.write("code/demo/CLAUDE.md", "Not read: there is an AGENTS.md.")
	w.write("elsewhere.md", "Not read: no plain name.")
	o := w.options()
	o.Fallbacks = []string{"../elsewhere.md", "CLAUDE.md", "RULES.md"}
	c := w.compose(o)
	if c.Parts.AgentsFiles != 2 || strings.Contains(c.Text, "Not read") {
		t.Errorf("parts %+v of %s", c.Parts, after(t, c.Text))
	}
	upper, own := strings.Index(c.Text, "Upper, by another name."), strings.Index(c.Text, "Own.")
	if upper < 0 || own < upper {
		t.Errorf("got %s", after(t, c.Text))
	}
	if o.Fallbacks = nil; strings.Contains(w.compose(o).Text, "Upper") {
		t.Error("it was read unasked")
	}
}

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// lab is a temporary world: a home with a workspace and an agent folder.
type lab struct {
	t     *testing.T
	dir   string // real
	world *World
	ws    string
	ph    any // *Placeholders, where there are any
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabIn(t, t.TempDir())
}

func newLabIn(t *testing.T, dir string) *lab {
	t.Helper()
	dir, err := RealPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, dir: dir}
	l.mkdir("home/.agent/run")
	l.mkdir("home/.agent/state.sqlite.sock.d")
	l.mkdir("tmp")
	l.write("home/.agent/state.sqlite", "")
	l.ws = l.mkdir("home/ws")
	l.world = &World{
		Home: l.path("home"), AgentDir: l.path("home/.agent"), Store: l.path("home/.agent/state.sqlite"),
		Socket: l.path("home/.agent/state.sqlite.sock"), SocketDir: l.path("home/.agent/state.sqlite.sock.d"),
		Walls: []string{l.path("home/.agent/run")}, Tmp: l.path("tmp"),
	}
	return l
}

func (l *lab) path(rel string) string { return filepath.Join(l.dir, rel) }

func (l *lab) mkdir(rel string) string {
	l.t.Helper()
	if err := os.MkdirAll(l.path(rel), 0o755); err != nil {
		l.t.Fatal(err)
	}
	return l.path(rel)
}

func (l *lab) write(rel, text string) string {
	l.t.Helper()
	l.mkdir(filepath.Dir(rel))
	if err := os.WriteFile(l.path(rel), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return l.path(rel)
}

func (l *lab) link(to, rel string) {
	l.t.Helper()
	if err := os.Symlink(to, l.path(rel)); err != nil {
		l.t.Fatal(err)
	}
}

// closed takes a folder's permissions away until the test has ended.
func (l *lab) closed(rel string) {
	l.t.Helper()
	if err := os.Chmod(l.path(rel), 0); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.Chmod(l.path(rel), 0o755) })
}

// gitFolder makes a folder that git takes for its own.
func (l *lab) gitFolder(rel string) string {
	l.write(rel+"/HEAD", "ref: refs/heads/main\n")
	l.mkdir(rel + "/objects")
	l.mkdir(rel + "/refs")
	l.write(rel+"/config", "")
	l.mkdir(rel + "/hooks")
	return l.path(rel)
}

// plan is the plan of a workspace-write bot in ws.
func (l *lab) plan(change func(*Setting, *Call)) (*Plan, error) {
	s := &Setting{Mode: protocol.SandboxWorkspace, Workspace: l.ws}
	c := &Call{Cwd: l.ws}
	if change != nil {
		change(s, c)
	}
	return NewPlan(l.world, s, *c)
}

// want compares a plan's entries, with the lab's folder left out.
func (l *lab) want(change func(*Setting, *Call), want string) *Plan {
	l.t.Helper()
	p, err := l.plan(change)
	if err != nil {
		l.t.Fatal(err)
	}
	got := strings.ReplaceAll(p.String(), l.dir+"/", "")
	trimmed := strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if strings.TrimSpace(got) != trimmed {
		l.t.Errorf("got\n%swant\n%s", got, trimmed)
	}
	return p
}

func roots(paths ...string) func(*Setting, *Call) {
	return func(s *Setting, _ *Call) { s.Roots = paths }
}

func TestPlan(t *testing.T) {
	t.Parallel()
	t.Run("PO-34 an ordinary workspace", func(t *testing.T) {
		l := newLab(t)
		l.mkdir("home/ws/.git")
		l.mkdir("home/ws/.aws")
		l.want(nil, `
			writable tmp
			writable home/ws
			no-folder tmp/.git
			no-folder tmp/.agents
			no-folder tmp/.codex
			protected home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex
			protected home/ws/.aws`)
	})
	t.Run("/tmp may be left out, and $TMPDIR be given", func(t *testing.T) {
		l := newLab(t)
		l.world.Tmpdir = l.mkdir("scratch")
		p := l.want(func(s *Setting, _ *Call) { s.NoSlashTmp = true }, `
			writable scratch
			writable home/ws
			no-folder scratch/.git
			no-folder scratch/.agents
			no-folder scratch/.codex
			no-folder home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex`)
		if p.Roots[0] != l.ws {
			t.Errorf("the first root is %s", p.Roots[0])
		}
		l.want(func(s *Setting, _ *Call) { s.NoSlashTmp, s.NoTmpdir = true, true }, `
			writable home/ws
			no-folder home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex`)
	})
	t.Run("read-only has no entries", func(t *testing.T) {
		l := newLab(t)
		l.want(func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly }, "")
	})
	t.Run("PO-35 a granted git folder", func(t *testing.T) {
		l := newLab(t)
		git := l.gitFolder("home/ws/.git")
		noTmp := func(s *Setting, _ *Call) { s.Roots, s.NoSlashTmp = []string{git}, true }
		l.want(noTmp, `
			writable home/ws
			writable home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex
			protected home/ws/.git/hooks
			protected home/ws/.git/config
			no-file home/ws/.git/config.worktree
			no-folder home/ws/.git/modules
			no-folder home/ws/.git/worktrees
			no-file home/ws/.git/commondir`)
		l.want(func(s *Setting, c *Call) { noTmp(s, c); c.Beyond = true }, `
			writable home/ws
			protected home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex`)
	})
	t.Run("a linked worktree and its git folder", func(t *testing.T) {
		l := newLab(t)
		l.mkdir("home/main")
		git := l.gitFolder("home/main/.git")
		l.write("home/main/.git/worktrees/ws/HEAD", "")
		l.write("home/main/.git/worktrees/ws/commondir", "../..\n")
		l.write("home/main/.git/worktrees/ws/gitdir", l.ws+"/.git\n")
		l.write("home/ws/.git", "gitdir: ../main/.git/worktrees/ws\n")
		l.want(func(s *Setting, _ *Call) { s.NoSlashTmp = true }, `
			writable home/ws
			protected home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex`)
		l.want(func(s *Setting, _ *Call) { s.NoSlashTmp, s.Roots = true, []string{l.path("home/main")} }, `
			writable home/ws
			writable home/main
			protected home/ws/.git
			protected home/main/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex
			no-folder home/main/.agents
			no-folder home/main/.codex
			protected home/main/.git/worktrees/ws`)
		l.want(func(s *Setting, _ *Call) {
			s.NoSlashTmp, s.Roots = true, []string{git, l.path("home/main/.git/worktrees/ws")}
		}, `
			writable home/ws
			writable home/main/.git
			protected home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex
			protected home/main/.git/hooks
			protected home/main/.git/config
			no-file home/main/.git/config.worktree
			no-folder home/main/.git/modules
			protected home/main/.git/worktrees
			no-file home/main/.git/commondir
			writable home/main/.git/worktrees/ws
			no-folder home/main/.git/worktrees/ws/hooks
			no-file home/main/.git/worktrees/ws/config
			no-file home/main/.git/worktrees/ws/config.worktree
			no-folder home/main/.git/worktrees/ws/modules
			no-folder home/main/.git/worktrees/ws/worktrees
			protected home/main/.git/worktrees/ws/gitdir
			protected home/main/.git/worktrees/ws/commondir`)
	})
	t.Run("PO-36 SB-62 SB-63 SB-112 a root that holds everything", func(t *testing.T) {
		l := newLab(t)
		p := l.want(func(s *Setting, _ *Call) { s.NoSlashTmp, s.Roots = true, []string{l.path("home")} }, `
			writable home
			writable home/ws
			no-folder home/.git
			no-folder home/.agents
			no-folder home/.codex
			protected home/.agent
			no-folder home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex
			protected home/.agent/state.sqlite.sock.d
			hidden home/.agent/run`)
		for path, want := range map[string]bool{
			"home/x": true, "home/.agent/env": false, "home/.agent/config.toml": false, "home/.agent/run/a": false,
			"home/ws/a": true, "home/ws/.git/x": false, "home/ws/.agents": false, "elsewhere": false, "home/ws/sub/.git/x": true,
		} {
			if got := p.Inside(l.path(path)); got != want {
				t.Errorf("%s: inside is %v", path, got)
			}
		}
	})
	t.Run("SB-11 what lies between a root and a nested path is pinned", func(t *testing.T) {
		l := newLab(t)
		l.ws = l.mkdir("tmp/a/b/ws")
		l.mkdir("tmp/a/b/ws/.git")
		p := l.want(nil, `
			writable tmp
			no-folder tmp/.git
			no-folder tmp/.agents
			no-folder tmp/.codex
			pinned tmp/a
			pinned tmp/a/b
			writable tmp/a/b/ws
			protected tmp/a/b/ws/.git
			no-folder tmp/a/b/ws/.agents
			no-folder tmp/a/b/ws/.codex`)
		if !p.Inside(l.path("tmp/a/file")) || p.Inside(l.path("tmp/a")) {
			t.Error("a pinned folder is not writable, or may be replaced")
		}
	})
	t.Run("a worktree folder below the agent folder is writable alone", func(t *testing.T) {
		l := newLab(t)
		l.mkdir("home/.agent/worktrees/p")
		l.want(func(s *Setting, _ *Call) {
			s.NoSlashTmp, s.Roots = true, []string{l.path("home"), l.path("home/.agent/worktrees/p")}
		}, `
			writable home
			writable home/ws
			no-folder home/.git
			no-folder home/.agents
			no-folder home/.codex
			protected home/.agent
			no-folder home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex
			protected home/.agent/state.sqlite.sock.d
			hidden home/.agent/run
			writable home/.agent/worktrees/p
			no-folder home/.agent/worktrees/p/.git
			no-folder home/.agent/worktrees/p/.agents
			no-folder home/.agent/worktrees/p/.codex`)
	})
	t.Run("a store that lies loose in a root is protected file by file", func(t *testing.T) {
		l := newLab(t)
		l.world.Store = l.write("tmp/s.sqlite", "")
		l.write("tmp/s.sqlite-wal", "")
		l.mkdir("tmp/s.sqlite.files")
		p := l.want(nil, `
			writable tmp
			writable home/ws
			no-folder tmp/.git
			no-folder tmp/.agents
			no-folder tmp/.codex
			protected tmp/s.sqlite.files
			no-folder tmp/s.sqlite.companions
			protected tmp/s.sqlite
			protected tmp/s.sqlite-wal
			no-file tmp/s.sqlite-shm
			no-file tmp/s.sqlite-journal
			no-file tmp/s.sqlite.owner-lock
			no-file tmp/s.sqlite.log
			no-file tmp/s.sqlite.placeholders
			no-folder home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex`)
		if p.Inside(l.path("tmp/s.sqlite-journal")) {
			t.Error("a journal may be forged")
		}
	})
	t.Run("SB-105 what a creator's folders protect stays protected", func(t *testing.T) {
		l := newLab(t)
		l.mkdir("home/ws/.git/hooks")
		creator := l.ws
		l.ws = l.path("home")
		l.want(func(s *Setting, c *Call) { s.NoSlashTmp, s.Above = true, []string{creator, l.path("gone")} }, `
			writable home
			no-folder home/.git
			no-folder home/.agents
			no-folder home/.codex
			protected home/.agent
			pinned home/ws
			protected home/ws/.git
			no-folder home/ws/.agents
			no-folder home/ws/.codex
			protected home/.agent/state.sqlite.sock.d
			hidden home/.agent/run`)
	})
	t.Run("a folder that is to come is left out until it is there", func(t *testing.T) {
		l := newLab(t)
		p, err := l.plan(roots(l.path("home/later")))
		if err != nil || len(p.Roots) != 2 {
			t.Fatalf("roots are %v, %v", p.Roots, err)
		}
		l.mkdir("home/later")
		if p, err = l.plan(roots(l.path("home/later"))); err != nil || len(p.Roots) != 3 {
			t.Errorf("roots are %v, %v", p.Roots, err)
		}
	})
}

// What is protected cannot be made by a command where it is missing, and a
// socket's lock, whose owner the socket has, cannot go.
func TestPlanKeepsMissingNames(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.world = &World{
		AgentDir: l.path("ws/.agent"), Store: l.path("store/s.sqlite"), FallbackDir: l.path("ws/agent-1"),
		Socket: l.write("ws/s.sock", ""), SocketDir: l.path("ws/s.sock.d"), Protect: []string{l.path("ws/missing/rules")},
	}
	l.write("ws/s.sock.owner-lock", "")
	l.mkdir("store")
	l.ws = l.path("ws")
	l.want(nil, `
		writable ws
		no-folder ws/.git
		no-folder ws/.agents
		no-folder ws/.codex
		no-folder ws/.agent
		no-folder ws/s.sock.d
		no-folder ws/agent-1
		protected ws/s.sock
		protected ws/s.sock.owner-lock`)
}

func TestNoteGit(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	bare, plain := l.gitFolder("home/bare"), l.mkdir("home/plain")
	s := &Setting{Mode: protocol.SandboxWorkspace, Workspace: l.ws, Roots: []string{bare, plain}}
	s.NoteGit(nil)
	if len(s.Git) != 1 || s.Git[0] != bare {
		t.Errorf("noted: %v", s.Git)
	}
	if err := os.Remove(bare + "/HEAD"); err != nil {
		t.Fatal(err)
	}
	l.gitFolder("home/plain")
	s.NoteGit(s.Git) // what a command has made of it counts no more than that
	if len(s.Git) != 2 || !s.isGit(bare) || !s.isGit(plain) || !s.isGit("/x/.git/worktrees/y") || s.isGit(l.ws) {
		t.Errorf("noted: %v", s.Git)
	}
	child := l.world.Bind(Setting{Mode: protocol.SandboxWorkspace, Workspace: l.ws}, *s)
	if len(child.Git) != 2 {
		t.Errorf("a bot that it made has %v", child.Git)
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(*lab) func(*Setting, *Call)
		code protocol.Code
		says string
	}{
		"SB-9 .agents is a link": {func(l *lab) func(*Setting, *Call) {
			l.link("/etc", "home/ws/.agents")
			return nil
		}, protocol.SandboxDenied, "home/ws/.agents is a symbolic link"},
		".git is a dangling link": {func(l *lab) func(*Setting, *Call) {
			l.link("/nowhere", "home/ws/.git")
			return nil
		}, protocol.SandboxDenied, "home/ws/.git is a symbolic link"},
		"an entry of a granted git folder is a link": {func(l *lab) func(*Setting, *Call) {
			git := l.gitFolder("home/ws/.git")
			os.RemoveAll(git + "/hooks")
			l.link("/etc", "home/ws/.git/hooks")
			return roots(git)
		}, protocol.SandboxDenied, ".git/hooks is a symbolic link"},
		"the workspace is gone": {func(l *lab) func(*Setting, *Call) {
			os.Remove(l.ws)
			return nil
		}, protocol.WorkspaceUnavailable, "is gone"},
		"the workspace has become a link": {func(l *lab) func(*Setting, *Call) {
			os.Rename(l.ws, l.path("home/moved"))
			l.link(l.path("home/moved"), "home/ws")
			return nil
		}, protocol.SandboxDenied, "home/ws is not what it was"},
		"a root has become a link": {func(l *lab) func(*Setting, *Call) {
			l.link("/etc", "home/extra")
			return roots(l.path("home/extra"))
		}, protocol.SandboxDenied, "home/extra is not what it was"},
		"the folder lies in a wall": {func(l *lab) func(*Setting, *Call) {
			return func(_ *Setting, c *Call) { c.Cwd = l.path("home/.agent/run") }
		}, protocol.SandboxDenied, "lies in the hidden folder"},
		"a link stands on the way to the git folder of a worktree": {func(l *lab) func(*Setting, *Call) {
			l.gitFolder("home/real/main/.git")
			l.link("main", "home/real/via")
			l.write("home/ws/.git", "gitdir: ../real/via/.git\n")
			return roots(l.path("home/real"))
		}, protocol.SandboxDenied, "real/via/.git; name "},
		"a link stands on the way to what is protected": {func(l *lab) func(*Setting, *Call) {
			l.mkdir("home/real/p")
			l.link("real", "home/via")
			l.world.Protect = []string{l.path("home/via/p")}
			return roots(l.path("home"))
		}, protocol.SandboxDenied, "a symbolic link stands on the way to"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			_, err := l.plan(c.make(l))
			e, ok := err.(*protocol.Error)
			if !ok || e.Code != c.code || !strings.Contains(e.Detail, c.says) {
				t.Errorf("got %v, want %s: %s", err, c.code, c.says)
			}
		})
	}
}

func TestGitPointers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.gitFolder("g")
	l.write("g/worktrees/x/commondir", "../..\n")
	for text, want := range map[string]string{
		"gitdir: " + l.path("g"):        "g",
		"gitdir: ../../g/worktrees/x\n": "g/worktrees/x g",
		"gitdir:":                       "",
		"":                              "",
		"gitdir: /nowhere":              "",
		"gitdir: ../../g/HEAD":          "",
		"gitdir: a\x00b":                "",
		"elsewhere: " + l.path("g"):     "",
		"gitdir: ../../g\r\nmore":       "g",
		strings.Repeat("x", 20<<10) + "gitdir: ../../g\n": "",
	} {
		dirs, err := gitFolders(l.write("home/ws/.git", text), func(string) bool { return true })
		if err != nil {
			t.Error(err)
		}
		got := strings.Join(dirs, " ")
		if got = strings.ReplaceAll(got, l.dir+"/", ""); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
}

func TestRealPath(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.link("home", "via")
	l.write("home/f", "")
	for path, want := range map[string]string{"via/f": "home/f", "home/./ws": "home/ws", "via": "home"} {
		if got, err := RealPath(l.dir + "/" + path); err != nil || got != l.path(want) {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
	if got, err := RealPath("/"); err != nil || got != "/" {
		t.Errorf("/: got %s, %v", got, err)
	}
	if _, err := RealPath(l.path("none")); !os.IsNotExist(err) {
		t.Errorf("one that is not there: %v", err)
	}
}

package sandbox

import (
	"strings"
	"testing"

	"agent/protocol"
)

// A bot that a lead makes gets a worktree of the lead's repository: its git folder lies
// in worktrees, which is protected for the lead.
func TestAWorktreesOwnGitFolderIsGivenOn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	git := l.gitFolder("home/ws/.git")
	linked := func(name, tree string) string {
		l.mkdir(tree)
		l.write("home/ws/.git/worktrees/"+name+"/HEAD", "")
		l.write("home/ws/.git/worktrees/"+name+"/commondir", "../..\n")
		l.write("home/ws/.git/worktrees/"+name+"/gitdir", l.path(tree)+"/.git\n")
		return l.path("home/ws/.git/worktrees/" + name)
	}
	own := linked("build", "home/.agent/worktrees/demo/build")
	other := linked("other", "home/elsewhere")
	odd := linked("odd", "home/.agent/worktrees/demo/odd")
	l.write("home/ws/.git/worktrees/odd/gitdir", "../../../../.agent/worktrees/demo/odd/.git\n")
	tree, trees := l.path("home/.agent/worktrees/demo/build"), l.path("home/.agent/worktrees/demo")
	setting := func(workspace string, roots ...string) *Setting {
		return &Setting{Mode: protocol.SandboxWorkspace, Workspace: workspace, Roots: roots, NoSlashTmp: true}
	}
	lead := setting(l.ws, git, trees)
	for _, row := range []struct {
		name           string
		child, creator *Setting
		refused        bool
	}{
		{"a worktree's own git folder", setting(tree, git, own), lead, false},
		{"with the workspace below the worktree's top", setting(l.mkdir("home/.agent/worktrees/demo/build/sub"), tree, git, own), lead, false},
		{"one of a worktree that the child does not work in", setting(trees+"/odd", git, own), lead, true},
		{"one of a worktree that the creator may not write", setting(l.ws, git, other), lead, true},
		{"one that does not say by its path whose it is", setting(trees+"/odd", git, odd), lead, true},
		{"one of a repository whose git folder the creator was not given", setting(tree, own), setting(l.ws, trees), true},
		{"all worktrees", setting(tree, git, l.path("home/ws/.git/worktrees")), lead, true},
	} {
		why := l.world.Widens(row.child, row.creator)
		if (why != "") != row.refused || row.refused && !strings.Contains(why, "worktrees") {
			t.Errorf("%s: %q", row.name, why)
		}
	}
}

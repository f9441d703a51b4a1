// Package worktree makes git worktrees for bots, and takes one away again that
// came to nothing (section 18 of the command-line document).
//
// Find looks at what there is and makes nothing. Plan.Add makes the worktree and
// its branch, Tree.Setup runs the repository's .agents/setup in it, Tree.Undo
// removes both. Nothing here writes the repository's config: git replaces that
// file when it does, and a file that is replaced is uncovered in the sandboxes of
// commands that run (sandbox.md 11).
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/git"
	"agent/internal/place"
	"agent/protocol"
)

// A Request says which worktree is wanted.
type Request struct {
	// Name is the bot's; the worktree is ROOT/Name, its branch agent/Name unless
	// Branch says otherwise.
	Name   string
	Branch string

	// Folder lies in the repository; absolute, and there.
	Folder string

	// Base is the commit that the worktree begins at; "": HEAD.
	Base string

	// Root is the folder of the store's worktrees: RootOf, or one in it. Absolute; both
	// are made where they are not there.
	Root string

	// Trust refuses a repository that must not be asked more than where it is: its
	// config may name programs for git to run, and an agent may have written it. It
	// is called before anything else is asked of the repository. nil: trust any.
	Trust func(p *Plan) error

	// Started is told the process, the leader of a group, of the git that makes the
	// worktree, so that it can be ended with its maker. nil: nobody is.
	Started func(pid int)
}

// RootOf is the folder of a store's worktrees. Stores in different folders never
// share one.
func RootOf(store string) string { return filepath.Join(filepath.Dir(store), "worktrees") }

// TopAt is the top of the worktree that a folder, which is a real path, lies in below
// root, where worktrees are ROOT/PROJECT/TASK or ROOT/NAME; "" for a folder elsewhere.
// It goes by the place alone: what a .git there says, agents may have written, and
// ROOT/PROJECT they write as well.
func TopAt(root, folder string) string {
	root = place.Real(root)
	below, inside := strings.CutPrefix(folder, root+"/")
	if !inside {
		return ""
	}
	parts := strings.SplitN(below, "/", 3)
	return filepath.Join(root, filepath.Join(parts[:min(len(parts), 2)]...))
}

// CheckName reports whether a bot's name can be a folder's and a branch's:
// invalid_name.
func CheckName(name string) error {
	if protocol.ValidBotName(name) && !strings.Contains(name, "..") && !strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".") {
		return nil
	}
	return protocol.Fail(protocol.InvalidName, name+": a bot with a worktree has a name of 1 to 128 of A-Z a-z 0-9 - _ . that begins with neither - nor ., has no .. in it, and ends with neither . nor .lock, since a folder and a branch have it too")
}

// A Plan is a worktree that can be made.
type Plan struct {
	Source string // the top of the checkout that Folder lies in; a real path
	Common string // the repository's common git folder; a real path
	Base   string // the commit's id
	Path   string // of the worktree
	Branch string

	GitDir string // the checkout's own git folder

	sub     string // Folder below Source, "" for Source itself
	root    string
	git     git.Program
	started func(pid int)
}

// Find looks for the repository and resolves the request. It makes nothing.
// Errors: invalid_name; worktree_needs_git, outside a checkout; worktree_exists,
// whose detail says how to remove what stands there; worktree_failed, for a base
// that is no commit or a branch that is there. ctx ends it.
func Find(ctx context.Context, r Request) (*Plan, error) {
	if err := CheckName(r.Name); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(r.Root) {
		return nil, protocol.Fail(protocol.WorktreeFailed, fmt.Sprintf("the folder for worktrees is no absolute path: %q", r.Root))
	}
	p := &Plan{Path: filepath.Join(r.Root, r.Name), Branch: r.Branch, root: r.Root, started: r.Started}
	if p.Branch == "" {
		p.Branch = "agent/" + r.Name
	}
	if err := p.repository(ctx, r.Folder); err != nil {
		return nil, err
	}
	if r.Trust != nil {
		if err := r.Trust(p); err != nil {
			return nil, err
		}
	}
	if err := p.trusted(ctx); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(p.Path); err == nil {
		return nil, p.exists()
	}
	if err := p.branchIsFree(ctx); err != nil {
		return nil, err
	}
	return p, p.resolve(ctx, r.Base)
}

// repository finds the checkout that holds a folder.
func (p *Plan) repository(ctx context.Context, folder string) (err error) {
	if p.git, err = git.Find(); err != nil {
		return err
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() || !filepath.IsAbs(folder) {
		return protocol.Fail(protocol.WorktreeNeedsGit, fmt.Sprintf("%q is no folder that is there, named by an absolute path", folder))
	}
	c, err := p.git.Discover(ctx, folder)
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return protocol.Fail(protocol.WorktreeNeedsGit, "no worktree can be made of "+folder+": "+err.Error())
	}
	p.Source, p.GitDir, p.Common = c.Top, c.GitDir, c.Common
	p.sub, err = filepath.Rel(p.Source, place.Real(folder))
	return err
}

// exists is worktree_exists.
func (p *Plan) exists() error {
	return protocol.Fail(protocol.WorktreeExists, fmt.Sprintf("%s is there; take another name, or remove it: git -C %s worktree remove %s, and its branch with: %s",
		p.Path, quoted(p.Source), quoted(p.Path), p.dropBranch()))
}

// dropBranch is the command that removes the branch. It is not git branch -D,
// which writes the config.
func (p *Plan) dropBranch() string {
	return "git -C " + quoted(p.Source) + " update-ref -d " + quoted(p.ref())
}

func (p *Plan) ref() string { return "refs/heads/" + p.Branch }

// branchIsFree sees to it that the branch that Undo may remove is our own, and has
// a name that git takes as it is.
func (p *Plan) branchIsFree(ctx context.Context) error {
	if _, err := p.ask(ctx, "rev-parse", "--git-dir"); err != nil && context.Cause(ctx) == nil {
		return p.failed(err.Error()) // nothing can be asked there: what follows would take that for an answer
	}
	if name, err := p.ask(ctx, "check-ref-format", "--branch", p.Branch); (err != nil || name != p.Branch) && context.Cause(ctx) == nil {
		return p.failed(fmt.Sprintf("%q is no name for a branch", p.Branch))
	}
	if _, err := p.ask(ctx, "show-ref", "--verify", "--quiet", p.ref()); err == nil {
		return p.failed("the branch " + p.Branch + " is there; take another name, or remove it: " + p.dropBranch())
	}
	return context.Cause(ctx)
}

// resolve takes the base to a commit's id. A branch that follows another
// repository's is nothing but its commit from then on.
func (p *Plan) resolve(ctx context.Context, base string) (err error) {
	if base == "" {
		base = "HEAD"
	}
	if strings.HasPrefix(base, "-") {
		return p.failed("the base " + base + " is no commit")
	}
	p.Base, err = p.ask(ctx, "rev-parse", "--verify", base+"^{commit}")
	if err != nil && context.Cause(ctx) == nil {
		return p.failed("the base " + base + " is no commit of " + p.Source + ": " + err.Error())
	}
	return err
}

// ask runs a git command that changes nothing on the repository. Its git folder is named,
// so that what a .git file in some folder says does not count; neither does what its
// config names.
func (p *Plan) ask(ctx context.Context, args ...string) (string, error) {
	return p.git.Guarded(ctx, git.Options{}, git.Checkout{Top: p.Source, GitDir: p.GitDir, Common: p.Common}, args...)
}

// in runs one that takes something away, which runs no program of the config's.
func (p *Plan) in(ctx context.Context, args ...string) (string, error) {
	return p.change(ctx, git.Options{}, filepath.Dir(p.Path), args...)
}

// change runs one that changes the repository, and may write in its git folders and in
// one folder more, whatever links lie there.
func (p *Plan) change(ctx context.Context, o git.Options, folder string, args ...string) (string, error) {
	o.Within = git.WritingTo(git.Checkout{Top: folder, GitDir: p.GitDir, Common: p.Common})
	return p.git.With(ctx, o, p.Source, append([]string{"--git-dir=" + p.GitDir}, args...)...)
}

// trusted refuses a repository whose config takes programs, or more config, from the
// checkout, where agents write: to make a worktree would run them as the person.
func (p *Plan) trusted(ctx context.Context) error {
	named, err := p.git.FromCheckout(ctx, git.Checkout{Top: p.Source, GitDir: p.GitDir, Common: p.Common})
	if err != nil {
		return p.failed(err.Error())
	}
	if len(named) > 0 {
		return protocol.Fail(protocol.WorktreeNeedsGit, p.Common+"/config takes from the checkout, where agents write, what git would go by or run ("+strings.Join(named[:min(len(named), 5)], ", ")+
			"); look at that and make the worktree yourself, or work in the folder")
	}
	return nil
}

// failed is worktree_failed. In a confined shell that has one more cause, and a
// way on.
func (p *Plan) failed(why string) error {
	if os.Getenv("AGENT_SANDBOX") != "" {
		why += "; this shell is confined, and in a sandbox no worktree can be made: ask for the command with sandbox_permissions require_escalated"
	}
	return protocol.Fail(protocol.WorktreeFailed, why)
}

// Uncommitted counts the paths of the source that have changes which are in no
// commit, untracked ones among them: none of that is in the worktree.
func (p *Plan) Uncommitted(ctx context.Context) (int, error) {
	out, err := p.ask(ctx, "--no-optional-locks", "status", "--porcelain", "-z", "--no-renames", git.NotWithin)
	if err != nil {
		return 0, p.failed(err.Error())
	}
	return strings.Count(out, "\x00"), nil
}

// HasSetup reports whether the source has an .agents/setup.
func (p *Plan) HasSetup() bool {
	_, err := os.Lstat(p.setup())
	return err == nil
}

func (p *Plan) setup() string { return filepath.Join(p.Source, ".agents", "setup") }

// Add makes the worktree and its branch. When it fails nothing of them is left.
// Errors: worktree_exists, worktree_failed with git's words; the context's.
func (p *Plan) Add(ctx context.Context) (*Tree, error) {
	if err := p.claim(); err != nil {
		return nil, err
	}
	t := &Tree{Path: p.Path, Branch: p.Branch, plan: p}
	err := p.alone(ctx, func() error { return t.add(ctx) })
	if err == nil {
		t.Workspace = t.below(p.sub)
		return t, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, t.Undone(err)
}

// add makes what Add has claimed the place of.
func (t *Tree) add(ctx context.Context) error {
	p := t.plan
	if err := p.branchIsFree(ctx); err != nil { // it may have been made since Find
		return err
	}
	t.begun = true
	_, err := p.change(ctx, git.Options{Started: p.started}, p.Path,
		"worktree", "add", "--quiet", "--no-track", "-b", p.Branch, p.Path, p.Base)
	if err == nil {
		t.GitDir, err = t.ownGitDir()
	}
	if err != nil {
		return p.failed("git could not make the worktree " + p.Path + ": " + err.Error())
	}
	return nil
}

// claim makes the worktree's folder, which git takes while it is empty. Of two who
// want it at once one gets it, and what Undo removes is ours.
func (p *Plan) claim() error {
	err := makeRoot(filepath.Dir(p.root))
	if err == nil {
		err = makeRoot(p.root)
	}
	if err == nil {
		var real string
		if real, err = filepath.EvalSymlinks(p.root); err == nil {
			p.Path = filepath.Join(real, filepath.Base(p.Path))
			err = os.Mkdir(p.Path, 0o700)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return p.exists()
	}
	if err == nil {
		err = os.Chmod(p.Path, 0o700)
	}
	if err != nil {
		return p.failed("no folder for the worktree can be made: " + err.Error())
	}
	return nil
}

// makeRoot makes a folder of worktrees, 0700 whatever the umask.
func makeRoot(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(dir, 0o700)
}

// quoted is a path as one word of a shell.
func quoted(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.,:/@%+=", r)
	}
	if path != "" && strings.TrimFunc(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

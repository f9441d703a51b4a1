package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/protocol"
)

// TestMain gives git a home without a person's settings.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "worktree")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "XDG_CONFIG_HOME": "", "AGENT_SANDBOX": "",
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
	} {
		os.Setenv(name, value)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// checkout is a repository with one commit.
func checkout(t *testing.T) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sub", "file"), "text\n", 0o600)
	gitIn(t, dir, "init", "--quiet", "-b", "main")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "--quiet", "-m", "first")
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// found is a plan for a worktree named w.
func found(t *testing.T, src string) *Plan {
	t.Helper()
	p, err := Find(t.Context(), request(t, src))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(t *testing.T, src string) Request {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Request{Name: "w", Folder: src, Root: filepath.Join(root, "worktrees")}
}

// nothing expects no trace of a plan's worktree.
func nothing(t *testing.T, p *Plan) {
	t.Helper()
	if _, err := os.Lstat(p.Path); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	if branch := gitIn(t, p.Source, "branch", "--list", p.Branch); branch != "" {
		t.Errorf("its branch is left: %s", branch)
	}
	if entries, _ := os.ReadDir(filepath.Join(p.Common, "worktrees")); len(entries) > 0 {
		t.Errorf("git's entry is left: %v", entries)
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		mode       os.FileMode
		limit      time.Duration
		code       protocol.Code
		detail     string
		out        string
	}{
		{"an executable one is executed", "#!/bin/sh\nprintf %s $0; echo e >&2\n", 0o700, 0, "", "", "SETUPe\n"},
		{"one that is not is read by sh", "printf %s \"$0\"\n", 0o600, 0, "", "", "SETUP"},
		{"an interpreter that is not there", "#!/nowhere\n", 0o700, 0, protocol.SetupFailed, "no such file", ""},
		{"an executable one without a first line", "echo\n", 0o700, 0, protocol.SetupFailed, "#!/bin/sh", ""},
		{"its status is named", "echo why; exit 3\n", 0o600, 0, protocol.SetupFailed, "exit status 3", "why\n"},
		{"its signal is named", "kill -TERM $$\n", 0o600, 0, protocol.SetupFailed, "terminated", ""},
		{"its limit ends it", "sleep 600\n", 0o600, 50 * time.Millisecond, protocol.SetupFailed, "50ms", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			src := checkout(t)
			path := filepath.Join(src, ".agents", "setup")
			write(t, path, row.text, row.mode)
			p := found(t, src)
			var out bytes.Buffer
			tree, err := p.Make(t.Context(), SetupOptions{Output: &out, Limit: row.limit})
			if protocol.CodeOf(err) != row.code || err != nil && !strings.Contains(err.Error(), row.detail) {
				t.Fatalf("got %v", err)
			}
			if got := strings.ReplaceAll(out.String(), path, "SETUP"); got != row.out {
				t.Errorf("it printed %q", got)
			}
			if err != nil {
				nothing(t, p)
			} else if err := tree.Undo(t.Context()); err != nil {
				t.Error(err)
			}
			nothing(t, p)
		})
	}
}

func TestSetupThatIsNoFile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		make func(path string) error
		code protocol.Code
	}{
		{"none", func(string) error { return nil }, ""},
		{"a link to nothing", func(path string) error { return os.Symlink("nowhere", path) }, protocol.SetupFailed},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }, protocol.SetupFailed},
		{"a pipe", func(path string) error { return syscall.Mkfifo(path, 0o700) }, protocol.SetupFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			src := checkout(t)
			write(t, filepath.Join(src, ".agents", "x"), "", 0o600)
			if err := row.make(filepath.Join(src, ".agents", "setup")); err != nil {
				t.Fatal(err)
			}
			p := found(t, src)
			_, err := p.Make(t.Context(), SetupOptions{})
			if protocol.CodeOf(err) != row.code || p.HasSetup() != (row.code != "") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSetupGroup holds a pipe open in the setup's whole group: its end comes when
// none of them runs any more.
func TestSetupGroup(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		ends       bool // whether the context does, once the setup runs
		limit      time.Duration
	}{
		{"when the limit is over", "echo up >&3; sleep 600 & sleep 600", false, 2 * time.Second},
		{"when the context ends", "echo up >&3; sleep 600 & sleep 600", true, 0},
		{"when it failed and left something running", "echo up >&3; sleep 600 & exit 1", false, 0},
	} {
		t.Run("its group is ended "+row.name, func(t *testing.T) {
			t.Parallel()
			src := checkout(t)
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(src, ".agents", "setup"), "exec 3>'"+pipe+"'; "+row.text, 0o600)
			p := found(t, src)
			stopped := errors.New("stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			made := make(chan error, 1)
			go func() {
				_, err := p.Make(ctx, SetupOptions{Limit: row.limit})
				made <- err
			}()
			f, err := os.Open(pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := io.ReadFull(f, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			if row.ends {
				cancel(stopped)
			}
			if err := <-made; err == nil || row.ends != errors.Is(err, stopped) {
				t.Errorf("got %v", err)
			}
			if rest, err := io.ReadAll(f); len(rest) > 0 || err != nil {
				t.Errorf("%q, %v", rest, err)
			}
			nothing(t, p)
		})
	}
}

// TestAnEndInTheMiddle ends git while a filter of the repository's makes it wait.
func TestAnEndInTheMiddle(t *testing.T) {
	t.Parallel()
	src := checkout(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(src, ".gitattributes"), "file filter=slow\n", 0o600)
	gitIn(t, src, "add", ".")
	gitIn(t, src, "commit", "--quiet", "-m", "filtered")
	gitIn(t, src, "config", "filter.slow.smudge", "exec 3>'"+pipe+"'; echo up >&3; sleep 600")
	p := found(t, src)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	made := make(chan error, 1)
	go func() {
		_, err := p.Add(ctx)
		made <- err
	}()
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel(stopped)
	if err := <-made; !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	if rest, err := io.ReadAll(f); len(rest) > 0 || err != nil {
		t.Errorf("the filter: %q, %v", rest, err)
	}
	nothing(t, p)
}

func TestFind(t *testing.T) {
	t.Parallel()
	t.Run("of a subfolder of a linked worktree", func(t *testing.T) {
		t.Parallel()
		src := checkout(t)
		linked := filepath.Join(filepath.Dir(src), filepath.Base(src)+"-linked")
		gitIn(t, src, "worktree", "add", "--quiet", "-b", "side", linked)
		gitIn(t, linked, "commit", "--quiet", "--allow-empty", "-m", "on the side")
		p := found(t, filepath.Join(linked, "sub"))
		if p.Source != linked || p.Common != filepath.Join(src, ".git") || p.Base != gitIn(t, linked, "rev-parse", "HEAD") {
			t.Errorf("got %+v", p)
		}
		tree, err := p.Add(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{p.Path, p.Common, filepath.Join(p.Common, "worktrees", "w")}; !slices.Equal(tree.Roots(), want) || tree.Workspace != filepath.Join(p.Path, "sub") {
			t.Errorf("roots %q, workspace %s", tree.Roots(), tree.Workspace)
		}
		if err := tree.Undo(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a folder that the checkout has not is its top", func(t *testing.T) {
		t.Parallel()
		src := checkout(t)
		write(t, filepath.Join(src, "new", "file"), "", 0o600)
		tree, err := found(t, filepath.Join(src, "new")).Add(t.Context())
		if err != nil || tree.Workspace != tree.Path || len(tree.Roots()) != 2 {
			t.Errorf("%+v, %v", tree, err)
		}
	})
	t.Run("a link that leads out is not followed", func(t *testing.T) {
		t.Parallel()
		src := checkout(t)
		if err := os.Symlink(t.TempDir(), filepath.Join(src, "out")); err != nil {
			t.Fatal(err)
		}
		gitIn(t, src, "add", "out")
		gitIn(t, src, "commit", "--quiet", "-m", "link")
		if err := os.Remove(filepath.Join(src, "out")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(src, "out", "file"), "", 0o600) // a folder here, a link in the commit
		tree, err := found(t, filepath.Join(src, "out")).Add(t.Context())
		if err != nil || tree.Workspace != tree.Path {
			t.Errorf("%+v, %v", tree, err)
		}
	})
	t.Run("a repository without a checkout", func(t *testing.T) {
		t.Parallel()
		bare := t.TempDir()
		gitIn(t, bare, "init", "--quiet", "--bare")
		if _, err := Find(t.Context(), request(t, bare)); !errors.Is(err, protocol.WorktreeNeedsGit) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a repository without a commit", func(t *testing.T) {
		t.Parallel()
		empty := t.TempDir()
		gitIn(t, empty, "init", "--quiet")
		if _, err := Find(t.Context(), request(t, empty)); !errors.Is(err, protocol.WorktreeFailed) || !strings.Contains(err.Error(), "HEAD") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a branch of the name stays", func(t *testing.T) {
		t.Parallel()
		src := checkout(t)
		p := found(t, src) // before there is one
		gitIn(t, src, "branch", "agent/w")
		gitIn(t, src, "commit", "--quiet", "--allow-empty", "-m", "second")
		gitIn(t, src, "update-ref", "refs/heads/agent/w", "HEAD")
		if _, err := Find(t.Context(), request(t, src)); !errors.Is(err, protocol.WorktreeFailed) {
			t.Errorf("Find: %v", err)
		}
		if _, err := p.Add(t.Context()); !errors.Is(err, protocol.WorktreeFailed) {
			t.Errorf("Add: %v", err)
		}
		if got := gitIn(t, src, "branch", "--list", "agent/w"); got == "" {
			t.Error("it has gone")
		}
	})
}

func TestTwoWhoWantOneBranch(t *testing.T) {
	t.Parallel()
	src := checkout(t)
	r := request(t, src)
	r.Branch = "side"
	first, err := Find(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	r.Name = "w2"
	second, err := Find(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := first.Add(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Add(t.Context()); !errors.Is(err, protocol.WorktreeFailed) || !strings.Contains(err.Error(), "the branch side is there") {
		t.Errorf("the second: %v", err)
	}
	if _, err := os.Lstat(second.Path); !os.IsNotExist(err) {
		t.Errorf("the second's folder is left: %v", err)
	}
	if got := gitIn(t, tree.Path, "rev-parse", "side"); got != first.Base {
		t.Errorf("the first's branch is at %s", got)
	}
	if err := tree.Undo(t.Context()); err != nil {
		t.Error(err)
	}
	nothing(t, first)
}

// Git reads the entries of all worktrees when it makes one, and fails on one that
// is half made: now and then, so that what is looked at here is that no two are
// made, or removed, at once.
func TestManyWorktreesAtOnce(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	busy, overlaps := filepath.Join(dir, "busy"), filepath.Join(dir, "overlaps")
	write(t, filepath.Join(dir, "bin", "git"), `#!/bin/sh
case "$*" in *"worktree add"*|*"worktree remove"*)
	mkdir '`+busy+`' || echo "$*" >> '`+overlaps+`'
	'`+git+`' "$@"
	status=$?
	rmdir '`+busy+`'
	exit $status
esac
exec '`+git+`' "$@"
`, 0o700)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	src := checkout(t)
	r := request(t, src)
	const many = 12
	made := make(chan error, many)
	for i := range many {
		go func() {
			r := r
			r.Name = fmt.Sprint("w", i)
			p, err := Find(t.Context(), r)
			if err == nil {
				var tree *Tree
				if tree, err = p.Make(t.Context(), SetupOptions{}); err == nil {
					err = tree.Undo(t.Context())
				}
			}
			made <- err
		}()
	}
	for range many {
		if err := <-made; err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(overlaps); err == nil {
		t.Errorf("these ran while another did:\n%s", text)
	}
}

func TestUndoWithoutTheRepository(t *testing.T) {
	t.Parallel()
	src := checkout(t)
	tree, err := found(t, src).Add(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(src); err != nil {
		t.Fatal(err)
	}
	if err := tree.Undo(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(tree.Path); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

func TestWhatCannotBeARequest(t *testing.T) {
	t.Parallel()
	src := checkout(t)
	for _, row := range []struct {
		name   string
		change func(*Request)
		code   protocol.Code
		detail string
	}{
		{"no root", func(r *Request) { r.Root = "" }, protocol.WorktreeFailed, "no absolute path"},
		{"a relative root", func(r *Request) { r.Root = "trees" }, protocol.WorktreeFailed, "no absolute path"},
		{"a relative folder", func(r *Request) { r.Folder = "." }, protocol.WorktreeNeedsGit, "absolute path"},
		{"a folder that is not there", func(r *Request) { r.Folder += "/none" }, protocol.WorktreeNeedsGit, "is no folder that is there"},
		{"a file", func(r *Request) { r.Folder += "/sub/file" }, protocol.WorktreeNeedsGit, "is no folder that is there"},
		{"a branch that reads as a flag", func(r *Request) { r.Branch = "--force" }, protocol.WorktreeFailed, "no name for a branch"},
		{"a branch with dots", func(r *Request) { r.Branch = "a..b" }, protocol.WorktreeFailed, "no name for a branch"},
		{"a branch that git would take for another", func(r *Request) { r.Branch = "@{-1}" }, protocol.WorktreeFailed, "no name for a branch"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := request(t, src)
			row.change(&r)
			if _, err := Find(t.Context(), r); !errors.Is(err, row.code) || !strings.Contains(err.Error(), row.detail) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOneOfManyGetsTheName(t *testing.T) {
	t.Parallel()
	src := checkout(t)
	r := request(t, src)
	plans := make([]*Plan, 4)
	for i := range plans {
		p, err := Find(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		plans[i] = p
	}
	made := make(chan error, len(plans))
	for _, p := range plans {
		go func() {
			_, err := p.Add(t.Context())
			made <- err
		}()
	}
	won := 0
	for range plans {
		if err := <-made; err == nil {
			won++
		} else if !errors.Is(err, protocol.WorktreeExists) {
			t.Errorf("got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d made it", won)
	}
	if got := gitIn(t, filepath.Join(r.Root, "w"), "rev-parse", "--abbrev-ref", "HEAD"); got != "agent/w" {
		t.Errorf("it is on %s", got)
	}
}

func TestNoHookRuns(t *testing.T) {
	t.Parallel()
	src := checkout(t)
	ran := filepath.Join(t.TempDir(), "ran")
	program := "#!/bin/sh\ntouch '" + ran + "'\n"
	write(t, filepath.Join(src, ".git", "hooks", "post-checkout"), program, 0o700)
	write(t, filepath.Join(src, "monitor"), program, 0o700)
	gitIn(t, src, "config", "core.fsmonitor", filepath.Join(src, "monitor"))
	p := found(t, src)
	if n, err := p.Uncommitted(t.Context()); n != 1 || err != nil {
		t.Errorf("%d uncommitted, %v", n, err)
	}
	tree, err := p.Add(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Undo(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); !os.IsNotExist(err) {
		t.Errorf("a program of the repository's ran: %v", err)
	}
	nothing(t, p)
}

func TestTheTopIsFoundByThePlace(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ root, folder, want string }{
		{root, root + "/demo/fix", root + "/demo/fix"},
		{root, root + "/demo/fix/a/b", root + "/demo/fix"},
		{root, root + "/bob", root + "/bob"},
		{link, root + "/demo/fix/a", root + "/demo/fix"},
		{root, root, ""},
		{root, root + "s/demo/fix", ""},
		{root, "/", ""},
	} {
		if got := TopAt(row.root, row.folder); got != row.want {
			t.Errorf("%s below %s: %q, want %q", row.folder, row.root, got, row.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"a": true, "demo.server-2_x": true, "lock": true, "a.lockx": true,
		"": false, ".a": false, "-a": false, "a..b": false, "a.": false, "a.lock": false, "a/b": false, "a b": false, strings.Repeat("a", 129): false,
	} {
		if err := CheckName(name); (err == nil) != good || err != nil && !errors.Is(err, protocol.InvalidName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for path, want := range map[string]string{"/a/b-c": "/a/b-c", "/a b": "'/a b'", "it's": `'it'\''s'`, "": "''"} {
		if got := quoted(path); got != want {
			t.Errorf("%q is quoted as %s", path, got)
		}
	}
}

// Links that an agent put where git writes a branch and its log lead nowhere.
func TestNothingIsMadeThroughLinksInTheGitFolder(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"refs/heads/agent", "logs/refs/heads/agent", "worktrees"} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			src, outside := checkout(t), t.TempDir()
			at := filepath.Join(src, ".git", link)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, at); err != nil {
				t.Fatal(err)
			}
			p := found(t, src)
			if _, err := p.Add(t.Context()); err == nil {
				t.Error("the worktree was made")
			}
			if entries, _ := os.ReadDir(outside); len(entries) > 0 {
				t.Errorf("%v was made", entries)
			}
			if _, err := os.Lstat(p.Path); !os.IsNotExist(err) {
				t.Errorf("its folder is left: %v", err)
			}
		})
	}
}

func TestAConfigThatTakesFromTheCheckoutMakesNoWorktree(t *testing.T) {
	t.Parallel()
	src := checkout(t)
	gitIn(t, src, "config", "include.path", "../.gitconfig")
	if _, err := Find(t.Context(), request(t, src)); protocol.CodeOf(err) != protocol.WorktreeNeedsGit || !strings.Contains(err.Error(), "include.path") {
		t.Errorf("got %v", err)
	}
}

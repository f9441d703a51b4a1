// Package git runs the git program for client/worktree and for Sonny, in folders that
// agents write: no hook runs, and no program that watches the files, unless the caller
// says that it is the person's own command (sonny.md 4).
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"agent/protocol"
)

// Program is an installed git. Its methods are safe for concurrent use.
type Program struct{ path string }

// Find looks for git on PATH: worktree_needs_git where there is none.
func Find() (Program, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return Program{}, protocol.Fail(protocol.WorktreeNeedsGit, "git is not installed, or not on PATH")
	}
	return Program{path}, nil
}

// ends is how long git has to clean up when it is told to end.
const ends = 5 * time.Second

// maxWords bounds what of git's words an error carries, in bytes.
const maxWords = 4 << 10

// Options say how a run differs from the careful one.
type Options struct {
	Env   []string  // besides the caller's own
	Input io.Reader // nil: nothing

	// Max is how many bytes are taken of what it prints; 0: all. What is more is
	// ErrTooLong, and git is ended.
	Max int

	// Own runs the repository's hooks, as the person's own command does.
	Own bool

	// Within is what git may write; nil: what the caller may.
	Within *Within

	// Started is told git's process, which leads a group of its own. nil: nobody is.
	Started func(pid int)
}

// NotWithin keeps status and diff out of repositories within the checkout: git would
// run itself there, by the config that lies there, and an agent may have written that,
// with a filter for the files (sonny.md 4). What is changed within one is not seen then.
// git add looks within, too, and has no such flag: use update-index.
const NotWithin = "--ignore-submodules=dirty"

// ErrTooLong is of a run that printed more than was to be taken.
var ErrTooLong = errors.New("git printed more than is taken")

// Run runs git in a folder and gives what it printed, without the newline at its
// end. An error says what git said.
func (g Program) Run(ctx context.Context, dir string, args ...string) (string, error) {
	return g.With(ctx, Options{}, dir, args...)
}

// Limits on what git may take: what it reads may be a pipe that an agent made.
const (
	looksFor   = time.Minute
	changesFor = 10 * time.Minute
)

// errTooSlow is of a git that did not end.
var errTooSlow = errors.New("git did not come to an end; a file that it reads there may be a pipe")

// limited is ctx with the limit that a run has; one that runs the person's hooks has none.
func (o *Options) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case o.Own:
		return ctx, func() {}
	case o.Within != nil:
		return context.WithTimeoutCause(ctx, changesFor, errTooSlow)
	}
	return context.WithTimeoutCause(ctx, looksFor, errTooSlow)
}

// With is Run with options.
func (g Program) With(ctx context.Context, o Options, dir string, args ...string) (string, error) {
	if err := IsFolder(dir); err != nil {
		return "", err
	}
	ctx, cancel := o.limited(ctx)
	defer cancel()
	if !o.Own {
		args = append([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"}, args...)
	}
	argv := append([]string{g.path}, args...)
	if o.Within != nil {
		var err error
		if argv, err = o.Within.launch(ctx, dir, argv); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(WithoutPlaces(os.Environ()), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0"), o.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                                // a terminal's interrupt is ours to pass on
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // git cleans up then
	cmd.WaitDelay = ends
	cmd.Stdin = o.Input
	out := &bounded{max: o.Max}
	words := &bounded{max: maxWords, drop: true}
	cmd.Stdout, cmd.Stderr = out, words
	err := cmd.Start()
	if err == nil {
		if o.Started != nil {
			o.Started(cmd.Process.Pid)
		}
		err = cmd.Wait()
	}
	if err != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // such as a filter that it started
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if out.full {
		return out.text.String(), fmt.Errorf("git %s: %w", args[len(args)-1], ErrTooLong)
	}
	if err != nil {
		said := strings.TrimSpace(words.text.String())
		if said == "" {
			said = err.Error()
		}
		return out.text.String(), errors.New(said)
	}
	return strings.TrimSuffix(out.text.String(), "\n"), nil
}

// Lost says of a checkout that is not where it was found any more that it is, as it is when
// it was moved, or for a linked one when its repository was: workspace_unavailable.
func (c Checkout) Lost() error {
	if err := IsFolder(c.Top); err != nil {
		return err
	}
	for _, dir := range []string{c.GitDir, c.Common} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return protocol.Fail(protocol.WorkspaceUnavailable, "the git folder "+dir+" is gone; bring it back")
		}
	}
	return nil
}

// IsFolder says of a folder that is gone that it is, which else would read as if git was:
// workspace_unavailable. Of "", the caller's own, it says nothing.
func IsFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case dir == "", err == nil && info.IsDir():
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return protocol.Fail(protocol.WorkspaceUnavailable, "the folder "+dir+" is gone; bring it back")
	case err != nil:
		return protocol.Fail(protocol.WorkspaceUnavailable, err.Error())
	}
	return protocol.Fail(protocol.WorkspaceUnavailable, dir+" is no folder any more")
}

// bounded keeps the first max bytes. Beyond them it fails, or drops the rest.
type bounded struct {
	text bytes.Buffer
	max  int // 0: no bound
	drop bool
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.max - b.text.Len()
	if b.max == 0 || len(p) <= room {
		return b.text.Write(p)
	}
	b.text.Write(p[:room])
	if b.drop {
		return len(p), nil
	}
	b.full = true
	return room, ErrTooLong
}

// places are those variables; a hook of git's has some of them.
var places = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE",
	"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE",
}

// WithoutPlaces is an environment without the variables by which a caller names
// another repository than that of the folder.
func WithoutPlaces(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(places, name)
	})
}

package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"agent/client/envfile"
	"agent/internal/git"
	"agent/internal/secret"
	"agent/protocol"

	"golang.org/x/sys/unix"
)

// SetupLimit is how long a setup may take when SetupOptions do not say.
const SetupLimit = 10 * time.Minute

// outputDelay is how long the output of a setup that has ended is waited for: what
// it left running may hold it open for ever.
const outputDelay = time.Second

// SetupOptions say how a setup runs.
type SetupOptions struct {
	// Output gets what it prints on both its outputs; nil: nowhere.
	Output io.Writer

	// Keys name variables to keep from it, besides those of known model providers
	// and those that ~/.agent/env gives.
	Keys []string

	// Limit is how long it may take; 0: SetupLimit.
	Limit time.Duration

	// Shown is the setup that somebody has agreed to: these bytes run, from a copy in
	// Scratch, and only while the source's setup is still the same; else
	// target_changed. nil: the source's setup runs where it is.
	Shown *Script

	// Scratch is a private folder, out of every agent's reach. With Shown.
	Scratch string

	// Started is told the setup's process, the leader of a group, so that it can be
	// ended with its maker. nil: nobody is.
	Started func(pid int)
}

// Setup runs the source's .agents/setup in the worktree, as the person and in no
// sandbox; a source without one is no error. It is executed when it is executable,
// else read by sh. AGENT_SOURCE is the source's top, standard input is empty, and
// provider keys are not in its environment. When the limit is over, or ctx ends,
// its process group is killed. Errors: setup_failed, whose detail says how it
// ended; env_file_permissions and env_file_invalid; the context's. The worktree is
// not undone.
func (t *Tree) Setup(ctx context.Context, o SetupOptions) error {
	if o.Shown != nil {
		return t.runShown(ctx, o)
	}
	path := t.plan.setup()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !t.plan.HasSetup() {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return protocol.Fail(protocol.SetupFailed, path+" cannot be run: "+reason(err))
	}
	return t.runSetup(ctx, o, path, func(ctx context.Context) *exec.Cmd { return command(ctx, path) })
}

// runSetup runs a setup, which is called path in errors.
func (t *Tree) runSetup(ctx context.Context, o SetupOptions, path string, command func(context.Context) *exec.Cmd) error {
	env, err := t.setupEnv(o.Keys)
	if err != nil {
		return err
	}
	if o.Limit == 0 {
		o.Limit = SetupLimit
	}
	limited, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	err = retryBusy(func() error {
		cmd := command(limited)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.Path, env, o.Output, o.Output
		return runGroup(cmd, o.Started)
	})
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return protocol.Fail(protocol.SetupFailed, fmt.Sprintf("%s was not done within %v and was ended", path, o.Limit))
	case errors.Is(err, syscall.ENOEXEC):
		return protocol.Fail(protocol.SetupFailed, path+" is executable and no program; begin it with a line such as #!/bin/sh")
	case err != nil:
		return protocol.Fail(protocol.SetupFailed, path+": "+reason(err)+o.said())
	case !t.hasWorkspace():
		return protocol.Fail(protocol.SetupFailed, path+" took "+t.Workspace+" away, in which the bot was to work")
	}
	return nil
}

// said tells where what a setup printed is to be found.
func (o *SetupOptions) said() string {
	if o.Shown == nil {
		return "; what it printed went to standard error"
	}
	return ""
}

// hasWorkspace reports whether the bot's folder is still the one that was found.
func (t *Tree) hasWorkspace() bool {
	real, err := filepath.EvalSymlinks(t.Workspace)
	if err != nil || real != t.Workspace {
		return false
	}
	info, err := os.Lstat(real)
	return err == nil && info.IsDir()
}

// command runs the file itself when it is executable, else sh on it.
func command(ctx context.Context, path string) *exec.Cmd {
	if unix.Access(path, unix.X_OK) == nil {
		return exec.CommandContext(ctx, path)
	}
	return exec.CommandContext(ctx, "sh", path)
}

// runGroup runs a command in a process group of its own, which is killed when its
// context ends or when it fails.
func runGroup(cmd *exec.Cmd, started func(pid int)) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputDelay
	if err := cmd.Start(); err != nil {
		return err
	}
	if started != nil {
		started(cmd.Process.Pid)
	}
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it succeeded, and left something running on purpose
	}
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // none may be left
	}
	return err
}

// setupEnv is the environment of a setup.
func (t *Tree) setupEnv(keys []string) ([]string, error) {
	path, err := envfile.DefaultPath()
	if err != nil {
		return nil, err
	}
	vars, err := envfile.Read(path)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, v := range vars {
		keys = append(keys[:len(keys):len(keys)], v.Name)
		values = append(values, v.Value)
	}
	return append(secret.WithoutKeys(git.WithoutPlaces(os.Environ()), keys, values), "AGENT_SOURCE="+t.plan.Source), nil
}

// reason is an error without the path that the caller names already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

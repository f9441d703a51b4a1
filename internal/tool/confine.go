package tool

import (
	"context"
	"errors"
	"os"
	"strings"

	"agent/internal/sandbox"
	"agent/protocol"
)

// Confinement is how the calls of a sandboxed bot are held (sandbox.md). One is
// shared by the calls of a turn; fields are read only.
type Confinement struct {
	World        *sandbox.World
	Setting      *sandbox.Setting
	Launcher     *sandbox.Launcher
	Placeholders *sandbox.Placeholders
	BotSocket    string // the bot's own; "" where it has none
}

// replans bounds how often a call is planned anew because somebody makes or
// removes what its plan protects.
const replans = 10

// confined is one command's sandbox. It is owned by the command.
type confined struct {
	*sandbox.Command
	placed  *sandbox.Placed
	changed []string // protected entries that were replaced; set by end
	ran     bool     // the launcher ran the command to its end; set by end
}

// confine makes a command of the bot ready to start in the sandbox. beyond says
// that it outlives its call.
func (e *Env) confine(ctx context.Context, argv []string, beyond bool) (*confined, *Failure) {
	c := e.Confinement
	placed, err := c.place(sandbox.Call{Cwd: e.Workspace, Beyond: beyond, BotSocket: c.BotSocket})
	if err != nil {
		return nil, confineFailure(err)
	}
	environ := placed.Plan.Environ(withoutStartFiles(e.Environ), e.BotID)
	cmd, err := c.Launcher.Prepare(ctx, placed.Plan, argv, environ)
	if err != nil {
		placed.Remove()
		return nil, confineFailure(err)
	}
	return &confined{Command: cmd, placed: placed}, nil
}

// place plans a call and puts its placeholders.
func (c *Confinement) place(call sandbox.Call) (*sandbox.Placed, error) {
	for range replans {
		plan, err := c.plan(call)
		if err != nil {
			return nil, err
		}
		placed, changed, err := c.Placeholders.Place(plan)
		if err != nil || !changed {
			return placed, err
		}
	}
	return nil, protocol.Fail(protocol.SandboxDenied, "what the sandbox protects in "+call.Cwd+" keeps changing; try again")
}

func (c *Confinement) plan(call sandbox.Call) (*sandbox.Plan, error) {
	mounts, err := sandbox.HostMounts()
	if err != nil {
		return nil, err
	}
	call.Mounts = mounts
	return sandbox.NewPlan(c.World, c.Setting, call)
}

// confineFailure is why a call cannot be confined, for the model.
func confineFailure(err error) *Failure {
	var known *protocol.Error
	if errors.As(err, &known) {
		return &Failure{string(known.Code), known.Detail}
	}
	return failuref(protocol.SandboxUnavailable, "%v", err)
}

// end takes what the sandbox says of a command that has ended, and its
// placeholders off the host.
func (c *confined) end() {
	c.ran = c.Ran()
	c.changed = c.placed.Changed()
	c.placed.Remove()
	c.Close()
}

// sandboxHint is one sentence for a command that ended non-zero and whose output
// shows that the sandbox was the cause (sandbox.md 11); "" for any other.
func sandboxHint(p *sandbox.Plan, output string) string {
	has := func(signs ...string) bool {
		for _, s := range signs {
			if strings.Contains(output, s) {
				return true
			}
		}
		return false
	}
	switch {
	case p.Class != sandbox.Open && has("resolve host", "EAI_AGAIN", "name resolution", "etwork is unreachable"):
		return "The network is off for this command: ask with sandbox_permissions require_escalated, or the person sets network."
	case p.Class == sandbox.Closed && has("peration not permitted", "EPERM"):
		return "Unix sockets (docker, ssh-agent, gpg-agent, forkserver, the agent command) are refused here: use spawn or --no-gpg-sign, " +
			"ask with sandbox_permissions require_escalated, or the person sets network or unix_sockets."
	case has("ead-only file system", "EROFS", "esource busy"):
		return "Only these folders are writable: " + writableFolders(p) + "; git's hooks and config, git worktree add and .agents are not. " +
			"A tool's own store goes below $XDG_CACHE_HOME by its variable (CARGO_HOME, GOMODCACHE); " +
			"else ask with sandbox_permissions require_escalated, or the person adds the folder."
	}
	return ""
}

func writableFolders(p *sandbox.Plan) string {
	if len(p.Roots) == 0 {
		return "none (the sandbox is read-only)"
	}
	return strings.Join(p.Roots, ", ")
}

// startIn starts argv, confined where the call is, with three standard files.
func (e *Env) startIn(ctx context.Context, argv []string, beyond bool, files [3]*os.File) (*process, *confined, *Failure) {
	if e.Confinement == nil {
		p, err := startProcess(argv, withoutStartFiles(e.Environ), e.Workspace, files[:], false, nil)
		return p, nil, e.spawnFailure(err)
	}
	c, f := e.confine(ctx, argv, beyond)
	if f != nil {
		return nil, nil, f
	}
	p, err := startProcess(c.Argv, c.Env, c.Dir, append(files[:], c.Files...), false, c.Pid)
	if err != nil {
		c.end()
		return nil, nil, e.spawnFailure(err)
	}
	c.Started()
	return p, c, nil
}

func (e *Env) spawnFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	if info, serr := os.Stat(e.Workspace); serr != nil || !info.IsDir() {
		return failuref(protocol.WorkspaceUnavailable, "the workspace %s is gone", e.Workspace)
	}
	return failuref(protocol.ShellSpawnFailed, "%s: %v", e.Shell, err)
}

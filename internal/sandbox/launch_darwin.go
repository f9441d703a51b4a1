package sandbox

import (
	"context"
	"os"
)

// program is what the probe finds.
type program = seatbelt

// seatbelt is the launcher that was found.
type seatbelt struct {
	cacheDir string // the person's DARWIN_USER_CACHE_DIR, real; "" where there is none
}

// itself is the daemon's own program.
func (l *Launcher) itself() (string, error) { return RealPath(l.Helper) }

// Command is a command that is ready to start confined. The caller starts Argv
// with Env in Dir, in a session of its own, and calls Started once it has, or
// Close when it does not.
type Command struct {
	Argv  []string
	Env   []string
	Files []*os.File // none
	Dir   string
}

// Prepare makes argv, which is run in the plan's folder with env, ready to start
// confined. Errors are sandbox_unavailable and sandbox_denied.
func (l *Launcher) Prepare(ctx context.Context, p *Plan, argv, env []string) (*Command, error) {
	program, err := l.ready(ctx)
	if err != nil {
		return nil, err
	}
	return program.prepare(p, argv, env)
}

// prepare makes a command.
func (s *seatbelt) prepare(p *Plan, argv, env []string) (*Command, error) {
	line, err := seatbeltLine(newProfile(p, s.cacheDir), argv, env)
	if err != nil {
		return nil, err
	}
	return &Command{Argv: line, Env: launcherEnv, Dir: p.Cwd}, nil
}

// Started does nothing: the child is handed nothing.
func (c *Command) Started() {}

// Close does nothing.
func (c *Command) Close() {}

// Pid is -1: the process that the caller started becomes the command, and its
// group is the one that signals go to.
func (c *Command) Pid() int { return -1 }

// Ran is true: the launcher becomes the command and says nothing of its own. One
// that fails before that ends with a status of its own and its name on the error
// stream, as a command that could not be run; nothing is ever run outside.
func (c *Command) Ran() bool { return true }

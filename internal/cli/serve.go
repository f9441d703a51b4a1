package cli

import (
	"context"
	"os"
	"runtime/debug"
	"strings"

	"agent/internal/daemon"
	"agent/protocol"
)

var serveVerb = verb{
	name:  "serve",
	short: "be the daemon, in the foreground",
	long: "Runs the daemon: on a Unix socket with --socket, else on standard input and output\n" +
		"for one owner. No AGENT_* variable stands in for a flag, and ~/.agent/env is not\n" +
		"read: whoever starts a daemon says what it is.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		var set daemon.Settings
		var s startup
		t.path(&set.Store, "store", "FILE", "the store; required")
		t.path(&set.Socket, "socket", "PATH", "the socket; without it standard input and output serve")
		t.path(&set.Config, "config", "FILE", "where [shell_environment_policy] is read from; default ~/.agent/config.toml")
		t.startup(&s)
		t.botDefaults(&s)
		return func(context.Context, []string) error {
			limits, err := s.limitsOf()
			if err != nil {
				return err
			}
			if set.Store == "" {
				return usagef("serve needs --store FILE")
			}
			set.Providers, set.Walls, set.Protect = s.providers, s.walls, s.protect
			set.Limits, set.Version = limits, Version
			return a.serve(set)
		}
	},
}

// serve is the daemon from here on. It has its own signals.
func (a *app) serve(set daemon.Settings) error {
	if _, stated := os.LookupEnv("GOGC"); !stated {
		debug.SetGCPercent(35) // the memory budget: a little more work for much less room
	}
	if err := daemon.StartClean(); err != nil {
		return protocol.Fail("failed", "the signals that were inherited as ignored cannot be reset: "+err.Error())
	}
	err := daemon.Serve(context.Background(), set, a.stdin, a.stdout, a.stderr)
	if err == nil {
		return nil
	}
	code := daemon.Code(err)
	if code == "" {
		code = "failed"
	}
	detail := strings.TrimPrefix(strings.TrimPrefix(err.Error(), string(code)), ": ")
	a.say(&protocol.Error{Code: code, Detail: detail, Cause: err})
	return exit(daemon.ExitCode(err))
}

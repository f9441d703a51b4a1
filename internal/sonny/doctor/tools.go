package doctor

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"agent/client/envfile"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/screen/term"
)

func (d *Doctor) env(name string) string { return envfile.Get(d.o.Environ, name) }

// program is a program on PATH with its version.
func (d *Doctor) program(ctx context.Context, name, without, remedy string) finding {
	path, err := exec.LookPath(name)
	if err != nil {
		return warn(name+" is not on PATH: "+without, remedy)
	}
	version, err := versionOf(ctx, path, "--version")
	if err != nil || version == "" {
		return warn(name+" does not say its version", remedy)
	}
	return okf("%s", version)
}

func (d *Doctor) git(ctx context.Context) finding {
	return d.program(ctx, "git", "tasks have no worktrees, and diffs are not shown", "install git")
}

func (d *Doctor) rg(ctx context.Context) finding {
	return d.program(ctx, "rg", "bots search with slower programs", "install ripgrep")
}

// editor looks whether the command's program is there. It is a line for sh; its first
// word that sets no variable is the program.
func (d *Doctor) editor(context.Context) finding {
	words := slices.DeleteFunc(strings.Fields(d.o.Editor), func(w string) bool { return strings.Contains(w, "=") })
	if len(words) == 0 {
		return warn("no editor is set", "set VISUAL, or sonny config set tui.editor COMMAND")
	}
	program := strings.Trim(words[0], `"'`)
	if _, err := exec.LookPath(program); err != nil {
		return warn("the editor "+program+" is not on PATH", "set VISUAL, or sonny config set tui.editor COMMAND")
	}
	return okf("%s", filepath.Base(program))
}

// routes are the clipboard's, in words.
var routes = map[string]string{
	"osc52":            "through the terminal (OSC 52), which may refuse it",
	"tmux":             "through tmux, whose set-clipboard hands it on",
	"tmux passthrough": "through tmux to the terminal (OSC 52), which may refuse it",
}

func (d *Doctor) clipboard(context.Context) finding {
	if route := term.CopyRoute(d.env, d.o.Tmux); route != "" {
		return okf("%s", routes[route])
	}
	if d.o.Tmux.Inside {
		return warn("tmux lets no copy through", "in tmux.conf: set -s set-clipboard on")
	}
	return warn("this terminal takes no copy", "select with the terminal's own mouse (--no-mouse)")
}

func (d *Doctor) notify(context.Context) finding {
	if d.o.Config == nil {
		return skipf("config.toml was not read")
	}
	n := &d.o.Config.Notifications
	route := notify.Pick(notify.Route(n.Route), notify.Around{Env: d.env, Look: exec.LookPath, Passthrough: d.o.Tmux.Passthrough})
	switch {
	case n.When == "never" || route == notify.None:
		return okf("notifications are off")
	case route == notify.Command && len(n.Command) == 0:
		return warn("the route is a command, and none is set", "sonny config set notifications.command '[\"PROGRAM\"]'")
	case route == notify.Command:
		if _, err := exec.LookPath(n.Command[0]); err != nil {
			return warn("the command "+n.Command[0]+" is not on PATH", "sonny config set notifications.command '[\"PROGRAM\"]'")
		}
	case route == notify.Bell && d.o.Tmux.Inside && !d.o.Tmux.Passthrough:
		return okf("bell").with("tmux forwards no more; in tmux.conf: set -g allow-passthrough on")
	}
	return okf("%s, %s", route, n.When)
}

// scheduler looks whether bots are kept from the folder of the system's scheduler. That
// it answers is asked once there are triggers to run by it.
func (d *Doctor) scheduler(context.Context) finding {
	if d.link != nil {
		dir := connect.SchedulerDir(d.o.Home)
		if slices.ContainsFunc(d.link.Missing, func(m connect.Missing) bool { return m.Path == dir }) {
			return warn("the daemon does not keep bots from the scheduler's folder "+dir, "agent shutdown; sonny starts it with that")
		}
	}
	name := "the systemd user session"
	if runtime.GOOS == "darwin" {
		name = "launchd"
	}
	return skipf("this build of sonny has no triggers: nothing is run by %s", name)
}

func (d *Doctor) programs(context.Context) finding {
	return skipf("this build of sonny keeps no copies of agent-browser and agent-desktop")
}

func (d *Doctor) commons(context.Context) finding {
	return skipf("this build of sonny has no commons")
}

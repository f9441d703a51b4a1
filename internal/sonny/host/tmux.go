package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"agent/internal/sonny/host/action"
	"agent/internal/sonny/host/panes"
	"agent/protocol"
)

// tmuxAt is a tmux server, by the program's and the socket's path, and a pane of it.
type tmuxAt struct {
	program, socket string
	server          int // the process that must answer there
	pane            string
}

// tmuxLimit bounds one tmux command.
const tmuxLimit = 10 * time.Second

// run runs one tmux command and gives what it printed, at most 1 MiB.
func (t *tmuxAt) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tmuxLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.program, append([]string{"-S", t.socket}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if words := strings.TrimSpace(said.String()); words != "" {
			err = errors.New(words)
		}
		return "", protocol.Fail(noPaneHost, "tmux: "+action.Cut(err.Error(), maxReason))
	}
	return strings.TrimSuffix(action.Cut(out.String(), 1<<20), "\n"), nil
}

// answers reports whether the server is the one that was recorded, and has the pane.
func (t *tmuxAt) answers(ctx context.Context) bool { return t.has(ctx, t.pane) }

// has reports whether the server, still the same, has a pane.
func (t *tmuxAt) has(ctx context.Context, id string) bool {
	out, err := t.run(ctx, "list-panes", "-a", "-F", "#{pid} #{pane_id}")
	if err != nil {
		return false
	}
	for line := range strings.SplitSeq(out, "\n") {
		if line == strconv.Itoa(t.server)+" "+id {
			return true
		}
	}
	return false
}

// inFolder runs the command, one argument, by the person's shell in the folder. tmux's
// own -c would not do: it takes a folder's name for a format, and runs commands in it.
const inFolder = `cd -- "$1" || exit; exec "$2" -c "$3"`

// plainTitle keeps tmux from reading a title as a format.
var plainTitle = strings.NewReplacer("#", "##", "%", "%%")

// open opens a pane and runs the command in it. The pane first holds a program that
// does nothing, so that it is told to stay before the command can have ended.
func (t *tmuxAt) open(ctx context.Context, shell string, a *paneArgs) (pane, error) {
	window, err := t.run(ctx, "display-message", "-p", "-t", t.pane, "#{window_id}")
	if err != nil {
		return pane{}, err
	}
	args := map[string][]string{
		"right": {"split-window", "-h", "-t", t.pane}, "down": {"split-window", "-v", "-t", t.pane},
		"tab": {"new-window", "-a", "-t", window},
	}[a.Where]
	if !a.Focus {
		args = append(args, "-d")
	}
	args = append(args, "-P", "-F", "#{pane_id}", "/bin/sh", "-c", "while :; do read -r _ || exit; done")
	id, err := t.run(ctx, args...)
	if err != nil {
		return pane{}, err
	}
	made := pane{Pane: id, Tmux: t.program, Socket: t.socket, Server: t.server}
	if !panes.ValidPane(id) {
		return made, protocol.Fail(noPaneHost, fmt.Sprintf("tmux named the new pane %q", action.Cut(id, 80)))
	}
	stay := "off"
	if *a.Keep {
		stay = "on"
	}
	steps := [][]string{{"set-option", "-p", "-t", id, "remain-on-exit", stay}}
	if a.Title != "" {
		steps = append(steps, []string{"select-pane", "-t", id, "-T", plainTitle.Replace(a.Title)})
	}
	steps = append(steps, []string{"respawn-pane", "-k", "-t", id, "/bin/sh", "-c", inFolder, "sh", a.Cwd, shell, a.Command})
	for _, step := range steps {
		if _, err := t.run(ctx, step...); err != nil {
			_, _ = t.run(context.WithoutCancel(ctx), "kill-pane", "-t", id)
			return made, err
		}
	}
	return made, nil
}

// read gives the last lines of a pane, and whether its command has ended.
func (t *tmuxAt) read(ctx context.Context, id string, lines int) (text string, dead bool, err error) {
	state, err := t.run(ctx, "display-message", "-p", "-t", id, "#{pane_dead}")
	if err != nil {
		return "", false, err
	}
	text, err = t.run(ctx, "capture-pane", "-p", "-J", "-t", id, "-S", fmt.Sprintf("-%d", maxLines))
	if err != nil {
		return "", false, err
	}
	all := strings.Split(strings.TrimRight(text, "\n "), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n"), state == "1", nil
}

func (t *tmuxAt) close(ctx context.Context, id string) error {
	_, err := t.run(ctx, "kill-pane", "-t", id)
	return err
}

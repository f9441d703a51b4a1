package panes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agent/internal/sonny/brief"
	"agent/internal/sonny/host/action"
	"agent/protocol"
)

// NoHost is of a screen beside which no pane can be opened.
const NoHost protocol.Code = "no_pane_host"

// MaxLines bounds what is read of a pane.
const MaxLines = 200

// maxSaid bounds what an error tells of tmux's words, in bytes.
const maxSaid = 1024

// Tmux is a tmux server, by the program's and the socket's path, and a pane of it.
type Tmux struct {
	Program, Socket string
	Server          int // the process that must answer there
	Pane            string
}

// At is the server that a screen is in, and its pane.
func (r *Record) At() *Tmux {
	return &Tmux{Program: r.Tmux, Socket: r.Socket, Server: r.Server, Pane: r.Pane}
}

// Shell is the person's shell, by its absolute path.
func Shell() string {
	if s := os.Getenv("SHELL"); filepath.IsAbs(s) {
		return s
	}
	return "/bin/sh"
}

// Wanted is a pane to be opened.
type Wanted struct {
	Command, Cwd, Title string
	Where               string // right, down or tab
	Focus, Keep         bool   // Keep: it stays when its command has ended
}

// tmuxLimit bounds one tmux command.
const tmuxLimit = 10 * time.Second

// run runs one tmux command and gives what it printed, at most 1 MiB.
func (t *Tmux) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tmuxLimit)
	defer cancel()
	cmd := brief.Command(ctx, append([]string{t.Program, "-S", t.Socket}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if words := strings.TrimSpace(said.String()); words != "" {
			err = errors.New(words)
		}
		return "", protocol.Fail(NoHost, "tmux: "+action.Cut(err.Error(), maxSaid))
	}
	return strings.TrimSuffix(action.Cut(out.String(), 1<<20), "\n"), nil
}

// Answers reports whether the server is the one that was recorded, and has the pane.
func (t *Tmux) Answers(ctx context.Context) bool { return t.Has(ctx, t.Pane) }

// Has reports whether the server, still the same, has a pane.
func (t *Tmux) Has(ctx context.Context, id string) bool {
	out, err := t.run(ctx, "list-panes", "-a", "-F", "#{pid} #{pane_id}")
	if err != nil {
		return false
	}
	for line := range strings.SplitSeq(out, "\n") {
		if line == strconv.Itoa(t.Server)+" "+id {
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

// Open opens a pane and runs the command in it by a shell, an absolute path. The pane first
// holds a program that does nothing, so that it is told to stay before the command can have
// ended. Errors are no_pane_host; with one a pane's id may be given, which is gone.
func (t *Tmux) Open(ctx context.Context, shell string, a *Wanted) (id string, err error) {
	window, err := t.run(ctx, "display-message", "-p", "-t", t.Pane, "#{window_id}")
	if err != nil {
		return "", err
	}
	args := map[string][]string{
		"right": {"split-window", "-h", "-t", t.Pane}, "down": {"split-window", "-v", "-t", t.Pane},
		"tab": {"new-window", "-a", "-t", window},
	}[a.Where]
	if !a.Focus {
		args = append(args, "-d")
	}
	args = append(args, "-P", "-F", "#{pane_id}", "/bin/sh", "-c", "while :; do read -r _ || exit; done")
	if id, err = t.run(ctx, args...); err != nil {
		return "", err
	}
	if !ValidPane(id) {
		return id, protocol.Fail(NoHost, fmt.Sprintf("tmux named the new pane %q", action.Cut(id, 80)))
	}
	stay := "off"
	if a.Keep {
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
			return id, err
		}
	}
	return id, nil
}

// Read gives the last lines of a pane, and whether its command has ended.
func (t *Tmux) Read(ctx context.Context, id string, lines int) (text string, dead bool, err error) {
	state, err := t.run(ctx, "display-message", "-p", "-t", id, "#{pane_dead}")
	if err != nil {
		return "", false, err
	}
	text, err = t.run(ctx, "capture-pane", "-p", "-J", "-t", id, "-S", fmt.Sprintf("-%d", MaxLines))
	if err != nil {
		return "", false, err
	}
	all := strings.Split(strings.TrimRight(text, "\n "), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n"), state == "1", nil
}

// Close takes a pane away.
func (t *Tmux) Close(ctx context.Context, id string) error {
	_, err := t.run(ctx, "kill-pane", "-t", id)
	return err
}

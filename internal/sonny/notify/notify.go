// Package notify tells a person who looks elsewhere that something happened, by the
// terminal's own protocol where it has one (sonny.md 28). It decides the route and makes
// the sequences; whoever owns the terminal writes them.
package notify

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"agent/internal/sonny/brief"
	"agent/protocol"
)

// Route is how a notification goes.
type Route string

// The routes. Auto picks one of the others.
const (
	Auto    Route = "auto"
	OSC9    Route = "osc9"
	OSC99   Route = "osc99"
	OSC777  Route = "osc777"
	Bell    Route = "bell"
	Native  Route = "native"
	Command Route = "command"
	None    Route = "none"
)

// maxBody bounds a body, in characters.
const maxBody = 120

// Note is one notification.
type Note struct {
	Event string `json:"event"` // one of notifications.on
	Title string `json:"title"`
	Body  string `json:"body"`
	Bot   string `json:"bot,omitempty"`

	Request int64 `json:"-"` // the approval that waits, where it is one
}

// tidy is a text that no terminal acts on, cut to a number of characters.
func tidy(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// Tidy is the note as it may be shown.
func (n Note) Tidy() Note {
	n.Title, n.Body = tidy(n.Title, maxBody), tidy(n.Body, maxBody)
	return n
}

// Around is what the route depends on. Env is os.Getenv; Look is exec.LookPath.
type Around struct {
	Env         func(string) string
	Look        func(string) (string, error)
	Passthrough bool // the tmux around Sonny lets sequences through
}

// Pick is the route of a setting.
func Pick(setting Route, a Around) Route {
	if setting != Auto {
		return setting
	}
	if a.Env("TMUX") != "" && !a.Passthrough {
		return Bell // which tmux forwards
	}
	term, program := a.Env("TERM"), a.Env("TERM_PROGRAM")
	switch {
	case term == "xterm-kitty", a.Env("KITTY_WINDOW_ID") != "":
		return OSC99
	case program == "ghostty", term == "xterm-ghostty", strings.HasPrefix(term, "rxvt"), a.Env("VTE_VERSION") != "":
		return OSC777
	case program == "iTerm.app", program == "WezTerm", program == "WarpTerminal", a.Env("WT_SESSION") != "":
		return OSC9
	case a.Env("SSH_CONNECTION") == "" && native(a.Look) != "":
		return Native
	}
	return Bell
}

// ShowsProgress reports whether the terminal is known to show progress by OSC 9;4. Others
// take that sequence for a notification, or for a sound.
func ShowsProgress(a Around) bool {
	return a.Env("TMUX") == "" && (a.Env("TERM_PROGRAM") == "ghostty" || a.Env("TERM") == "xterm-ghostty" ||
		a.Env("WT_SESSION") != "" || a.Env("ConEmuANSI") == "ON")
}

// Progress is the sequence that shows, or takes away, that something is under way.
func Progress(on bool) string {
	if on {
		return "\x1b]9;4;3\x1b\\"
	}
	return "\x1b]9;4;0\x1b\\"
}

// native is the platform's own program; "" for none.
func native(look func(string) (string, error)) string {
	name := "notify-send"
	if runtime.GOOS == "darwin" {
		name = "osascript"
	}
	path, err := look(name)
	if err != nil {
		return ""
	}
	return path
}

// Sequence is what the terminal is sent; "" for a route that is a program.
func (n Note) Sequence(r Route) string {
	n = n.Tidy()
	switch r {
	case OSC9:
		return "\x1b]9;" + n.Title + ": " + n.Body + "\x1b\\"
	case OSC777:
		return "\x1b]777;notify;" + strings.ReplaceAll(n.Title, ";", ",") + ";" + strings.ReplaceAll(n.Body, ";", ",") + "\x1b\\"
	case OSC99:
		title := base64.StdEncoding.EncodeToString([]byte(n.Title))
		body := base64.StdEncoding.EncodeToString([]byte(n.Body))
		return "\x1b]99;i=sonny:d=0:p=title:e=1;" + title + "\x1b\\\x1b]99;i=sonny:p=body:e=1;" + body + "\x1b\\"
	}
	return ""
}

// Program reports whether a route is a program, which Run starts.
func (r Route) Program() bool { return r == Native || r == Command }

// Terminal is what a note can be told by.
type Terminal interface {
	Send(sequence string) bool
	Bell()
}

// Tell tells a note by the terminal, as far as the route goes by it.
func Tell(t Terminal, n Note, r Route, sound bool) {
	if seq := n.Sequence(r); seq != "" {
		t.Send(seq)
	}
	if r == Bell || sound {
		t.Bell()
	}
}

// Test is a note to try a route with. It refuses a route that tells nobody.
func Test(r Route, command []string) (Note, error) {
	switch {
	case r == None:
		return Note{}, protocol.Fail(protocol.UsageError, "notifications.route is none: nothing is sent")
	case r == Command && len(command) == 0:
		return Note{}, protocol.Fail(protocol.UsageError, "notifications.route is command, and notifications.command names none")
	}
	return Note{Event: "test", Title: "sonny", Body: "This is how Sonny tells you."}, nil
}

// runFor is how long a program may take.
var runFor = 5 * time.Second

// Run starts the program of a route and waits for its end, five seconds at most: the
// platform's own, or the person's command with title and body as its last arguments and
// the event as JSON on its input. Its output is dropped. One that takes longer is ended
// with all that it started, and an error says so.
func (n Note) Run(ctx context.Context, r Route, command []string) error {
	n = n.Tidy()
	ctx, cancel := context.WithTimeout(ctx, runFor)
	defer cancel()
	var argv []string
	switch {
	case r == Command && len(command) > 0:
		argv = append(append(argv, command...), n.Title, n.Body)
	case r == Native && runtime.GOOS == "darwin":
		argv = []string{"osascript", "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", n.Title, n.Body}
	case r == Native:
		argv = []string{"notify-send", "--app-name=sonny", "--", n.Title, n.Body}
	default:
		return nil
	}
	cmd := brief.Command(ctx, argv...)
	if r == Command {
		event, err := json.Marshal(n)
		if err != nil {
			return err
		}
		cmd.Stdin = strings.NewReader(string(event) + "\n")
	}
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s did not end within %s and was ended, with what it started", argv[0], runFor)
	}
	return err
}

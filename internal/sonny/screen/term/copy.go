package term

import (
	"context"
	"encoding/base64"
	"os/exec"
	"strconv"
	"strings"

	"agent/client/termsafe"
)

// MaxCopy is how much goes to the clipboard through the terminal: 64 KiB.
const MaxCopy = 64 << 10

// Tmux is what the tmux around Sonny lets through.
type Tmux struct {
	Inside      bool
	Passthrough bool // allow-passthrough: sequences in an envelope reach the outer terminal
	Clipboard   bool // set-clipboard on: tmux takes the clipboard's sequence itself
	EscapeMS    int  // escape-time: how long tmux holds an Esc; 0 also where it does not say
}

// AskTmux asks the tmux that env names, if there is one. What it does not answer it does
// not let through.
func AskTmux(ctx context.Context, env func(string) string) Tmux {
	socket, _, _ := strings.Cut(env("TMUX"), ",")
	if socket == "" {
		return Tmux{}
	}
	show := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "tmux", append([]string{"-S", socket}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	pass := show("show-options", "-pAv", "-t", env("TMUX_PANE"), "allow-passthrough")
	escape, _ := strconv.Atoi(show("show-options", "-sv", "escape-time"))
	return Tmux{
		Inside:      true,
		EscapeMS:    escape,
		Passthrough: pass == "on" || pass == "all",
		Clipboard:   show("show-options", "-sv", "set-clipboard") == "on",
	}
}

// CopyRoute is how a copy reaches the clipboard through the terminal: "osc52",
// "tmux" (tmux keeps it and hands it on), "tmux passthrough", or "" for no way at all.
func (t *Terminal) CopyRoute() string {
	if t.plain {
		return ""
	}
	return CopyRoute(t.o.Env, t.o.Tmux)
}

// CopyRoute is that of the terminal that an environment tells of, with the tmux around.
func CopyRoute(env func(string) string, tmux Tmux) string {
	switch {
	case plainTerm(env("TERM")) || inScreen(env):
		return ""
	case !tmux.Inside:
		return "osc52"
	case tmux.Clipboard:
		return "tmux"
	case tmux.Passthrough:
		return "tmux passthrough"
	}
	return ""
}

// inScreen reports whether an environment is that of GNU screen.
func inScreen(env func(string) string) bool {
	return strings.HasPrefix(env("TERM"), "screen") && env("TMUX") == ""
}

// Copy writes a text to the terminal's clipboard. It reports whether it was written to a
// route: false where there is none, and for more than MaxCopy bytes.
func (t *Terminal) Copy(text string) bool {
	route := t.CopyRoute()
	if route == "" || len(text) > MaxCopy {
		return false
	}
	seq := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\x07"
	if route == "tmux passthrough" {
		seq = enveloped(seq)
	}
	return t.p.send(seq)
}

// AskClipboard asks the terminal for its clipboard. Few answer; one that does sends
// Clipboard.
func (t *Terminal) AskClipboard() bool {
	return t.CopyRoute() == "osc52" && t.p.send("\x1b]52;c;?\x07")
}

// Send writes a sequence for the outer terminal: through tmux in an envelope where tmux
// passes that on. It reports whether there was a way. The caller answers for what the
// sequence does.
func (t *Terminal) Send(seq string) bool {
	switch {
	case t.plain || t.screen || t.o.Tmux.Inside && !t.o.Tmux.Passthrough:
		return false
	case t.o.Tmux.Inside:
		seq = enveloped(seq)
	}
	return t.p.send(seq)
}

// enveloped is a sequence as tmux passes it on.
func enveloped(seq string) string {
	return "\x1bPtmux;" + strings.ReplaceAll(seq, "\x1b", "\x1b\x1b") + "\x1b\\"
}

// Bell rings.
func (t *Terminal) Bell() { t.p.send("\x07") }

// titleMost bounds a title in characters.
const titleMost = 120

// Title sets the terminal's title until Close. What a terminal acts on is dropped: control
// characters, and those that turn the direction of what is beside them.
func (t *Terminal) Title(title string) {
	if t.plain {
		return
	}
	var b strings.Builder
	n := 0
	for _, r := range title {
		if n == titleMost {
			break
		}
		if typed(string(r)) && !termsafe.Line.Escapes(r) {
			b.WriteRune(r)
			n++
		}
	}
	t.p.send("\x1b]2;" + b.String() + "\x07")
}

func upTo(rows int) string {
	if rows <= 0 {
		return ""
	}
	return "\x1b[" + strconv.Itoa(rows) + "A"
}

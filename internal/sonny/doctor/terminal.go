package doctor

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/theme"
)

// Terminal is what a terminal said of itself when it was asked, and what the environment
// says of it.
type Terminal struct {
	term.Features
	Depth theme.Depth
	UTF8  bool // the locale is
	Wide  bool // characters of ambiguous width are taken for two cells: tui.ambiguous_wide
}

var depths = map[theme.Depth]string{theme.Mono: "no colour", theme.Sixteen: "16 colours", theme.Palette: "256 colours", theme.True: "true colour"}

// slowEscape is the escape-time of tmux, in milliseconds, past which a lone Esc is felt.
const slowEscape = 50

// terminal asks the terminal, and answers only at one.
func (d *Doctor) terminal(context.Context) finding {
	if d.o.Terminal == nil {
		return skipf("doctor was not run at a terminal")
	}
	t, err := d.o.Terminal()
	if err != nil {
		return failed("the terminal cannot be asked: "+err.Error(), "run doctor at a terminal")
	}
	name := d.env("TERM")
	has := []string{"TERM " + name, depths[t.Depth]}
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"keyboard protocol", t.Keyboard}, {"synchronized updates", t.Sync}, {"focus reports", t.Focus}, {"bracketed paste", t.Paste}, {"grapheme widths", t.Unicode},
	} {
		if f.has {
			has = append(has, f.name)
		} else {
			has = append(has, "no "+f.name)
		}
	}
	if route := term.CopyRoute(d.env, d.o.Tmux); route != "" {
		has = append(has, "copies by "+route)
	}
	if d.o.Tmux.Inside {
		has = append(has, fmt.Sprintf("tmux passthrough %s, escape-time %d ms", onOff(d.o.Tmux.Passthrough), d.o.Tmux.EscapeMS))
	}
	has = append(has, fmt.Sprintf("characters of ambiguous width take %d", map[bool]int{false: 1, true: 2}[t.Wide]))
	detail := strings.Join(has, ", ")
	switch {
	case name == "" || name == "dumb":
		return warn("TERM is "+orNone(name)+": nothing but plain lines can be drawn", "set TERM to what the terminal is, or use --screen plain").with(detail)
	case !t.UTF8:
		return warn("the locale is not UTF-8: only ASCII is drawn", "export LANG=C.UTF-8").with(detail)
	case d.o.Tmux.EscapeMS > slowEscape:
		return warn(fmt.Sprintf("tmux holds Esc for %d ms", d.o.Tmux.EscapeMS), "in tmux.conf: set -s escape-time 10").with(detail)
	case !t.Answered:
		return warn("the terminal answers no questions: it is drawn with what every terminal has", "").with(detail)
	}
	return okf("%s, %s", name, depths[t.Depth]).with(detail)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

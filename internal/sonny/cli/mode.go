package cli

import (
	"os"

	"agent/internal/sonny/config"
	"agent/internal/sonny/crash"
	"agent/internal/sonny/screen"
	"agent/internal/sonny/screen/ahead"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/theme"
)

// mode is how the screen is drawn, and by what that was decided (sonny.md 2 and 14). A
// screen reader's setting and a terminal that can do nothing win over a config file and
// the default, but not over what the line or the environment says of this run.
func mode(c *config.Config, env func(string) string) (m screen.Mode, why string, err error) {
	if m, err = screen.ParseMode(c.TUI.Screen); err != nil {
		return "", "", err
	}
	drawn, _ := c.Get("tui.screen")
	reader, _ := c.Get("tui.screen_reader")
	switch {
	case drawn.From == config.FromFlag:
		return m, "--screen " + string(m), nil
	case c.TUI.ScreenReader && reader.From == config.FromFlag:
		return screen.Plain, "tui.screen_reader is on", nil
	case drawn.From == config.FromEnviron:
		return m, "SONNY_SCREEN=" + string(m), nil
	case c.TUI.ScreenReader:
		return screen.Plain, "tui.screen_reader is on", nil
	case env("TERM") == "dumb":
		return screen.Plain, "TERM=dumb", nil
	}
	return m, "tui.screen = " + string(m), nil
}

// openTerminal opens the terminal for the mode that holds.
func (a *app) openTerminal(w *around) (t *term.Terminal, err error) {
	if w.mode, w.why, err = mode(w.config, os.Getenv); err != nil {
		return nil, err
	}
	if w.again != "" {
		w.mode, w.why = w.again, "/screen "+string(w.again)
	}
	text.Ambiguous = w.config.TUI.AmbiguousWide
	w.guard = &crash.Guard{Dir: w.sonny, Version: Version, Out: a.stderr}
	o := a.terminal(w)
	o.Crashed = w.guard.Catch
	w.guard.Restore = func() {}
	if t, err = term.Open(o); err == nil {
		w.guard.Restore = t.Close
	}
	return t, err
}

// terminal are the options of the terminal itself.
func (a *app) terminal(w *around) term.Options {
	tui := &w.config.TUI
	return term.Options{
		In: os.Stdin, Out: os.Stdout, Inline: w.mode == screen.Inline, Lines: w.mode == screen.Plain,
		Tmux: w.tmux, Theme: theme.ANSI(), Depth: theme.DepthOf(os.Getenv, a.flags.noColor),
		ASCII: tui.ASCII || a.flags.ascii || !utf8Locale(),
		Mouse: term.MouseUse{Wheel: tui.Mouse.Wheel && !a.flags.noMouse},
	}
}

// asking is the terminal for what is asked before there is a daemon: in the plain mode
// one that reads screens out as lines. end must be called before the terminal is used
// for anything else.
func (w *around) asking(t *term.Terminal) (asked ahead.Terminal, end func()) {
	if w.mode != screen.Plain {
		return t, func() {}
	}
	aloud := ahead.ReadAloud(t, w.why)
	return aloud, func() {
		aloud.Close()
		if aloud.Spoke() {
			w.why = ""
		}
	}
}

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"

	"agent/internal/sonny/config"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/screen"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/md"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// tasting is what a screen shows by now. It belongs to the screen's loop.
type tasting struct {
	config  *config.Config
	notices []config.Notice // of that
	theme   string
}

// tastes reads the settings again for a screen that is open, and takes what they say where
// something of it has changed. The settings of bots are not its business.
func (a *app) tastes(w *around, shown *tasting, look func() *protocol.Error) func() (func() (screen.Taste, []string), error) {
	return func() (func() (screen.Taste, []string), error) {
		now := *w
		if err := a.settings(&now); err != nil {
			return nil, err
		}
		return func() (screen.Taste, []string) {
			was := shown.config
			t, faults := a.taste(w, now.config)
			if reflect.DeepEqual(ofScreen(was), ofScreen(now.config)) && slices.Equal(shown.notices, now.notices) {
				return t, nil
			}
			shown.config, shown.notices = now.config, now.notices
			if name := now.config.TUI.Theme; name != was.TUI.Theme {
				shown.theme = name
				if fault := look(); fault != nil {
					faults = append(faults, fault)
				}
			}
			if reopens(was, now.config) {
				t.Reopen, _, _ = mode(now.config, os.Getenv)
			}
			return t, said(now.notices, faults)
		}, nil
	}
}

// ofScreen are the settings that a screen is drawn by.
func ofScreen(c *config.Config) []any { return []any{c.TUI, c.Usage, c.Notifications, c.Pricing} }

// reopens reports whether the terminal must be opened anew for what has changed.
func reopens(was, now *config.Config) bool {
	of := func(c *config.Config) []any {
		return []any{c.TUI.Screen, c.TUI.ScreenReader, c.TUI.ASCII, c.TUI.AmbiguousWide, c.TUI.Mouse.Wheel}
	}
	return !reflect.DeepEqual(of(was), of(now))
}

// taste is how the settings, the line and the locale have the screen be, with what is
// wrong with the keys.
func (a *app) taste(w *around, c *config.Config) (screen.Taste, []*protocol.Error) {
	tui := &c.TUI
	m, faults := keys.New(tui.Keys)
	return screen.Taste{
		Bang: tui.Bang, EnterNewline: tui.Enter == "newline", QueueFirst: tui.WhileRunning == "queue",
		DoubleEsc: tui.DoubleEsc, Editor: tui.Editor,
		Mouse: screen.MouseUse{
			Click: tui.Mouse.Click, Select: tui.Mouse.Select, Copy: tui.CopyOnSelect, WheelRows: int(tui.WheelRows),
		},
		Fold:     cells.Fold{Output: int(tui.Fold.Output), Diff: tui.Fold.Diff, Apart: !tui.Fold.Reads},
		Thoughts: !tui.Fold.Thoughts, Diffs: tui.Diff, Title: tui.Title, ToolColour: tui.ToolColor, Motion: tui.Motion && !a.flags.noMotion, Keys: m,
		Markdown: md.Options{
			Links: true, Unwrapped: !tui.WrapCode, ASCII: tui.ASCII || a.flags.ascii || !utf8Locale(), Colour: true,
		},
		Usage: w.usage(c), Notify: notifications(&c.Notifications, w.tmux),
	}, faults
}

// notifications are the settings of them, with the route that this terminal takes.
func notifications(n *config.Notifications, tmux term.Tmux) screen.Notify {
	around := notify.Around{Env: os.Getenv, Look: exec.LookPath, Passthrough: tmux.Passthrough}
	return screen.Notify{
		On: n.On, When: n.When, MinTurn: n.MinTurn, Command: n.Command, Sound: n.Sound, Content: n.Content,
		Route: notify.Pick(notify.Route(n.Route), around), Progress: n.Progress && notify.ShowsProgress(around),
	}
}

// usage is how what bots use is counted on screen.
func (w *around) usage(c *config.Config) screen.Usage {
	return screen.Usage{
		Prices: usage.PricesOf(c.Pricing), NoCost: !c.Usage.ShowCost, WarnUSD: c.Usage.DailyWarnUSD,
		Once: func(name string) (first bool) {
			_, err := config.ChangeState(filepath.Join(w.sonny, "state.json"), func(s *config.State) { first = !s.Said(name) })
			return first || err != nil
		},
	}
}

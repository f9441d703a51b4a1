package cli

import (
	"agent/internal/sonny/config"
	"agent/internal/sonny/screen"
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

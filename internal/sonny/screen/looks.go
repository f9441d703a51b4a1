package screen

import (
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/theme"
)

// auto is the setting that leaves the theme to the terminal's background.
const auto = "auto"

// StartTheme is the theme that a setting means, as far as it is known before the
// terminal has said what its background is (sonny.md 13).
func StartTheme(setting string) theme.Theme {
	switch setting {
	case "dark":
		return theme.Dark()
	case "light":
		return theme.Light()
	case "none":
		return theme.None()
	}
	return theme.ANSI()
}

// Against is the theme that auto takes for a background. reported is false where the
// terminal did not say.
func Against(b term.Background, reported bool) theme.Theme {
	switch {
	case !reported:
		return theme.ANSI()
	case b.Color.Set():
		return theme.OnBackground(b.Color)
	}
	return theme.OfScheme(b.Dark)
}

// background follows the terminal to another one. A report of the scheme alone is
// followed by the question for the colour.
func (a *App) background(b term.Background) {
	if a.o.Theme != auto {
		return
	}
	if !b.Color.Set() {
		a.o.Term.AskBackground()
	}
	a.o.Term.SetTheme(Against(b, true))
}

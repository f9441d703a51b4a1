package theme

import "agent/internal/sonny/screen/text"

// What a colour must stand out by (sonny.md 13).
const (
	TextContrast = 4.5
	MarkContrast = 3.0
)

var black, white = RGB(0, 0, 0), RGB(255, 255, 255)

// IsDark reports whether white stands out more on a background than black does.
func IsDark(background Color) bool {
	return Contrast(white, background) >= Contrast(black, background)
}

// OnBackground is the theme that auto takes for a terminal that said what its
// background is: dark or light, with every colour moved away from the background
// where it would not stand out.
func OnBackground(background Color) Theme {
	if IsDark(background) {
		return Dark().against(background, white)
	}
	return Light().against(background, black)
}

// OfScheme is the theme for a terminal that said only whether it is dark.
func OfScheme(dark bool) Theme {
	if dark {
		return Dark()
	}
	return Light()
}

func (t Theme) against(background, pole Color) Theme {
	panel, selected := ground(background, pole, 0.06), ground(background, pole, 0.18)
	out := Theme{Name: t.Name, styles: append([]Style{}, t.styles...)}
	for i := range out.styles {
		need := TextContrast
		if text.Role(i) == text.Rule {
			need = MarkContrast
		}
		fg := &out.styles[i].Fg
		for _, on := range []Color{background, panel, selected} {
			*fg = fg.until(need, on, pole)
		}
	}
	out.styles[text.Panel].Bg, out.styles[text.Select].Bg = panel, selected
	return out
}

// ground is a background a little off the terminal's: toward the text where that
// leaves room enough for it to stand out, else away from it.
func ground(background, pole Color, share float64) Color {
	g := background.mix(pole, share)
	if Contrast(g, pole) >= 7 {
		return g
	}
	away := black
	if pole == black {
		away = white
	}
	return background.mix(away, share)
}

// until moves a colour toward the pole until it stands out.
func (c Color) until(need float64, on, pole Color) Color {
	for share := 0.0; share < 1; share += 0.05 {
		if m := c.mix(pole, share); Contrast(m, on) >= need {
			return m
		}
	}
	return pole
}

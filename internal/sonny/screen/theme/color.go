package theme

import (
	"image/color"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Color is a colour of a cell: the terminal's own (the zero value), one of its
// palette, or red, green and blue. Colours can be compared.
type Color struct {
	kind    kind
	r, g, b uint8 // of a palette's colour r is the number
}

type kind uint8

const (
	unset kind = iota
	indexed
	direct
)

// Index is a colour of the terminal's palette.
func Index(n uint8) Color { return Color{kind: indexed, r: n} }

// RGB is a colour by its parts.
func RGB(r, g, b uint8) Color { return Color{kind: direct, r: r, g: g, b: b} }

func hex(n uint32) Color { return RGB(uint8(n>>16), uint8(n>>8), uint8(n)) }

// Set reports whether there is a colour at all.
func (c Color) Set() bool { return c.kind != unset }

// Palette is the number of a colour of the palette, false for another kind.
func (c Color) Palette() (uint8, bool) { return c.r, c.kind == indexed }

// Parts are red, green and blue of a direct colour, false for another kind.
func (c Color) Parts() (r, g, b uint8, ok bool) { return c.r, c.g, c.b, c.kind == direct }

// Depth is how many colours a terminal shows.
type Depth uint8

// The depths.
const (
	Mono Depth = iota // no colour at all
	Sixteen
	Palette
	True
)

// DepthOf is what the environment says of the terminal. Inside a multiplexer 256
// colours are assumed, whatever the outer terminal can do.
func DepthOf(env func(string) string, noColor bool) Depth {
	term := env("TERM")
	muxed := env("TMUX") != "" || strings.HasPrefix(term, "tmux") || strings.HasPrefix(term, "screen")
	switch {
	case noColor || env("NO_COLOR") != "" || term == "dumb":
		return Mono
	case muxed:
		return Palette
	case env("COLORTERM") == "truecolor" || env("COLORTERM") == "24bit" || strings.HasSuffix(term, "-direct"):
		return True
	case strings.Contains(term, "256color") || manyColours(term):
		return Palette
	}
	return Sixteen
}

// manyColours are terminals whose names do not say how many colours they have.
func manyColours(term string) bool {
	for _, name := range []string{"kitty", "ghostty", "alacritty", "wezterm", "foot", "contour", "rio"} {
		if strings.Contains(term, name) {
			return true
		}
	}
	return false
}

// Reduce is the colour that stands for c at a depth.
func (d Depth) Reduce(c Color) Color {
	switch {
	case d == Mono:
		return Color{}
	case d == True || c.kind == unset || c.kind == indexed && (d == Palette || c.r < 16):
		return c
	case d == Palette:
		return Index(uint8(ansi.Convert256(c.rgba())))
	case c.kind == indexed:
		return Index(uint8(ansi.Convert16(ansi.IndexedColor(c.r))))
	}
	return Index(uint8(ansi.Convert16(c.rgba())))
}

func (c Color) rgba() color.Color { return color.RGBA{R: c.r, G: c.g, B: c.b, A: 0xff} }

// luminance is the relative luminance by WCAG, 0 to 1.
func (c Color) luminance() float64 {
	return 0.2126*linear(c.r) + 0.7152*linear(c.g) + 0.0722*linear(c.b)
}

func linear(part uint8) float64 {
	v := float64(part) / 255
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// Contrast is the ratio by WCAG of two direct colours, 1 to 21.
func Contrast(a, b Color) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// mix goes from c a share of the way to another colour.
func (c Color) mix(to Color, share float64) Color {
	part := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (float64(b)-float64(a))*share)) }
	return RGB(part(c.r, to.r), part(c.g, to.g), part(c.b, to.b))
}

package sonnytest

import (
	"fmt"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// The look of a picture of a screen: cells of a monospaced font on a dark ground.
const (
	cellWidth, cellHeight = 8.4, 18.0
	ground, ink           = "#161616", "#e4e4e4"
)

// SVG is the screen as a picture, for the guides. Each run of cells that look the same is
// one text of fixed length, so that it stands on the grid in whatever font there is.
func (s *Screen) SVG() string {
	var b strings.Builder
	s.locked(func() {
		w, h := s.emu.Width(), s.emu.Height()
		fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n",
			float64(w)*cellWidth+16, float64(h)*cellHeight+16)
		fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", ground)
		for y := range h {
			for x := 0; x < w; {
				x += s.run(&b, x, y, w)
			}
		}
		b.WriteString("</svg>\n")
	})
	return b.String()
}

// run writes the cells from x on that look the same, and says how many there were.
func (s *Screen) run(b *strings.Builder, x, y, w int) int {
	first := s.cellAt(x, y)
	text, n := "", 0
	for x+n < w {
		c := s.cellAt(x+n, y)
		if !c.Style.Equal(&first.Style) {
			break
		}
		content := c.Content
		if content == "" {
			content = " "
		}
		text += content
		n += max(1, c.Width)
	}
	fg, bg := hexOf(first.Style.Fg, ink), hexOf(first.Style.Bg, "")
	if first.Style.Attrs&uv.AttrReverse != 0 {
		if bg == "" {
			bg = ground
		}
		fg, bg = bg, fg
	}
	px, py := 8+float64(x)*cellWidth, 8+float64(y)*cellHeight
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", px, py, float64(n)*cellWidth, cellHeight, bg)
	}
	if strings.TrimSpace(text) == "" {
		return n
	}
	lead := len(text) - len(strings.TrimLeft(text, " "))
	text = strings.TrimRight(text, " ")[lead:]
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s"%s textLength="%.1f" xml:space="preserve">%s</text>`+"\n",
		px+float64(lead)*cellWidth, py+13.5, fg, looks(first.Style), float64(ansi.StringWidth(text))*cellWidth, escapeXML(text))
	return n
}

func (s *Screen) cellAt(x, y int) uv.Cell {
	if c := s.emu.CellAt(x, y); c != nil {
		return *c
	}
	return uv.Cell{Content: " ", Width: 1}
}

func looks(s uv.Style) (out string) {
	if s.Attrs&uv.AttrBold != 0 {
		out += ` font-weight="bold"`
	}
	if s.Attrs&uv.AttrItalic != 0 {
		out += ` font-style="italic"`
	}
	if s.Attrs&uv.AttrFaint != 0 {
		out += ` opacity="0.65"`
	}
	if s.Underline != 0 {
		out += ` text-decoration="underline"`
	}
	return out
}

func hexOf(c color.Color, none string) string {
	if c == nil {
		return none
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

func escapeXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

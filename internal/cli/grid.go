package cli

import (
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"

	"agent/client/termsafe"
)

// grid is a table (section 6): a header, columns padded by display width, one
// record a line. A page is laid out at a time, each at least as wide as those
// before it, so that memory does not grow with the list.
type grid struct {
	a      *app
	widths []int
	rows   [][]string
	width  int // of the terminal; 0: none, nothing is cut
}

func newGrid(a *app, columns []string) *grid {
	g := &grid{a: a, widths: make([]int, len(columns)), width: a.terminalWidth()}
	g.add(columns)
	return g
}

func (g *grid) add(cells []string) {
	for i, cell := range cells {
		cells[i] = termsafe.OneLine(cell)
		g.widths[i] = max(g.widths[i], displayWidth(cells[i]))
	}
	g.rows = append(g.rows, cells)
}

func (g *grid) flush() error {
	var b strings.Builder
	for _, row := range g.rows {
		at := 0
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(g.cut(cell, at))
				break
			}
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", g.widths[i]-displayWidth(cell)+2))
			at += g.widths[i] + 2
		}
		b.WriteByte('\n')
	}
	g.rows = g.rows[:0]
	return g.a.write([]byte(b.String()))
}

// cut shortens the last column to what is left of a terminal's line.
func (g *grid) cut(cell string, at int) string {
	room := g.width - at
	if g.width == 0 || displayWidth(cell) <= room {
		return cell
	}
	var b strings.Builder
	used := 0
	for _, r := range cell {
		w := runeWidth(r)
		if used+w > room-1 {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + "…"
}

// terminalWidth is the width of stdout's terminal, 0 when it is none.
func (a *app) terminalWidth() int {
	f, ok := a.stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		return n
	}
	return 80
}

func displayWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth is how many cells a terminal gives a character.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xa960 && r <= 0xa97c,
		r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f900 && r <= 0x1f9ff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

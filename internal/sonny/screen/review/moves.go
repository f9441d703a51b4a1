package review

import (
	"path/filepath"
	"strings"

	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/screen/edit"
)

// lines is how far PgUp and PgDn go.
const lines = 10

// Move takes a key that moves in the file at hand. It reports whether it was one.
func (p *View) Move(key string) bool {
	switch key {
	case "up":
		p.row = max(0, p.row-1)
	case "down":
		p.row++
	case "pgup":
		p.row = max(0, p.row-lines)
	case "pgdown":
		p.row += lines
	default:
		return false
	}
	return true
}

// Act does an action of the review keys by its name (sonny.md 15), where the view itself
// can.
func (p *View) Act(action string) {
	v := p.laid.view
	switch action {
	case "review_next_file":
		p.to(p.file + 1)
	case "review_previous_file":
		p.to(p.file - 1)
	case "review_next_hunk":
		if i := p.hunk(v) + 1; i < len(v.Hunks) {
			p.row = v.Hunks[i]
		}
	case "review_previous_hunk":
		if i := p.hunk(v) - 1; i >= 0 {
			p.row = v.Hunks[i]
		}
	case "review_note":
		if lineOf(v, p.row) > 0 {
			p.writing = &edit.Field{}
		}
	case "review_split":
		split := !p.laid.split
		p.split = &split
	case "review_wrap":
		p.wrap = !p.wrap
	}
}

func (p *View) to(file int) {
	if p.Set != nil && file >= 0 && file < len(p.Set.Files) {
		p.file, p.row, p.top = file, 0, 0
	}
}

// Hunk is the hunk at hand as a patch has it; "" for none.
func (p *View) Hunk() string {
	f, i := p.current(), p.hunk(p.laid.view)
	if f == nil || i < 0 || i >= len(f.Hunks) {
		return ""
	}
	return hunkText(f.Hunks[i])
}

// Here is the file at hand as it is after the change, by its path, and the line at hand;
// "" where there is none.
func (p *View) Here() (path string, line int) {
	f := p.current()
	if f == nil || f.New == "" {
		return "", 0
	}
	return filepath.Join(p.Chosen().Top, f.New), lineOf(p.laid.view, p.row)
}

// hunkText is a hunk as a patch has it.
func hunkText(h diff.Hunk) string {
	var b strings.Builder
	for _, r := range h.Rows {
		b.WriteByte(r.Op)
		b.WriteString(r.Text + "\n")
	}
	return b.String()
}

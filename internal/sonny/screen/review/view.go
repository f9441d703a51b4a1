package review

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// filesWidth is the column of the files, on a screen that is wide enough for one.
const filesWidth = 34

// View is the changes as they are looked at: a scope, what was read of it, the file and
// the line at hand, and the notes. It belongs to one goroutine.
type View struct {
	Scopes []Scope // none before they are known
	Scope  int     // the one that is chosen
	Set    *Set    // nil: it is being read
	Failed error   // why it could not be
	Notes  []Note  // those that were not sent

	file, row, top int
	diffs          string // the setting
	split          *bool  // as the person chose; nil: by the setting and the width
	wrap           bool
	writing        *edit.Field // a note; nil for none
	laid           laidDiff
}

// New is a view of nothing yet, whose long lines wrap. diffs is how the person wants it
// laid out: "unified", "split", or "auto" and "" for what the width allows (tui.diff).
func New(diffs string) View { return View{wrap: true, diffs: diffs} }

// Chosen is the scope that is looked at. There must be one.
func (p *View) Chosen() Scope { return p.Scopes[p.Scope] }

// Forget puts away what was read, before it is read anew.
func (p *View) Forget() {
	p.Set, p.Failed, p.file, p.row, p.top = nil, nil, 0, 0, 0
	p.laid = laidDiff{}
}

// laidDiff is the file at hand as it was laid out last.
type laidDiff struct {
	file  *diff.File
	width int
	split bool
	wrap  bool
	view  diff.View
}

// Hints are the keys that do something, for the key line.
func (p *View) Hints() []string {
	if p.writing != nil {
		return []string{"Enter keeps the note", "Esc leaves it"}
	}
	out := []string{"j/k file", "]/[ hunk", "↑↓ line", "s scope", "c note"}
	if len(p.Notes) > 0 {
		out = append(out, "S send notes")
	}
	return append(out, "u split", "w wrap", "y copy hunk", "e editor", "Esc close")
}

func (p *View) current() *diff.File {
	if p.Set == nil || p.file >= len(p.Set.Files) {
		return nil
	}
	return p.Set.Files[p.file]
}

// Draw draws the files, what is chosen and the notes at the left of the diff; above it
// where there is no room for columns. name is the session's, branch that of its checkout
// or "".
func (p *View) Draw(c term.Canvas, columns bool, bot, name, branch string) {
	w, h := c.Size()
	c.Put(0, 0, text.Titled("review of "+cells.OneLine(name), cells.OneLine(branch), w), w)
	if columns {
		p.side(c.Sub(0, 1, filesWidth, h-1), bot)
		for y := 1; y < h; y++ {
			c.Put(filesWidth, y, text.Of(text.Rule, "│"), 1)
		}
		p.diff(c.Sub(filesWidth+1, 1, w-filesWidth-1, h-1))
		return
	}
	p.strip(c.Sub(0, 1, w, 1))
	p.diff(c.Sub(0, 2, w, h-2))
}

// headline is what the changes are, in one line.
func (p *View) headline() text.Line {
	switch {
	case p.Failed != nil:
		return text.Of(text.Fail, "cannot be read")
	case p.Set == nil:
		return text.Of(text.Dim, "reading…")
	}
	added, removed := p.Set.Counts()
	files := human.Count(len(p.Set.Files), "file", "files")
	if p.Set.More > 0 {
		files += fmt.Sprintf(" and %d more", p.Set.More)
	}
	return text.Join(text.Span{Text: p.Set.Against + "  ", Role: text.Dim}, text.Span{Text: files + " "},
		text.Span{Text: fmt.Sprintf("+%d", added), Role: text.Add}, text.Span{Text: " "}, text.Span{Text: fmt.Sprintf("−%d", removed), Role: text.Del})
}

// strip is the one row that a narrow screen has for what is chosen.
func (p *View) strip(c term.Canvas) {
	w, _ := c.Size()
	line := p.headline()
	if len(p.Scopes) > 0 {
		line = text.Line{Spans: append([]text.Span{{Text: p.Scopes[p.Scope].Label + "  ", Role: text.Accent}}, line.Spans...)}
	}
	if len(p.Notes) > 0 {
		line.Spans = append(line.Spans, text.Span{Text: "  " + human.Count(len(p.Notes), "note", "notes"), Role: text.Warn})
	}
	c.Put(1, 0, line.Cut(w-2), w-2)
}

// side is the left column, of a bot before its scopes are known.
func (p *View) side(c term.Canvas, bot string) {
	w, h := c.Size()
	y := 0
	put := func(l text.Line) {
		if y < h {
			c.Put(1, y, l.Cut(w-2), w-2)
		}
		y++
	}
	if len(p.Scopes) > 0 {
		bot = p.Scopes[p.Scope].Bot
	}
	put(text.Of(text.Plain, "changes of "+cells.OneLine(bot)))
	put(p.headline())
	put(text.Line{})
	below := len(p.Scopes) + 2
	if len(p.Notes) > 0 {
		below += len(p.Notes) + 2
	}
	if p.Set != nil {
		room := max(3, h-y-below)
		from := max(0, min(p.file-room/2, len(p.Set.Files)-room))
		for i := from; i < len(p.Set.Files) && i < from+room; i++ {
			p.fileRow(c, y, i)
			y++
		}
	}
	put(text.Line{})
	put(text.Of(text.Dim, "scope (s)"))
	for i, s := range p.Scopes {
		mark, role := "  ", text.Plain
		if i == p.Scope {
			mark, role = "▸ ", text.Accent
		}
		put(text.Of(role, mark+cells.OneLine(s.Label)))
	}
	if len(p.Notes) == 0 {
		return
	}
	put(text.Line{})
	put(text.Of(text.Dim, fmt.Sprintf("notes (%d)", len(p.Notes))))
	for _, n := range p.Notes {
		put(text.Of(text.Plain, cells.OneLine(fmt.Sprintf("%s:%d  %s", filepath.Base(n.Path), n.Line, n.Text))))
	}
}

// fileRow is a file of the list: what became of it, its name, its counts.
func (p *View) fileRow(c term.Canvas, y, i int) {
	w, _ := c.Size()
	f := p.Set.Files[i]
	op := "M"
	switch {
	case f.Old == "":
		op = "A"
	case f.New == "":
		op = "D"
	case f.Old != f.New:
		op = "R"
	}
	if i == p.file {
		c.Fill(0, y, w, 1, text.Select)
		c.Put(0, y, text.Of(text.Accent, "▎"), 1)
	}
	counts := text.Line{Spans: f.Counts(false)}
	room := w - 5 - counts.Width()
	name := cells.OneLine(f.Path())
	for over := text.Width(name) - room; over > 0; over = text.Width(name) - room {
		_, rest, ok := strings.Cut(strings.TrimPrefix(name, "…/"), "/")
		if !ok {
			break
		}
		name = "…/" + rest
	}
	c.Put(1, y, text.Of(text.Plain, op+" "+text.Cut(name, room, "…")), w-1)
	c.Put(w-1-counts.Width(), y, counts, counts.Width())
}

// diff draws the file at hand, and the note that is being written below its line.
func (p *View) diff(c term.Canvas) {
	w, h := c.Size()
	f := p.current()
	if f == nil {
		p.without(c)
		return
	}
	v := p.layout(f, w-2)
	p.row = min(p.row, max(0, len(v.Lines)-1))
	room := h - 2
	if p.writing != nil {
		room--
	}
	p.top = max(min(p.top, p.row), p.row-room+1, 0)
	c.Put(1, 0, p.fileHead(f, v).Right(text.Of(text.Dim, p.kind()), w-2), w-2)
	y := 2
	for i := p.top; i < len(v.Lines) && y < h; i++ {
		if i == p.row {
			c.Fill(0, y, w, 1, text.Select)
			c.Put(0, y, text.Of(text.Accent, "▎"), 1)
		}
		c.Put(1, y, v.Lines[i], w-2)
		y++
		if i == p.row && p.writing != nil {
			line, x := p.writing.Line(fmt.Sprintf("▎ note on line %d: ", lineOf(v, i)), w-4)
			c.Put(3, y, line, w-4)
			c.SetCursor(3+x, y)
			y++
		}
	}
	if p.Set.Cut && p.file == len(p.Set.Files)-1 && y < h {
		c.Put(1, y, text.Of(text.Warn, "there is more than 1 MiB of changes; the rest is not shown"), w-2)
	}
}

// without says why there is no file.
func (p *View) without(c term.Canvas) {
	w, _ := c.Size()
	switch {
	case p.Failed != nil:
		for i, line := range text.Wrap([]text.Span{{Text: cells.OneLine(fault.Screen.Words(p.Failed)), Role: text.Fail}}, text.Frame{Width: max(10, w-2)}) {
			c.Put(1, 1+i, line, w-2)
		}
	case p.Set != nil:
		c.Put(1, 1, text.Of(text.Dim, "nothing is changed here"), w-2)
	}
}

func (p *View) fileHead(f *diff.File, v diff.View) text.Line {
	words := ""
	if n := len(v.Hunks); n > 0 {
		words = fmt.Sprintf("hunk %d of %d", max(1, p.hunk(v)+1), n)
	}
	return text.Join(text.Span{Text: cells.OneLine(f.Path()), Attr: text.Bold},
		text.Span{Text: fmt.Sprintf("   file %d of %d   ", p.file+1, len(p.Set.Files)), Role: text.Dim}, text.Span{Text: words, Role: text.Dim})
}

func (p *View) kind() string {
	if p.laid.split {
		return "split (u unified)"
	}
	return "unified (u split)"
}

// leastSplit is how wide two columns must be together where the person always wants them.
const leastSplit = 80

// layout lays the file out where it is not yet.
func (p *View) layout(f *diff.File, w int) diff.View {
	fits := diff.CanSplit(w) || p.diffs == "split" && w >= leastSplit
	split := fits && p.diffs != "unified"
	if p.split != nil {
		split = fits && *p.split
	}
	l := &p.laid
	if l.file == f && l.width == w && l.split == split && l.wrap == p.wrap {
		return l.view
	}
	*l = laidDiff{file: f, width: w, split: split, wrap: p.wrap}
	o := diff.Options{Words: true, Cut: !p.wrap}
	if split {
		l.view = diff.Split(f, w, o)
	} else {
		l.view = diff.Unified(f, w, o)
	}
	return l.view
}

// hunk is the one that the line at hand is of, from 0; -1 for none.
func (p *View) hunk(v diff.View) int {
	for i, at := range slices.Backward(v.Hunks) {
		if p.row >= at {
			return i
		}
	}
	return -1
}

// lineOf is the number of the line that a row shows, after the change where it is there.
func lineOf(v diff.View, row int) int {
	if row >= len(v.At) {
		return 0
	}
	if at := v.At[row]; at.New > 0 {
		return at.New
	}
	return v.At[row].Old
}

package screen

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// filesWidth is the column of the files, on a screen that is wide enough for one.
const filesWidth = 34

// maxQuote bounds the line that a note quotes, in characters.
const maxQuote = 300

// reviewPanel is the panel of changes. Letters act; while a note is written they are its.
type reviewPanel struct {
	s      *session
	scopes []changeScope
	scope  int
	want   string // a task whose scope is to be chosen once it is known
	set    *changeSet
	failed error

	file, row, top int
	split          *bool  // as the person chose; nil: by the setting and the width
	diffs          string // the setting
	wrap           bool
	notes          []reviewNote
	writing        *edit.Field // a note; nil for none
	sending        bool
	laid           laidDiff
}

// reviewNote is a remark on a line.
type reviewNote struct {
	path  string
	line  int
	side  string // "after" or "before"
	quote string
	text  string
}

// laidDiff is the file at hand as it was laid out last.
type laidDiff struct {
	file  *diff.File
	width int
	split bool
	wrap  bool
	view  diff.View
}

func (p *reviewPanel) hints() []string {
	if p.writing != nil {
		return []string{"Enter keeps the note", "Esc leaves it"}
	}
	out := []string{"j/k file", "]/[ hunk", "↑↓ line", "s scope", "c note"}
	if len(p.notes) > 0 {
		out = append(out, "S send notes")
	}
	return append(out, "u split", "w wrap", "y copy hunk", "e editor", "Esc close")
}

func (p *reviewPanel) current() *diff.File {
	if p.set == nil || p.file >= len(p.set.files) {
		return nil
	}
	return p.set.files[p.file]
}

// view draws the files, what is chosen and the notes at the left of the diff, or above
// it on a narrow screen.
func (p *reviewPanel) view(a *App, c term.Canvas) {
	w, h := c.Size()
	right := ""
	if a.branch != "" {
		right = cells.OneLine(a.branch)
	}
	c.Put(0, 0, text.Titled("review of "+cells.OneLine(p.s.name()), right, w), w)
	if w >= mediumScreen {
		p.side(c.Sub(0, 1, filesWidth, h-1))
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
func (p *reviewPanel) headline() text.Line {
	switch {
	case p.failed != nil:
		return text.Of(text.Fail, cells.OneLine(p.failed.Error()))
	case p.set == nil:
		return text.Of(text.Dim, "reading…")
	}
	added, removed := p.set.counts()
	files := human.Count(len(p.set.files), "file", "files")
	if p.set.more > 0 {
		files += fmt.Sprintf(" and %d more", p.set.more)
	}
	return text.Join(text.Span{Text: p.set.against + "  ", Role: text.Dim}, text.Span{Text: files + " "},
		text.Span{Text: fmt.Sprintf("+%d", added), Role: text.Add}, text.Span{Text: " "}, text.Span{Text: fmt.Sprintf("−%d", removed), Role: text.Del})
}

// strip is the one row that a narrow screen has for what is chosen.
func (p *reviewPanel) strip(c term.Canvas) {
	w, _ := c.Size()
	line := p.headline()
	if len(p.scopes) > 0 {
		line = text.Line{Spans: append([]text.Span{{Text: p.scopes[p.scope].label + "  ", Role: text.Accent}}, line.Spans...)}
	}
	if len(p.notes) > 0 {
		line.Spans = append(line.Spans, text.Span{Text: "  " + human.Count(len(p.notes), "note", "notes"), Role: text.Warn})
	}
	c.Put(1, 0, line.Cut(w-2), w-2)
}

// side is the left column.
func (p *reviewPanel) side(c term.Canvas) {
	w, h := c.Size()
	y := 0
	put := func(l text.Line) {
		if y < h {
			c.Put(1, y, l.Cut(w-2), w-2)
		}
		y++
	}
	bot := p.s.bot
	if len(p.scopes) > 0 {
		bot = p.scopes[p.scope].bot
	}
	put(text.Of(text.Plain, "changes of "+cells.OneLine(bot)))
	put(p.headline())
	put(text.Line{})
	below := len(p.scopes) + 2
	if len(p.notes) > 0 {
		below += len(p.notes) + 2
	}
	if p.set != nil {
		room := max(3, h-y-below)
		from := max(0, min(p.file-room/2, len(p.set.files)-room))
		for i := from; i < len(p.set.files) && i < from+room; i++ {
			p.fileRow(c, y, i)
			y++
		}
	}
	put(text.Line{})
	put(text.Of(text.Dim, "scope (s)"))
	for i, s := range p.scopes {
		mark, role := "  ", text.Plain
		if i == p.scope {
			mark, role = "▸ ", text.Accent
		}
		put(text.Of(role, mark+cells.OneLine(s.label)))
	}
	if len(p.notes) == 0 {
		return
	}
	put(text.Line{})
	put(text.Of(text.Dim, fmt.Sprintf("notes (%d)", len(p.notes))))
	for _, n := range p.notes {
		put(text.Of(text.Plain, cells.OneLine(fmt.Sprintf("%s:%d  %s", filepath.Base(n.path), n.line, n.text))))
	}
}

// fileRow is a file of the list: what became of it, its name, its counts.
func (p *reviewPanel) fileRow(c term.Canvas, y, i int) {
	w, _ := c.Size()
	f := p.set.files[i]
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
func (p *reviewPanel) diff(c term.Canvas) {
	w, h := c.Size()
	f := p.current()
	if f == nil {
		if p.set != nil {
			c.Put(1, 1, text.Of(text.Dim, "nothing is changed here"), w-2)
		}
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
	if p.set.cut && p.file == len(p.set.files)-1 && y < h {
		c.Put(1, y, text.Of(text.Warn, "there is more than 1 MiB of changes; the rest is not shown"), w-2)
	}
}

func (p *reviewPanel) fileHead(f *diff.File, v diff.View) text.Line {
	words := ""
	if n := len(v.Hunks); n > 0 {
		words = fmt.Sprintf("hunk %d of %d", max(1, p.hunk(v)+1), n)
	}
	return text.Join(text.Span{Text: cells.OneLine(f.Path()), Attr: text.Bold},
		text.Span{Text: fmt.Sprintf("   file %d of %d   ", p.file+1, len(p.set.files)), Role: text.Dim}, text.Span{Text: words, Role: text.Dim})
}

func (p *reviewPanel) kind() string {
	if p.laid.split {
		return "split (u unified)"
	}
	return "unified (u split)"
}

// leastSplit is how wide two columns must be where the person always wants them.
const leastSplit = 80

// layout lays the file out where it is not yet.
func (p *reviewPanel) layout(f *diff.File, w int) diff.View {
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
func (p *reviewPanel) hunk(v diff.View) int {
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

func (p *reviewPanel) key(a *App, k term.Key) bool {
	if p.writing != nil {
		p.noteKey(a, k)
		return false
	}
	switch k.Name {
	case "up":
		p.row = max(0, p.row-1)
		return false
	case "down":
		p.row++
		return false
	case "pgup":
		p.row = max(0, p.row-10)
		return false
	case "pgdown":
		p.row += 10
		return false
	case "esc":
		return true
	}
	for _, name := range a.o.Keys.Find(k.Name, keys.State{}, keys.Review) {
		p.act(a, name)
	}
	return false
}

func (p *reviewPanel) act(a *App, name string) {
	v := p.laid.view
	switch name {
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
	case "review_scope":
		if len(p.scopes) > 0 {
			p.scope = (p.scope + 1) % len(p.scopes)
			p.load(a)
		}
	case "review_note":
		if lineOf(v, p.row) > 0 {
			p.writing = &edit.Field{}
		}
	case "review_send":
		p.send(a)
	case "review_split":
		split := !p.laid.split
		p.split = &split
	case "review_wrap":
		p.wrap = !p.wrap
	case "review_copy":
		if f, i := p.current(), p.hunk(v); f != nil && i >= 0 && i < len(f.Hunks) {
			a.copy(hunkText(f.Hunks[i]))
		}
	case "review_editor":
		p.edit(a, v)
	}
}

func (p *reviewPanel) to(file int) {
	if p.set != nil && file >= 0 && file < len(p.set.files) {
		p.file, p.row, p.top = file, 0, 0
	}
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

func (p *reviewPanel) edit(a *App, v diff.View) {
	f := p.current()
	if f == nil || f.New == "" {
		return
	}
	a.failing(a.openFile(filepath.Join(p.scopes[p.scope].top, f.New), lineOf(v, p.row)))
	p.load(a)
}

// noteKey takes a key while a note is written.
func (p *reviewPanel) noteKey(a *App, k term.Key) {
	switch k.Name {
	case "esc":
		p.writing = nil
	case "enter":
		if words := strings.TrimSpace(p.writing.Text()); words != "" {
			p.notes = append(p.notes, p.noteOn(p.row, words))
		}
		p.writing = nil
	default:
		p.writing.Key(a.o.Keys, k.Name, k.Text)
	}
}

// noteOn is a note on a row of the diff.
func (p *reviewPanel) noteOn(row int, words string) reviewNote {
	f, at := p.laid.file, p.laid.view.At[row]
	n := reviewNote{path: f.Path(), line: at.New, side: "after", text: words}
	if at.New == 0 {
		n.line, n.side = at.Old, "before"
	}
	if at.Hunk >= 0 && at.Hunk < len(f.Hunks) {
		n.quote = text.Cut(strings.TrimSpace(f.Hunks[at.Hunk].Line(at.Old, at.New)), maxQuote, "…")
	}
	return n
}

// send gives the notes to the bot that works there, as one message of the person's; to
// a bot that works they queue.
func (p *reviewPanel) send(a *App) {
	if len(p.notes) == 0 || p.sending {
		return
	}
	bot := a.world.Bot(p.scopes[p.scope].bot)
	if bot == nil {
		a.notes.fail(noBot(p.scopes[p.scope].bot))
		return
	}
	req := &protocol.Submit{Bot: bot.Record.Name, BotID: bot.Record.ID, RequestID: requestID(), Prompt: p.message(), Delivery: protocol.Queue}
	p.sending = true
	a.give(req, func(err error) {
		p.sending = false
		if err != nil {
			a.notes.fail(err)
			return
		}
		p.notes = nil
		a.notes.say("the notes went to " + req.Bot)
	})
}

package ahead

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// held is a row of what is set already.
type held struct {
	name string
	line text.Line
	open func(ctx context.Context) *page // nil: it is only told
}

// held are what is set already, in the order of the screen.
func (f *FirstRun) held() (rows []held) {
	if len(f.models) > 0 {
		rows = append(rows, held{"model", f.modelLine(), func(context.Context) *page { return f.modelPage() }})
	}
	for _, r := range f.Rows {
		if r.Name == f.row {
			rows = append(rows, held{"asks", text.Of(text.Plain, cells.OneLine(r.Value)), func(context.Context) *page { return f.asksPage() }})
		}
	}
	if f.Sandbox != nil {
		rows = append(rows, held{"sandbox", f.sandbox.words(), f.sandboxPage})
	}
	rows = append(rows, held{"folder", text.Of(text.Plain, cells.OneLine(f.Folder)), nil})
	if f.Held != nil {
		rows = append(rows, held{"extras", text.Of(text.Plain, cells.OneLine(f.extras.words())), f.extrasPage})
	}
	return rows
}

// modelLine is the model that holds, or that is proposed.
func (f *FirstRun) modelLine() text.Line {
	model := f.choice.Model
	line := text.Join(text.Span{Text: cells.OneLine(model)})
	if model == "" {
		line = text.Of(text.Dim, "none yet")
	}
	if model != "" && model == f.suggestion() && !f.chosen {
		line.Spans = append(line.Spans, text.Span{Text: "  suggested", Role: text.Accent})
	}
	if f.choice.Effort != "" && f.choice.Effort != "default" {
		line.Spans = append(line.Spans, text.Span{Text: " · effort " + f.choice.Effort, Role: text.Dim})
	}
	return line
}

// opening is what the rows that can be opened are counted from: the ways to connect come
// first, as long as there is a way to be taken.
const opening = 5

// openable are the rows that can be opened.
func (f *FirstRun) openable() (rows []held) {
	for _, r := range f.held() {
		if r.open != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// opens takes the keys that go through the rows and open one. It reports whether it was one.
func (f *FirstRun) opens(ctx context.Context, key string) bool {
	if f.step != askKey && f.step != connected {
		return false
	}
	rows := f.openable()
	switch n := int(key[0] - '0'); {
	case key == "up" && f.step == connected && f.hand == opening, key == "up" && f.hand <= 1:
		f.hand = 0
	case key == "up":
		f.hand--
	case key == "down" && f.step == connected && f.hand == 0:
		f.hand = opening
	case key == "down":
		f.hand = min(opening+len(rows)-1, f.hand+1)
	case key == "enter" && f.hand >= opening && f.hand-opening < len(rows):
		f.openPage(rows[f.hand-opening].open(ctx))
	case len(key) == 1 && f.field.Empty() && n >= opening && n < opening+len(rows):
		f.openPage(rows[n-opening].open(ctx))
	default:
		return false
	}
	return true
}

func (f *FirstRun) openPage(p *page) {
	f.page, f.was = p, f.message
	f.message = ""
}

// closePage shows the rows again, and what was said there before unless the page's last word
// is a fault.
func (f *FirstRun) closePage() {
	f.page = nil
	if !f.bad {
		f.message = f.was
	}
}

func (f *FirstRun) view(frame *term.Frame) {
	w, h := frame.Size()
	c := frame.All()
	c.Put(0, 0, text.Join(text.Span{Text: " sonny", Attr: text.Bold}, text.Span{Text: "  first run"}).Right(text.Of(text.Dim, f.Version+" "), w), w)
	c.Put(0, 1, text.Across(w), w)
	c.Put(0, h-2, text.Across(w), w)
	c.Put(0, h-1, text.Of(text.Dim, " "+f.hint()), w)
	if f.page != nil {
		f.viewPage(c.Sub(0, 2, w, h-4))
		return
	}
	y := 3
	put := func(l text.Line) {
		if y < h-2 {
			c.Put(0, y, l.Cut(w), w)
		}
		y++
	}
	if f.step == connected {
		f.viewConnected(put, w)
	} else if f.step == askOpen {
		f.viewMessage(put, w)
		f.keyRow(c, y, w)
		y += 2
	} else {
		put(text.Of(text.Plain, "   Paste a key from Anthropic, OpenAI or OpenRouter, or take a number."))
		y++
		f.keyRow(c, y, w)
		y += 2
		f.viewWays(put)
		y++
		f.viewMessage(put, w)
	}
	f.viewHeld(put)
	y++
	put(text.Of(text.Dim, "   Agents read every file you can read, and write where the sandbox lets"))
	put(text.Of(text.Dim, "   them. Nothing is sent but to the providers you connect."))
}

func (f *FirstRun) hint() string {
	switch {
	case f.aloud != nil:
		return f.asked()
	case f.page != nil:
		return f.page.hint
	case f.step == askOpen:
		return "type " + lead.OpenWord + " and Enter  Esc no"
	case f.hand >= opening:
		return "Enter open it  ↑↓ move  Esc later"
	case f.step == connected:
		return "Enter start  ↓ what is set  Esc another key"
	}
	return "Enter try the key  ↑↓ move  Esc later"
}

// viewPage draws the page that is open, with what there is to say at its foot.
func (f *FirstRun) viewPage(c term.Canvas) {
	w, h := c.Size()
	f.page.view(c.Sub(0, 0, w, max(1, h-2)))
	if f.message != "" {
		c.Put(2, h-1, text.Of(f.role(), cells.OneLine(f.message)).Cut(w-4), w-2)
	}
}

func (f *FirstRun) role() text.Role {
	if f.bad {
		return text.Fail
	}
	return text.Plain
}

// viewConnected is what stands above once a provider is connected.
func (f *FirstRun) viewConnected(put func(text.Line), w int) {
	f.viewMessage(put, w)
	mark := text.Span{Text: "   "}
	if f.hand == 0 {
		mark = text.Span{Text: " ▎ ", Role: text.Accent}
	}
	words := "Enter opens the folder; the model is asked for there"
	if f.choice.Model != "" {
		words = "Enter starts with " + cells.OneLine(f.choice.Model)
	}
	put(text.Join(mark, text.Span{Text: words}))
	put(text.Line{})
}

// viewWays are the ways to connect besides a key.
func (f *FirstRun) viewWays(put func(text.Line)) {
	for i, choice := range choices {
		mark := "   "
		if f.hand == i+1 {
			mark = " ▎ "
		}
		put(text.Join(text.Span{Text: mark, Role: text.Accent}, text.Span{Text: fmt.Sprintf("%d  ", i+1), Role: text.Accent},
			text.Span{Text: text.Pad(choice.name, 19)}, text.Span{Text: choice.does, Role: text.Dim}))
	}
}

func (f *FirstRun) viewMessage(put func(text.Line), w int) {
	if f.message == "" {
		return
	}
	for _, l := range text.Wrap([]text.Span{{Text: cells.OneLine(f.message), Role: f.role()}}, text.Frame{Width: max(10, w-4), First: text.Indent(3), Rest: text.Indent(3)}) {
		put(l)
	}
	put(text.Line{})
}

// viewHeld is what is set already, a row each; those that can be opened have a number.
func (f *FirstRun) viewHeld(put func(text.Line)) {
	put(text.Of(text.Dim, "   already set; change it here or later"))
	n := opening
	for _, r := range f.held() {
		mark := "   "
		if r.open != nil {
			mark = fmt.Sprintf(" %d ", n)
			if f.hand == n {
				mark = " ▎ "
			}
			n++
		}
		put(text.Join(append([]text.Span{{Text: mark, Role: text.Accent}, {Text: text.Pad(r.name, 10), Role: text.Dim}}, r.line.Spans...)...))
	}
}

// keyRow is the field: a key is never shown.
func (f *FirstRun) keyRow(c term.Canvas, y, w int) {
	name := map[step]string{askRegion: "region", askSpec: "spec", askSpecKey: "key", askOpen: "word"}[f.step]
	if name == "" {
		name = "key"
	}
	mark := "   "
	if f.hand == 0 {
		mark = " ▎ "
	}
	shown := f.field.Text()
	if name == "key" {
		shown = strings.Repeat("•", min(len([]rune(shown)), max(0, w-16)))
	}
	c.Put(0, y, text.Join(text.Span{Text: mark, Role: text.Accent}, text.Span{Text: text.Pad(name, 6), Role: text.Dim}, text.Span{Text: cells.OneLine(shown), Role: text.User}), w)
	c.SetCursor(9+text.Width(shown), y)
}

package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// PasteTooLarge is the code of a message that is longer than the daemon takes.
const PasteTooLarge protocol.Code = "paste_too_large"

// pasteKeys are what can be done with a long paste.
var pasteKeys = feature{
	actions: map[string]func(*App){"expand_paste": func(a *App) {
		if !a.composing().Editor().Expand(true) {
			a.notes.say("there is no paste to expand")
		}
	}},
}

// paste takes what was pasted: a text, or paths of pictures that are dropped.
func (a *App) paste(p term.Paste) {
	a.menu.close()
	if p.Cut {
		a.notes.say(fmt.Sprintf("the paste was longer than %d MiB; its end is missing", term.MaxPaste>>20))
	}
	if paths := picturePaths(p.Text); len(paths) > 0 {
		a.attach(paths, func() { a.composing().Editor().Paste(p.Text) })
		return
	}
	a.composing().Editor().Paste(p.Text)
}

// tooLarge offers to save the pastes of a message that is longer than the daemon takes.
func (a *App) tooLarge(c *composer, size int) {
	name := "its long pastes"
	if !hasPaste(c.Editor().Draft()) {
		name = "it"
	}
	a.panel = &askPanel{
		title: string(PasteTooLarge),
		lines: []string{
			fmt.Sprintf("The message has %d KiB; the daemon takes %d.", (size+1023)>>10, protocol.MaxPrompt>>10),
			"Save " + name + " under ~/.agent/sonny/pastes and send the file's name?",
		},
		yes: func(a *App) { a.savePastes(c) },
	}
}

func hasPaste(d edit.Draft) bool {
	for _, p := range d.Parts {
		if p.Chip != nil && p.Chip.Kind == edit.PasteChip {
			return true
		}
	}
	return false
}

// savePastes puts the pastes of a message into files, names them in it, and sends it.
func (a *App) savePastes(c *composer) {
	d, at := c.Editor().Draft(), a.o.Now()
	n := c.Editor().Changes()
	do(a, func(context.Context) (edit.Draft, error) {
		return inFiles(d, func(s string) (string, error) { return pen.SavePaste(a.o.Kept, s, at) })
	},
		func(d edit.Draft, err error) {
			switch {
			case err != nil:
				a.notes.fail(fmt.Errorf("%s: the paste was not saved: %w", PasteTooLarge, err))
			case c.Editor().Changes() != n:
				a.notes.say("the message was changed meanwhile; Enter asks again")
			default:
				c.Editor().SetDraft(d)
				a.send(delivery{})
			}
		})
}

// inFiles is a draft whose pastes are in files; where it has none, all of its text is.
func inFiles(d edit.Draft, save func(string) (string, error)) (edit.Draft, error) {
	if !hasPaste(d) {
		whole, pictures := d.Message()
		path, err := save(whole)
		out := edit.Draft{Parts: []edit.Part{{Text: "Read " + path + ": it is my message."}}}
		for _, p := range pictures {
			out.Parts = append(out.Parts, edit.Part{Chip: &p})
		}
		return out, err
	}
	out := edit.Draft{}
	for _, p := range d.Parts {
		if p.Chip == nil || p.Chip.Kind != edit.PasteChip {
			out.Parts = append(out.Parts, p)
			continue
		}
		path, err := save(p.Chip.Text)
		if err != nil {
			return d, err
		}
		lines := strings.Count(strings.TrimSuffix(p.Chip.Text, "\n"), "\n") + 1
		out.Parts = append(out.Parts, edit.Part{Text: fmt.Sprintf(" (what I pasted, %s, is in the file %s) ", human.Count(lines, "line", "lines"), path)})
	}
	return out, nil
}

// askPanel asks before something is done: y or Enter does it, anything else that closes
// a panel does not.
type askPanel struct {
	title string
	lines []string
	text  string // a file's text, which stands below them with each row marked; "" for none
	yes   func(a *App)
	no    func(a *App) // nil for nothing
}

func (p *askPanel) hints() []string { return []string{"Enter yes", "Esc no"} }

func (p *askPanel) view(a *App, c term.Canvas) {
	w, h := c.Size()
	c.Put(0, 0, text.Titled(p.title, "", w), w)
	rows := p.rows(w)
	for i, line := range rows {
		switch y := i + 2; {
		case y == h-1 && i < len(rows)-1:
			c.Put(2, y, text.Of(text.Warn, "… and more, which this screen is too small for"), w-2)
		case y < h:
			c.Put(0, y, line, w)
		}
	}
}

func (p *askPanel) rows(w int) (out []text.Line) {
	for _, s := range p.lines {
		for row := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
			out = append(out, text.Wrap([]text.Span{{Text: cells.OneLine(row)}}, text.Frame{Width: max(10, w-2), First: text.Indent(2), Rest: text.Indent(2)})...)
		}
	}
	if p.text == "" {
		return out
	}
	return append(out, decide.Barred(p.text, w)...)
}

func (p *askPanel) key(a *App, k term.Key) bool {
	switch k.Name {
	case "enter", "y":
		a.panel = nil
		p.yes(a)
		return false
	case "esc", "n":
		if p.no != nil {
			p.no(a)
		}
		return true
	}
	return false
}

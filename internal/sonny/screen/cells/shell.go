package cells

import (
	"fmt"
	"strings"

	"agent/internal/sonny/screen/text"
)

// shownOutput is how much of the output of a command of the person's own stands folded,
// in lines: its beginning, and while it runs its end.
const shownOutput = 10

// Shell adds a command that the person runs, outside any bot.
func (t *Transcript) Shell(command string) *Cell {
	return t.add(&Cell{Kind: Shell, Text: clean(command), Live: true, began: t.now()})
}

// ShellOutput is what such a command has printed so far, without what was dropped of its
// beginning, in bytes.
func (t *Transcript) ShellOutput(c *Cell, out string, dropped int) {
	if dropped > 0 {
		out = fmt.Sprintf("… %d bytes before this …\n", dropped) + out
	}
	c.Detail = out
	c.Changed()
}

// ShellEnded says how it ended; "" for well.
func (t *Transcript) ShellEnded(c *Cell, how string) {
	c.Live, c.How, c.Took = false, clean(how), t.now().Sub(c.began)
	c.Changed()
}

// shell is the command, and its output below.
func (c *Cell) shell(l Look) []text.Line {
	end := text.Of(text.Dim, Span(c.Took))
	switch {
	case c.Live:
		end = text.Of(text.Run, "runs · Esc ends it")
	case c.How != "":
		end = text.Of(text.Fail, c.How+"  "+Span(c.Took))
	}
	first, _, _ := strings.Cut(c.Text, "\n")
	head := text.Join(text.Span{Text: "! ", Role: text.Accent, Chrome: true}, text.Span{Text: OneLine(first), Role: text.User})
	out := []text.Line{head.Cut(max(0, l.Width-end.Width()-1)).Right(end, l.Width)}
	body := outputLines(c.Detail, text.Plain, l.Width)
	if c.Live && len(body) > shownOutput {
		return append(out, body[len(body)-shownOutput:]...)
	}
	return append(out, folded(body, shownOutput, c.open(l))...)
}

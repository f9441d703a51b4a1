package cells

import (
	"encoding/json"
	"strings"

	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// Card is a task, or a background process, as the transcript of the bot that started it shows
// it: how it does now (sonny.md 8.2). All but Mark may be a model's words, or a program's.
type Card struct {
	Mark text.Span // the glyph of its state
	Name string
	Plan string // what its plan has come to, or what a process has; "" for nothing
	Took string // how long its turn has run, or it has; "" at rest
	Last string // the last thing that it did or wrote, as it is shown; "" for nothing that was seen
}

func (c *Card) lines(width int) []text.Line {
	mark := c.Mark
	mark.Text += " "
	mark.Chrome = true
	head := text.Join(mark, text.Span{Text: OneLine(c.Name), Role: text.Accent})
	if c.Plan != "" {
		head.Spans = append(head.Spans, text.Span{Text: "  " + OneLine(c.Plan)})
	}
	out := []text.Line{head.Right(text.Of(text.Dim, c.Took), width)}
	if c.Last != "" {
		out = append(out, text.Of(text.Dim, "  "+OneLine(c.Last)).Cut(width))
	}
	return out
}

// Task is the bot that a call of the cell started as a task, or offers to the person; "" for
// none.
func (c *Cell) Task() string {
	if c.Kind != Call {
		return ""
	}
	return c.Calls[0].task()
}

func (c *ToolCall) task() string {
	if !c.done || c.failed != "" {
		return ""
	}
	switch c.Name {
	case "show_agent":
		return c.args.Bot
	case "start_task":
	default:
		return ""
	}
	if c.started == nil {
		var of struct{ Bot string }
		_ = json.Unmarshal([]byte(c.Result), &of) // of another form it names no bot
		c.started = &of.Bot
	}
	return *c.started
}

// HandleName is what a handle is shown as: a bot's turn as its bot, a background command as
// proc N. Anything else stays as it is.
func HandleName(handle string) string {
	h, err := protocol.ParseHandle(handle)
	switch {
	case err != nil:
		return handle
	case h.Bot != "":
		return h.Bot
	}
	return strings.Replace(handle, ":", " ", 1)
}

// process is the handle of the background command that the call started; "" for none.
func (c *ToolCall) process() string {
	if c.Name != "shell" || !c.args.Background || !c.done || c.failed != "" {
		return ""
	}
	if c.handle == nil {
		var of struct{ Handle string }
		_ = json.Unmarshal([]byte(c.Result), &of) // of another form it names none
		c.handle = &of.Handle
	}
	return *c.handle
}

// card is how what a call started does; nil where there is no such thing by now.
func (t *Transcript) card(c *ToolCall) *Card {
	if handle := c.process(); handle != "" && t.Process != nil {
		return t.Process(handle, c.Ended)
	}
	if bot := c.task(); bot != "" && t.Card != nil {
		return t.Card(bot)
	}
	return nil
}

func (c *ToolCall) card() *Card {
	if c.cards == nil {
		return nil
	}
	return c.cards(c)
}

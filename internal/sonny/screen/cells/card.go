package cells

import (
	"encoding/json"

	"agent/internal/sonny/screen/text"
)

// Card is a task as the transcript of the bot that started it shows it: how it does now
// (sonny.md 8.2). All but Mark may be a model's words.
type Card struct {
	Mark text.Span // the glyph of its state
	Name string
	Plan string // what its plan has come to; "" for none
	Took string // how long its turn has run; "" at rest
	Last string // the last thing that it did; "" for nothing that was seen
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
		out = append(out, text.Of(text.Dim, "  ▸ "+OneLine(c.Last)).Cut(width))
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

func (t *Transcript) card(bot string) *Card {
	if t.Card == nil {
		return nil
	}
	return t.Card(bot)
}

// card is how a task that the call started does; nil where there is none by now.
func (c *ToolCall) card() *Card {
	if c.cards == nil {
		return nil
	}
	if name := c.task(); name != "" {
		return c.cards(name)
	}
	return nil
}

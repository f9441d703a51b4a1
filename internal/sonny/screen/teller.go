package screen

import (
	"context"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/story"
	"agent/protocol"
)

// teller is what a session's story has of the screen.
type teller struct {
	a *App
	s *session
}

func (t teller) Beside(work func(context.Context) (then func())) { desk{t.a}.Beside(work) }

func (t teller) Shows() bool      { return t.a.shows(t.s) }
func (t teller) Look() cells.Look { return t.s.look }
func (t teller) Fail(err error)   { t.a.notes.fail(err) }
func (t teller) Cut() bool        { return t.a.lost != nil }

func (t teller) Filled(p *story.Part) {
	t.a.tellUsed(t.s.tr, p.Used())
	t.a.world.Line(t.s.bot, p.Turns())
	t.s.waits(t.a)
}

func (t teller) Loaded() {
	t.a.waited(t.s)
	t.a.sessionLoaded(t.s)
}

func (t teller) Older(p *story.Part, tr *cells.Transcript) {
	t.a.tellUsed(tr, p.Used())
	t.a.slack.soon()
}

func (t teller) Took() { t.a.tellUsed(t.s.tr, t.s.used) }

// Finished tells of protected paths that the call's result says were open to it.
func (t teller) Finished(c *cells.ToolCall) { t.a.exposes(t.s, c) }

func (t teller) Ended(d *protocol.TurnFinished) {
	if first := t.s.first; first != nil && d.Status == protocol.StatusFailed {
		first.refused(t.a, t.s, said(d.Error), said(d.Detail))
	}
	t.s.first = nil
}

// said is what a pointer to a text holds; "" for nil.
func said[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

// scrollTop goes to the oldest that is loaded, what is on its way with it.
func (a *App) scrollTop() {
	a.scroll(everything)
	if s := a.at(); s != nil && s.story.Growing() && !s.story.Awaited() {
		s.story.WhenGrown(func() { s.up = everything })
	}
}

// everything is more rows than there are.
const everything = 1 << 30

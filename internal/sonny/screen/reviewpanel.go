package screen

import (
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/outbox"
	"agent/internal/sonny/screen/review"
	"agent/internal/sonny/screen/term"
	"agent/protocol"
)

// reviewPanel is the panel of changes. Letters act; while a note is written they are its.
type reviewPanel struct {
	review.View
	s       *session
	want    string // a task whose scope is to be chosen once it is known
	sending bool
}

func (p *reviewPanel) hints() []string { return p.Hints() }

func (p *reviewPanel) view(a *App, c term.Canvas) {
	w, _ := c.Size()
	p.Draw(c, w >= mediumScreen, p.s.bot, a.called(p.s), a.branch)
}

func (p *reviewPanel) key(a *App, k term.Key) bool {
	switch {
	case p.Writing():
		p.Write(a.o.Keys, k)
	case k.Name == "esc":
		return true
	case !p.Move(k.Name):
		for _, name := range a.o.Keys.Find(k.Name, keys.State{}, keys.Review) {
			p.act(a, name)
		}
	}
	return false
}

func (p *reviewPanel) act(a *App, name string) {
	switch name {
	case "review_scope":
		if len(p.Scopes) > 0 {
			p.Scope = (p.Scope + 1) % len(p.Scopes)
			p.load(a)
		}
	case "review_send":
		p.send(a)
	case "review_copy":
		if hunk := p.Hunk(); hunk != "" {
			a.copy(hunk)
		}
	case "review_editor":
		if path, line := p.Here(); path != "" {
			a.failing(a.openFile(path, line))
			p.load(a)
		}
	default:
		p.Act(name)
	}
}

// send gives the notes to the bot that works there, as one message of the person's; to
// a bot that works they queue.
func (p *reviewPanel) send(a *App) {
	if len(p.Notes) == 0 || p.sending {
		return
	}
	bot := a.world.Bot(p.Chosen().Bot)
	if bot == nil {
		a.notes.fail(noBot(p.Chosen().Bot))
		return
	}
	req := &protocol.Submit{Bot: bot.Record.Name, BotID: bot.Record.ID, RequestID: outbox.NewRequest(), Prompt: p.Message(), Delivery: protocol.Queue}
	p.sending = true
	a.out.Give(req, func(err error) {
		p.sending = false
		if err != nil {
			a.notes.fail(err)
			return
		}
		p.Notes = nil
		a.notes.say("the notes went to " + req.Bot)
	})
}

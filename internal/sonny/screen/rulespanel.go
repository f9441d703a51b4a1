package screen

import (
	"context"
	"fmt"

	"agent/internal/rules"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// rulesPanel lists the rules of the files, in their order: those that hold for the bot on
// screen, or for a lead that is yet to be made (sonny.md 11).
type rulesPanel struct {
	listPanel
	held heldRules
}

// heldRules are the rules as they were read last.
type heldRules struct {
	owner *protocol.Bot // whose session's rules are among them: the lead; nil before there is one
	list  []rules.Rule
}

func (h *heldRules) bot() int64 {
	if h.owner == nil {
		return 0
	}
	return h.owner.ID
}

func (a *App) openRules() {
	p := &rulesPanel{}
	p.name, p.title, p.waits = "rules", "command rules", "reading…"
	p.empty = "no rules: every command that leaves the sandbox is asked about"
	p.head = text.Of(text.Dim, text.Pad("DECISION", 12)+text.Pad("FILE", 22)+"COMMAND")
	p.hint = []string{"d take out", "Tab reach"}
	p.right = func() string { return fmt.Sprint(len(p.held.list)) }
	p.rows = func(*App) []lists.Row { return p.listed() }
	p.detail = func(_ *App, r lists.Row, w int) []text.Line { return p.about(r, w) }
	p.keys = map[string]func(*App, lists.Row) bool{
		"rule_remove": func(a *App, r lists.Row) bool { p.remove(a, r); return false },
		"rule_reach":  func(a *App, r lists.Row) bool { p.move(a, r); return false },
	}
	a.panel = p
	p.read(a)
}

// read reads the files, and whose session's rules are among them.
func (p *rulesPanel) read(a *App) {
	bot := ""
	if a.session != nil {
		bot = a.session.bot
	}
	place := a.o.Rules
	do(a, func(ctx context.Context) (h heldRules, err error) {
		if bot != "" {
			if h.owner, err = allow.Owner(ctx, a.client(), bot); err != nil {
				return h, err
			}
		}
		set, err := allow.Parsed(place.Read(h.bot()))
		if err == nil {
			h.list = set.Rules()
		}
		return h, err
	}, func(h heldRules, err error) {
		p.waits = ""
		if err != nil {
			p.empty = fault.Screen.Words(err)
			a.notes.fail(err)
			return
		}
		p.held = h
	})
}

func (p *rulesPanel) listed() (rows []lists.Row) {
	for i, r := range p.held.list {
		role := map[rules.Decision]text.Role{rules.Allow: text.Run, rules.Prompt: text.Wait, rules.Forbidden: text.Fail}[r.Decision]
		rows = append(rows, lists.InColumns(fmt.Sprint(i),
			lists.Column{Text: r.Decision.String(), Width: 11, Role: role},
			lists.Column{Text: cells.OneLine(fmt.Sprintf("%s:%d", r.File, r.Line)), Width: 21, Role: text.Dim},
			lists.Column{Text: cells.OneLine(r.String())},
		))
	}
	return rows
}

// at is the rule of a row; nil where it is gone.
func (p *rulesPanel) at(r lists.Row) *rules.Rule {
	i := 0
	if _, err := fmt.Sscan(r.ID, &i); err != nil || i >= len(p.held.list) {
		return nil
	}
	return &p.held.list[i]
}

// about says how far a rule reaches, and why it is there.
func (p *rulesPanel) about(r lists.Row, w int) []text.Line {
	rule := p.at(r)
	if rule == nil {
		return nil
	}
	words := "every bot, every folder; the file is yours to edit"
	if _, reach, written := allow.Written(rule); written {
		words = "holds in " + reach.String()
	}
	lines := []text.Line{text.Of(text.Dim, words)}
	if rule.Justification != "" {
		lines = append(lines, text.Wrap([]text.Span{{Text: cells.OneLine(rule.Justification)}}, text.Frame{Width: w})...)
	}
	return lines
}

// written is the rule at hand where Sonny wrote it; else it says whose it is.
func (p *rulesPanel) written(a *App, r lists.Row) (allow.Rule, allow.Reach, bool) {
	rule := p.at(r)
	if rule == nil {
		return allow.Rule{}, 0, false
	}
	out, reach, ok := allow.Written(rule)
	if !ok {
		a.notes.say(rule.File + " in " + human.Path(a.o.Rules.Rules) + " is yours to edit; a rule is changed here where Sonny wrote it")
	}
	return out, reach, ok
}

// remove takes a rule out, after a question.
func (p *rulesPanel) remove(a *App, r lists.Row) {
	rule, reach, ok := p.written(a, r)
	if !ok {
		return
	}
	p.ask(&question{
		text: "Take out " + rule.Decision + " " + cells.OneLine(allow.Text(rule.Words)) + ", which holds in " + reach.String() + "?",
		yes: func(a *App) {
			p.change(a, "it is taken out", func(place allow.Place, bot int64) error {
				_, err := place.Remove(reach, bot, rule)
				return err
			})
		},
	})
}

// move gives a rule the other reach.
func (p *rulesPanel) move(a *App, r lists.Row) {
	rule, reach, ok := p.written(a, r)
	switch {
	case !ok:
	case p.held.owner == nil:
		a.notes.say("there is no session yet that a rule could be of")
	default:
		p.change(a, "it holds in "+reach.Other().String(), func(place allow.Place, bot int64) error {
			return place.Move(reach, bot, rule)
		})
	}
}

// change changes the files and gives the lead its rules as they are now. Other bots have
// them from their next message on.
func (p *rulesPanel) change(a *App, words string, change func(place allow.Place, bot int64) error) {
	owner, place := p.held.owner, a.o.Rules
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		if err := change(place, p.held.bot()); err != nil || owner == nil {
			return nil, err
		}
		return place.Give(ctx, a.client(), owner)
	}, func(record *protocol.Bot, err error) {
		if record != nil {
			a.world.Put(*record)
		}
		if err != nil {
			a.notes.fail(err)
		} else {
			a.notes.say(words + "; bots of other sessions have it from their next message on")
		}
		p.read(a)
	})
}

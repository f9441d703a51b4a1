package screen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/client"
	"agent/client/termsafe"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// Keys that were meant for a message must never answer (sonny.md 9.2).
const (
	quietBefore  = time.Second            // no key for so long before a question opens: it takes the keyboard
	swallowedFor = 350 * time.Millisecond // and then takes no key for so long
	commandRows  = 12                     // of a command that are shown, unless all is asked for
)

// approvalCommands move to the question that is open.
var approvalCommands = feature{
	actions: map[string]func(*App){"answer": func(a *App) { a.answers.focus(a) }},
}

// answers is the panel of the calls that wait for the person.
type answers struct {
	list    []*protocol.Approval
	at      int
	focused bool      // it has the keyboard
	deaf    time.Time // until when it takes no key
	choice  int       // the highlighted one, from 1; 0 for none
	whole   bool
	reason  *composer // being written; nil when none is
	asking  bool
	again   bool
	sent    map[string]bool // calls that were answered here, by callKey
}

// open reports whether a question is on screen.
func (p *answers) open(a *App) bool { return a.session != nil && len(p.list) > 0 }

// callKey names a call's request: its number counts anew for each call.
func callKey(c *protocol.Approval) string {
	return fmt.Sprint(c.Bot, " ", c.Turn, " ", c.CallID, " ", c.Step, " ", c.Request)
}

// current is the call on screen.
func (p *answers) current() *protocol.Approval { return p.list[p.at] }

// forPerson reports whether a call waits for somebody who is not the judge.
func forPerson(gates []string) bool {
	return slices.ContainsFunc(gates, func(tag string) bool { return tag != "auto" })
}

// refresh reads the calls that wait, where there may be other ones now.
func (p *answers) refresh(a *App) {
	if a.session == nil {
		return
	}
	bots := a.asked()
	waits := len(p.list) > 0
	for _, b := range bots {
		for _, c := range b.Waits {
			waits = waits || forPerson(c.Gates)
		}
	}
	if !waits {
		return
	}
	if p.asking {
		p.again = true
		return
	}
	p.asking = true
	name := a.session.bot
	do(a, func(ctx context.Context) ([]*protocol.Approval, error) {
		var list []*protocol.Approval
		for c, err := range a.client().Approvals(ctx, client.ApprovalFilter{Bot: name}) {
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		}
		return list, nil
	}, func(list []*protocol.Approval, err error) {
		p.asking = false
		if err == nil && a.session != nil && a.session.bot == name {
			p.set(a, list)
		}
		if p.again {
			p.again = false
			p.refresh(a)
		}
	})
}

// asked are the bots whose calls are shown here.
func (a *App) asked() []*live.Bot {
	if b := a.bot(); b != nil {
		return []*live.Bot{b}
	}
	return nil
}

// set shows the calls that wait now. When another call comes on screen the panel is
// deaf again.
func (p *answers) set(a *App, list []*protocol.Approval) {
	had := ""
	if len(p.list) > 0 {
		had = callKey(p.current())
	}
	list = slices.DeleteFunc(list, func(c *protocol.Approval) bool { return !forPerson(c.Gates) || p.sent[callKey(c)] })
	p.list = list
	p.at = max(0, slices.IndexFunc(list, func(c *protocol.Approval) bool { return callKey(c) == had }))
	switch {
	case len(list) == 0:
		p.focused, p.reason, p.whole = false, nil, false
	case had == "":
		if a.composing().empty() && a.o.Now().Sub(a.lastKey) >= quietBefore {
			p.take(a)
		}
	case callKey(p.current()) != had:
		p.choice, p.reason, p.whole = 0, nil, false
		p.deafen(a)
	}
}

// take gives the panel the keyboard.
func (p *answers) take(a *App) {
	p.focused, p.choice = true, 0
	p.deafen(a)
}

func (p *answers) deafen(a *App) { p.deaf = a.o.Now().Add(swallowedFor) }

// yield gives the keyboard back to the composer.
func (p *answers) yield() { p.focused, p.reason = false, nil }

// focus moves to the question. It reports whether there is one.
func (p *answers) focus(a *App) bool {
	if !p.open(a) {
		return false
	}
	p.take(a)
	return true
}

// key takes a key where the panel has the keyboard.
func (p *answers) key(a *App, k term.Key) bool {
	if !p.focused || !p.open(a) {
		return false
	}
	if a.o.Now().Before(p.deaf) {
		p.deafen(a)
		return true
	}
	if p.reason != nil {
		p.reasonKey(a, k)
		return true
	}
	switch k.Name {
	case "1":
		p.decide(a, protocol.Allow, "")
	case "3":
		p.decide(a, protocol.Deny, "")
	case "4":
		p.reason = &composer{}
	case "up", "down":
		p.move(k.Name)
	case "enter":
		p.enter(a)
	case "v":
		p.whole = !p.whole
	case "n":
		p.at = (p.at + 1) % len(p.list)
		p.choice = 0
		p.deafen(a)
	case "esc":
		p.yield()
	}
	return true
}

// options are the numbers of the choices that are offered.
var options = []int{1, 3, 4}

func (p *answers) move(name string) {
	i := slices.Index(options, p.choice)
	switch {
	case name == "down":
		i = min(i+1, len(options)-1)
	case i < 0:
		i = len(options) - 1
	default:
		i = max(i-1, 0)
	}
	p.choice = options[i]
}

func (p *answers) enter(a *App) {
	switch p.choice {
	case 1:
		p.decide(a, protocol.Allow, "")
	case 3:
		p.decide(a, protocol.Deny, "")
	case 4:
		p.reason = &composer{}
	}
}

func (p *answers) reasonKey(a *App, k term.Key) {
	switch k.Name {
	case "enter":
		p.decide(a, protocol.Deny, strings.TrimSpace(p.reason.text()))
	case "esc":
		p.reason = nil
	default:
		p.reason.key(a.o.Keys, k)
	}
}

// decide answers the call on screen, under its own request number.
func (p *answers) decide(a *App, decision, reason string) {
	c := p.current()
	answer := &protocol.Answer{
		Bot: c.Bot, Turn: c.Turn, CallID: c.CallID, Request: c.Request, Step: c.Step,
		Decision: decision, Reason: reason, By: cells.You,
	}
	if p.sent == nil {
		p.sent = map[string]bool{}
	}
	p.sent[callKey(c)] = true
	p.reason = nil
	p.set(a, p.list)
	do(a, func(ctx context.Context) (*protocol.Answered, error) { return a.client().Answer(ctx, answer) },
		func(_ *protocol.Answered, err error) {
			switch {
			case err == nil:
			case late(err):
				a.notes.say("too late: " + string(protocol.CodeOf(err)))
			default:
				delete(p.sent, callKey(c))
				a.notes.fail(err)
				p.refresh(a)
			}
		})
}

// late reports whether somebody or something was faster.
func late(err error) bool {
	for _, code := range []protocol.Code{protocol.ApprovalSuperseded, protocol.ApprovalAlreadyAnswered, protocol.NoPendingApproval, protocol.StaleTurn} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// rows draws the panel: which bot and why, the whole command, whose permissions, what
// the model says, the choices (sonny.md 9.1).
func (p *answers) rows(a *App, w int) []text.Line {
	if !p.open(a) {
		return nil
	}
	c := p.current()
	count := ""
	if len(p.list) > 1 {
		count = fmt.Sprintf("%d of %d", p.at+1, len(p.list))
	}
	out := []text.Line{titledRule(termsafe.OneLine(c.Bot)+" "+why(c), count, w), {}}
	out = append(out, p.command(c, w)...)
	out = append(out, text.Line{})
	out = append(out, text.Of(text.Dim, "  "+strings.Join(facts(a, c), " · ")).Cut(w))
	for _, target := range c.Target {
		out = append(out, text.Of(text.Warn, "  wants "+termsafe.OneLine(target)).Cut(w))
	}
	if c.Justification != "" {
		out = append(out, text.Wrap([]text.Span{{Text: "it says: " + termsafe.OneLine(c.Justification), Role: text.Dim}}, text.Frame{Width: w - 2, First: indent2, Rest: indent2})...)
	}
	out = append(out, text.Line{})
	if p.reason != nil {
		return append(out, text.Join(text.Span{Text: "  why  ", Role: text.Dim}, text.Span{Text: p.reason.text(), Role: text.User}, text.Span{Text: "▍", Role: text.Dim}), text.Line{})
	}
	for _, o := range []struct {
		n    int
		text string
	}{{1, "allow once"}, {3, "deny"}, {4, "deny and say why"}} {
		line := text.Join(text.Span{Text: fmt.Sprintf("  %d  ", o.n), Role: text.Accent}, text.Span{Text: o.text})
		if p.choice == o.n {
			line.Spans[0].Text = fmt.Sprintf("▎ %d  ", o.n)
			for i := range line.Spans {
				line.Spans[i].Attr |= text.Bold
			}
		}
		out = append(out, line)
	}
	return append(out, text.Line{})
}

func why(c *protocol.Approval) string {
	switch c.Cause {
	case "escalation", "outside_write":
		return "asks to leave the sandbox"
	case "rule_prompt":
		return "asks: a rule of yours wants it"
	case "served", "step":
		return "asks to use " + termsafe.OneLine(c.Name)
	}
	return "asks"
}

// command is what would run, whole and with nothing hidden.
func (p *answers) command(c *protocol.Approval, w int) []text.Line {
	var args struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	shown := string(c.Arguments)
	if json.Unmarshal(c.Arguments, &args) == nil {
		switch {
		case args.Command != "":
			shown = args.Command
		case args.Path != "":
			shown = c.Name + " " + args.Path
		}
	}
	in := []text.Span{{Text: "    ", Chrome: true}}
	var out []text.Line
	for line := range strings.SplitSeq(strings.TrimRight(shown, "\n"), "\n") {
		out = append(out, text.Wrap([]text.Span{{Text: termsafe.OneLine(line), Attr: text.Bold}}, text.Frame{Width: w - 2, First: in, Rest: in})...)
	}
	if !c.Whole() {
		out = append(out, text.Of(text.Warn, "    some of it is too long to be shown here"))
	}
	if !p.whole && len(out) > commandRows {
		n := len(out) - commandRows
		out = append(out[:commandRows:commandRows], text.Of(text.Dim, fmt.Sprintf("    +%d lines, v shows all", n)))
	}
	return out
}

// facts are where it would run, as whom, and how long it waits.
func facts(a *App, c *protocol.Approval) []string {
	folder := ""
	if b := a.world.Bot(c.Bot); b != nil && b.Record.Workspace != nil {
		folder = " in " + termsafe.OneLine(tilde(*b.Record.Workspace))
	}
	out := []string{termsafe.OneLine(c.Name) + folder, "runs with all your permissions"}
	if c.ExpiresMS == nil {
		return append(out, "no time limit")
	}
	left := time.UnixMilli(*c.ExpiresMS).Sub(a.o.Clock())
	return append(out, "expires in "+cells.Span(max(0, left)))
}

package screen

import (
	"context"
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// slashCommand is what stands after a slash.
type slashCommand struct {
	name, args, does string
	run              func(a *App, args string) error
}

// needs reports whether a command does nothing without what stands behind it.
func (c *slashCommand) needs() bool { return c.args != "" && !strings.HasPrefix(c.args, "[") }

// basics are the keys and commands that every screen has.
var basics = feature{
	commands: []slashCommand{
		{"pause", "[REASON]", "stop every bot of the store", (*App).pause},
		{"unpause", "", "let them go on", (*App).unpause},
		{"rename", "TITLE", "name this session", func(a *App, args string) error {
			if s := a.at(); s != nil {
				s.note(a, func(k *lead.Session) { k.Title = args }, nil)
			}
			return nil
		}},
		{"help", "", "all keys", func(a *App, _ string) error { a.act("keys"); return nil }},
		{"quit", "", "detach", func(a *App, _ string) error { a.leave(); return nil }},
	},
	actions: map[string]func(*App){
		"detach":           (*App).leave,
		"suspend":          (*App).suspend,
		"redraw":           func(a *App) { a.o.Term.Redraw() },
		"fold_output":      func(a *App) { a.fold(func(l *cells.Look) { l.Output = !l.Output }) },
		"fold_thoughts":    func(a *App) { a.fold(func(l *cells.Look) { l.Thoughts = !l.Thoughts }) },
		"scroll_page_up":   func(a *App) { a.scroll(max(1, a.h/2)) },
		"scroll_page_down": func(a *App) { a.scroll(-max(1, a.h/2)) },
		"scroll_up":        func(a *App) { a.scroll(1) },
		"scroll_down":      func(a *App) { a.scroll(-1) },
		"scroll_top":       (*App).scrollTop,
		"scroll_bottom":    func(a *App) { a.scroll(-1 << 30) },
	},
}

// fold changes what the transcript shows of its cells.
func (a *App) fold(change func(*cells.Look)) {
	if s := a.at(); s != nil {
		change(&s.look)
	}
}

func (a *App) pause(reason string) error {
	do(a, func(ctx context.Context) (*protocol.Pause, error) {
		p := &protocol.Pause{}
		return p, a.client().Do(ctx, protocol.OpPause, &protocol.PauseRequest{By: fault.Person, Reason: reason}, p)
	},
		func(_ *protocol.Pause, err error) {
			if err != nil {
				a.notes.fail(err)
			}
		})
	return nil
}

// unpause asks once, naming who pulled the cord.
func (a *App) unpause(string) error {
	if a.world.Paused == nil {
		return protocol.Fail(protocol.UsageError, "nothing is paused")
	}
	a.ask(&question{text: a.pausedWords() + ". Let all bots go on?", yes: (*App).letGo})
	return nil
}

func (a *App) letGo() {
	do(a, func(ctx context.Context) (*protocol.Pause, error) { return a.client().Resume(ctx) },
		func(_ *protocol.Pause, err error) {
			if err != nil {
				a.notes.fail(err)
			}
		})
}

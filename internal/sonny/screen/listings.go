package screen

import (
	"fmt"
	"strings"

	"agent/internal/sonny/config"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/skill"
	"agent/protocol"
)

// listingCommands list what bots read and what this client is set to (sonny.md 16).
var listingCommands = feature{
	commands: []slashCommand{
		{"skills", "", "the skills that bots here can open", func(a *App, _ string) error { return a.openSkills() }},
		{"roles", "", "the roles", func(a *App, _ string) error { return a.openRoles() }},
		{"memory", "[TEXT]", "the facts that are kept", (*App).openMemory},
		{"theme", "[NAME]", "another look, tried as you go through them", (*App).openThemes},
		{"status", "", "the daemon and this session", func(a *App, _ string) error { a.openStatus(); return nil }},
	},
	actions: map[string]func(*App){"roles": func(a *App) { a.failing(a.openRoles()) }},
}

// described is a row of a name and what it is.
func described(id, name, from, what string) lists.Row {
	return lists.InColumns(id,
		lists.Column{Text: cells.OneLine(name), Width: 28},
		lists.Column{Text: cells.OneLine(from), Width: 10, Role: text.Dim},
		lists.Column{Text: cells.OneLine(what), Role: text.Dim})
}

// fixedList is a list that does not change while it is open.
func fixedList(title, empty string, rows []lists.Row) *listPanel {
	return &listPanel{title: title, empty: empty, rows: func(*App) []lists.Row { return rows }, right: func() string { return fmt.Sprint(len(rows)) }}
}

func (a *App) openSkills() error {
	list, err := skill.Open(a.o.Home).List(a.workspaceOf(a.session), nil)
	if err != nil {
		return err
	}
	var rows []lists.Row
	for _, s := range list {
		rows = append(rows, described(s.Name, s.Name, s.From, s.Description+s.Error))
	}
	a.panel = fixedList("skills", "there are no skills", rows)
	return nil
}

func (a *App) openRoles() error {
	list, err := skill.Roles(a.workspaceOf(a.session), a.o.Home)
	if err != nil {
		return err
	}
	var rows []lists.Row
	for _, r := range list {
		rows = append(rows, described(r.Name, r.Name, r.Model, r.Description+r.Error))
	}
	a.panel = fixedList("roles", "there are no roles", rows)
	return nil
}

// themePanel tries each theme as it comes to hand; Esc gives back the one there was.
type themePanel struct {
	listPanel
	was, shown string
}

func (a *App) openThemes(name string) error {
	if a.o.Theme == nil || a.o.Config == "" {
		return protocol.Fail("failed", "the theme of this screen cannot be changed")
	}
	if name != "" {
		return a.keepTheme(name)
	}
	names, now := a.o.Themes()
	p := &themePanel{was: now, shown: now}
	p.title, p.empty, p.hint, p.At = "themes", "there are none", []string{"Enter keep"}, now
	p.rows = func(*App) (rows []lists.Row) {
		for _, n := range names {
			rows = append(rows, lists.Row{ID: n, Line: text.Of(text.Plain, cells.OneLine(n))})
		}
		return rows
	}
	p.listPanel.keys = map[string]func(*App, lists.Row) bool{
		"enter": func(a *App, r lists.Row) bool { p.was = r.ID; a.failing(a.keepTheme(r.ID)); return true },
	}
	a.panel = p
	return nil
}

func (p *themePanel) key(a *App, k term.Key) bool {
	closed := p.listPanel.key(a, k)
	want := p.was
	if rows := p.shownRows(a); !closed && len(rows) > 0 {
		want = rows[max(0, p.Hand(rows))].ID
	}
	if want != p.shown {
		p.shown = want
		if fault := a.o.Theme(want); fault != nil {
			a.notes.fail(fault)
		}
	}
	return closed
}

func (p *themePanel) shownRows(a *App) []lists.Row { return p.listPanel.shown(a) }

func (a *App) keepTheme(name string) error {
	if err := config.Set(a.o.Config, "tui.theme", name, a.o.Reads); err != nil {
		return err
	}
	if fault := a.o.Theme(name); fault != nil {
		return fault
	}
	return nil
}

// openStatus says how things stand: the daemon, the session, its tokens.
func (a *App) openStatus() {
	p := &listPanel{title: "status", empty: ""}
	p.rows = func(a *App) (rows []lists.Row) {
		say := func(name, value string) {
			rows = append(rows, lists.Row{Line: text.Join(text.Span{Text: text.Pad(name, 12), Role: text.Dim}, text.Span{Text: cells.OneLine(value)})})
		}
		say("sonny", a.o.Version)
		say("store", human.Path(a.o.Store))
		if a.lost != nil {
			say("daemon", "disconnected")
		}
		running := 0
		for b := range a.world.Bots() {
			if b.State(false) == live.Working {
				running++
			}
		}
		say("working", human.Count(running, "bot", "bots"))
		b := a.bot()
		if b == nil {
			return rows
		}
		words, _ := a.confinement().Words()
		say("bot", b.Record.Name+" · "+roster.Looks[a.state()].Word)
		say("model", b.Record.ModelRef())
		say("confined", strings.Join(words, ", "))
		say("context", human.Tokens(b.Usage.InputTokens)+" tokens in the newest call, "+human.Tokens(b.Usage.CachedInputTokens)+" of them cached")
		say("used", human.Tokens(b.Record.InputTokens)+" in, "+human.Tokens(max(0, b.Record.TokensUsed-b.Record.InputTokens))+" out since it was made")
		say("turns", a.session.turnWords())
		return rows
	}
	a.panel = p
}

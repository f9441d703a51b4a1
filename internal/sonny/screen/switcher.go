package screen

import (
	"context"
	"fmt"
	"slices"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// switchCommands go to other bots and sessions (sonny.md 11).
var switchCommands = feature{
	commands: []slashCommand{
		{"sessions", "", "the sessions of this folder, and others", func(a *App, _ string) error { a.openSessions(""); return nil }},
		{"resume", "[NAME]", "open another session", func(a *App, args string) error { a.openSessions(args); return nil }},
		{"open", "NAME", "open a bot", (*App).openCommand},
		{"new", "[TITLE]", "a fresh lead in this folder; the old one stays", (*App).newCommand},
		{"clear", "", "the same", (*App).newCommand},
	},
	actions: map[string]func(*App){
		"switch":   (*App).openSwitcher,
		"sessions": func(a *App) { a.openSessions("") },
		"new":      func(a *App) { _ = a.newCommand("") },
	},
}

// maxSwitched bounds the switcher's rows.
const maxSwitched = 200

// openSwitcher lists every bot, to be found by typing.
func (a *App) openSwitcher() {
	p := &listPanel{
		name: "switcher", title: "go to", List: lists.List{Filter: &edit.Field{}, Typing: true}, empty: "no bot is called so",
		hint: []string{"Enter open", "Alt+Enter beside"},
	}
	titles := map[int64]string{}
	if page, _, err := a.o.Book.Read(); err == nil {
		for _, s := range page.Sessions {
			if s.Store == a.ready.Store.Identity {
				titles[s.BotID] = s.Title
			}
		}
	}
	for _, s := range []*session{a.session, a.side} {
		if s != nil && s.kept.Title != "" { // what cannot be read now
			titles[s.id] = s.kept.Title
		}
	}
	p.rows = func(a *App) []lists.Row {
		var rows []lists.Row
		for b := range a.world.Bots() {
			if len(rows) == maxSwitched {
				break
			}
			if !lead.Judge(&b.Record) {
				rows = append(rows, a.switchRow(b, titles[b.Record.ID]))
			}
		}
		return rows
	}
	p.keys = map[string]func(*App, lists.Row) bool{
		"enter":     func(a *App, r lists.Row) bool { a.goTo(r.ID, false); return true },
		"alt+enter": func(a *App, r lists.Row) bool { a.goTo(r.ID, true); return true },
	}
	a.panel = p
}

// switchRow is a bot in the switcher, with its session's title or its first message.
func (a *App) switchRow(b *live.Bot, title string) lists.Row {
	title, shown := a.titleOf(title, &b.Record)
	row := roster.Bot(b, title)
	row.Shown = shown
	return row
}

// goTo opens a bot by its name, here or beside.
func (a *App) goTo(name string, beside bool) {
	b := a.world.Bot(name)
	switch {
	case b == nil:
		a.notes.fail(noBot(name))
	case beside:
		a.openSide(name, b.Record.ID)
	default:
		a.panel = nil
		a.openSession(name, b.Record.ID)
	}
}

func (a *App) openCommand(name string) error {
	for _, n := range []string{name, a.project() + "." + name} {
		if b := a.world.Bot(n); b != nil {
			a.openSession(n, b.Record.ID)
			return nil
		}
	}
	return noBot(name)
}

// newCommand goes to the start screen for a fresh lead.
func (a *App) newCommand(string) error {
	st := a.newStart()
	switch {
	case a.session == nil:
		a.out.Leave(&a.start.compose.Box)
	case a.session.gone:
		a.out.Heir(&st.compose.Box, &a.session.compose.Box)
		fallthrough
	default:
		a.session.leave(a)
	}
	a.closeSide()
	a.session, a.start = nil, st
	a.readStart(st)
	return nil
}

// sessionsPanel lists what was kept of sessions.
type sessionsPanel struct {
	listPanel
	scope    int // of scopes
	archived bool
	page     *lead.Page // the book as it was read last
}

var scopes = []string{"this folder", "this project", "all"}

// openSessions lists the sessions, filtered by a text where one is given.
func (a *App) openSessions(filter string) {
	p := &sessionsPanel{page: &lead.Page{}}
	p.read(a)
	p.name, p.title, p.empty = "sessions", "sessions of this folder", "no sessions here yet"
	p.hint = []string{"Enter open", "r rename", "f fork", "x archive", "X show archived", "d delete", "Tab scope"}
	p.head = text.Of(text.Dim, roster.SessionHead())
	p.rows = func(a *App) []lists.Row { return p.list(a) }
	p.detail = func(a *App, r lists.Row, w int) []text.Line { return p.folderOf(a, r) }
	p.keys = map[string]func(*App, lists.Row) bool{
		"enter":           func(a *App, r lists.Row) bool { return p.open(a, r) },
		"session_archive": func(a *App, r lists.Row) bool { p.archive(a, r); return false },
		"session_rename":  func(a *App, r lists.Row) bool { p.rename(a, r); return false },
		"session_fork":    func(a *App, r lists.Row) bool { p.fork(a, r); return false },
		"session_delete":  func(a *App, r lists.Row) bool { p.remove(a, r); return false },
	}
	p.free = map[string]func(*App){"session_archived": func(*App) { p.archived = !p.archived }}
	if filter != "" {
		p.Filter = &edit.Field{}
		p.Filter.Set(filter)
		p.Typing = true
	}
	a.panel = p
}

// key takes Tab for the scope beside what every list takes.
func (p *sessionsPanel) key(a *App, k term.Key) bool {
	if k.Name == "tab" && p.asks == nil {
		p.scope = (p.scope + 1) % len(scopes)
		p.title = "sessions of " + scopes[p.scope]
		if p.scope == len(scopes)-1 {
			p.title = "all sessions"
		}
		return false
	}
	return p.listPanel.key(a, k)
}

// read takes the book as it is now.
func (p *sessionsPanel) read(a *App) {
	page, _, err := a.o.Book.Read()
	if err != nil {
		a.notes.fail(err)
		return
	}
	p.page = page
}

// found are the sessions with their bots.
func (p *sessionsPanel) found(a *App) []lead.Found {
	return lead.Sessions(a.ready.Store.Identity, p.page, a.world.Records())
}

func (p *sessionsPanel) list(a *App) []lists.Row {
	all := p.found(a)
	slices.SortStableFunc(all, func(x, y lead.Found) int { return rank(a, x) - rank(a, y) })
	var here, others []lists.Row
	for _, f := range all {
		if f.Archived != p.archived {
			continue
		}
		title, shown := a.titleOf(f.Title, f.Record)
		f.Title = title
		row := roster.Session(f, a.botOf(f.Record), a.o.Clock())
		row.Shown = shown
		switch {
		case f.Folder == a.o.Folder.Path, p.scope == 2, p.scope == 1 && f.Project == a.project():
			here = append(here, row)
		case p.Filter != nil && p.scope == 0:
			others = append(others, row)
		}
	}
	if len(others) > 0 {
		here = append(append(here, lists.Row{Line: text.Of(text.Dim, "other folders")}), others...)
	}
	return here
}

// rank orders the pinned first, then those that wait for the person.
func rank(a *App, f lead.Found) int {
	switch {
	case f.Pinned:
		return 0
	case f.Record != nil && a.world.Bot(f.Record.Name) != nil && a.world.Bot(f.Record.Name).ForPerson() > 0:
		return 1
	}
	return 2
}

// botOf is what is known of a record's bot; nil for nothing.
func (a *App) botOf(record *protocol.Bot) *live.Bot {
	if record == nil {
		return nil
	}
	return a.world.Bot(record.Name)
}

func (p *sessionsPanel) folderOf(a *App, r lists.Row) []text.Line {
	if f := p.of(a, r); f != nil {
		return []text.Line{text.Of(text.Dim, cells.OneLine(human.Path(f.Folder)))}
	}
	return nil
}

func (p *sessionsPanel) of(a *App, r lists.Row) *lead.Found {
	for _, f := range p.found(a) {
		if fmt.Sprint(f.BotID) == r.ID {
			return &f
		}
	}
	return nil
}

// open goes to a session. One that is gone can be forgotten, and nothing else: what has
// its name now is another bot.
func (p *sessionsPanel) open(a *App, r lists.Row) bool {
	f := p.of(a, r)
	switch {
	case f == nil:
		return false
	case f.Gone():
		p.ask(&question{text: a.foundCalled(*f) + " is gone: its bot was deleted. Forget it? (/new starts another)", yes: func(a *App) {
			a.forget(*f)
			p.read(a)
		}})
		return false
	}
	if f.Folder != a.o.Folder.Path {
		a.notes.say("it works in " + human.Path(f.Folder))
	}
	a.openSession(f.Record.Name, f.Record.ID)
	return true
}

func (a *App) forget(f lead.Found) { a.forgetSession(f.BotID) }

// forgetSession drops what the book has of a bot.
func (a *App) forgetSession(id int64) {
	store := a.ready.Store.Identity
	if err := a.o.Book.Change(func(page *lead.Page) error { page.Forget(store, id); return nil }); err != nil {
		a.notes.fail(err)
	}
}

// change changes what the book has of a session.
func (p *sessionsPanel) change(a *App, r lists.Row, change func(*lead.Session)) {
	f := p.of(a, r)
	if f == nil {
		return
	}
	if err := a.o.Book.Change(func(page *lead.Page) error {
		s := f.Session
		if old := page.Of(s.Store, s.BotID); old != nil {
			s = *old
		}
		change(&s)
		page.Put(s)
		return nil
	}); err != nil {
		a.notes.fail(err)
		return
	}
	for _, s := range []*session{a.session, a.side} {
		if s != nil && s.id == f.BotID {
			change(&s.kept)
		}
	}
	p.read(a)
	a.rail.read(a)
}

func (p *sessionsPanel) archive(a *App, r lists.Row) {
	p.change(a, r, func(s *lead.Session) { s.Archived = !s.Archived })
}

func (p *sessionsPanel) rename(a *App, r lists.Row) {
	a.panel = &inputPanel{title: "rename", back: p, take: func(a *App, title string) {
		p.change(a, r, func(s *lead.Session) { s.Title = title })
	}}
}

// fork makes a session that goes on from the one at hand, in its folder, and comes to
// hand itself.
func (p *sessionsPanel) fork(a *App, r lists.Row) {
	f := p.of(a, r)
	if f == nil || f.Gone() {
		return
	}
	ask := &protocol.Fork{Source: f.Record.Name, Workspace: f.Folder}
	ask.Bot = lead.ForkName(f.Record.Name, func(name string) bool { return a.world.Bot(name) != nil })
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		bot, err := a.client().Fork(ctx, ask)
		if err != nil {
			return nil, err
		}
		return bot, a.o.Book.Change(func(page *lead.Page) error { page.Put(f.Forked(bot)); return nil })
	}, func(bot *protocol.Bot, err error) {
		a.failing(err)
		if bot == nil {
			return
		}
		a.world.Put(*bot)
		a.forks[bot.ID] = f.BotID
		a.notes.say(bot.Name + " is a fork of " + f.Bot)
		p.read(a)
		a.rail.read(a)
		p.At = fmt.Sprint(bot.ID)
	})
}

// remove deletes the bot's rows, after a question that says what goes and what stays.
func (p *sessionsPanel) remove(a *App, r lists.Row) {
	f := p.of(a, r)
	if f == nil || f.Gone() {
		return
	}
	p.ask(&question{
		text: "Delete " + a.foundCalled(*f) + " (" + f.Bot + ") with all that was said? Its tasks and their worktrees stay. The store's free pages are not scrubbed.",
		yes:  func(a *App) { a.deleteBot(f.Record.Name, func() { a.forget(*f); p.read(a) }) },
	})
}

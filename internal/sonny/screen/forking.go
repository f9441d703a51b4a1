package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/outbox"
	"agent/protocol"
)

// forkCommands make new identities of what was said; history is never edited
// (sonny.md 10.5).
var forkCommands = feature{
	commands: []slashCommand{
		{"fork", "[TITLE]", "a copy at the newest finished round", func(a *App, title string) error { return a.fork(forkAt{title: title}) }},
		{"side", "[QUESTION]", "a question beside, which disturbs nothing", (*App).sideChat},
	},
	actions: map[string]func(*App){"back": func(a *App) { a.failing(a.goBack()) }},
	opened:  func(a *App, _ *session) { a.readForks(); a.world.Kin++ },
}

// forkAt says what is forked and what becomes of it.
type forkAt struct {
	node   int64 // the newest item that it holds; 0: the newest finished round
	title  string
	prompt string // put into its composer
	stop   bool   // the original's turn ends
}

// sideTools are all that a side chat may use.
var sideTools = []string{"read", "history", "web_fetch", "wait"}

// fork makes a copy of the bot on screen and opens it in its place.
func (a *App) fork(at forkAt) error {
	s := a.session
	if s == nil {
		return protocol.Fail("failed", "there is nothing to fork yet")
	}
	_, name, _, err := a.o.Folder.Free(lead.ProjectOf(s.bot), a.recordOf)
	if err != nil {
		return err
	}
	ask := &protocol.Fork{Source: s.bot, Bot: name}
	if at.node > 0 {
		ask.Checkpoint = protocol.Set(at.node)
	}
	running := s.working(a)
	a.makeFork(s, ask, at.title, func() {}, func(b *protocol.Bot) {
		if at.stop {
			a.stopBot(s.bot)
		}
		a.openSession(b.Name, b.ID)
		a.session.compose.Set(at.prompt)
		words := "this is " + b.Name + ", a fork of " + s.bot
		if running && at.node == 0 {
			words += " at its newest finished round"
		}
		a.notes.say(words + "; " + a.hint("back", "goes back"))
	}, func() {})
	return nil
}

// recordOf is a bot's record; nil for none.
func (a *App) recordOf(name string) *protocol.Bot {
	if b := a.world.Bot(name); b != nil {
		return &b.Record
	}
	return nil
}

// makeFork makes the fork and notes whose it is, once keep, which runs beside the loop, has
// written what is typed for it. failed is called where there is none.
func (a *App) makeFork(s *session, ask *protocol.Fork, title string, keep func(), then func(*protocol.Bot), failed func()) {
	store, now := a.ready.Store.Identity, a.o.Clock()
	kept := lead.Session{
		Store: store, Bot: ask.Bot, Folder: a.workspaceOf(s), Project: lead.ProjectOf(s.bot), Kind: lead.KindFork,
		Repo: a.repository(s), Title: title, Opened: now, ForkOf: s.id,
	}
	if ask.Allow != nil { // it is shown beside: the folder is opened on the one that it is beside
		kept.Opened = s.kept.Opened.Add(-1)
	}
	ask.Workspace = kept.Folder
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		keep()
		bot, err := a.client().Fork(ctx, ask)
		if err != nil {
			return nil, err
		}
		kept.BotID = bot.ID
		return bot, a.o.Book.Change(func(p *lead.Page) error { p.Put(kept); return nil })
	}, func(bot *protocol.Bot, err error) {
		if err != nil {
			a.notes.fail(err)
		}
		if bot == nil {
			failed()
			return
		}
		a.world.Put(*bot)
		a.forks[bot.ID] = s.id
		a.world.Kin++
		then(bot)
	})
}

// readForks learns from the book which bots are forks: they are sessions, not tasks.
func (a *App) readForks() {
	a.forks = map[int64]int64{}
	page, _, err := a.o.Book.Read()
	if err != nil {
		return
	}
	for _, s := range page.Sessions {
		if s.Store == a.ready.Store.Identity && s.ForkOf != 0 {
			a.forks[s.BotID] = s.ForkOf
		}
	}
}

// hidden are the bots that are no tasks, whatever their names.
func (a *App) hidden() map[int64]bool {
	out := map[int64]bool{}
	for id := range a.forks {
		out[id] = true
	}
	return out
}

// sideChat makes a fork that changes nothing and shows it beside, with a question.
func (a *App) sideChat(question string) error {
	s := a.session
	if s == nil {
		return protocol.Fail("failed", "there is nobody to ask beside yet")
	}
	record := a.recordOf(s.bot)
	if record == nil {
		return noBot(s.bot)
	}
	name := s.bot + "-side"
	for n := 2; a.world.Bot(name) != nil; n++ {
		name = fmt.Sprintf("%s-side%d", s.bot, n)
	}
	allow := slices.DeleteFunc(slices.Clone(sideTools), func(t string) bool {
		return !slices.Contains(record.Tools, t) || record.Allowed != nil && !slices.Contains(*record.Allowed, t)
	})
	keep, back := func() {}, func() {}
	var f *outbox.Flight
	if question != "" {
		f = a.out.ForFork(&s.compose.Box, "/side "+question, name)
		keep, back = a.out.Keeper(f), func() { a.out.Back(f) }
	}
	a.makeFork(s, &protocol.Fork{Source: s.bot, Bot: name, Allow: allow}, "", keep, func(b *protocol.Bot) {
		outbox.Instant("forked")
		a.openSide(b.Name, b.ID)
		switch at := a.at(); {
		case question == "":
		case at != nil && at.id == b.ID:
			a.out.ToFork(f, &at.compose.Box, question)
		default:
			back()
		}
	}, back)
	return nil
}

// goBack opens the bot that the one on screen is a fork of.
func (a *App) goBack() error {
	s := a.session
	if s == nil || s.kept.ForkOf == 0 && a.forks[s.id] == 0 {
		return protocol.Fail("failed", "this is no fork; there is nothing to go back to")
	}
	of := s.kept.ForkOf
	if of == 0 {
		of = a.forks[s.id]
	}
	for b := range a.world.Bots() {
		if b.Record.ID == of {
			a.openSession(b.Record.Name, of)
			return nil
		}
	}
	return protocol.Fail(protocol.BotNotFound, "the original was deleted; /sessions lists what is there")
}

// headLine is the beginning of a message, for a list.
func headLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

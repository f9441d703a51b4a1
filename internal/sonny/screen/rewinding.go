package screen

import (
	"context"
	"fmt"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/snapshot"
	"agent/protocol"
)

// rewindCommands go back to an earlier message (sonny.md 10.5).
var rewindCommands = feature{
	commands: []slashCommand{{"rewind", "", "go on from an earlier message, as a fork", func(a *App, _ string) error { return a.openRewind() }}},
	actions:  map[string]func(*App){"rewind": func(a *App) { a.failing(a.openRewind()) }},
}

// rewindPanel picks one of the person's messages. Nothing happens until it is confirmed.
type rewindPanel struct {
	listPanel
	s     *session
	cells map[string]*cells.Cell
	stop  bool
}

func (a *App) openRewind() error {
	s := a.session
	if s == nil {
		return protocol.Fail("failed", "nothing was said yet")
	}
	p := &rewindPanel{s: s, cells: map[string]*cells.Cell{}}
	p.title, p.empty = "rewind to before a message", "no message of yours is here"
	p.hint = []string{"Enter choose"}
	if s.working(a) {
		p.hint = append(p.hint, "t stop it too")
	}
	p.rows = func(*App) []lists.Row { return p.list() }
	p.right = func() string {
		if p.stop {
			return "and stop it"
		}
		return ""
	}
	p.keys = map[string]func(*App, lists.Row) bool{
		"enter": func(a *App, r lists.Row) bool { p.choose(a, p.cells[r.ID]); return false },
		"t":     func(a *App, _ lists.Row) bool { p.stop = !p.stop && s.working(a); return false },
	}
	a.panel = p
	return nil
}

// list is the person's messages, the newest first, each with what followed.
func (p *rewindPanel) list() (rows []lists.Row) {
	after := ""
	for i := p.s.tr.Len() - 1; i >= 0; i-- {
		c := p.s.tr.At(i)
		if c.Kind == cells.Reply {
			after = headLine(c.Words())
		}
		if c.Kind != cells.User || c.From != "" || c.Origin != "" || c.Node == 0 {
			continue
		}
		id := fmt.Sprint(c.Node)
		p.cells[id] = c
		rows = append(rows, lists.InColumns(id, lists.Column{Text: cells.OneLine(headLine(c.Text)), Width: 45, Role: text.User},
			lists.Column{Text: cells.OneLine(after), Role: text.Dim}))
		after = ""
	}
	return rows
}

// choose looks which files changed since, and asks.
func (p *rewindPanel) choose(a *App, c *cells.Cell) {
	room := a.room(p.s)
	request := ""
	do(a, func(ctx context.Context) (*snapshot.Step, error) {
		if room == nil {
			return nil, nil
		}
		for t, err := range a.client().Turns(ctx, p.s.bot, c.Turn-1) {
			if err != nil {
				return nil, err
			}
			if t.Turn == c.Turn {
				request = t.RequestID
			}
			break
		}
		if request == "" {
			return nil, nil
		}
		return room.Back(ctx, p.s.id, request)
	}, func(step *snapshot.Step, err error) {
		if a.panel != panel(p) {
			return
		}
		if err != nil {
			a.notes.fail(err)
		}
		p.confirm(a, c, room, step)
	})
}

// confirm asks for the last time. With files that changed since there is a third answer,
// which shows them and asks once more; not while the bot that may write them runs on.
func (p *rewindPanel) confirm(a *App, c *cells.Cell, room *snapshot.Room, step *snapshot.Step) {
	words := "Go on from before this message, as a fork? " + p.s.bot + " stays as it is"
	if p.s.working(a) && !p.stop {
		words += " and runs on"
	}
	q := &question{text: words + ".", yes: func(a *App) { a.failing(p.rewind(a, c)) }}
	switch {
	case step == nil:
	case p.s.working(a):
		q.text += " " + human.Count(len(step.Changes), "file", "files") + " changed since and stay as they are: a turn runs that may be writing them."
	default:
		q.text += " " + human.Count(len(step.Changes), "file", "files") + " changed since, which f shows, to put them back too."
		q.tells = []string{"f the files too"}
		q.more = map[string]func(*App){"f": func(a *App) { a.panel = p.files(c, room, step) }}
	}
	p.ask(q)
}

// files shows what would be put back, and does both when the person says so.
func (p *rewindPanel) files(c *cells.Cell, room *snapshot.Room, step *snapshot.Step) *listPanel {
	list := filesPanel(room, step, true)
	list.title = "rewind, with the files"
	list.asks.yes = func(a *App) {
		if p.s.working(a) {
			a.panel = nil
			a.notes.say("a turn has begun that may be writing these files; nothing is put back, and nothing was forked")
			return
		}
		a.goStep(room, step, true)
		a.failing(p.rewind(a, c))
	}
	list.asks.no = func(a *App) { a.panel = p }
	return list
}

// rewind forks before a message, or makes a new lead like this one before the first.
func (p *rewindPanel) rewind(a *App, c *cells.Cell) error {
	a.panel = nil
	s := p.s
	do(a, func(ctx context.Context) (int64, error) { return nodeBefore(ctx, a, s.bot, c.Node) },
		func(node int64, err error) {
			switch {
			case err != nil:
				a.notes.fail(err)
			case node == 0:
				a.failing(a.leadLike(s, c.Text, p.stop))
			default:
				a.failing(a.fork(forkAt{node: node, prompt: c.Text, stop: p.stop, title: s.kept.Title}))
			}
		})
	return nil
}

// nodeBefore is the item before one in a bot's history; 0 for none.
func nodeBefore(ctx context.Context, a *App, bot string, node int64) (int64, error) {
	var page protocol.NodePage
	ask := &protocol.HistoryNodes{Bot: bot, From: protocol.Set(node), Limit: protocol.Set(int64(2))}
	if err := a.client().Do(ctx, protocol.OpHistoryNodes, ask, &page); err != nil {
		return 0, err
	}
	if len(page.Nodes) < 2 {
		return 0, nil
	}
	return page.Nodes[1].Node, nil
}

// leadLike makes a lead with the settings of another, and puts a text into its composer.
func (a *App) leadLike(s *session, prompt string, stop bool) error {
	if a.recordOf(s.bot) == nil {
		return noBot(s.bot)
	}
	a.readSettings(func(_ bool, err error) {
		if err == nil {
			err = a.makeLike(s, prompt, stop)
		}
		if err != nil {
			a.notes.fail(err)
		}
	})
	return nil
}

func (a *App) makeLike(s *session, prompt string, stop bool) error {
	record := a.recordOf(s.bot)
	if record == nil {
		return noBot(s.bot)
	}
	if lead.MadeByBot(record) {
		// Of a bot without a maker the judge takes the instructions for the person's own.
		return protocol.Fail("failed", s.bot+" was made by a bot, and its instructions may be that one's words: go back to a later message, which forks it, or start a lead of your own with /new")
	}
	project, name, _, err := a.o.Folder.Free(lead.ProjectOf(s.bot), a.recordOf)
	if err != nil {
		return err
	}
	settings := a.o.Settings
	confined := lead.Confined(record)
	settings.Row, settings.Sandbox, settings.Network = rowLike(confined), confined.Sandbox, record.Network
	p := &lead.Plan{
		Folder: a.o.Folder, Project: project, Name: name, Store: a.o.Store, Model: record.ModelRef(),
		Settings: settings, Tools: a.ready.Tools, ClientTools: a.o.ClientTools,
	}
	if record.Reasoning != nil {
		p.Effort = *record.Reasoning
	}
	of := s.id
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		full, err := a.client().Inspect(ctx, s.bot)
		if err != nil {
			return nil, err
		}
		p.Instructions, p.Rules = full.Instructions, a.o.Rules.Read(0)
		return p.Make(ctx, a.client())
	}, func(bot *protocol.Bot, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		if stop {
			a.stopBot(s.bot)
		}
		a.world.Put(*bot)
		a.forks[bot.ID] = of
		a.openSession(bot.Name, bot.ID)
		a.session.compose.Set(prompt)
	})
	return nil
}

// rowLike is the row whose gate a confinement has. For gates that are no row's the
// person is asked.
func rowLike(c lead.Confinement) lead.Row {
	switch {
	case c.Gate != "":
		return c.Gate
	case c.Other != "":
		return lead.Manual
	case c.Sandbox == protocol.SandboxReadOnly:
		return lead.Look
	}
	return lead.Full
}

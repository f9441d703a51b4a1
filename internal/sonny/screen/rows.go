package screen

import (
	"context"
	"strings"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

// rowCommands change who is asked and what the sandbox allows (sonny.md 4).
var rowCommands = feature{
	commands: []slashCommand{
		{"approval", "ROW", "who is asked: auto, manual, look, full", func(a *App, args string) error {
			row, err := lead.ParseRow(args)
			if err != nil {
				return err
			}
			a.setRow(row)
			return nil
		}},
		{"look", "", "read and plan only; again to go back", func(a *App, _ string) error {
			if a.confinement().Row() == lead.Look {
				a.setRow(lead.Auto)
			} else {
				a.setRow(lead.Look)
			}
			return nil
		}},
	},
	actions: map[string]func(*App){"row_next": (*App).nextRow},
}

// nextRow steps the lead's row.
func (a *App) nextRow() {
	if a.session == nil {
		a.chooseRow(a.o.Settings.Row.Next())
		return
	}
	row := a.confinement().Row()
	if row == "" {
		row = a.confinement().Gate
	}
	a.setRow(row.Next())
}

// setRow makes a row the lead's. The gates change at once; the sandbox on a bot at rest.
func (a *App) setRow(row lead.Row) {
	s, b := a.session, a.bot()
	if s == nil || b == nil {
		return
	}
	change := a.rowChange(row)
	do(a, func(ctx context.Context) (*protocol.Bot, error) { return a.client().Configure(ctx, change) },
		func(record *protocol.Bot, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.world.Put(*record)
			words, _ := lead.Confined(record).Words()
			s.tr.Notice(0, "from here on: "+strings.Join(words, " · "), "")
		})
}

// rowChange is what is sent for a row. Look keeps what the lead had, and leaving it
// gives that back.
func (a *App) rowChange(row lead.Row) *protocol.Configure {
	s, b := a.session, a.bot()
	rec := &b.Record
	all := rec.Tools
	for _, t := range rec.ClientTools {
		all = append(all, t.Name)
	}
	c := &protocol.Configure{Bot: s.bot, BotID: s.id, Gates: protocol.Set(row.Gates(all, &a.o.Settings))}
	looks := lead.Confined(rec).Row() == lead.Look
	switch {
	case row == lead.Look:
		before := &lead.Before{Gates: rec.Gates, Sandbox: rec.Sandbox, WritableRoots: rec.WritableRoots}
		s.note(a, func(k *lead.Session) { k.Before = before })
		c.Sandbox, c.WritableRoots = protocol.Set(protocol.SandboxReadOnly), protocol.Set([]string{})
	case looks && s.kept.Before != nil:
		c.Sandbox, c.WritableRoots = protocol.Set(s.kept.Before.Sandbox), protocol.Set(s.kept.Before.WritableRoots)
		s.note(a, func(k *lead.Session) { k.Before = nil })
	case looks:
		c.Sandbox = protocol.Set(protocol.SandboxWorkspace)
	}
	return c
}

// note changes what the book has of the session.
func (s *session) note(a *App, change func(*lead.Session)) {
	change(&s.kept)
	kept, store := s.kept, a.ready.Store.Identity
	do(a, func(context.Context) (struct{}, error) {
		return struct{}{}, a.o.Book.Change(func(p *lead.Page) error {
			if old := p.Of(store, kept.BotID); old != nil {
				change(old)
			} else {
				p.Put(kept)
			}
			return nil
		})
	}, func(_ struct{}, err error) {
		if err != nil {
			a.notes.fail(err)
		}
	})
}

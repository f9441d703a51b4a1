package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// rowCommands change who is asked and what the sandbox allows (sonny.md 4).
var rowCommands = feature{
	commands: []slashCommand{
		{"approval", "[ROW]", "who is asked: auto, manual, look, full", (*App).approvalCommand},
		{"look", "", "read and plan only; again to go back", func(a *App, _ string) error { a.look(); return nil }},
		{"sandbox", "MODE", "read-only, workspace-write, danger-full-access", (*App).sandboxCommand},
		{"network", "on|off", "the network of its commands", (*App).networkCommand},
		{"writable", "PATH", "one more folder that it may write", (*App).writableCommand},
	},
	actions: map[string]func(*App){"row_next": (*App).nextRow},
	event:   (*App).afterTurn,
}

// approvalCommand sets a row, or lists them. Of a lead with tasks `ROW tasks` sets
// theirs, too.
func (a *App) approvalCommand(args string) error {
	if args == "" {
		a.pickRow()
		return nil
	}
	name, rest, _ := strings.Cut(args, " ")
	row, err := lead.ParseRow(name)
	if err != nil {
		return err
	}
	if rest = strings.TrimSpace(rest); rest != "" && rest != "tasks" {
		return protocol.Fail(protocol.UsageError, "/approval ROW, or /approval ROW tasks for the tasks as well")
	}
	a.wantRow(row, rest == "tasks")
	return nil
}

// pickRow lists the rows. The tasks' gates stay as they are unless the person says so.
func (a *App) pickRow() {
	tasks := false
	a.panel = &listPanel{
		title: "who is asked", List: lists.List{At: string(a.confinement().Row())},
		hint: []string{"Enter take it"},
		rows: func(a *App) []lists.Row {
			var rows []lists.Row
			for _, r := range lead.Rows() {
				rows = append(rows, lists.Row{ID: string(r), Line: text.Of(text.Plain, asks[r])})
			}
			return rows
		},
		detail: func(a *App, _ lists.Row, _ int) []text.Line {
			n := len(a.tasks())
			if n == 0 {
				return nil
			}
			box := "[ ]"
			if tasks {
				box = "[x]"
			}
			return []text.Line{text.Of(text.Dim, fmt.Sprintf("%s also its %s (t)", box, human.Count(n, "task", "tasks")))}
		},
		keys: map[string]func(*App, lists.Row) bool{
			"t": func(*App, lists.Row) bool { tasks = !tasks; return false },
			"enter": func(a *App, r lists.Row) bool {
				a.panel = nil
				a.wantRow(lead.Row(r.ID), tasks)
				return true
			},
		},
	}
}

// wantRow sets a row; the one without any confinement only when its name was typed.
func (a *App) wantRow(row lead.Row, tasks bool) {
	a.confirmed(row, "", func(a *App) { a.changeRow(row, tasks) })
}

// nextRow steps the lead's row.
func (a *App) nextRow() {
	row := a.confinement().Row()
	if row == "" {
		row = a.confinement().Gate
	}
	s := a.session
	if s != nil && s.stepped != "" {
		row = s.stepped
	}
	a.setRow(row.Next())
	if s != nil && s.confines.Busy() {
		s.stepped = row.Next()
	}
}

// look reads and plans only; again it gives back what the lead had.
func (a *App) look() {
	switch s := a.session; {
	case s == nil && a.o.Settings.Row == lead.Look:
		a.setRow(lead.Auto)
	case s == nil || a.confinement().Row() != lead.Look:
		a.setRow(lead.Look)
	case s.kept.Before != nil:
		a.leaveLook(s)
	default:
		a.setRow(lead.Auto)
	}
}

// setRow makes a row the lead's.
func (a *App) setRow(row lead.Row) { a.changeRow(row, false) }

func (a *App) changeRow(row lead.Row, tasks bool) {
	s, b := a.session, a.bot()
	if s == nil || b == nil {
		a.forNewLead(func(s *lead.Settings) { s.Row, s.Sandbox = row, "" })
		return
	}
	gates := row.Gates(toolsOf(&b.Record), &a.o.Settings)
	place := a.placeOf(row)
	a.change(s, gates, place, string(row))
	if tasks {
		a.gateTasks(row)
	}
}

// toolsOf are all of a bot's tools.
func toolsOf(rec *protocol.Bot) []string {
	all := append([]string{}, rec.Tools...)
	for _, t := range rec.ClientTools {
		all = append(all, t.Name)
	}
	return all
}

// placeOf is what a row changes of how the lead is confined; nil for nothing. Look keeps
// what it had, and leaving it gives that back.
func (a *App) placeOf(row lead.Row) *protocol.Configure {
	b := a.bot()
	if b == nil {
		return nil
	}
	s, rec := a.session, &b.Record
	looks := rec.Sandbox == protocol.SandboxReadOnly
	switch {
	case row == lead.Look && looks:
		return nil
	case row == lead.Look:
		before := &lead.Before{Gates: rec.Gates, Sandbox: rec.Sandbox, WritableRoots: rec.WritableRoots}
		s.remember(a, before)
		return &protocol.Configure{Sandbox: protocol.Set(protocol.SandboxReadOnly), WritableRoots: protocol.Set([]string{})}
	case row == lead.Full && rec.Sandbox != protocol.SandboxFull:
		return &protocol.Configure{Sandbox: protocol.Set(protocol.SandboxFull)}
	case row == lead.Full:
		return nil
	case looks && s.kept.Before != nil:
		return a.placeBefore(s)
	case rec.Sandbox != protocol.SandboxWorkspace:
		return &protocol.Configure{Sandbox: protocol.Set(protocol.SandboxWorkspace)}
	}
	return nil
}

// placeBefore is the confinement that look took the place of.
func (a *App) placeBefore(s *session) *protocol.Configure {
	before := s.kept.Before
	s.remember(a, nil)
	return &protocol.Configure{Sandbox: protocol.Set(before.Sandbox), WritableRoots: protocol.Set(before.WritableRoots)}
}

// remember keeps what look is to give back. Unlike what is shown of a session it counts at
// once, and in this Sonny also where the book could not be written.
func (s *session) remember(a *App, before *lead.Before) {
	s.kept.Before = before
	s.note(a, func(k *lead.Session) { k.Before = before }, nil)
}

// leaveLook gives back the gates as well.
func (a *App) leaveLook(s *session) {
	gates := s.kept.Before.Gates
	a.change(s, gates, a.placeBefore(s), "as before")
}

// gateTasks gives the tasks the row's gates. They keep their sandboxes.
func (a *App) gateTasks(row lead.Row) {
	for _, t := range a.tasks() {
		change := &protocol.Configure{Bot: t.Record.Name, BotID: t.Record.ID, Gates: protocol.Set(row.Gates(toolsOf(&t.Record), &a.o.Settings))}
		do(a, func(ctx context.Context) (*protocol.Bot, error) { return a.client().Configure(ctx, change) },
			func(record *protocol.Bot, err error) {
				if err != nil {
					a.notes.fail(err)
					return
				}
				a.world.Put(*record)
			})
	}
}

// note changes what the book has of the session, and what is shown of it once the book has
// it; then is called after that, nil for nothing.
func (s *session) note(a *App, change func(*lead.Session), then func()) {
	kept, store := s.kept, a.ready.Store.Identity
	if kept.BotID == 0 { // it is on its way into the book
		kept = a.unkept(s)
	}
	change(&kept)
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
			return
		}
		change(&s.kept)
		if then != nil {
			then()
		}
		a.rail.read(a)
		if p, open := a.panel.(*sessionsPanel); open {
			p.read(a)
		}
	})
}

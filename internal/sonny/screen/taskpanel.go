package screen

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// taskCommands list the lead's tasks and stop them (sonny.md 5.2, 11).
var taskCommands = feature{
	commands: []slashCommand{
		{"tasks", "", "the lead's tasks", func(a *App, _ string) error { a.openTasks(); return nil }},
		{"stop", "[NAME|all]", "interrupt a task, or the lead and all of them", (*App).stopCommand},
	},
	actions: map[string]func(*App){"tasks": (*App).openTasks},
}

// openTasks lists the tasks of the lead on screen.
func (a *App) openTasks() {
	lead := "this lead"
	if a.session != nil {
		lead = a.session.bot
	}
	p := &listPanel{
		name: "tasks", title: "tasks of " + lead, empty: "no tasks yet: the lead starts them, or /task NAME BRIEF",
		right: func() string { return fmt.Sprint(len(a.tasks())) },
		hint:  []string{"Enter peek", "o open", "s stop", "g diff", "m merge", "d remove"},
		head:  text.Of(text.Dim, text.Pad("NAME", 22)+text.Pad("STATE", 14)+text.Pad("BRANCH", 24)+"TIME"),
		rows: func(a *App) []lists.Row {
			var rows []lists.Row
			for _, t := range a.tasks() {
				rows = append(rows, taskRow(a, t))
			}
			return rows
		},
		detail: func(a *App, r lists.Row, w int) []text.Line {
			t := a.world.Bot(r.ID)
			if t == nil || t.Record.Workspace == nil {
				return nil
			}
			return []text.Line{text.Of(text.Dim, cells.OneLine(human.Path(*t.Record.Workspace)))}
		},
	}
	p.keys = map[string]func(*App, lists.Row) bool{
		"enter":       func(a *App, r lists.Row) bool { a.goTo(r.ID, true); return true },
		"task_open":   func(a *App, r lists.Row) bool { a.goTo(r.ID, false); return true },
		"task_diff":   func(a *App, r lists.Row) bool { a.failing(a.openTaskReview(r.ID)); return false },
		"task_stop":   func(a *App, r lists.Row) bool { a.stopBot(r.ID); return false },
		"task_merge":  func(a *App, r lists.Row) bool { a.openMerge(r.ID); return false },
		"task_remove": func(a *App, r lists.Row) bool { a.removeTask(p, r.ID); return false },
	}
	a.panel = p
}

func taskRow(a *App, t *live.Bot) lists.Row {
	g := glyphs[t.State(false)]
	took := ""
	if t.Turn != 0 {
		took = human.Clock(a.o.Clock().Sub(t.Since))
	}
	branch := "-"
	if t.Record.Workspace != nil && strings.Contains(*t.Record.Workspace, "/worktrees/") {
		branch = "agent/" + t.Record.Name
	}
	return lists.Row{ID: t.Record.Name, Line: text.Join(
		text.Span{Text: text.Pad(cells.OneLine(t.Record.Name), 21) + " "},
		text.Span{Text: text.Pad(g.mark+" "+g.word, 13) + " ", Role: g.role},
		text.Span{Text: text.Pad(cells.OneLine(branch), 23) + " ", Role: text.Dim},
		text.Span{Text: took, Role: text.Dim},
	)}
}

// stopBot interrupts what a bot does.
func (a *App) stopBot(name string) {
	b := a.world.Bot(name)
	if b == nil || b.Turn == 0 {
		a.notes.say(name + " does nothing")
		return
	}
	turn := b.Turn
	do(a, func(ctx context.Context) (*protocol.Interrupted, error) {
		return a.client().Interrupt(ctx, name, turn, "")
	},
		func(_ *protocol.Interrupted, err error) {
			if err != nil && !errors.Is(err, protocol.NoActiveTurn) && !errors.Is(err, protocol.StaleTurn) {
				a.notes.fail(err)
			}
		})
}

func (a *App) stopCommand(name string) error {
	if a.session == nil {
		return nil
	}
	switch name {
	case "":
		a.interrupt()
	case "all":
		a.stopBot(a.session.bot)
		for _, t := range a.tasks() {
			if t.Turn != 0 {
				a.stopBot(t.Record.Name)
			}
		}
	default:
		for _, t := range a.tasks() {
			if t.Record.Name == name || t.Record.Name == a.project()+"."+name {
				a.stopBot(t.Record.Name)
				return nil
			}
		}
		return noBot(name)
	}
	return nil
}

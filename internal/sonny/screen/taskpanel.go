package screen

import (
	"context"
	"errors"
	"fmt"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/roster"
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
	event:   (*App).sizeStale,
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
		head:  text.Of(text.Dim, roster.TaskHead(a.roomForTasks())),
		rows: func(a *App) []lists.Row {
			var rows []lists.Row
			for _, t := range a.tasks() {
				rows = append(rows, roster.Task(t, a.planWords(t), a.o.Clock(), a.roomForTasks()))
			}
			return rows
		},
		detail: func(a *App, r lists.Row, w int) []text.Line {
			t := a.world.Bot(r.ID)
			if t == nil {
				return nil
			}
			lines := stepLines(a.planOf(t), w, stepsShown)
			if t.Record.Workspace != nil {
				at := text.Span{Text: cells.OneLine(human.Path(*t.Record.Workspace)), Role: text.Dim}
				lines = append(lines, text.Join(append([]text.Span{at}, a.taskSize(t)...)...))
			}
			if t.Activity != "" {
				lines = append(lines, text.Of(text.Dim, "▸ "+cells.OneLine(t.Activity)).Cut(w))
			}
			return lines
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

// stepsShown is how many rows of steps stand below the list of tasks.
const stepsShown = 5

// roomForTasks is how much wider the list of tasks is than on a screen of 80.
func (a *App) roomForTasks() int { return min(40, max(0, a.w-80)) }

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

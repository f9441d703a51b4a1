package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// mergeCommands bring a task's work home and take a task away, on the person's word
// (sonny.md 5.2).
var mergeCommands = feature{
	commands: []slashCommand{{"merge", "NAME", "merge a task's branch here", (*App).mergeCommand}},
}

// taskOf is a task of the lead on screen by its name, with or without the prefix.
func (a *App) taskOf(name string) *live.Bot {
	for _, t := range a.tasks() {
		if t.Record.Name == name || t.Record.Name == a.project()+"."+name {
			return t
		}
	}
	return nil
}

func (a *App) mergeCommand(name string) error {
	t := a.taskOf(name)
	if t == nil {
		return noBot(name)
	}
	a.openMerge(t.Record.Name)
	return nil
}

// homecoming is what a merge, or a removal, is decided by.
type homecoming struct {
	tree  *lead.TaskTree
	state *lead.TreeState
	files []*diff.File
	cut   bool
}

// lookHome reads a task's worktree beside the loop. tree is nil for a task without one.
func (a *App) lookHome(ctx context.Context, task *protocol.Bot) (*homecoming, error) {
	h := &homecoming{}
	var err error
	if h.tree, err = lead.TreeOf(a.o.Kept, a.o.Store, task); err != nil || h.tree == nil {
		return h, err
	}
	if h.state, err = h.tree.State(ctx); err != nil {
		return nil, err
	}
	text, cut, err := h.tree.Diff(ctx)
	h.files, h.cut = diff.Parse(text), cut
	return h, err
}

// openMerge shows a task's diff against where it began, and the ways to merge it.
func (a *App) openMerge(name string) {
	b := a.world.Bot(name)
	if b == nil || b.Turn != 0 {
		a.notes.say(name + " still works; merge it when it rests")
		return
	}
	record := b.Record
	do(a, func(ctx context.Context) (*homecoming, error) { return a.lookHome(ctx, &record) },
		func(h *homecoming, err error) {
			switch {
			case err != nil:
				a.notes.fail(err)
			case h.tree == nil:
				a.notes.say(name + " works in no worktree that Sonny made; its changes are in its folder")
			case h.state.Unmerged == 0 && len(h.state.Uncommitted) == 0:
				a.notes.say(name + " has nothing to merge")
			default:
				a.panel = a.mergePanel(name, h)
			}
		})
}

// mergePanel is the list of the ways. Nothing happens before one is taken.
func (a *App) mergePanel(name string, h *homecoming) *listPanel {
	ways := []struct {
		id, does string
		how      lead.MergeStrategy
		commit   bool
	}{
		{"merge", "merge " + cells.OneLine(h.tree.Branch()) + " with a merge commit", lead.MergeCommit, false},
		{"squash", "squash it into one change, staged here", lead.MergeSquash, false},
		{"rebase", "rebase it onto this branch", lead.MergeRebase, false},
	}
	dirty := len(h.state.Uncommitted)
	if dirty > 0 {
		ways = append(ways, ways[0])
		last := &ways[len(ways)-1]
		last.id, last.does, last.commit = "commit", "commit what it left there first, then merge", true
	}
	p := &listPanel{
		title: "merge " + cells.OneLine(name), hint: []string{"Enter take it"},
		right: func() string { return fmt.Sprintf("%d commits", h.state.Unmerged) },
		rows: func(*App) []lists.Row {
			var rows []lists.Row
			for _, way := range ways {
				rows = append(rows, lists.Row{ID: way.id, Line: text.Of(text.Plain, way.does)})
			}
			return rows
		},
		detail: func(_ *App, _ lists.Row, w int) []text.Line { return h.shown(w) },
	}
	p.keys = map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
		for _, way := range ways {
			if way.id == r.ID {
				a.merge(name, h, way.how, way.commit)
			}
		}
		return true
	}}
	return p
}

// shown is the diff, and what is not committed, by name.
func (h *homecoming) shown(w int) (out []text.Line) {
	if n := len(h.state.Uncommitted); n > 0 {
		out = append(out, text.Of(text.Warn, fmt.Sprintf("not committed there: %s", cells.OneLine(strings.Join(h.state.Uncommitted, ", ")))).Cut(w))
	}
	for _, f := range h.files {
		out = append(out, text.Join(text.Span{Text: cells.OneLine(f.Path()), Attr: text.Bold},
			text.Span{Text: fmt.Sprintf("  +%d", f.Added), Role: text.Add}, text.Span{Text: fmt.Sprintf(" −%d", f.Removed), Role: text.Del}))
		out = append(out, diff.Unified(f, max(20, w), diff.Options{Words: true}).Lines...)
	}
	if h.cut {
		out = append(out, text.Of(text.Dim, "the diff is longer and is cut; Ctrl+X d shows files one by one"))
	}
	return out
}

func (a *App) merge(name string, h *homecoming, how lead.MergeStrategy, commit bool) {
	bots := a.world.Records()
	do(a, func(ctx context.Context) (struct{}, error) {
		if commit {
			if err := h.tree.CommitAll(ctx, "What "+name+" left uncommitted", bots); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, h.tree.Merge(ctx, how, bots)
	}, func(_ struct{}, err error) {
		a.readBranch()
		if err != nil {
			a.notes.fail(err)
			return
		}
		a.notes.say(name + " is merged; /tasks and d removes it")
	})
}

// removeTask takes a task away: the bot, and with the name typed the worktree and the
// branch, where those hold work that is nowhere else.
func (a *App) removeTask(p *listPanel, name string) {
	b := a.world.Bot(name)
	if b == nil || b.Turn != 0 {
		a.notes.say(name + " still works; stop it first")
		return
	}
	record := b.Record
	do(a, func(ctx context.Context) (*homecoming, error) { return a.lookHome(ctx, &record) },
		func(h *homecoming, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.askRemove(p, name, h)
		})
}

// askRemove asks about the bot, then about its worktree, then about the branch.
func (a *App) askRemove(p *listPanel, name string, h *homecoming) {
	p.ask(&question{text: "Remove the bot " + name + " with all that was said?", yes: func(a *App) {
		a.deleteBot(name, func() {
			if h.tree != nil {
				a.askFolder(p, name, h)
			}
		})
	}})
}

func (a *App) askFolder(p *listPanel, name string, h *homecoming) {
	q := &question{text: "Remove its worktree " + human.Path(h.tree.Tree.Top) + " too?", yes: func(a *App) { a.askBranch(p, name, h) }}
	if n := len(h.state.Uncommitted); n > 0 {
		q.text += fmt.Sprintf(" %s there would be lost: type %s.", human.Count(n, "uncommitted path", "uncommitted paths"), name)
		q.want = name
	}
	p.ask(q)
}

func (a *App) askBranch(p *listPanel, name string, h *homecoming) {
	folder := func(a *App) { a.takeAway(name, h, h.tree.RemoveFolder) }
	q := &question{
		text: "Remove its branch " + h.tree.Branch() + " too?", no: folder,
		yes: func(a *App) { a.takeAway(name, h, h.tree.Remove) },
	}
	if n := h.state.Unmerged; n > 0 {
		q.text += fmt.Sprintf(" %s would be lost: type %s.", human.Count(n, "unmerged commit", "unmerged commits"), name)
		q.want = name
	}
	p.ask(q)
}

func (a *App) takeAway(name string, h *homecoming, remove func(context.Context) error) {
	do(a, func(ctx context.Context) (struct{}, error) {
		err := remove(ctx)
		if err == nil {
			h.tree.Forget(a.o.Kept)
		}
		return struct{}{}, err
	}, func(_ struct{}, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		a.notes.say("what " + name + " worked in is removed")
	})
}

package screen

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/snapshot"
	"agent/protocol"
)

// undoCommands put the folder's files back and forth (sonny.md 10.7).
var undoCommands = feature{commands: []slashCommand{
	{"undo", "", "the files as they were before your last message", func(a *App, _ string) error { return a.stepFiles(true) }},
	{"redo", "", "take that back", func(a *App, _ string) error { return a.stepFiles(false) }},
}}

// keepFiles begins to keep the files of the folder that a message is for. What it
// returns waits until they are kept, at most 300 ms: a message is never delayed longer.
func (a *App) keepFiles(req *protocol.Submit) func(context.Context) {
	var room *snapshot.Room
	for _, s := range []*session{a.session, a.side} {
		if s != nil && s.id == req.BotID {
			room = a.room(s)
		}
	}
	if room == nil || req.Delivery == protocol.Steer {
		return func(context.Context) {}
	}
	done := make(chan struct{})
	var late atomic.Bool
	at := a.o.Clock()
	do(a, func(ctx context.Context) (struct{}, error) {
		defer close(done)
		return struct{}{}, room.Take(ctx, req.BotID, req.RequestID, at, late.Load)
	}, func(_ struct{}, err error) {
		if err != nil && a.ctx.Err() == nil {
			a.notes.say(fault.Screen.Words(err))
		}
	})
	return func(ctx context.Context) {
		limit := time.NewTimer(snapshot.MaxDelay)
		defer limit.Stop()
		select {
		case <-done:
		case <-limit.C:
			late.Store(true)
		case <-ctx.Done():
		}
	}
}

// stepFiles shows what a step back, or forth, would do to the files, and does it when
// the person says so. The command is refused while a turn runs.
func (a *App) stepFiles(back bool) error {
	s := a.at()
	if s == nil {
		return protocol.Fail("failed", "nothing was sent from here yet")
	}
	if s.working(a) {
		return protocol.Fail("failed", "a turn runs that may be writing these files; Esc ends it")
	}
	room := a.room(s)
	if room == nil {
		return protocol.Fail(snapshot.Skipped, "no files are kept here: this is no git checkout, or snapshots.enabled is false")
	}
	do(a, func(ctx context.Context) (*snapshot.Step, error) {
		if back {
			return room.Back(ctx, s.id, "")
		}
		return room.Forth(ctx, s.id)
	}, func(step *snapshot.Step, err error) {
		switch {
		case err != nil:
			a.notes.fail(err)
		case step == nil && back:
			a.notes.say("the files are as they were before each of your messages")
		case step == nil:
			a.notes.say("nothing was undone that could be redone")
		default:
			a.panel = filesPanel(room, step, back)
		}
	})
	return nil
}

// filesPanel lists the files that a step would change, and asks.
func filesPanel(room *snapshot.Room, step *snapshot.Step, back bool) *listPanel {
	title, verb := "undo", "Put these files back as they were before your message of "
	if !back {
		title, verb = "redo", "Bring back what was undone: the files as they were after your message of "
	}
	late := ""
	if step.Mark.Late {
		late = " This state was taken late: the turn had begun."
	}
	p := &listPanel{title: title, right: func() string { return fmt.Sprint(len(step.Changes)) }, empty: "no file would change"}
	p.rows = func(*App) []lists.Row { return changeRows(step.Changes) }
	p.asks = &question{
		text: verb + step.Mark.At.Format("15:04:05") + "?" + late + " Files that git ignores, and files outside the folder, are not covered.",
		yes:  func(a *App) { a.goStep(room, step, back); a.panel = nil },
		no:   func(a *App) { a.panel = nil },
	}
	return p
}

func (a *App) goStep(room *snapshot.Room, step *snapshot.Step, back bool) {
	do(a, func(ctx context.Context) (struct{}, error) { return struct{}{}, room.Go(ctx, step) },
		func(_ struct{}, err error) {
			switch {
			case err != nil:
				a.notes.fail(err)
			case back:
				a.notes.say(human.Count(len(step.Changes), "file is", "files are") + " as before; /redo takes that back")
			default:
				a.notes.say(human.Count(len(step.Changes), "file is", "files are") + " back")
			}
			a.readBranch()
		})
}

// changeRows are files as a list shows them.
func changeRows(list []snapshot.Change) (rows []lists.Row) {
	marks := map[byte]text.Span{
		'A': {Text: "comes back  ", Role: text.Add}, 'D': {Text: "goes        ", Role: text.Del}, 'M': {Text: "changes     ", Role: text.Plain},
	}
	for _, c := range list {
		rows = append(rows, lists.Row{ID: c.Path, Line: text.Join(marks[c.Op], text.Span{Text: cells.OneLine(c.Path)})})
	}
	return rows
}

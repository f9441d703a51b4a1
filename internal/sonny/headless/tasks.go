package headless

import (
	"context"

	"agent/protocol"
)

// family are the bots that the run's bot made, at any depth, since the run began.
type family struct {
	tasks map[string]*task // by name
	ids   map[int64]bool
}

// task is one of them.
type task struct {
	branch string
	turns  map[int64]bool // those that have not ended
}

// busy reports whether a task works. One is submitted to by the call that makes it, so
// that it is busy before the turn of that call can end.
func (f *family) busy() bool {
	for _, t := range f.tasks {
		if len(t.turns) > 0 {
			return true
		}
	}
	return false
}

// adopt takes a new bot in where its maker is of the family.
func (f *family) adopt(name string, id int64, by *int64, branch string) {
	if by == nil || !f.ids[*by] {
		return
	}
	f.ids[id] = true
	f.tasks[name] = &task{branch: branch, turns: map[int64]bool{}}
}

// newFamily is that of a bot without tasks.
func newFamily(id int64) family {
	return family{tasks: map[string]*task{}, ids: map[int64]bool{id: true}}
}

// maxTaskText bounds the reply of a task that is told, in bytes.
const maxTaskText = 16 << 10

// kin takes an event of another bot: tasks are made, begin to work and come to rest.
func (r *run) kin(ctx context.Context, e *protocol.Event) error {
	switch e.Kind {
	case protocol.KindCreated, protocol.KindForked:
		var d protocol.Created // forked has its fields too
		if err := e.Decode(&d); err != nil {
			return err
		}
		r.family.adopt(e.Bot, d.ID, d.CreatedByID, taskBranch(r.Store, r.kept.Project, e.Bot, d.Workspace))
		return nil
	}
	t := r.family.tasks[e.Bot]
	if t == nil {
		return nil
	}
	switch e.Kind {
	case protocol.KindQueued, protocol.KindAccepted:
		if len(t.turns) == 0 {
			r.out.tell(&taskEvent{Task: e.Bot, Status: protocol.StatusRunning, Branch: t.branch})
		}
		t.turns[e.Turn] = true
	case protocol.KindDeleted:
		delete(r.family.tasks, e.Bot)
	case protocol.KindTurnFinished:
		return r.taskFinished(ctx, t, e)
	}
	return nil
}

func (r *run) taskFinished(ctx context.Context, t *task, e *protocol.Event) error {
	var d protocol.TurnFinished
	if err := e.Decode(&d); err != nil {
		return err
	}
	delete(t.turns, e.Turn)
	if len(t.turns) > 0 || d.Status == protocol.StatusSteered {
		return nil
	}
	told := &taskEvent{finished: true, Task: e.Bot, Status: d.Status, Branch: t.branch}
	if out, err := r.c.Result(ctx, e.Bot, e.Turn); err == nil {
		told.Text, _ = cut(out.Text, maxTaskText)
	}
	r.out.tell(told)
	return nil
}

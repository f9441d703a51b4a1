package lead

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"agent/client/instructions"
	"agent/client/worktree"
	"agent/internal/place"
	"agent/protocol"
)

func newKey() string { return rand.Text() }

// answersWithin bounds how long the daemon is waited for.
const answersWithin = 30 * time.Second

// Do starts the task as it was resolved: worktree, setup, bot, brief. What fails undoes
// what was made before it and nothing else; the end of ctx does too. Errors besides
// those of the steps: target_changed for a setup that is another than was shown, and
// outcome_unknown where the daemon was lost before it said whether the bot was made.
func (t *TaskStart) Do(ctx context.Context) (*TaskStarted, error) {
	h, err := t.hold(ctx)
	if err != nil {
		return nil, err
	}
	t.held = h
	started, err := t.carryOut(ctx, h)
	h.release(protocol.CodeOf(err) != outcomeUnknown)
	return started, err
}

func (t *TaskStart) carryOut(ctx context.Context, h *held) (*TaskStarted, error) {
	tree, err := t.makeTree(ctx, h)
	if err != nil {
		return nil, err
	}
	text, err := t.by.Compose(t.textOf(tree))
	if err != nil {
		return nil, t.undone(tree, err)
	}
	bot, err := t.makeBot(ctx, tree, text)
	if err != nil {
		if protocol.CodeOf(err) == outcomeUnknown {
			return nil, err // the next start of the tool host settles it
		}
		return nil, t.undone(tree, err)
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), answersWithin)
	defer cancel()
	got, err := t.by.Client.Submit(within, h.request())
	switch {
	case err != nil && lost(err):
		return nil, unknown(t.Bot, err)
	case err != nil:
		return nil, t.withdraw(within, tree, bot, err)
	}
	return h.started(got, *bot.Workspace), nil
}

// textOf says for what the instructions of the task are composed.
func (t *TaskStart) textOf(tree *worktree.Tree) TaskText {
	if tree == nil {
		return t.by.textOf(t, t.Workspace)
	}
	return t.by.textOf(t, tree.Workspace)
}

// makeTree makes the worktree and runs the setup that was shown. nil, nil: the task
// has none.
func (t *TaskStart) makeTree(ctx context.Context, h *held) (*worktree.Tree, error) {
	if t.Tree == nil {
		return nil, nil
	}
	if err := t.sameSetup(); err != nil {
		return nil, err
	}
	tree, err := t.Tree.Add(ctx)
	if err != nil {
		return nil, err
	}
	h.Tree.Made, h.Tree.Path = true, tree.Path
	err = h.write()
	if err == nil {
		err = t.recordTree(tree)
	}
	if err != nil {
		return nil, t.undone(tree, err)
	}
	if t.Setup == nil {
		return tree, nil
	}
	err = tree.Setup(ctx, worktree.SetupOptions{
		Output: t.by.Output, Keys: t.by.Keys, Limit: t.by.Settings.Tasks.SetupTimeout,
		Shown: t.Setup, Scratch: scratchOf(t.held.path), Started: t.started,
	})
	if err != nil {
		return nil, t.undone(tree, err)
	}
	return tree, nil
}

// started notes a program of the start's, so that one that outlives us is ended before
// what it works on is undone.
func (t *TaskStart) started(pid int) {
	t.held.Group = place.GroupOf(pid)
	_ = t.held.write() // without it that program goes on for a moment, if we are killed
}

// sameSetup refuses a source that got a setup, or another one, since it was resolved.
func (t *TaskStart) sameSetup() error {
	if t.by.NoFolderFiles {
		return nil
	}
	now, err := t.Tree.Script()
	if err != nil {
		return err
	}
	if (now == nil) != (t.Setup == nil) || now != nil && now.SHA256() != t.Setup.SHA256() {
		return protocol.Fail(targetChanged, t.Tree.Source+"/.agents/setup is another than was shown; nothing was made: ask again")
	}
	return nil
}

// makeBot makes the bot. The end of ctx does not cut the request short, since nobody
// could tell then whether it was carried out. outcome_unknown where nobody can tell even
// so.
func (t *TaskStart) makeBot(ctx context.Context, tree *worktree.Tree, text *instructions.Composed) (*protocol.Bot, error) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), answersWithin)
	defer cancel()
	create := t.create(tree, text)
	bot, err := t.by.Client.Create(within, create)
	if err != nil && lost(err) {
		bot, err = t.lookFor(within, create, err)
	}
	if err == nil && ctx.Err() != nil {
		return nil, t.remove(within, bot, context.Cause(ctx))
	}
	return bot, err
}

// lookFor asks for the bot of a request whose answer got lost.
func (t *TaskStart) lookFor(ctx context.Context, create *protocol.Create, err error) (*protocol.Bot, error) {
	bot, again := t.by.Client.Inspect(ctx, t.Bot)
	switch {
	case again == nil && bot.Workspace != nil && *bot.Workspace == create.Workspace && bot.CreatedByID != nil && *bot.CreatedByID == t.by.Lead.ID:
		return bot, nil
	case errors.Is(again, protocol.BotNotFound) || again == nil:
		return nil, err
	}
	return nil, unknown(t.Bot, err)
}

// remove deletes a bot that came to nothing. err says why it did.
func (t *TaskStart) remove(ctx context.Context, bot *protocol.Bot, err error) error {
	if _, left := t.by.Client.Delete(ctx, bot.Name); left != nil && !errors.Is(left, protocol.BotNotFound) {
		return unknown(t.Bot, err)
	}
	return err
}

// withdraw takes back a bot whose brief was refused.
func (t *TaskStart) withdraw(ctx context.Context, tree *worktree.Tree, bot *protocol.Bot, err error) error {
	if err := t.remove(ctx, bot, err); protocol.CodeOf(err) == outcomeUnknown {
		return err
	}
	return t.undone(tree, err)
}

// lost reports whether an answer was lost: the request may have been carried out.
func lost(err error) bool {
	code := protocol.CodeOf(err)
	return code == "" || code == protocol.DaemonDisconnected
}

func unknown(bot string, err error) error {
	return &protocol.Error{Code: outcomeUnknown, Detail: "whether " + bot + " was made is not known: " + err.Error() + "; sonny tasks lists it where it was", Cause: err}
}

// undone is err, after which nothing of a worktree is left; or what is. Without a
// worktree there is nothing.
func (t *TaskStart) undone(tree *worktree.Tree, err error) error {
	if tree == nil {
		return err
	}
	forgetTree(t.by.Sonny, t.by.Store, t.Bot)
	return tree.Undone(err)
}

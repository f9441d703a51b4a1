package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"agent/client"
	"agent/client/termsafe"
	"agent/client/worktree"
	"agent/protocol"
)

// planTree looks for what the worktree is to be made of, where the line asks for
// one (section 18). It makes nothing.
func (r *run) planTree(ctx context.Context, c *protocol.Create) error {
	if !r.newBot.worktree {
		return nil
	}
	target, err := client.Resolve(r.common.store, r.common.socket)
	if err != nil {
		return err
	}
	r.plan, err = worktree.Find(ctx, worktree.Request{
		Name: c.Bot, Folder: c.Workspace, Base: r.newBot.base, Root: worktree.RootOf(target.Store),
	})
	return err
}

// createInTree makes the worktree, and the bot in it. When either fails neither is
// left, and a signal waits for that.
func (r *run) createInTree(ctx context.Context, c *protocol.Create) error {
	switch _, err := r.link.Inspect(ctx, c.Bot); {
	case err == nil:
		return protocol.Fail(protocol.BotExists, c.Bot)
	case !errors.Is(err, protocol.BotNotFound):
		return err
	}
	if err := worktree.Trust(r.link.Bots(ctx), r.plan); err != nil {
		return err
	}
	if err := r.noteUncommitted(ctx); err != nil {
		return err
	}
	if r.newBot.gate.mode == approvalAuto { // before a setup is run for nothing
		if err := r.app.approverServes(ctx, r.link); err != nil {
			return err
		}
	}
	r.app.undoing.Lock()
	defer r.app.undoing.Unlock()
	// What a checkout's setup prints is as foreign as what a model says, and what it
	// leaves running gets our pipe and not the caller's terminal.
	out := termsafe.NewWriter(r.app.stderr)
	tree, err := r.plan.Make(ctx, worktree.SetupOptions{Output: out, Keys: r.keyVariables()})
	out.Flush()
	if err != nil {
		return err
	}
	if err := r.settle(ctx, c, tree); err != nil {
		return r.unsettled(ctx, c, tree, err)
	}
	r.tree = tree
	return nil
}

// unsettled is why no bot was made in the worktree, which is gone then. What a
// signal ended has nothing to come back to.
func (r *run) unsettled(ctx context.Context, c *protocol.Create, tree *worktree.Tree, err error) error {
	if r.stands(ctx, c, err) {
		if _, ok := err.(stopped); ok {
			return err
		}
		return withFact(err, "worktree", tree.Path)
	}
	left := tree.Undo(ctx)
	switch ended := endedBy(ctx); {
	case ended != nil && left != nil:
		r.app.say(left)
		return ended
	case ended != nil:
		return ended
	case left != nil:
		return withFact(err, "left", left.Error())
	}
	return err
}

// settle makes the bot in its worktree.
func (r *run) settle(ctx context.Context, c *protocol.Create, tree *worktree.Tree) error {
	c.Workspace = tree.Workspace
	if c.Sandbox == protocol.SandboxWorkspace {
		c.WritableRoots = append(c.WritableRoots, tree.Roots()...)
	}
	if err := r.instruct(c, tree); err != nil {
		return err
	}
	r.workspace = "" // the bot's own: the folder of the line is what that was made of
	return r.create(ctx, c)
}

// stands reports whether the bot may have been made although its create failed:
// the answer got lost. Its folder must not go then. The daemon that has it knows;
// where that one is gone nobody does, and the folder stays.
func (r *run) stands(ctx context.Context, c *protocol.Create, err error) bool {
	if code := protocol.CodeOf(err); ctx.Err() == nil && code != "" && code != protocol.DaemonDisconnected {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	bot, err := r.link.Inspect(ctx, c.Bot)
	if err == nil {
		return bot.Workspace != nil && *bot.Workspace == c.Workspace
	}
	return !errors.Is(err, protocol.BotNotFound)
}

// keyVariables are those that the line's and the environment's providers name.
func (r *run) keyVariables() []string {
	return client.KeyVariables(append(strings.Fields(os.Getenv("AGENT_PROVIDER")), r.start.providers...))
}

// noteUncommitted tells a person what will not be in the worktree.
func (r *run) noteUncommitted(ctx context.Context) error {
	if !r.app.pretty {
		return nil
	}
	n, err := r.plan.Uncommitted(ctx)
	if err == nil && n > 0 {
		fmt.Fprintf(r.app.stderr, "agent: %d uncommitted in %s, not in the worktree\n", n, termsafe.OneLine(r.plan.Source))
	}
	return err
}

// withTree is a submission's answer, with the worktree that was made.
func (r *run) withTree(answer []byte) []byte {
	if r.tree == nil {
		return answer
	}
	answer = append(bytes.TrimSuffix(answer, []byte("}")), `,"worktree":{"path":`...)
	answer = appendText(answer, r.tree.Path)
	answer = appendText(append(answer, `,"branch":`...), r.tree.Branch)
	return append(answer, "}}"...)
}

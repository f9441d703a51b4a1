package headless

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"agent/client/worktree"
	"agent/internal/sonny/lead"
)

// tree is the worktree that a run made for its bot. A nil one is none.
type tree struct {
	plan *worktree.Plan
	made *worktree.Tree
	gone bool
}

// plant makes a worktree for the bot that a plan makes, and lets the plan's folder be
// its own.
func (r *run) plant(ctx context.Context, p *lead.Plan) error {
	if err := p.MakeWorktreesDir(); err != nil {
		return err
	}
	plan, err := worktree.Find(ctx, worktree.Request{
		Name: strings.TrimPrefix(p.Name, p.Project+"."), Branch: "agent/" + p.Name,
		Folder: r.Folder.Path, Base: *r.Options.Worktree, Root: p.WorktreesDir(),
		Trust: func(p *worktree.Plan) error { return worktree.Trust(r.c.Bots(ctx), p) },
	})
	if err != nil {
		return err
	}
	if n, err := plan.Uncommitted(ctx); err == nil && n > 0 {
		r.out.note("uncommitted", "what is not committed is not in the worktree: "+count(n, "changed path", "changed paths"))
	}
	r.tree = &tree{plan: plan}
	if r.tree.made, err = r.grow(ctx, plan); err != nil {
		return err
	}
	p.Folder, err = lead.Locate(ctx, r.tree.made.Workspace)
	if err != nil {
		return errors.Join(err, r.tree.undo(ctx))
	}
	return nil
}

func (r *run) grow(ctx context.Context, plan *worktree.Plan) (*worktree.Tree, error) {
	if r.NoSetup {
		return plan.Add(ctx)
	}
	o := worktree.SetupOptions{Limit: r.Settings.Tasks.SetupTimeout, Output: io.Discard}
	if !r.out.JSON && !r.out.Quiet {
		o.Output = &lines{out: r.out}
	}
	return plan.Make(ctx, o)
}

// undo removes the worktree and its branch, once.
func (t *tree) undo(ctx context.Context) error {
	if t == nil || t.made == nil || t.gone {
		return nil
	}
	t.gone = true
	return t.made.Undo(ctx)
}

// unchanged reports whether nothing came of the worktree: no commit, no changed file.
func (t *tree) unchanged(ctx context.Context, of *lead.Session) bool {
	at, err := of.Repo.Resolve(ctx, "HEAD")
	if err != nil || at != t.plan.Base {
		return false
	}
	status, err := of.Repo.Status(ctx)
	if err != nil || status.Dirty() {
		return false
	}
	within, err := of.Repo.Within(ctx)
	return err == nil && len(within) == 0
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// told is the worktree as the result has it.
func (t *tree) told() *Worktree {
	if t == nil || t.made == nil {
		return nil
	}
	return &Worktree{Path: t.made.Path, Branch: t.made.Branch, Kept: !t.gone}
}

// lines tells what a setup prints, a line at a time.
type lines struct {
	out  *Output
	open []byte
}

// maxSetupLine bounds a line that a setup prints, in bytes.
const maxSetupLine = 4 << 10

func (l *lines) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' && len(l.open) < maxSetupLine {
			l.open = append(l.open, c)
			continue
		}
		l.out.dim("setup: " + string(l.open))
		l.open = l.open[:0]
	}
	return len(p), nil
}

// taskBranch is the branch of a task's worktree, by where it works; "" for a task that
// has none.
func taskBranch(store, project, bot string, workspace *string) string {
	if workspace == nil {
		return ""
	}
	below, err := filepath.Rel(filepath.Join(worktree.RootOf(store), project), *workspace)
	if err != nil || strings.HasPrefix(below, "..") || below == "." {
		return ""
	}
	return "agent/" + bot
}

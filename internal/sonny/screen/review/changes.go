// Package review is what a person is shown of what bots changed (sonny.md 11): which
// changes can be looked at, reading them, and the panel's rows with the notes on them.
// What its keys cause elsewhere is not its.
package review

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/sonny/live"
	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/snapshot"
)

// The bounds of what is read.
const (
	maxFile    = diff.MaxBytes // of one file that git does not know, in bytes
	maxNew     = 200           // such files
	maxChanges = 1 << 20       // of a diff since a state, in bytes
	maxSince   = 3             // earlier messages that are offered
)

// Scope is which changes are looked at.
type Scope struct {
	Label string
	Bot   string // who works there, and gets the notes
	Top   string // what the files' paths are below
	// Read reads them. It runs git, and may be called beside the loop.
	Read func(ctx context.Context) (*Set, error)
}

// Set is what was read.
type Set struct {
	Against string // what they are changes of, for a person
	Files   []*diff.File
	Cut     bool // there is more than is read
	More    int  // changed files that are not listed
}

// Counts are the lines that came and went.
func (c *Set) Counts() (added, removed int) {
	for _, f := range c.Files {
		added, removed = added+f.Added, removed+f.Removed
	}
	return added, removed
}

// Size is how much that is, as spans that stand behind what it is of.
func (c *Set) Size() []text.Span {
	files := len(c.Files) + c.More
	if files == 0 {
		return []text.Span{{Text: "   no changes", Role: text.Dim}}
	}
	added, removed := c.Counts()
	in := " in " + human.Count(files, "file", "files")
	if c.Cut {
		in += ", at least"
	}
	return []text.Span{
		{Text: fmt.Sprintf("   +%d", added), Role: text.Add}, {Text: fmt.Sprintf(" −%d", removed), Role: text.Del}, {Text: in, Role: text.Dim},
	}
}

// Place is where a session works, with what was kept of it.
type Place struct {
	Bot   string
	Repo  repo.Repo
	Room  *snapshot.Room  // the states of its folder; nil where there are no marks
	Marks []snapshot.Mark // of those states, the oldest first
	Tasks []*live.Bot
}

// Scopes are those of a place, the first the one that is shown: the newest states, what
// is not committed, the whole branch, and each task that has a worktree of its own.
func (p *Place) Scopes() []Scope {
	var list []Scope
	add := func(label string, read func(context.Context) (*Set, error)) {
		list = append(list, Scope{Label: label, Bot: p.Bot, Top: p.Repo.Top, Read: read})
	}
	for i, k := range slices.Backward(p.Marks) {
		label := "this turn"
		if i < len(p.Marks)-1 {
			label = "since " + k.At.Format("15:04")
		}
		if len(list) > maxSince {
			break
		}
		add(label, func(ctx context.Context) (*Set, error) { return sinceMark(ctx, p.Room, k) })
	}
	add("not committed", func(ctx context.Context) (*Set, error) { return uncommitted(ctx, p.Repo) })
	add("whole branch", func(ctx context.Context) (*Set, error) { return wholeBranch(ctx, p.Repo, "") })
	for _, t := range p.Tasks {
		if s, ok := TaskScope(p.Repo, t); ok {
			list = append(list, s)
		}
	}
	return list
}

// TaskScope is what a task changed since it left the branch of its lead's checkout; false for
// one that has no worktree of its own.
func TaskScope(lead repo.Repo, t *live.Bot) (Scope, bool) {
	w, ok := taskCheckout(lead, t)
	if !ok {
		return Scope{}, false
	}
	return Scope{Label: TaskLabel(t.Record.Name), Bot: t.Record.Name, Top: w.Top, Read: func(ctx context.Context) (*Set, error) {
		base, err := lead.Resolve(ctx, "HEAD")
		if err != nil {
			return nil, err
		}
		return wholeBranch(ctx, w, base)
	}}, true
}

// TaskLabel is the label of a task's scope.
func TaskLabel(task string) string { return "task " + task }

// taskCheckout is the worktree that a task works in, found from the lead's own git
// folder: what stands in the task's folder is never asked.
func taskCheckout(lead repo.Repo, t *live.Bot) (repo.Repo, bool) {
	if !lead.There() || t.Record.Workspace == nil {
		return repo.Repo{}, false
	}
	top := *t.Record.Workspace
	if top == lead.Top {
		return repo.Repo{}, false
	}
	dirs, err := os.ReadDir(filepath.Join(lead.Common, "worktrees"))
	if err != nil {
		return repo.Repo{}, false
	}
	for _, d := range dirs {
		dir := filepath.Join(lead.Common, "worktrees", d.Name())
		text, err := os.ReadFile(filepath.Join(dir, "gitdir"))
		if err != nil {
			continue
		}
		at := filepath.Dir(strings.TrimSpace(string(text)))
		if rel, err := filepath.Rel(at, top); err == nil && filepath.IsLocal(rel) {
			return repo.Repo{Top: at, GitDir: dir, Common: lead.Common}, true
		}
	}
	return repo.Repo{}, false
}

func sinceMark(ctx context.Context, room *snapshot.Room, k snapshot.Mark) (*Set, error) {
	text, cut, err := room.Diff(ctx, k.Tree, maxChanges)
	if err != nil {
		return nil, err
	}
	return &Set{Against: "since " + k.At.Format("15:04"), Files: diff.Parse(text), Cut: cut}, nil
}

// uncommitted is what differs from the newest commit, new files among it.
func uncommitted(ctx context.Context, r repo.Repo) (*Set, error) {
	return against(ctx, r, "HEAD", "against HEAD")
}

func against(ctx context.Context, r repo.Repo, commit, words string) (*Set, error) {
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	c := &Set{Against: words, More: s.More}
	if s.Commit != "" {
		text, cut, err := r.Diff(ctx, commit, "")
		if err != nil {
			return nil, err
		}
		c.Files, c.Cut = diff.Parse(text), cut
	}
	news := 0
	for _, f := range s.Files {
		if f.Code != "??" && (s.Commit != "" || f.Code[0] != 'A') {
			continue
		}
		if news++; news > maxNew {
			c.More++
			continue
		}
		if file := newFile(r.Top, f.Path); file != nil {
			c.Files = append(c.Files, file)
		}
	}
	return c, nil
}

// newFile is a file that git does not know yet, as far as it is read.
func newFile(top, path string) *diff.File {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil
	}
	defer root.Close()
	info, err := root.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := root.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil
	}
	return diff.Write(path, nil, string(text))
}

// wholeBranch is what the branch has that the one it left does not. base is a commit of
// that one; "" for the repository's main branch.
func wholeBranch(ctx context.Context, r repo.Repo, base string) (*Set, error) {
	words := "against where the branch began"
	for _, name := range []string{"refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master"} {
		if base != "" {
			break
		}
		if id, err := r.Resolve(ctx, name); err == nil {
			base = id
		}
	}
	if base == "" {
		return against(ctx, r, "HEAD", "against HEAD: there is no main branch")
	}
	began, err := r.MergeBase(ctx, "HEAD", base)
	if err != nil {
		return against(ctx, r, "HEAD", "against HEAD: the branch began nowhere")
	}
	return against(ctx, r, began, words)
}

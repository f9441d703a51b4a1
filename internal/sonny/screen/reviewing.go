package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/sonny/live"
	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/snapshot"
	"agent/protocol"
)

// maxReviewed bounds what is read of one file that git does not know, maxReviewNew how
// many of them are read, maxChanges a diff since a state.
const (
	maxReviewed  = diff.MaxBytes
	maxReviewNew = 200
	maxChanges   = 1 << 20
	maxSince     = 3 // earlier messages that are offered
)

// changeScope is which changes are looked at.
type changeScope struct {
	label string
	bot   string // who works there, and gets the notes
	top   string // what the files' paths are below
	read  func(ctx context.Context) (*changeSet, error)
}

// changeSet is what was read.
type changeSet struct {
	against string
	files   []*diff.File
	cut     bool // there is more than is read
	more    int  // changed files that are not listed
}

// counts are the lines that came and went.
func (c *changeSet) counts() (added, removed int) {
	for _, f := range c.files {
		added, removed = added+f.Added, removed+f.Removed
	}
	return added, removed
}

// repository is the checkout that a session works in, as it was recorded when its bot
// was made; the folder's own where the bot works there and nothing was recorded.
func (a *App) repository(s *session) repo.Repo {
	if s == nil {
		return a.o.Folder.Repo
	}
	if s.kept.Repo.There() {
		return s.kept.Repo
	}
	if b := a.world.Bot(s.bot); b != nil && b.Record.Workspace != nil && *b.Record.Workspace == a.o.Folder.Path {
		return a.o.Folder.Repo
	}
	return repo.Repo{}
}

// workspaceOf is the folder that a session's bot works in.
func (a *App) workspaceOf(s *session) string {
	if s != nil {
		if b := a.world.Bot(s.bot); b != nil && b.Record.Workspace != nil {
			return *b.Record.Workspace
		}
	}
	return a.o.Folder.Path
}

// room is where the states of a session's folder are kept; nil for none.
func (a *App) room(s *session) *snapshot.Room {
	r := a.repository(s)
	if a.o.Snapshots == nil || !r.There() {
		return nil
	}
	m, err := a.o.Snapshots.In(r, a.workspaceOf(s))
	if err != nil {
		return nil
	}
	return m
}

// changeScopes are those of a session, the first the one that is shown.
func (a *App) changeScopes(s *session, marks []snapshot.Mark) []changeScope {
	r, room := a.repository(s), a.room(s)
	var list []changeScope
	add := func(label string, read func(context.Context) (*changeSet, error)) {
		list = append(list, changeScope{label: label, bot: s.bot, top: r.Top, read: read})
	}
	for i, k := range slices.Backward(marks) {
		label := "this turn"
		if i < len(marks)-1 {
			label = "since " + k.At.Format("15:04")
		}
		if len(list) > maxSince {
			break
		}
		add(label, func(ctx context.Context) (*changeSet, error) { return sinceMark(ctx, room, k) })
	}
	add("not committed", func(ctx context.Context) (*changeSet, error) { return uncommitted(ctx, r) })
	add("whole branch", func(ctx context.Context) (*changeSet, error) { return wholeBranch(ctx, r, "") })
	for _, t := range a.tasks() {
		if w, ok := taskCheckout(r, t); ok {
			list = append(list, changeScope{label: "task " + t.Record.Name, bot: t.Record.Name, top: w.Top, read: func(ctx context.Context) (*changeSet, error) {
				base, err := r.Resolve(ctx, "HEAD")
				if err != nil {
					return nil, err
				}
				return wholeBranch(ctx, w, base)
			}})
		}
	}
	return list
}

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

func sinceMark(ctx context.Context, room *snapshot.Room, k snapshot.Mark) (*changeSet, error) {
	text, cut, err := room.Diff(ctx, k.Tree, maxChanges)
	if err != nil {
		return nil, err
	}
	return &changeSet{against: "since " + k.At.Format("15:04"), files: diff.Parse(text), cut: cut}, nil
}

// uncommitted is what differs from the newest commit, new files among it.
func uncommitted(ctx context.Context, r repo.Repo) (*changeSet, error) {
	return against(ctx, r, "HEAD", "against HEAD")
}

func against(ctx context.Context, r repo.Repo, commit, words string) (*changeSet, error) {
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	c := &changeSet{against: words, more: s.More}
	if s.Commit != "" {
		text, cut, err := r.Diff(ctx, commit, "")
		if err != nil {
			return nil, err
		}
		c.files, c.cut = diff.Parse(text), cut
	}
	news := 0
	for _, f := range s.Files {
		if f.Code != "??" && (s.Commit != "" || f.Code[0] != 'A') {
			continue
		}
		if news++; news > maxReviewNew {
			c.more++
			continue
		}
		if file := newFile(r.Top, f.Path); file != nil {
			c.files = append(c.files, file)
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
	text, err := io.ReadAll(io.LimitReader(f, maxReviewed+1))
	if err != nil {
		return nil
	}
	return diff.Write(path, nil, string(text))
}

// wholeBranch is what the branch has that the one it left does not. base is a commit of
// that one; "" for the repository's main branch.
func wholeBranch(ctx context.Context, r repo.Repo, base string) (*changeSet, error) {
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

// openReview shows what the bot on screen changed.
func (a *App) openReview() error {
	s := a.at()
	if s == nil || !a.repository(s).There() {
		return protocol.Fail("failed", "there is no git checkout here to look at")
	}
	p := &reviewPanel{s: s, wrap: true, diffs: a.o.Diffs}
	a.panel = p
	room := a.room(s)
	do(a, func(context.Context) ([]snapshot.Mark, error) {
		if room == nil {
			return nil, nil
		}
		return room.Marks(s.id)
	}, func(marks []snapshot.Mark, err error) {
		if err != nil {
			a.notes.fail(err)
		}
		p.scopes = a.changeScopes(s, marks)
		p.load(a)
	})
	return nil
}

// openTaskReview shows what a task changed.
func (a *App) openTaskReview(task string) error {
	if err := a.openReview(); err != nil {
		return err
	}
	a.panel.(*reviewPanel).want = task
	return nil
}

// reviewCommands are of the panel of changes (sonny.md 11).
var reviewCommands = feature{
	commands: []slashCommand{
		{"diff", "", "what was changed", func(a *App, _ string) error { return a.openReview() }},
		{"review", "", "the same", func(a *App, _ string) error { return a.openReview() }},
	},
	actions: map[string]func(*App){"diff": func(a *App) { a.failing(a.openReview()) }},
}

// load reads the scope that is chosen.
func (p *reviewPanel) load(a *App) {
	if i := slices.IndexFunc(p.scopes, func(s changeScope) bool { return p.want != "" && s.label == "task "+p.want }); i >= 0 {
		p.scope = i
	}
	p.want = ""
	sc := p.scopes[p.scope]
	p.set, p.failed, p.file, p.row, p.top = nil, nil, 0, 0, 0
	p.laid = laidDiff{}
	do(a, sc.read, func(set *changeSet, err error) {
		if a.panel != panel(p) || p.scopes[p.scope].label != sc.label {
			return
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			p.failed = err
		}
		if set != nil {
			p.set = set
		}
	})
}

// message is the notes as they are sent.
func (p *reviewPanel) message() string {
	var b strings.Builder
	b.WriteString("Notes on the changes:\n")
	for _, n := range p.notes {
		fmt.Fprintf(&b, "\n%s:%d (%s)\n> %s\n%s\n", n.path, n.line, n.side, n.quote, n.text)
	}
	return b.String()
}

package screen

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/client/instructions"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/memory"
	"agent/internal/sonny/repo"
)

// Bounds of the finder: paths that are looked in, and rows that are found.
const (
	maxPaths = 100_000
	maxFound = 50
)

// findRest is how old the list of paths may be before it is read again.
const findRest = 5 * time.Second

// findable is what @ can refer to in a folder, as it was read last.
type findable struct {
	folder  string
	read    time.Time
	reading bool
	paths   []pick
	others  []pick // skills and facts
}

// find ranks what can be referred to: names that begin with the text, then names that
// hold it, then paths that do.
func (a *App) find(typed string) []pick {
	a.readFindable()
	typed = strings.TrimSuffix(typed, "!")
	var candidates []pick
	for b := range a.world.Bots() {
		if !lead.Judge(&b.Record) {
			candidates = append(candidates, pick{name: b.Record.Name, does: "agent", insert: "@" + b.Record.Name})
		}
	}
	return ranked(typed, candidates, a.findable.others, a.findable.paths)
}

// ranked are the best of some lists, at most maxFound.
func ranked(typed string, lists ...[]pick) []pick {
	want := strings.ToLower(typed)
	var ranks [4][]pick
	for _, list := range lists {
		for _, p := range list {
			r := rankOf(strings.ToLower(p.name), want)
			if r < len(ranks) && len(ranks[r]) < 20*maxFound {
				ranks[r] = append(ranks[r], p)
			}
		}
	}
	var out []pick
	for _, r := range ranks {
		slices.SortStableFunc(r, func(a, b pick) int { return cmp.Compare(len(a.name), len(b.name)) })
		out = append(out, r...)
	}
	return out[:min(len(out), maxFound)]
}

// rankOf is 0 where the last part of a name begins with the text or the name does, 1
// where it holds it, 2 where the path does, 4 where nothing does.
func rankOf(name, want string) int {
	base := name[strings.LastIndexByte(strings.TrimSuffix(name, "/"), '/')+1:]
	switch {
	case strings.HasPrefix(base, want), strings.HasPrefix(name, want):
		return 0
	case strings.Contains(base, want):
		return 1
	case strings.Contains(name, want):
		return 2
	}
	return 4
}

// readFindable reads the lists beside the loop where they are old. The menu is made anew
// when they are here.
func (a *App) readFindable() {
	f := &a.findable
	folder := a.workspace(a.at())
	if f.reading || folder == f.folder && a.o.Now().Sub(f.read) < findRest {
		return
	}
	if folder != f.folder {
		*f = findable{folder: folder}
	}
	f.reading = true
	project, checkout := a.project(), a.checkout()
	do(a, func(ctx context.Context) (*findable, error) { return readFindable(ctx, folder, project, checkout), nil },
		func(read *findable, _ error) {
			read.read = a.o.Now()
			a.findable = *read
			if a.menu.finder {
				a.menu = menu{}
				a.complete()
			}
		})
}

// checkout is the one that what is on screen works in, as it was recorded.
func (a *App) checkout() repo.Repo {
	if s := a.at(); s != nil && s.kept.Repo.There() {
		return s.kept.Repo
	}
	if a.workspace(a.at()) == a.o.Folder.Path {
		return a.o.Folder.Repo
	}
	return repo.Repo{}
}

func readFindable(ctx context.Context, folder, project string, checkout repo.Repo) *findable {
	f := &findable{folder: folder}
	if checkout.There() {
		paths, _, err := checkout.Paths(ctx, maxPaths)
		if err == nil {
			for _, p := range paths {
				f.paths = append(f.paths, pick{name: p, does: "", insert: "@" + p})
			}
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return f
	}
	if skills, err := instructions.Skills(folder, home); err == nil {
		for _, s := range skills {
			f.others = append(f.others, pick{name: s.Name, does: "skill  " + s.Description, insert: "@" + s.Path})
		}
	}
	for _, scope := range []memory.Scope{{Project: project}, {}} {
		m := memory.Open(home, time.Now)
		found, err := m.Recall(scope, "")
		if err != nil {
			continue
		}
		for _, fact := range found.Facts {
			f.others = append(f.others, pick{name: fact.Name, does: "fact  " + fact.Description, insert: "@" + filepath.Join(m.Folder(scope), fact.Name+".md")})
		}
	}
	return f
}

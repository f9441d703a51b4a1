package screen

import (
	"context"
	"strings"
	"time"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/mention"
)

// findRest is how old the list of paths may be before it is read again.
const findRest = 5 * time.Second

// findable is what @ can refer to in a folder, as it was read last.
type findable struct {
	folder  string
	read    time.Time
	reading bool
	there   mention.There
}

// find ranks what can be referred to: names that begin with the text, then names that
// hold it, then paths that do.
func (a *App) find(typed string) []mention.Pick {
	a.readFindable()
	typed = strings.TrimSuffix(typed, "!")
	var candidates []mention.Pick
	for b := range a.world.Bots() {
		if !lead.Judge(&b.Record) {
			candidates = append(candidates, mention.Pick{Name: b.Record.Name, Does: "agent", Insert: "@" + b.Record.Name})
		}
	}
	return mention.Ranked(typed, candidates, a.findable.there.Others, a.findable.there.Paths)
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
	do(a, func(ctx context.Context) (*mention.There, error) {
		return mention.Read(ctx, folder, project, checkout), nil
	},
		func(there *mention.There, _ error) {
			a.findable = findable{folder: folder, read: a.o.Now(), there: *there}
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

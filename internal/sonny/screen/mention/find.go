// Package mention is what @ in a message can name (sonny.md 10.1): what there is to name
// in a folder, what of it a person who types may mean, and the files that @path! puts
// into the message.
package mention

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/client/instructions"
	"agent/internal/sonny/memory"
	"agent/internal/sonny/repo"
)

// Most is how many rows are found at most.
const Most = 50

// maxPaths is how many paths are looked in at most.
const maxPaths = 100_000

// There is what @ can refer to in a folder, besides agents.
type There struct {
	Paths  []Pick
	Others []Pick // skills and facts
}

// Ranked are the best of some lists, at most Most: names that begin with the text, then
// names that hold it, then paths that do; of equals the shorter first.
func Ranked(typed string, lists ...[]Pick) []Pick {
	want := strings.ToLower(typed)
	var ranks [4][]Pick
	for _, list := range lists {
		for _, p := range list {
			r := rankOf(strings.ToLower(p.Name), want)
			if r < len(ranks) && len(ranks[r]) < 20*Most {
				ranks[r] = append(ranks[r], p)
			}
		}
	}
	var out []Pick
	for _, r := range ranks {
		slices.SortStableFunc(r, func(a, b Pick) int { return cmp.Compare(len(a.Name), len(b.Name)) })
		out = append(out, r...)
	}
	return out[:min(len(out), Most)]
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

// Read finds what there is in a folder: the paths of its checkout, the skills that hold
// there, and the facts of its project and of every project. It runs git and reads files;
// what cannot be read is not among it.
func Read(ctx context.Context, folder, project string, checkout repo.Repo) *There {
	f := &There{}
	if checkout.There() {
		paths, _, err := checkout.Paths(ctx, maxPaths)
		if err == nil {
			for _, p := range paths {
				f.Paths = append(f.Paths, Pick{Name: p, Does: "", Insert: "@" + p})
			}
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return f
	}
	if skills, err := instructions.Skills(folder, home); err == nil {
		for _, s := range skills {
			f.Others = append(f.Others, Pick{Name: s.Name, Does: "skill  " + s.Description, Insert: "@" + s.Path})
		}
	}
	for _, scope := range []memory.Scope{{Project: project}, {}} {
		m := memory.Open(home, time.Now)
		found, err := m.Recall(scope, "")
		if err != nil {
			continue
		}
		for _, fact := range found.Facts {
			f.Others = append(f.Others, Pick{Name: fact.Name, Does: "fact  " + fact.Description, Insert: "@" + filepath.Join(m.Folder(scope), fact.Name+".md")})
		}
	}
	return f
}

// Pick is a row to be picked while something is typed.
type Pick struct {
	Name, Does string // what it is, in text from outside
	Insert     string // what it puts in the place of the word
}

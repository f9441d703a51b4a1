package snapshot

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agent/internal/git"
)

// Take keeps the folder as it is before a message of a bot, which is known by its
// request id. It takes 2 s at most. late tells, once it is asked when all is kept, that
// the message has gone meanwhile; nil: it waited. What was undone before cannot be redone
// afterwards. An error is snapshot_skipped with the reason: then nothing is kept.
func (m *Room) Take(ctx context.Context, bot int64, request string, now time.Time, late func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	return skipped(ctx, m.alone(func() error {
		var ignored beside
		var failed error
		var looking sync.WaitGroup
		looking.Go(func() { ignored, failed = m.ignored(ctx) })
		tree, err := m.record(ctx)
		if looking.Wait(); err == nil {
			err = failed
		}
		if err != nil {
			return err
		}
		b, err := m.read()
		if err != nil {
			return err
		}
		b.Marks = append(b.Marks, Mark{Tree: tree, At: now, Bot: bot, Request: request, Late: late != nil && late(), Beside: ignored})
		b.Undone = nil
		if err := m.hold(ctx, tree); err != nil {
			return err
		}
		m.bound(ctx, b, now)
		return m.write(b)
	}))
}

// ignored is what git ignores now.
func (m *Room) ignored(ctx context.Context) (beside, error) {
	paths, cut, err := m.repo.Ignored(ctx, maxIgnored)
	if cut {
		return beside{Unknown: true}, nil
	}
	return beside{Ignored: paths}, err
}

// hold keeps a tree from git's clearing up.
func (m *Room) hold(ctx context.Context, tree string) error {
	_, err := m.git(ctx, git.Options{}, "update-ref", "refs/states/"+tree, tree)
	return err
}

// bound lets the oldest states go. What they alone held is cleared away by the next
// round where git does not come to it in time.
func (m *Room) bound(ctx context.Context, b *book, now time.Time) {
	keep, most := m.store.Keep, m.store.Bytes
	if keep == 0 {
		keep = 14 * 24 * time.Hour
	}
	if most == 0 {
		most = 2 << 30
	}
	n := len(b.Marks)
	b.Marks = slices.DeleteFunc(b.Marks, func(k Mark) bool { return now.Sub(k.At) > keep })
	if len(b.Marks) > maxMarks {
		b.Marks = b.Marks[len(b.Marks)-maxMarks:]
	}
	if m.size() > most {
		b.Marks = b.Marks[len(b.Marks)/2:]
	}
	if len(b.Marks) == n {
		return
	}
	m.clear(ctx, b)
}

// clear drops the trees that no state names.
func (m *Room) clear(ctx context.Context, b *book) {
	named := map[string]bool{}
	for _, k := range b.Marks {
		named[k.Tree] = true
	}
	for _, u := range b.Undone {
		named[u.Tree], named[u.Mark.Tree] = true, true
	}
	refs, err := os.ReadDir(filepath.Join(m.dir, "refs", "states"))
	if err != nil {
		return
	}
	for _, ref := range refs {
		if !named[ref.Name()] {
			_, _ = m.git(ctx, git.Options{}, "update-ref", "-d", "refs/states/"+ref.Name())
		}
	}
	_, _ = m.git(ctx, git.Options{}, "prune", "--expire=now")
}

// size is what the private repository takes, in bytes, by git's own count.
func (m *Room) size() int64 {
	var total int64
	_ = filepath.WalkDir(filepath.Join(m.dir, "objects"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// Change is a file that differs between two states.
type Change struct {
	Op   byte   // 'A' comes, 'M' changes, 'D' goes
	Path string // from the checkout's top
	blob string
	mode fs.FileMode
	link bool
}

// changes are what makes one tree of another.
func (m *Room) changes(ctx context.Context, from, to string) ([]Change, error) {
	out, err := m.git(ctx, git.Options{Max: maxList}, "diff-tree", "-r", "-z", "--no-renames", from, to)
	if err != nil {
		return nil, err
	}
	return parseChanges(out), nil
}

// parseChanges reads git's raw diff, separated by NUL: ":MODE MODE ID ID OP", PATH.
func parseChanges(out string) (list []Change) {
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := fields[i]
		if len(f) < 17 || f[0] != ':' {
			return list
		}
		words := strings.Fields(f)
		if len(words) != 5 {
			return list
		}
		mode, _ := strconv.ParseUint(words[1], 8, 32)
		c := Change{Op: words[4][0], Path: fields[i+1], blob: words[3], mode: fs.FileMode(mode & 0o777), link: mode&0o170000 == 0o120000}
		if c.Op == 'T' {
			c.Op = 'M'
		}
		list = append(list, c)
	}
	return list
}

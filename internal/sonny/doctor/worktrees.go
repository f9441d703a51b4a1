package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/client/worktree"
	"agent/internal/sonny/repo"
	"agent/protocol"
)

// maxTrees bounds the folders of worktrees that are looked at; what lies beyond is said
// to be there.
const maxTrees = 4096

// stray is a worktree's folder that no bot works in.
type stray struct {
	name string // below the folder of worktrees, "PROJECT/TASK"
	path string
}

// worktrees lists folders that no bot works in, of every project, and branches agent/…
// without a folder, of the checkout that doctor was run in. In a worktree, whose .git an
// agent may have written, no git runs.
func (d *Doctor) worktrees(ctx context.Context) finding {
	found, more, err := trees(worktree.RootOf(d.o.Reach.Target.Store))
	if err != nil {
		return faultOf(Fail, err, "see to it that the folder of worktrees is yours")
	}
	if d.link == nil {
		return skipf("%s; whose they are only the daemon knows, and none runs", countedTrees(len(found), more))
	}
	strays, err := d.strays(ctx, found)
	if err != nil {
		return faultOf(Fail, err, "")
	}
	branches, cut := d.looseBranches(ctx)
	if len(strays)+len(branches) == 0 {
		return okf("%s, each with its bot", countedTrees(len(found), more))
	}
	var said, names []string
	if len(strays) > 0 {
		said = append(said, fmt.Sprintf("%s without a bot", counted(len(strays), "folder")))
		for _, s := range strays {
			names = append(names, s.name)
		}
	}
	if n := len(branches); n > 0 {
		said = append(said, fmt.Sprintf("%s without a folder", counted(n, "branch")))
		for _, b := range branches {
			names = append(names, "branch "+b.Name)
		}
	}
	summary := strings.Join(said, ", ")
	if more || cut {
		summary += fmt.Sprintf("; more than %d were not looked at", maxTrees)
	}
	f := warn(summary, "sonny doctor --fix in the checkout that they belong to removes those that lose nothing").with(listed(names))
	return f.mend(d.treeMends(ctx, strays, branches)...)
}

func countedTrees(n int, more bool) string {
	if more {
		return fmt.Sprintf("more than %d worktrees", maxTrees)
	}
	return counted(n, "worktree")
}

// trees are the worktrees' folders: those of `agent run --worktree` lie in root, those of
// tasks in a folder of their project. Nothing of them is opened but the names.
func trees(root string) (found []stray, more bool, err error) {
	tops, cut, err := folders(root)
	if err != nil {
		return nil, false, err
	}
	more = cut
	for _, top := range tops {
		path := filepath.Join(root, top)
		if there(path, ".git") {
			found = append(found, stray{top, path})
			continue
		}
		below, cut, err := folders(path)
		if err != nil {
			return nil, false, err
		}
		more = more || cut
		for _, name := range below {
			found = append(found, stray{top + "/" + name, filepath.Join(path, name)})
		}
		if len(found) > maxTrees {
			return found[:maxTrees], true, nil
		}
	}
	return found, more, nil
}

// folders are the names of real folders in a folder, at most maxTrees, in order.
func folders(dir string) (names []string, more bool, err error) {
	f, err := os.Open(dir)
	if isMissing(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for len(names) <= maxTrees {
		entries, err := f.ReadDir(512)
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxTrees)], len(names) > maxTrees, nil
}

// strays are the folders that hold no bot's workspace and bear no bot's name.
func (d *Doctor) strays(ctx context.Context, found []stray) (list []stray, err error) {
	if len(found) == 0 {
		return nil, nil
	}
	kept := map[string]bool{} // the names of folders that bots have
	root := worktree.RootOf(d.o.Reach.Target.Store)
	for b, err := range d.link.Bots(ctx) {
		if err != nil {
			return nil, err
		}
		keep(kept, root, b)
	}
	return slices.DeleteFunc(found, func(s stray) bool { return kept[s.name] }), nil
}

// keep notes the folders that a bot has: that of its name, and that which its workspace
// lies in, which is of one name or of two.
func keep(kept map[string]bool, root string, b *protocol.Bot) {
	kept[b.Name] = true
	if project, task, ok := strings.Cut(b.Name, "."); ok {
		kept[project+"/"+task] = true
	}
	if b.Workspace == nil {
		return
	}
	below, err := filepath.Rel(root, *b.Workspace)
	if err != nil || below == ".." || strings.HasPrefix(below, "../") {
		return
	}
	parts := strings.SplitN(below, "/", 3)
	kept[parts[0]] = true
	kept[strings.Join(parts[:min(2, len(parts))], "/")] = true
}

// ofAgents is how the branches of bots' worktrees begin.
const ofAgents = "agent/"

// looseBranches are those of the checkout's that no worktree has. git is asked of the
// checkout alone.
func (d *Doctor) looseBranches(ctx context.Context) (list []repo.Branch, cut bool) {
	if !d.o.Repo.There() {
		return nil, false
	}
	branches, cut, err := d.o.Repo.Branches(ctx, ofAgents)
	if err != nil || len(branches) == 0 {
		return nil, false
	}
	out, cutTrees, err := d.o.Repo.Worktrees(ctx)
	if err != nil || cutTrees {
		return nil, cutTrees // which of them have a folder is not known
	}
	taken := map[string]bool{}
	for _, w := range out {
		taken[w.Branch] = true
	}
	return slices.DeleteFunc(branches, func(b repo.Branch) bool { return taken[b.Name] }), cut
}

// treeMends are the removals that lose nothing: of this checkout's worktrees those
// without changes, whose branch stays, and of its branches those that are merged.
func (d *Doctor) treeMends(ctx context.Context, strays []stray, branches []repo.Branch) (list []mend) {
	r := d.o.Repo
	if !r.There() {
		return nil
	}
	for _, s := range strays {
		if len(list) == maxListed {
			break
		}
		if _, err := r.Of(s.path); err == nil {
			list = append(list, mend{
				"remove the worktree " + s.name + ", if it has no changes? (its branch stays)",
				func(ctx context.Context) error { return d.removeTree(ctx, s) },
			})
		}
	}
	for _, b := range branches {
		if len(list) >= 2*maxListed {
			break
		}
		if r.Merged(ctx, b.Commit) {
			list = append(list, mend{
				"remove the branch " + b.Name + ", which is merged?",
				func(ctx context.Context) error { return r.DropBranch(ctx, b) },
			})
		}
	}
	return list
}

// removeTree removes a worktree, unless a bot has come to work in it meanwhile.
func (d *Doctor) removeTree(ctx context.Context, s stray) error {
	still, err := d.strays(ctx, []stray{s})
	if err != nil {
		return err
	}
	if len(still) == 0 {
		return fmt.Errorf("a bot works in %s by now", s.name)
	}
	return d.o.Repo.RemoveWorktree(ctx, s.path)
}

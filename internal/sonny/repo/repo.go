// Package repo is the git repository that a session works in, looked at with care:
// an agent can replace the .git pointer of a folder that it writes, so git never
// discovers a repository there. The git folder and the top are those that were found
// when the bot was made (sonny.md 4, "Git in folders agents write").
package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agent/internal/git"
	"agent/protocol"
)

// Repo is a checkout, as it was when it was found. It is a value that is kept with the
// session. The zero Repo is none.
type Repo struct {
	Top    string `json:"top"`     // of the checkout; a real path
	GitDir string `json:"git_dir"` // its own git folder; a real path
	Common string `json:"common"`  // the repository's common git folder; a real path
}

// There reports whether it is a repository at all.
func (r Repo) There() bool { return r.GitDir != "" }

// Lost says of a checkout that is not there any more that it is: workspace_unavailable. Of
// none it says nothing.
func (r Repo) Lost() error {
	if !r.There() {
		return nil
	}
	return r.checkout().Lost()
}

// Linked reports whether the checkout is a linked worktree.
func (r Repo) Linked() bool { return r.GitDir != r.Common }

// Source is the top of the checkout that a linked worktree belongs to, where that
// has one; else Top.
func (r Repo) Source() string {
	if r.Linked() && filepath.Base(r.Common) == ".git" {
		return filepath.Dir(r.Common)
	}
	return r.Top
}

// Find asks git for the checkout that holds a folder of the person's. Outside one the
// Repo is the zero one, and for one that is not to be believed too: astray says why then.
func Find(ctx context.Context, folder string) (r Repo, astray string, err error) {
	g, err := git.Find()
	if err != nil {
		return Repo{}, "", nil // without git every folder is one without a repository
	}
	c, err := g.Discover(ctx, folder)
	switch {
	case errors.Is(err, git.ErrNoCheckout):
		return Repo{}, "", nil
	case errors.Is(err, git.ErrAstray):
		return Repo{}, err.Error(), nil
	}
	return Repo(c), "", err
}

// Limits of what is read of git (sonny.md 11), in bytes.
const (
	maxStatus = 4 << 20
	maxDiff   = 1 << 20
	maxPaths  = 16 << 20
	maxPath   = 64 << 10
)

// read runs a command that changes nothing: no lock is taken, no path is a pattern, and
// the repository's own config names no program for it.
func (r Repo) read(ctx context.Context, max int, args ...string) (string, error) {
	g, err := git.Find()
	if err != nil {
		return "", err
	}
	return g.Guarded(ctx, git.Options{Max: max}, r.checkout(), append([]string{"--no-optional-locks", "--literal-pathspecs"}, args...)...)
}

func (r Repo) checkout() git.Checkout { return git.Checkout(r) }

// Status is what the checkout looks like at a glance.
type Status struct {
	Branch        string // "" for a detached head
	Commit        string // its id; "" before the first commit
	Ahead, Behind int    // of its upstream
	Files         []File // changed ones, at most MaxFiles
	More          int    // those beyond
}

// MaxFiles is how many changed files a status lists.
const MaxFiles = 2000

// Dirty reports whether something is changed or new.
func (s *Status) Dirty() bool { return len(s.Files) > 0 }

// File is one changed path.
type File struct {
	Path string
	From string // what it was renamed from
	Code string // two letters as git has them; "??" for one it does not know
}

// Status reads the checkout's state.
func (r Repo) Status(ctx context.Context) (*Status, error) {
	out, err := r.read(ctx, maxStatus, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", git.NotWithin)
	if err != nil && !errors.Is(err, git.ErrTooLong) {
		return nil, err
	}
	return parseStatus(out), nil
}

// parseStatus reads git's porcelain, version 2, separated by NUL.
func parseStatus(out string) *Status {
	s := &Status{}
	fields := strings.Split(out, "\x00")
	for i := 0; i < len(fields); i++ {
		line := fields[i]
		switch {
		case strings.HasPrefix(line, "# "):
			s.header(line[2:])
		case strings.HasPrefix(line, "? "):
			s.add(File{Path: line[2:], Code: "??"})
		case strings.HasPrefix(line, "1 "):
			if f := strings.SplitN(line, " ", 9); len(f) == 9 {
				s.add(File{Path: f[8], Code: f[1]})
			}
		case strings.HasPrefix(line, "u "):
			if f := strings.SplitN(line, " ", 11); len(f) == 11 {
				s.add(File{Path: f[10], Code: f[1]})
			}
		case strings.HasPrefix(line, "2 "):
			if f := strings.SplitN(line, " ", 10); len(f) == 10 && i+1 < len(fields) {
				i++
				s.add(File{Path: f[9], From: fields[i], Code: f[1]})
			}
		}
	}
	return s
}

func (s *Status) header(line string) {
	name, value, _ := strings.Cut(line, " ")
	switch name {
	case "branch.oid":
		if value != "(initial)" {
			s.Commit = value
		}
	case "branch.head":
		if value != "(detached)" {
			s.Branch = value
		}
	case "branch.ab":
		ahead, behind, _ := strings.Cut(value, " ")
		s.Ahead, _ = strconv.Atoi(strings.TrimPrefix(ahead, "+"))
		s.Behind, _ = strconv.Atoi(strings.TrimPrefix(behind, "-"))
	}
}

func (s *Status) add(f File) {
	if len(s.Files) == MaxFiles {
		s.More++
		return
	}
	s.Files = append(s.Files, f)
}

// Unmerged reports whether git could not bring two sides of the file together.
func (f *File) Unmerged() bool {
	return strings.Contains(f.Code, "U") || f.Code == "AA" || f.Code == "DD"
}

// Changed are the paths that differ between two commits.
func (r Repo) Changed(ctx context.Context, from, to string) ([]string, error) {
	out, err := r.read(ctx, maxPaths, "diff", "--no-ext-diff", "--no-textconv", "--name-only", "--no-renames", "-z", git.NotWithin, from, to, "--")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}

// Missing counts the commits of another that the checkout's head does not have.
func (r Repo) Missing(ctx context.Context, other string) (int, error) {
	out, err := r.read(ctx, 1<<10, "rev-list", "--count", "HEAD.."+other, "--")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// Own runs a command that changes the checkout as the person's own, hooks and all. Hooks
// that lie in the checkout, where agents write, do not run. writer is as with Careful, and
// where there is one no hook runs.
func (r Repo) Own(ctx context.Context, writer string, args ...string) error {
	return r.change(ctx, writer, git.Options{Own: writer == "" && !r.hooksInCheckout(ctx) && !r.hooksLeadOut()}, args...)
}

// hooksInCheckout reports whether the repository's config takes its hooks from within the
// checkout, as some tools have it. The git folder itself no agent's sandbox lets be written.
func (r Repo) hooksInCheckout(ctx context.Context) bool {
	out, err := r.plain(ctx, git.Options{Max: maxPath}, "config", "--type=path", "--get-all", "core.hooksPath")
	set := strings.Split(out, "\n") // the last is that of every careful command
	if err != nil {
		return true // where they are is not known
	}
	if len(set) < 2 {
		return false
	}
	dir := set[len(set)-2]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.Top, dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	in := func(folder string) bool {
		rel, err := filepath.Rel(folder, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	return in(r.Top) && !in(filepath.Join(r.Common, "hooks"))
}

// hooksLeadOut reports whether one of the repository's hooks is a link: what that leads to,
// or a part of the way, agents may write.
func (r Repo) hooksLeadOut() bool {
	dir := filepath.Join(r.Common, "hooks")
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	entries, failed := os.ReadDir(dir)
	return err != nil || failed != nil || !info.IsDir() || slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		if e.Type()&fs.ModeSymlink == 0 {
			return false
		}
		next, err := os.Readlink(filepath.Join(dir, e.Name()))
		return err != nil || r.checkout().Holds(next, dir)
	})
}

// Careful runs a command that changes a checkout which agents write: no hook runs. writer
// is who may have written the repository's config; "" for nobody. Where there is one, what
// that config names is not run, and a repository whose files go through such programs is
// refused: without them the files would be others.
func (r Repo) Careful(ctx context.Context, writer string, args ...string) error {
	return r.change(ctx, writer, git.Options{}, args...)
}

func (r Repo) change(ctx context.Context, writer string, o git.Options, args ...string) error {
	g, err := git.Find()
	if err != nil {
		return err
	}
	if err := r.asksTheCheckout(ctx, g, args[0]); err != nil {
		return err
	}
	if writer == "" {
		_, err := r.plainly(ctx, o, args...)
		return err
	}
	named, err := g.Programs(ctx, r.checkout())
	if err != nil {
		return err
	}
	if len(named) > 0 {
		return protocol.Fail(protocol.WorktreeFailed, fmt.Sprintf("%s may write %s/config, and that names programs for git to run (%s); look at them, and run git %s yourself",
			writer, r.Common, strings.Join(named[:min(len(named), maxNamed)], ", "), args[0]))
	}
	o.Within = git.WritingTo(r.checkout())
	_, err = g.Guarded(ctx, o, r.checkout(), args...)
	return err
}

// asksTheCheckout refuses a repository whose config takes settings or programs from the
// checkout, which agents write.
func (r Repo) asksTheCheckout(ctx context.Context, g git.Program, verb string) error {
	named, err := g.FromCheckout(ctx, r.checkout())
	if err != nil || len(named) == 0 {
		return err
	}
	return protocol.Fail(protocol.WorktreeFailed, fmt.Sprintf("%s/config takes from the checkout, where agents write, what git would go by or run (%s); look at that, and run git %s yourself",
		r.Common, strings.Join(named[:min(len(named), maxNamed)], ", "), verb))
}

// maxNamed bounds how many settings an error names.
const maxNamed = 5

// plainly is plain for a command that changes the repository.
func (r Repo) plainly(ctx context.Context, o git.Options, args ...string) (string, error) {
	o.Within = git.WritingTo(r.checkout())
	return r.plain(ctx, o, args...)
}

// plain runs a command with the repository's config as it is.
func (r Repo) plain(ctx context.Context, o git.Options, args ...string) (string, error) {
	g, err := git.Find()
	if err != nil {
		return "", err
	}
	o.Env = append(o.Env, "GIT_COMMON_DIR="+r.Common) // the file that names it lies where an agent may write
	return g.With(ctx, o, r.Top, append([]string{"--git-dir=" + r.GitDir, "--work-tree=" + r.Top}, args...)...)
}

// Within are the repositories within the checkout that its index knows, and that are
// there: what is changed in them no status tells (git.NotWithin).
func (r Repo) Within(ctx context.Context) (paths []string, err error) {
	out, err := r.read(ctx, maxPaths, "ls-files", "-z", "--stage")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		mode, rest, _ := strings.Cut(entry, " ")
		_, path, _ := strings.Cut(rest, "\t")
		if mode != gitlink {
			continue
		}
		if _, err := os.Lstat(filepath.Join(r.Top, path, ".git")); err == nil {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// gitlink is the mode of an index entry that is a commit of another repository.
const gitlink = "160000"

// CommitAll commits all that is changed and new, without hooks. What is within a
// repository of its own stays as it is there. writer is as with Careful.
func (r Repo) CommitAll(ctx context.Context, writer, message string) error {
	out, err := r.read(ctx, maxPaths, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", git.NotWithin)
	if err != nil {
		return err
	}
	var paths strings.Builder
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > 3 && !strings.HasSuffix(entry, "/") {
			paths.WriteString(entry[3:] + "\x00") // after its two letters
		}
	}
	stage := git.Options{Input: strings.NewReader(paths.String())}
	if err := r.change(ctx, writer, stage, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
		return err
	}
	return r.Careful(ctx, writer, "commit", "--quiet", "--message", message)
}

// Diff is the unified diff of the checkout against a commit, or between two commits,
// of all files or of those named. cut is true where it was too long to be whole.
func (r Repo) Diff(ctx context.Context, from, to string, paths ...string) (text string, cut bool, err error) {
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", git.NotWithin}
	for _, commit := range []string{from, to} {
		if commit != "" {
			args = append(args, commit)
		}
	}
	text, err = r.read(ctx, maxDiff, append(append(args, "--"), paths...)...)
	if errors.Is(err, git.ErrTooLong) {
		return text, true, nil
	}
	return text, false, err
}

// Ignored are the files and folders that git ignores, a folder with a / at its end in the
// place of what is in it; at most max bytes of them, cut tells whether there were more.
func (r Repo) Ignored(ctx context.Context, max int) (paths []string, cut bool, err error) {
	out, err := r.read(ctx, max, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if cut = errors.Is(err, git.ErrTooLong); err != nil && !cut {
		return nil, false, err
	}
	for p := range strings.SplitSeq(out, "\x00") {
		if p != "" {
			paths = append(paths, p)
		}
	}
	return paths, cut, nil
}

// Paths are the files that git tracks, and new ones that it does not ignore, below
// the top; at most max of them, cut tells whether there were more.
func (r Repo) Paths(ctx context.Context, max int) (paths []string, cut bool, err error) {
	out, err := r.read(ctx, maxPaths, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if errors.Is(err, git.ErrTooLong) {
		out, cut, err = out[:strings.LastIndexByte(out, 0)+1], true, nil
	}
	if err != nil {
		return nil, false, err
	}
	paths = strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if len(paths) > max {
		return paths[:max], true, nil
	}
	return paths, cut, nil
}

// Resolve is the id of a commit.
func (r Repo) Resolve(ctx context.Context, commit string) (string, error) {
	if strings.HasPrefix(commit, "-") {
		return "", errors.New(commit + " is no commit")
	}
	return r.read(ctx, 1<<10, "rev-parse", "--verify", "--quiet", commit+"^{commit}")
}

// MergeBase is the newest commit that two have in common.
func (r Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	return r.read(ctx, 1<<10, "merge-base", a, b)
}

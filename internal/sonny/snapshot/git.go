package snapshot

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"agent/internal/git"
	"agent/internal/place"
	"agent/protocol"
)

// maxList bounds what git lists at a time, in bytes.
const maxList = 16 << 20

// attributes are the private repository's: they come before those of the folder, and
// take away whatever would change a file's bytes.
const attributes = "* -text -eol -filter -ident -working-tree-encoding -crlf\n"

// closed keeps what git makes in the private repository to its owner, whatever the umask.
const closed = "core.sharedRepository=0600"

// git runs git on the private repository over the checkout's files.
func (m *Room) git(ctx context.Context, o git.Options, args ...string) (string, error) {
	g, err := git.Find()
	if err != nil {
		return "", err
	}
	o.Env = append(o.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1")
	base := []string{"-c", closed, "--literal-pathspecs", "--git-dir=" + m.dir, "--work-tree=" + m.repo.Top}
	return g.With(ctx, o, m.repo.Top, append(base, args...)...)
}

// prepare makes the private repository.
func (m *Room) prepare(ctx context.Context) error {
	if m.exists() {
		return nil
	}
	g, err := git.Find()
	if err != nil {
		return err
	}
	if _, err := g.With(ctx, git.Options{Env: []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}}, m.store.Dir,
		"-c", closed, "init", "--quiet", "--bare", "--template=", m.dir); err != nil {
		return err
	}
	for _, set := range [][2]string{{"core.bare", "false"}, {"core.autocrlf", "false"}, {"gc.auto", "0"}, {"core.attributesFile", "/dev/null"}, {"core.untrackedCache", "false"}} {
		if _, err := m.git(ctx, git.Options{}, "config", set[0], set[1]); err != nil {
			return err
		}
	}
	info := filepath.Join(m.dir, "info")
	if err := place.MakePrivateDir(info); err != nil {
		return err
	}
	return place.WritePrivate(filepath.Join(info, "attributes"), []byte(attributes))
}

// files are the paths below the folder that git does not ignore and that are there as
// files or links, with what they take.
func (m *Room) files(ctx context.Context) (paths []string, err error) {
	all, cut, err := m.repo.Paths(ctx, 4*MaxFiles)
	if err != nil {
		return nil, err
	}
	var bytes int64
	folders := folders{top: m.repo.Top, known: map[string]bool{".": true}}
	for _, p := range all {
		if p == "" || m.within != "" && !strings.HasPrefix(p, m.within+"/") || !folders.real(path.Dir(p)) {
			continue
		}
		info, err := os.Lstat(filepath.Join(m.repo.Top, p))
		if err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		paths = append(paths, p)
		if bytes += info.Size(); bytes > MaxBytes {
			return nil, protocol.Fail(Skipped, "the folder's files take more than 512 MiB; nothing is kept of them before this message")
		}
	}
	if cut || len(paths) > MaxFiles {
		return nil, protocol.Fail(Skipped, "the folder has more than 20,000 files; nothing is kept of them before this message")
	}
	return paths, nil
}

// folders tells which folders below the top are none behind a link.
type folders struct {
	top   string
	known map[string]bool
}

func (f *folders) real(dir string) bool {
	if real, known := f.known[dir]; known {
		return real
	}
	info, err := os.Lstat(filepath.Join(f.top, dir))
	f.known[dir] = err == nil && info.IsDir() && f.real(path.Dir(dir))
	return f.known[dir]
}

// record makes a tree of the folder as it is.
func (m *Room) record(ctx context.Context) (tree string, err error) {
	if err := m.prepare(ctx); err != nil {
		return "", err
	}
	paths, err := m.files(ctx)
	if err != nil {
		return "", err
	}
	if err := m.forget(ctx, paths); err != nil {
		return "", err
	}
	if len(paths) > 0 {
		in := strings.NewReader(strings.Join(paths, "\x00") + "\x00")
		if _, err := m.git(ctx, git.Options{Input: in}, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
			return "", err
		}
	}
	return m.git(ctx, git.Options{}, "write-tree")
}

// forget takes out of the index what is no longer among the files.
func (m *Room) forget(ctx context.Context, paths []string) error {
	out, err := m.git(ctx, git.Options{Max: maxList}, "ls-files", "-z", "--cached")
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(paths))
	for _, p := range paths {
		there[p] = true
	}
	var gone strings.Builder
	for _, p := range strings.Split(out, "\x00") {
		if p != "" && !there[p] {
			gone.WriteString(p + "\x00")
		}
	}
	if gone.Len() == 0 {
		return nil
	}
	_, err = m.git(ctx, git.Options{Input: strings.NewReader(gone.String())}, "update-index", "-z", "--force-remove", "--stdin")
	return err
}

// skipped is why a state was not kept, as one error.
func skipped(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return protocol.Fail(Skipped, "keeping the folder's files took more than 2 s; nothing is kept of them before this message")
	case protocol.CodeOf(err) == Skipped:
		return err
	}
	var gone *protocol.Error
	if errors.Is(err, protocol.WorkspaceUnavailable) && errors.As(err, &gone) {
		return protocol.Fail(Skipped, gone.Detail)
	}
	return &protocol.Error{Code: Skipped, Detail: "the folder's files could not be kept before this message: " + err.Error(), Cause: err}
}

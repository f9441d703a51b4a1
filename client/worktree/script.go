package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"agent/internal/git"
	"agent/internal/place"
	"agent/protocol"

	"golang.org/x/sys/unix"
)

// MaxScript bounds a setup that is read, in bytes.
const MaxScript = 1 << 20

// targetChanged is what somebody agreed to and is something else now.
const targetChanged protocol.Code = "target_changed"

// A Script is a source's .agents/setup as it was read: what a person or a judge is
// shown before it runs.
type Script struct {
	Path       string
	Text       []byte
	Executable bool // it is run itself; else sh reads it
}

// SHA256 is the digest of the text, in hex.
func (s *Script) SHA256() string {
	sum := sha256.Sum256(s.Text)
	return hex.EncodeToString(sum[:])
}

// same reports whether two scripts do the same.
func (s *Script) same(o *Script) bool {
	return o != nil && string(s.Text) == string(o.Text) && s.Executable == o.Executable
}

// Script reads the source's setup; nil where it has none. setup_failed for one that
// is no regular file, cannot be read or has more than MaxScript bytes.
func (p *Plan) Script() (*Script, error) {
	path := p.setup()
	if !p.HasSetup() {
		return nil, nil
	}
	text, err := readScript(path)
	if err != nil {
		return nil, protocol.Fail(protocol.SetupFailed, path+" cannot be run: "+reason(err))
	}
	return &Script{Path: path, Text: text, Executable: unix.Access(path, unix.X_OK) == nil}, nil
}

// readScript reads a regular file without waiting for a writer.
func readScript(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxScript+1))
	if err == nil && len(text) > MaxScript {
		err = errors.New("it is longer than 1 MiB")
	}
	return text, err
}

// runShown runs the very bytes that were agreed to: between a look at the source's
// file and its start that file could be another again.
func (t *Tree) runShown(ctx context.Context, o SetupOptions) error {
	now, err := t.plan.Script()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !o.Shown.same(now) {
		return protocol.Fail(targetChanged, o.Shown.Path+" is another than was shown; nothing of it ran: ask again")
	}
	dir, err := os.MkdirTemp(o.Scratch, "setup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "setup")
	if err := place.WritePrivate(copied, o.Shown.Text); err != nil {
		return err
	}
	if !o.Shown.Executable {
		return t.runSetup(ctx, o, o.Shown.Path, func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "sh", copied) })
	}
	if err := os.Chmod(copied, 0o700); err != nil {
		return err
	}
	return t.runSetup(ctx, o, o.Shown.Path, func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, copied) })
}

// retryBusy runs a program that was just written: a child that another goroutine
// forked meanwhile may hold it open for writing until it becomes its own program.
func retryBusy(run func() error) error {
	for pause := time.Millisecond; ; pause *= 2 {
		err := run()
		if !errors.Is(err, syscall.ETXTBSY) || pause > time.Second {
			return err
		}
		time.Sleep(pause)
	}
}

// Leftover is a worktree that a program was making when it ended, for Undo.
type Leftover struct {
	Source string `json:"source"`  // the top of the checkout
	Common string `json:"common"`  // its repository's git folder
	GitDir string `json:"git_dir"` // the checkout's own
	Base   string `json:"base"`
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Made   bool   `json:"made"` // git had made it, so that somebody may have worked on the branch
}

// Leftover is what Undo needs of a plan that is about to be carried out.
func (p *Plan) Leftover() Leftover {
	return Leftover{Source: p.Source, Common: p.Common, GitDir: p.GitDir, Base: p.Base, Path: p.Path, Branch: p.Branch}
}

// Tree is the leftover as a tree, to be undone.
func (l *Leftover) Tree() (*Tree, error) {
	p := &Plan{Source: l.Source, Common: l.Common, GitDir: l.GitDir, Base: l.Base, Path: l.Path, Branch: l.Branch}
	var err error
	if p.git, err = git.Find(); err != nil {
		return nil, err
	}
	t := &Tree{Path: l.Path, Branch: l.Branch, plan: p, begun: true} // git may have been asked
	if l.Made {
		t.GitDir = l.GitDir
	}
	return t, nil
}

package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"agent/internal/place"
)

// launch is how a command is begun that writes below w alone; argv as it is on a machine
// without a launcher, where no agent is confined. One that is there and does not run is an
// error: an agent may have seen to that.
func (w *Within) launch(ctx context.Context, dir string, argv []string) ([]string, error) {
	bwrap, err := works.launcher(ctx)
	if err != nil || bwrap == "" {
		return argv, err
	}
	kept, err := w.kept()
	if err != nil {
		return nil, err
	}
	out := append([]string{bwrap}, base...)
	for _, path := range w.Writable {
		out = append(out, "--bind", path, path)
	}
	for _, path := range kept {
		out = append(out, "--ro-bind", path, path)
	}
	return append(append(out, "--chdir", dir, "--"), argv...), nil
}

// base is a machine that is as it is and cannot be written. Other processes are out of
// sight, since through theirs the machine could be. Git ends by its own signals, so that it
// cleans up, and goes on to its end where Sonny is killed.
var base = []string{"--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"}

// trial remembers the launcher that has run here.
type trial struct {
	mu   sync.Mutex
	path string // "": none has yet, and it is tried again
}

var works trial

// triedFor is how long a trial may take.
const triedFor = 10 * time.Second

// launcher is bubblewrap; "" where there is none.
func (t *trial) launcher(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path != "" {
		return t.path, nil
	}
	ctx, cancel := context.WithTimeout(ctx, triedFor)
	defer cancel()
	var failed error
	for _, at := range place.Bubblewraps {
		path, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = place.TrustedProgram(path, false)
		}
		if err == nil {
			err = exec.CommandContext(ctx, path, append(base[:len(base):len(base)], "--", "/bin/true")...).Run()
		}
		if err == nil {
			t.path = path
			return path, nil
		}
		failed = fmt.Errorf("git cannot be kept to the repository, since %s does not run: %w; agents write there, so run git yourself", at, err)
	}
	return "", failed
}

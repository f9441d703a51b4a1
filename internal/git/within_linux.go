package git

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"agent/internal/place"
)

// launch is how a command is begun that writes below w alone; argv as it is where nothing
// can be confined here.
func (w *Within) launch(dir string, argv []string) ([]string, error) {
	bwrap := launcher()
	if bwrap == "" {
		return argv, nil
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

// launcher is bubblewrap, once it has run here; "" where it does not.
var launcher = sync.OnceValue(func() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, at := range place.Bubblewraps {
		path, err := filepath.EvalSymlinks(at)
		if err != nil || place.TrustedProgram(path, false) != nil {
			continue
		}
		if exec.CommandContext(ctx, path, append(base[:len(base):len(base)], "--", "/bin/true")...).Run() == nil {
			return path
		}
	}
	return ""
})

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agent/internal/place"

	"golang.org/x/sys/unix"
)

// bwrapPath is the launcher that a package build fixes, with
// -ldflags "-X agent/internal/sandbox.bwrapPath=/abs/bwrap". If it is set and no
// good there is no other.
var bwrapPath = ""

// bubblewrap is the launcher that was found.
type bubblewrap struct {
	path    string // real
	bindsFD bool   // has --bind-fd
	owner   string // Launcher.Owner
}

// findBubblewrap finds the launcher. The error says what was wrong with the last
// that is there, or that there is none.
func findBubblewrap(ctx context.Context) (*bubblewrap, error) {
	places, own := place.Bubblewraps, false
	if bwrapPath != "" {
		places, own = []string{bwrapPath}, true
	}
	why := fmt.Errorf("no bubblewrap at %s; install the package bubblewrap", strings.Join(places, ", "))
	for _, at := range places {
		path, err := filepath.EvalSymlinks(at)
		if err != nil {
			continue
		}
		if err = place.TrustedProgram(path, own); err == nil {
			var b *bubblewrap
			if b, err = ask(ctx, path); err == nil {
				return b, nil
			}
		}
		why = err
	}
	return nil, why
}

// ask finds out what the launcher can do.
func ask(ctx context.Context, path string) (*bubblewrap, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	run := func(flag string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, path, flag)
		cmd.Env = launcherEnv
		return cmd.CombinedOutput()
	}
	version, err := run("--version")
	if err != nil {
		return nil, fmt.Errorf("%s does not run: %w", path, err)
	}
	if !atLeast(string(version), 0, 5) {
		return nil, fmt.Errorf("%s is %s; version 0.5.0 or newer is needed", path, strings.TrimSpace(string(version)))
	}
	help, err := run("--help")
	if err != nil {
		return nil, fmt.Errorf("%s does not run: %w", path, err)
	}
	return &bubblewrap{path: path, bindsFD: bytes.Contains(help, []byte("--ro-bind-fd"))}, nil
}

// atLeast reads "bubblewrap 0.8.0".
func atLeast(version string, major, minor int) bool {
	words := strings.Fields(version)
	if len(words) == 0 {
		return false
	}
	parts := strings.Split(words[len(words)-1], ".")
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}

// memory is a rewound file of memory that holds data.
func memory(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("memory for %s: %w", name, err)
	}
	return f, nil
}

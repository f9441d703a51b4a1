// Package clipboard is the system's clipboard by way of its programs, where the terminal
// itself has none (sonny.md 10.1, 12), and the files that are named by what is pasted or
// dropped. All of it blocks, and belongs beside the loop.
package clipboard

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"agent/internal/place"
	"agent/internal/sonny/brief"
)

// Give gives the command that Program named a text on its input, and waits for it for a
// few seconds at most.
func Give(ctx context.Context, argv []string, s string) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	cmd := brief.Command(ctx, argv...)
	cmd.Stdin = strings.NewReader(s)
	return cmd.Run()
}

// programs are the platform's programs, the first that is there counts. Each takes
// the text on its input.
func programs() [][]string {
	if runtime.GOOS == "darwin" {
		return [][]string{{"pbcopy"}}
	}
	var list [][]string
	if os.Getenv("WAYLAND_DISPLAY") != "" {
		list = append(list, []string{"wl-copy"})
	}
	if os.Getenv("DISPLAY") != "" {
		list = append(list, []string{"xclip", "-selection", "clipboard"}, []string{"xsel", "--clipboard", "--input"})
	}
	return list
}

// Program is the command that takes a text for the clipboard here; nil over SSH, where it would be another
// machine's, and where there is none.
func Program() []string {
	if os.Getenv("SSH_CONNECTION") != "" {
		return nil
	}
	for _, argv := range programs() {
		if path, err := exec.LookPath(argv[0]); err == nil {
			return append([]string{path}, argv[1:]...)
		}
	}
	return nil
}

// Keep puts a text that found no clipboard into a private file of Sonny's, and says which.
func Keep(s string, now time.Time) (string, error) {
	dir, err := place.AgentDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "sonny", "copies")
	if err := place.MakePrivateDir(dir); err != nil {
		return "", err
	}
	file := filepath.Join(dir, now.Format("20060102-150405.000")+".txt")
	return file, place.WritePrivate(file, []byte(s))
}

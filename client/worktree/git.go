package worktree

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"agent/protocol"
)

// git is the program.
type git struct{ program string }

func findGit() (git, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return git{}, protocol.Fail(protocol.WorktreeNeedsGit, "git is not installed, or not on PATH")
	}
	return git{program}, nil
}

// gitEnds is how long git has to clean up when it is told to end.
const gitEnds = 5 * time.Second

// maxWords bounds what of git's words an error carries, in bytes.
const maxWords = 4 << 10

// run runs git in a folder and gives what it printed, without the newline at its
// end. An error says what git said. No hook runs, and no program that watches the
// files: agents may have written those that a checkout names.
func (g git) run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.program, append([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(withoutPlaces(os.Environ()), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                                // a terminal's interrupt is ours to pass on
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // git cleans up then
	cmd.WaitDelay = gitEnds
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	if err != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // such as a filter that it started
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if err != nil {
		said := strings.TrimSpace(words.String())
		if said == "" {
			said = err.Error()
		}
		return "", errors.New(said[:min(len(said), maxWords)])
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// places are the variables by which a caller, such as a hook of git's, names
// another repository than that of the folder.
var places = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE",
	"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE",
}

func withoutPlaces(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(places, name)
	})
}

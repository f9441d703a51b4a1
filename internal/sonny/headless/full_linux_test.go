package headless_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestAStdoutThatTakesNothing(t *testing.T) {
	t.Parallel()
	h, _ := demo(t)
	for _, args := range [][]string{{"say: x"}, {"--quiet", "say: x"}, {"--json", "say: x"}, {"--json", "--no-such-flag"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		cmd := exec.Command(filepath.Join(sonnytest.Programs(t), "sonny"), append([]string{"exec"}, args...)...)
		var errs bytes.Buffer
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = h.Env, h.Path("demo"), full, &errs
		cmd.Run()
		want := 1
		if len(args) == 2 && args[1] == "--no-such-flag" {
			want = 2
		}
		if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(errs.String(), "output_failed: standard output cannot be written") {
			t.Errorf("%v: exit %d: %s", args, code, &errs)
		}
	}
}

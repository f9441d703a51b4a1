package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// What a person keeps by a verb and what cannot be written of it is named, with why and
// what to do; the file stays as it was.
func TestADiskThatTakesNothing(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	h := sonnytest.Fresh(t)
	agent := h.Path(".agent")
	for _, dir := range []string{agent + "/sonny", agent + "/rules", h.Path(".agents")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	verbs := []struct {
		file string
		args []string
	}{
		{"~/.agent/config.toml", []string{"config", "set", "tui.theme", "dark"}},
		{"~/.agent/env", []string{"env", "set", "FOO"}},
		{"~/.agent/rules", []string{"rules", "add", "allow", "--", "git", "push"}},
	}
	all := []string{"--bind", "/", "/", "--dev-bind", "/dev", "/dev"}
	try := func(t *testing.T, n int, cause string, around ...string) {
		t.Helper()
		before, err := os.ReadFile(agent + "/config.toml")
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verbs[:n] {
			argv := append(append(append([]string{}, all...), around...), append([]string{sonnytest.Programs(t) + "/sonny"}, v.args...)...)
			r := h.Feed("value\n", bwrap, argv...)
			if r.Exit != 1 || !strings.HasPrefix(r.Stderr, "sonny: storage_error: "+cause) || !strings.Contains(r.Stderr, v.file) ||
				!strings.Contains(r.Stderr, "then do it again") || strings.Contains(r.Stderr, ".tmp") {
				t.Errorf("%q: exit %d: %s", v.args, r.Exit, r.Stderr)
			}
		}
		if after, err := os.ReadFile(agent + "/config.toml"); err != nil || string(after) != string(before) {
			t.Errorf("config.toml: %v\n%s", err, after)
		}
	}
	t.Run("a disk that is mounted read-only", func(t *testing.T) { try(t, 3, "read-only disk: ", "--ro-bind", agent, agent) })
	t.Run("a folder that the person may not write", func(t *testing.T) {
		if err := os.Chmod(agent, 0o500); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(agent, 0o700)
		try(t, 2, "read-only folder ~/.agent", "--cap-drop", "ALL")
	})
	t.Run("a full disk", func(t *testing.T) {
		seed := h.Path("seed")
		if out, err := exec.Command("cp", "-r", agent, seed).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		script := h.Write("full.sh", `cp -r ~/seed/. ~/.agent/ && chmod 700 ~/.agent
for n in 1 2 3; do cat /dev/zero > ~/.agent/fill$n; done 2>/dev/null
exec "$@"
`)
		try(t, 2, "disk full: ", "--size", "4194304", "--tmpfs", agent, "sh", script)
	})
}

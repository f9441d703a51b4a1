package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ran is what a line of the command did.
type ran struct {
	status      int
	out, errors string
}

// runKeys runs a line in a home whose config has the person's own bindings.
func runKeys(t *testing.T, own map[string][]string, args ...string) ran {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"SONNY_CONFIG", "AGENT_BOT", "AGENT_STORE", "AGENT_SOCKET"} {
		t.Setenv(name, "")
	}
	text := "[tui.keys]\n"
	for action, chords := range own {
		text += fmt.Sprintf("%s = [%q]\n", action, chords[0])
	}
	if err := os.MkdirAll(filepath.Join(home, ".agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".agent", "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errors}
	status := a.main(context.Background(), args)
	return ran{status, out.String(), errors.String()}
}

func TestKeys(t *testing.T) {
	defaults := runKeys(t, nil, "keys")
	if defaults.status != 0 || defaults.errors != "" || !strings.Contains(defaults.out, "ctrl+x d") {
		t.Fatalf("%+v", defaults)
	}
	t.Run("SO-99 a chord of two actions", func(t *testing.T) {
		r := runKeys(t, map[string][]string{"stash": {"ctrl+t"}, "tasks": {"ctrl+t"}}, "keys")
		if r.status != 1 || !strings.HasPrefix(r.errors, "sonny: keymap_conflict: ctrl+t") ||
			!strings.Contains(r.errors, "tasks") || !strings.Contains(r.errors, "stash") {
			t.Errorf("%d: %s", r.status, r.errors)
		}
		if r.out != defaults.out {
			t.Errorf("the defaults do not hold:\n%s", r.out)
		}
	})
	t.Run("an own chord is printed", func(t *testing.T) {
		r := runKeys(t, map[string][]string{"stash": {"f7"}}, "keys", "--toml")
		if r.status != 0 || !strings.HasPrefix(r.out, "[tui.keys]\n") || !strings.Contains(r.out, "stash = ['f7']\n") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("an unknown action is told of", func(t *testing.T) {
		r := runKeys(t, map[string][]string{"dance": {"f7"}}, "keys")
		if r.status != 0 || !strings.Contains(r.errors, "dance") || r.out != defaults.out {
			t.Errorf("%d: %s", r.status, r.errors)
		}
	})
	t.Run("an argument is a usage error", func(t *testing.T) {
		if r := runKeys(t, nil, "keys", "stash"); r.status != 2 {
			t.Errorf("%+v", r)
		}
	})
}

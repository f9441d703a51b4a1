package cli

import (
	"os"
	"path/filepath"
	"testing"

	"agent/internal/sonny/config"
)

func TestHowTheScreenIsDrawn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, file string
		environ    []string
		stated     []config.Stated
		term       string
		want, why  string
	}{
		{"nothing says otherwise", "", nil, nil, "xterm", "full", "tui.screen = full"},
		{"the config's", "tui.screen = 'inline'\n", nil, nil, "xterm", "inline", "tui.screen = inline"},
		{"a dumb terminal", "tui.screen = 'inline'\n", nil, nil, "dumb", "plain", "TERM=dumb"},
		{"a screen reader", "tui.screen_reader = true\n", nil, nil, "xterm", "plain", "tui.screen_reader is on"},
		{"the environment wins over a screen reader's setting", "tui.screen_reader = true\n", []string{"SONNY_SCREEN=inline"}, nil, "dumb", "inline", "SONNY_SCREEN=inline"},
		{"the environment's", "", []string{"SONNY_SCREEN=plain"}, nil, "xterm", "plain", "SONNY_SCREEN=plain"},
		{"the line wins over all", "tui.screen_reader = true\n", []string{"SONNY_SCREEN=plain"}, []config.Stated{{Flag: "--screen", Key: "tui.screen", Value: "full"}}, "dumb", "full", "--screen full"},
		{"a screen reader's setting of the line wins over the environment", "", []string{"SONNY_SCREEN=full"}, []config.Stated{{Key: "tui.screen_reader", Value: "true"}}, "xterm", "plain", "tui.screen_reader is on"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(path, []byte(row.file), 0o600); err != nil {
				t.Fatal(err)
			}
			c, _, err := config.Resolve(config.Sources{Path: path, Environ: row.environ, Stated: row.stated})
			if err != nil {
				t.Fatal(err)
			}
			m, why, err := mode(c, func(name string) string { return map[string]string{"TERM": row.term}[name] })
			if err != nil || string(m) != row.want || why != row.why {
				t.Errorf("%s, because %s, %v", m, why, err)
			}
		})
	}

	t.Run("a mode that there is not is refused, and named", func(t *testing.T) {
		t.Parallel()
		_, _, err := config.Resolve(config.Sources{Path: filepath.Join(t.TempDir(), "none"), Stated: []config.Stated{{Flag: "--screen", Key: "tui.screen", Value: "wide"}}})
		if err == nil {
			t.Error("--screen wide is taken")
		}
	})
}

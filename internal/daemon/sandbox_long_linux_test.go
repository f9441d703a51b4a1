//go:build long

package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// With nothing cached a build compiles the standard library.
func TestBuildsInTheSandbox(t *testing.T) {
	t.Parallel()
	t.Run("SB-111 a build works though the home is read-only", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { println(\"built\") }\n", "main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestX(*testing.T) {}\n"} {
			if err := os.WriteFile(filepath.Join(b.workspace, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var r protocol.Bot
		b.k.ask(&r, "configure", `"bot":"Ada","exclude_slash_tmp":false`)
		// With nothing cached this compiles the standard library: a part at a time,
		// for a busy machine's sake.
		for _, script := range []string{"go build runtime", "go build -o built . && ./built", "go build testing", "go test ./... && rm built"} {
			if got := b.do("Ada", "run "+script); !strings.Contains(got, `"success":true`) {
				t.Errorf("%s: got %s", script, got)
			}
		}
	})
}

//go:build testhooks

package term

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestTraceHoldsALineAFrame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	g := open(t, 20, 2, func(o *Options) {
		env := o.Env
		o.Env = func(name string) string {
			if name == "SONNY_TRACE" {
				return path
			}
			return env(name)
		}
	})
	g.Draw(screenOf(20, 2, "one"))
	g.Flush()
	g.Draw(screenOf(20, 2, "one"))
	g.Flush()
	g.em.SendText("k")
	g.event()
	g.Draw(screenOf(20, 2, "onek"))
	g.Flush()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("two frames made %d lines: %s", len(lines), data)
	}
	var last struct {
		W, H, Cells, Bytes int
		Echo               float64 `json:"echo_ms"`
	}
	if err := json.Unmarshal(lines[1], &last); err != nil {
		t.Fatal(err)
	}
	if last.W != 20 || last.H != 2 || last.Cells != 1 || last.Bytes == 0 || last.Echo <= 0 {
		t.Fatalf("the line of one typed letter is %s", lines[1])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the trace is %v, %v", info.Mode(), err)
	}
}

package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneTurn(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"any":true},"steps":[
		{"text":"Looking. ","calls":[{"tool":"shell","arguments":{"command":"echo hi > out.txt; cat out.txt"}}]},
		{"text":"It said ${last}"}]}]`)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell echo")
	out := k.run("Ada", "r1", "go")
	if out.Status != "completed" || !strings.Contains(out.Text, "hi") {
		t.Fatalf("outcome %+v", out)
	}
	if b, err := os.ReadFile(filepath.Join(h.workspace, "out.txt")); err != nil || string(b) != "hi\n" {
		t.Fatalf("the command's file: %q, %v", b, err)
	}
}

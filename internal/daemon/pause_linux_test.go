package daemon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agent/protocol"
)

// commands is how many processes have an entry in their environment.
func commands(entry string) (n int) {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range names {
		environ, err := os.ReadFile(name)
		if err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			n++
		}
	}
	return n
}

func TestPauseEndsSandboxes(t *testing.T) {
	t.Parallel()
	t.Run("AP-63 RT-55 a pause kills confined commands, background, detached and foreground, with all of their sandbox", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		const stays = "trap '' TERM; (touch %; exec sleep 600) & sleep 600"
		script := func(name string) string { return string(bytes.ReplaceAll([]byte(stays), []byte("%"), []byte(name))) }
		b.do("Ada", "leave "+script("back"))
		b.do("Ada", "apart "+script("apart"))
		sub := b.k.submit("Ada", "front", "run "+script("front"), "")
		for _, name := range []string{"back", "apart", "front"} {
			b.await(name)
		}
		entry := "AGENT_STORE=" + b.set.Store
		if commands(entry) < 3 {
			t.Fatalf("%d processes run", commands(entry))
		}
		var pause protocol.Pause
		b.k.ask(&pause, "pause", `"by":"person"`)
		if pause.InterruptedTurns != 1 || pause.EndedProcesses != 2 {
			t.Errorf("answer %+v", pause)
		}
		b.k.pausedEnd("Ada", sub.Turn, "person")
		for end := time.Now().Add(10 * time.Second); commands(entry) > 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d processes run on", commands(entry))
			}
		}
		b.k.ask(nil, "resume", "")
		b.do("Ada", "run true")
	})
}

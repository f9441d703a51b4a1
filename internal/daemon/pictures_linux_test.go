//go:build !race

package daemon_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"agent/internal/fakemodel"
)

// peak is the most memory that the daemon had resident since the last call, in
// KiB.
func (p *process) peak() int {
	p.t.Helper()
	folder := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status, err := os.ReadFile(folder + "status")
	if err != nil {
		p.t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		p.t.Fatalf("no VmHWM in %s", status)
	}
	if err := os.WriteFile(folder+"clear_refs", []byte("5"), 0); err != nil {
		p.t.Fatal(err)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

func TestMemoryOfPictures(t *testing.T) {
	h := newHost(t, "")
	s := h.fake("anthropic", fakemodel.Options{Window: true, Handler: func(*fakemodel.Request) fakemodel.Reply {
		return fakemodel.Say("seen")
	}})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "read")
	// Four files that differ behind a picture's end: as large as one may be.
	base := filepath.Join(h.workspace, "base.png")
	noisy(t, base, 1100, 1100)
	picture := content(t, base)
	var paths []string
	for i := range 4 {
		path := filepath.Join(h.workspace, fmt.Sprintf("m%d.png", i))
		whole := append(bytes.Clone(picture), bytes.Repeat([]byte{byte(i)}, 4<<20-len(picture))...)
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	k.follow("Ada", 0)
	small, _ := h.picture(t, 1)
	sub := k.submit("Ada", "r1", "warm up", naming(small))
	k.until("turn_finished", sub.Turn)
	p.peak()
	before := p.peak()
	sub = k.submit("Ada", "r2", "look", naming(paths[:2]...))
	kept := p.peak()
	k.until("turn_finished", sub.Turn)
	sent := p.peak()
	sub = k.submit("Ada", "r3", "look", naming(paths...))
	k.until("turn_finished", sub.Turn)
	all := p.peak()
	t.Logf("peaks in KiB: idle %d, as two of 4 MiB are kept %d, as they are sent %d, with four more %d", before, kept, sent, all)
	t.Run("the daemon holds no picture whole, neither as it is kept nor as it is sent", func(t *testing.T) {
		if most := before + 12<<10; kept > most || sent > most || all > most {
			t.Errorf("it took %d, %d and %d KiB from %d", kept, sent, all, before)
		}
	})
	if o := k.result("Ada", sub.Turn); o.Status != "completed" {
		t.Errorf("outcome %+v", o)
	}
	s.Verify(t)
}

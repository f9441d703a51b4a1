package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

func TestCrash(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"prefix":"two"},"steps":[{"calls":[
		{"tool":"shell","arguments":{"command":"echo x >> ran; touch began; sleep 300"}},
		{"tool":"echo","arguments":{"text":"never"}}]},{"text":"more"}]},
		{"match":{"prefix":"after"},"steps":[{"calls":[{"tool":"echo","arguments":{"text":"kept"}}]},{"text":"held","delay_ms":600000}]},`+waitScript[1:])
	p := h.start()
	k := p.dial()
	for _, name := range []string{"Call", "Tool", "After", "Done"} {
		k.bot(name, h.workspace, "shell echo")
	}
	done := k.run("Done", "r", "hello")
	k.follow("After", 0)
	held := k.submit("Call", "r1", "hold", "")
	q1 := k.submit("Call", "q1", "first", `"delivery":"queue"`)
	q2 := k.submit("Call", "q2", "second", `"delivery":"queue"`)
	inTool := k.submit("Tool", "r1", "two", "")
	after := k.submit("After", "r1", "after", "")
	k.until("tool_completed", after.Turn)
	h.began()
	var seen int64
	k.follow("Call", 0)
	for _, l := range k.notes {
		seen = max(seen, l.num("cursor"))
	}
	p.kill()

	p = h.start()
	k = p.dial()
	t.Run("PR-33 RT-12 RT-91 the model call in flight is over and the line moves in order", func(t *testing.T) {
		k.follow("Call", 0)
		k.submit("Call", "wake", "x", `"delivery":"queue"`)
		lines := k.until("turn_finished", 0)
		_ = lines
		o := k.result("Call", held.Turn)
		if o.Status != "interrupted" || *o.Error != protocol.ProcessInterrupted {
			t.Errorf("the held turn %+v", o)
		}
		for _, q := range []protocol.Submitted{q1, q2} {
			for k.result("Call", q.Turn).Finished == false {
				k.note()
			}
			if o := k.result("Call", q.Turn); o.Status != "completed" {
				t.Errorf("a queued turn %+v", o)
			}
		}
		var page protocol.EventPage
		k.ask(&page, "events", `"bot":"Call","after":0,"limit":256`)
		order := fmt.Sprintf("%s", page.Events)
		a, b := strings.Index(order, fmt.Sprintf(`"turn":%d,"event":"accepted"`, q1.Turn)), strings.Index(order, fmt.Sprintf(`"turn":%d,"event":"accepted"`, q2.Turn))
		if a < 0 || b < a {
			t.Errorf("accepted at %d and %d", a, b)
		}
	})
	t.Run("RT-91 a call under way reads unknown, the later one cancelled, neither ran again", func(t *testing.T) {
		if o := k.result("Tool", inTool.Turn); o.Status != "interrupted" || *o.Error != protocol.ProcessInterrupted {
			t.Errorf("the turn %+v", o)
		}
		var page protocol.EventPage
		k.ask(&page, "events", `"bot":"Tool","after":0,"limit":256`)
		text := fmt.Sprintf("%s", page.Events)
		if !strings.Contains(text, `"outcome_unknown":true`) || !strings.Contains(text, `"cancelled":true`) ||
			strings.Index(text, `"cancelled":true`) > strings.Index(text, "turn_finished") {
			t.Errorf("events %s", text)
		}
		if ran, _ := os.ReadFile(filepath.Join(h.workspace, "ran")); string(ran) != "x\n" {
			t.Errorf("the command ran as %q", ran)
		}
		if o := k.run("Tool", "r2", "hello"); o.Status != "completed" {
			t.Errorf("the next turn %+v", o)
		}
	})
	t.Run("RT-91 a result that was stored is kept", func(t *testing.T) {
		var page protocol.EventPage
		k.ask(&page, "events", `"bot":"After","after":0,"limit":256`)
		text := fmt.Sprintf("%s", page.Events)
		if strings.Contains(text, "outcome_unknown") || strings.Contains(text, `"cancelled":true`) {
			t.Errorf("events %s", text)
		}
		if o := k.result("After", after.Turn); o.Status != "interrupted" {
			t.Errorf("the turn %+v", o)
		}
	})
	t.Run("RT-4 PR-19 a finished request repeats after the restart as it was", func(t *testing.T) {
		for range 5 {
			if s := k.submit("Done", "r", "hello", ""); !s.Duplicate || s.Turn != done.Turn || s.Status != "completed" {
				t.Errorf("repeat %+v", s)
			}
		}
	})
	t.Run("RT-95 a follower that comes back sees each later event once and then live", func(t *testing.T) {
		c := p.dial()
		c.ask(nil, "follow", fmt.Sprintf(`"bot":"Call","after":%d`, seen))
		lines := c.until("follow_live", 0)
		var cursors []int64
		for _, l := range lines {
			if l.fields["data"] != nil {
				cursors = append(cursors, l.num("cursor"))
			}
		}
		if !slices.IsSorted(cursors) || len(cursors) == 0 || cursors[0] <= seen || len(slices.Compact(slices.Clone(cursors))) != len(cursors) {
			t.Errorf("cursors %v after %d", cursors, seen)
		}
	})
}

func TestOwnership(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "shell")
	s := k.submit("Ada", "r", "hold", "")
	t.Run("PR-9 the same socket with another store exits 75 and leaves that store unmade", func(t *testing.T) {
		other := newHost(t, echoScript)
		other.set.Socket = h.set.Socket
		q := other.launch()
		code := exitOf(t, q)
		if code != 75 || !strings.Contains(q.stderr.String(), "socket_already_owned") {
			t.Errorf("exit %d: %s", code, q.stderr.String())
		}
		if _, err := os.Stat(other.set.Store); !os.IsNotExist(err) {
			t.Errorf("the store: %v", err)
		}
	})
	t.Run("PR-10 RT-87 the same store through a link exits 75 and touches no turn", func(t *testing.T) {
		other := newHost(t, echoScript)
		link := filepath.Join(other.dir, "link.sqlite")
		if err := os.Symlink(h.set.Store, link); err != nil {
			t.Fatal(err)
		}
		other.set.Store = link
		q := other.launch()
		code := exitOf(t, q)
		if code != 75 || !strings.Contains(q.stderr.String(), "store_already_owned") {
			t.Errorf("exit %d: %s", code, q.stderr.String())
		}
		if o := k.result("Ada", s.Turn); o.Status != "running" {
			t.Errorf("the turn is %s", o.Status)
		}
	})
	t.Run("PR-11 something else at the socket's path is left alone", func(t *testing.T) {
		other := newHost(t, echoScript)
		if err := os.WriteFile(other.set.Socket, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		q := other.launch()
		if code := exitOf(t, q); code != 1 || !strings.Contains(q.stderr.String(), "socket_path_not_socket") {
			t.Errorf("exit %d: %s", code, q.stderr.String())
		}
		if b, _ := os.ReadFile(other.set.Socket); string(b) != "mine" {
			t.Errorf("the file holds %q", b)
		}
	})
	t.Run("PR-12 a stale socket is replaced and gone after shutdown", func(t *testing.T) {
		other := newHost(t, echoScript)
		q := other.start()
		q.kill()
		if _, err := os.Lstat(other.set.Socket); err != nil {
			t.Fatal("the killed daemon left no socket")
		}
		q = other.start()
		q.dial().ask(nil, "shutdown", "")
		if code := q.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
		if _, err := os.Lstat(other.set.Socket); !os.IsNotExist(err) {
			t.Errorf("the socket: %v", err)
		}
	})
	t.Run("PR-16 RT-85 PO-12 PO-100 modes hold under umask 000", func(t *testing.T) {
		other := newHost(t, echoScript)
		text, _ := json.Marshal(other.set)
		cmd := exec.Command("/bin/sh", "-c", `umask 000; exec "$0"`, os.Args[0])
		cmd.Env = append(os.Environ(), "HOME="+other.dir, playVar+"="+string(text))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		for end := time.Now().Add(10 * time.Second); ; {
			if _, err := os.Lstat(other.set.Socket); err == nil || time.Now().After(end) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		for _, name := range []string{"sock", "state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "state.sqlite.owner-lock", "sock.owner-lock"} {
			info, err := os.Lstat(filepath.Join(other.dir, name))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", name, info, err)
			}
		}
	})
}

// exitOf waits for a daemon that cannot start.
func exitOf(t *testing.T, p *process) int {
	t.Helper()
	p.cmd.Wait()
	close(p.exited)
	return p.cmd.ProcessState.ExitCode()
}

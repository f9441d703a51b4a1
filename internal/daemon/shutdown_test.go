package daemon_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/protocol"
)

// rest is everything that comes until the session ends.
func (k *conn) rest() (seen []line) {
	k.t.Helper()
	seen, k.notes = k.notes, nil
	for {
		l, err := k.tryRead()
		if err != nil {
			return seen
		}
		seen = append(seen, l)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	t.Run("RT-99 SIGTERM ends a running turn durably, removes the socket and exits 0", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, waitScript)
		p := h.start()
		k := p.dial()
		k.bot("Ada", h.workspace, "shell")
		s := k.submit("Ada", "r", "wait", "")
		h.began()
		p.cmd.Process.Signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
		if _, err := os.Lstat(h.set.Socket); !os.IsNotExist(err) {
			t.Errorf("the socket: %v", err)
		}
		k = h.start().dial()
		if o := k.result("Ada", s.Turn); o.Status != "interrupted" || *o.Error != protocol.DaemonShutdown {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("PR-70 RT-98 with a grace the turn completes, reject is refused, queue recorded for the next start", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, waitScript)
		p := h.start()
		k := p.dial()
		k.bot("Ada", h.workspace, "shell")
		k.bot("Bob", h.workspace, "shell")
		s := k.submit("Ada", "r", "wait", "")
		h.began()
		k.ask(nil, "shutdown", `"grace_ms":20000`)
		k.refused(protocol.DaemonDraining, "submit", submission("Bob", "r", "x", ""))
		q := k.submit("Bob", "q", "x", `"delivery":"queue"`)
		h.letGo()
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
		k = h.start().dial()
		if o := k.result("Ada", s.Turn); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
		k.ask(nil, "follow", `"bot":"Bob","after":0`)
		k.until("turn_finished", q.Turn)
	})
	t.Run("a grace that passes ends the turn as a shutdown without one does", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, waitScript)
		p := h.start()
		k := p.dial()
		k.bot("Ada", h.workspace, "shell")
		k.follow("Ada", 0)
		s := k.submit("Ada", "r", "hold", "")
		k.ask(nil, "shutdown", `"grace_ms":200`)
		var end protocol.TurnFinished
		last(k.until("turn_finished", s.Turn)).data(&end) // a follower gets it before the daemon goes
		if code := p.wait(); code != 0 || end.Status != "interrupted" || *end.Error != protocol.DaemonShutdown {
			t.Errorf("exit %d, %+v", code, end)
		}
	})
	t.Run("while it drains nothing starts or resumes, and what is recorded goes on at the next start", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, `[{"match":{"equals":"look"},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Ada/1"]}}]},{"text":"${last}"}]},`+waitScript[1:])
		p := h.start()
		k := p.dial()
		k.bot("Ada", h.workspace, "shell")
		k.bot("Bob", h.workspace, "shell")
		k.bot("Eve", h.workspace, "wait")
		k.follow("*", 0)
		one := k.submit("Ada", "r", "wait", "")
		h.began()
		parked := k.submit("Eve", "r", "look", "")
		k.until("turn_waiting", parked.Turn)
		k.ask(nil, "shutdown", `"grace_ms":20000`)
		var st protocol.Stats
		if k.ask(&st, "stats", ""); !st.Draining {
			t.Error("stats do not say that it drains")
		}
		steer := k.submit("Bob", "s", "x", `"delivery":"steer"`)
		if steer.Status != "ready" {
			t.Errorf("the steer is %s", steer.Status)
		}
		behind := k.submit("Ada", "q", "y", `"delivery":"queue"`)
		h.letGo()
		seen := kinds(k.rest())
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
		for _, unwanted := range []string{fmt.Sprint("turn_resumed ", parked.Turn), fmt.Sprint("accepted ", steer.Turn), fmt.Sprint("accepted ", behind.Turn)} {
			if slices.Contains(seen, unwanted) {
				t.Errorf("%s came while it drained: %v", unwanted, seen)
			}
		}
		if !slices.Contains(seen, fmt.Sprint("turn_finished ", one.Turn)) {
			t.Errorf("the end of the running turn did not come: %v", seen)
		}
		k = h.start().dial()
		var w protocol.Waited
		k.ask(&w, "wait", fmt.Sprintf(`"handles":["turn:Eve/%d","turn:Bob/%d","turn:Ada/%d"]`, parked.Turn, steer.Turn, behind.Turn))
		if o := k.result("Eve", parked.Turn); !strings.Contains(o.Text, `"status":"completed"`) {
			t.Errorf("what it waited for came to %s", o.Text)
		}
	})
	t.Run("without a grace queued, ready and parked turns stay, and the store is whole without its log", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, `[{"match":{"equals":"look"},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Ada/1"]}}]},{"text":"${last}"}]},`+waitScript[1:])
		h.set.Limits.Active = 2
		p := h.start()
		k := p.dial()
		for _, name := range []string{"Ada", "Bob", "Eve", "Fay"} {
			k.bot(name, h.workspace, "wait")
		}
		k.follow("*", 0)
		k.submit("Ada", "r", "hold", "")
		parked := k.submit("Eve", "r", "look", "")
		k.until("turn_waiting", parked.Turn)
		k.submit("Fay", "r", "hold", "")
		ready := k.submit("Bob", "r", "x", `"delivery":"queue"`)
		queued := k.submit("Ada", "q", "y", `"delivery":"queue"`)
		if ready.Status != "ready" || queued.Status != "queued" {
			t.Fatalf("they are %s and %s", ready.Status, queued.Status)
		}
		k.ask(nil, "shutdown", "")
		seen := kinds(k.rest())
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
		if n := strings.Count(strings.Join(seen, ","), "turn_finished"); n != 2 {
			t.Errorf("%d turns ended: %v", n, seen)
		}
		if info, err := os.Stat(h.set.Store + "-wal"); err == nil && info.Size() > 0 {
			t.Errorf("%d bytes are left beside the store", info.Size())
		}
		other := newHost(t, "")
		bytes, err := os.ReadFile(h.set.Store)
		if err == nil {
			err = os.WriteFile(other.set.Store, bytes, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		other.set.Providers = h.set.Providers
		k = other.start().dial()
		k.ask(nil, "wait", fmt.Sprintf(`"handles":["turn:Eve/%d","turn:Bob/%d","turn:Ada/%d"]`, parked.Turn, ready.Turn, queued.Turn))
		if o := k.result("Eve", parked.Turn); !strings.Contains(o.Text, "daemon_shutdown") {
			t.Errorf("what it waited for came to %s", o.Text)
		}
	})
	t.Run("a later shutdown only brings the end nearer, and a signal is the end", func(t *testing.T) {
		for _, row := range []struct {
			name  string
			hurry func(k *conn, p *process)
		}{
			{"a shorter grace", func(k *conn, _ *process) { k.ask(nil, "shutdown", `"grace_ms":1`) }},
			{"none", func(k *conn, _ *process) { k.ask(nil, "shutdown", "") }},
			{"SIGTERM", func(_ *conn, p *process) { p.cmd.Process.Signal(syscall.SIGTERM) }},
			{"SIGINT", func(_ *conn, p *process) { p.cmd.Process.Signal(syscall.SIGINT) }},
		} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				h := newHost(t, waitScript)
				p := h.start()
				k := p.dial()
				k.bot("Ada", h.workspace, "shell")
				k.submit("Ada", "r", "hold", "")
				k.refused(protocol.InvalidTimeout, "shutdown", `"grace_ms":-1`)
				k.refused(protocol.InvalidTimeout, "shutdown", `"grace_ms":86400001`)
				began := time.Now()
				k.ask(nil, "shutdown", `"grace_ms":60000`)
				k.ask(nil, "shutdown", `"grace_ms":86400000`)
				row.hurry(k, p)
				if code := p.wait(); code != 0 || time.Since(began) > 15*time.Second {
					t.Errorf("exit %d after %v", code, time.Since(began))
				}
			})
		}
	})
	t.Run("a longer grace after a shorter one changes nothing", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, waitScript)
		p := h.start()
		k := p.dial()
		k.bot("Ada", h.workspace, "shell")
		k.submit("Ada", "r", "hold", "")
		k.ask(nil, "shutdown", `"grace_ms":300`)
		k.ask(nil, "shutdown", `"grace_ms":60000`)
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
	t.Run("RT-127 a starter that closed the daemon's output does not end it, and pipelines end as they should", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, `[{"match":{"any":true},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"yes | head -1; echo $${PIPESTATUS[0]}"}}]},{"text":"${last}"}]}]`)
		p := h.start()
		p.cmd.Process.Signal(syscall.SIGHUP)
		k := p.dial()
		k.bot("Ada", h.workspace, "shell")
		if o := k.run("Ada", "r", "x"); !strings.Contains(o.Text, `141`) {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestStdioEnds(t *testing.T) {
	t.Parallel()
	t.Run("SIGHUP ends an owner's daemon as SIGTERM does", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, echoScript)
		h.set.Socket = ""
		p := h.start()
		p.cmd.Process.Signal(syscall.SIGHUP)
		p.cmd.Wait()
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
	})
}

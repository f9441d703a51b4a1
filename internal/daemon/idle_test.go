package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

func TestIdleExit(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"any":true},"steps":[{"text":"slow","delay_ms":900}]}]`)
	seconds := int64(1)
	h.set.Limits.IdleExitSeconds = &seconds
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	k.submit("Ada", "r", "x", "")
	k.c.Close()
	began := time.Now()
	t.Run("an idle daemon exits after a whole idle period, which a turn's end begins anew", func(t *testing.T) {
		if code := p.wait(); code != 0 || time.Since(began) < 1800*time.Millisecond {
			t.Errorf("exit %d after %v", code, time.Since(began))
		}
		k = h.start().dial()
		if o := k.result("Ada", 1); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestIdleExitWithParkedTurns(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[
		{"match":{"equals":"serve"},"steps":[{"calls":[{"tool":"memory","arguments":{"fact":"x"}}]},{"text":"never"}]},
		{"match":{"equals":"wait"},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Bob/1"]}}]},{"text":"got ${last}"}]}]`)
	seconds := int64(1)
	h.set.Limits.IdleExitSeconds = &seconds
	p := h.start()
	k := p.dial()
	k.served("Bob", h.workspace, "", memoryTool(""))
	k.bot("Ada", h.workspace, "wait")
	k.follow("*", 0)
	k.until("turn_waiting", k.submit("Bob", "r", "serve", "").Turn)
	wait := k.submit("Ada", "r", "wait", "")
	k.until("turn_waiting", wait.Turn)
	k.c.Close()
	t.Run("RT-97 parked turns do not hold the idle exit, and the next start resumes the wait", func(t *testing.T) {
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
		k := h.start().dial()
		k.follow("Ada", 0)
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Bob","turn":%d`, 1))
		seen := k.until("turn_finished", wait.Turn)
		if o := k.result("Ada", wait.Turn); o.Status != "completed" || !strings.Contains(o.Text, `"status":"interrupted"`) {
			t.Errorf("outcome %+v after %v", o, kinds(seen))
		}
	})
}

func TestIdleExitWithABackgroundCommand(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"any":true},"steps":[{"calls":[{"tool":"shell","arguments":{"background":true,"command":"sleep 1.2; touch ended"}}]},{"text":"begun"}]}]`)
	seconds := int64(1)
	h.set.Limits.IdleExitSeconds = &seconds
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "shell")
	k.run("Ada", "r", "x")
	k.c.Close()
	t.Run("a background command holds the idle exit, whose period its end begins anew", func(t *testing.T) {
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
		info, err := os.Stat(filepath.Join(h.workspace, "ended"))
		if err != nil {
			t.Fatal(err)
		}
		if since := time.Since(info.ModTime()); since < 900*time.Millisecond {
			t.Errorf("it exited %v after the command's end", since)
		}
		var w protocol.Waited
		k := h.start().dial()
		if k.ask(&w, "wait", `"handles":["proc:1"],"timeout_ms":0`); w.Results["proc:1"].Process == nil || !w.Results["proc:1"].Process.Success {
			t.Errorf("the command came to %+v", w.Results)
		}
	})
}

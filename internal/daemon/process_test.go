package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// steps runs a turn whose model makes one call a round, and gives the results
// in order.
func (k *conn) steps(s *fakemodel.Server, bot, request string, calls ...[2]string) []string {
	k.t.Helper()
	for _, c := range calls {
		s.Queue(fakemodel.Say("next", fakemodel.Call(c[0], c[1])))
	}
	s.Queue(fakemodel.Say("done"))
	k.follow(bot, 0)
	sub := k.submit(bot, request, "go "+request, "")
	var out []string
	for _, l := range k.until("turn_finished", sub.Turn) {
		if l.str("event") == "tool_completed" && l.num("turn") == sub.Turn {
			var c protocol.ToolCompleted
			l.data(&c)
			out = append(out, resultText("responses", k.item(bot, c.Node)))
		}
	}
	if o := k.result(bot, sub.Turn); o.Status != "completed" {
		k.t.Fatalf("%s: %+v", request, o)
	}
	return out
}

func shellCall(command, more string) [2]string {
	text, _ := json.Marshal(command)
	return [2]string{"shell", fmt.Sprintf(`{"command":%s%s}`, text, more)}
}

func TestBackground(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{Lost: true})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "shell wait write_stdin read")
	k.fbot("Eve", h.workspace, "shell wait write_stdin")
	t.Run("RT-38 a background command answers its handle at once, and wait its output and code", func(t *testing.T) {
		got := k.steps(s, "Ada", "r1", shellCall("until [ -e go ]; do sleep 0.02; done; echo out; echo err >&2; exit 7", `,"background":true`),
			[2]string{"wait", `{"handles":["proc:1"],"timeout_ms":0}`}, shellCall("touch go", ""), [2]string{"wait", `{"handles":["proc:1"]}`})
		if got[0] != `{"handle":"proc:1","background":true}` || !strings.Contains(got[1], `"proc:1":{"pending":true}`) {
			t.Errorf("results %s", got)
		}
		if !strings.Contains(got[3], `"stdout":"out\n","stderr":"err\n","exit_code":7,"success":false`) {
			t.Errorf("the wait gave %s", got[3])
		}
		var w protocol.Waited
		k.ask(&w, "wait", `"handles":["proc:1"]`)
		if pr := w.Results["proc:1"].Process; pr == nil || pr.Stdout != "out\n" || *pr.ExitCode != 7 {
			t.Errorf("the op gave %+v", w.Results["proc:1"])
		}
	})
	t.Run("RT-48 another bot's command is not available to wait on or to write to", func(t *testing.T) {
		got := k.steps(s, "Eve", "r1", [2]string{"wait", `{"handles":["proc:1"]}`}, [2]string{"write_stdin", `{"handle":"proc:1"}`})
		if !strings.Contains(got[0], "handle_unavailable") || !strings.Contains(got[1], "handle_unavailable") {
			t.Errorf("results %s", got)
		}
	})
	t.Run("RT-50 write_stdin talks to a command, and close ends it", func(t *testing.T) {
		got := k.steps(s, "Ada", "r2", shellCall("while read l; do echo got $l; done; echo over", `,"background":true,"stdin":true`),
			[2]string{"write_stdin", `{"handle":"proc:2","chars":"hello\n"}`}, [2]string{"write_stdin", `{"handle":"proc:2","close":true,"yield_ms":5000}`},
			[2]string{"wait", `{"handles":["proc:2"]}`}, [2]string{"write_stdin", `{"handle":"proc:2","chars":"x"}`}, [2]string{"write_stdin", `{"handle":"proc:99"}`})
		if !strings.Contains(got[1], `"running":true,"stdout":"got hello\n"`) {
			t.Errorf("writing gave %s", got[1])
		}
		if !strings.Contains(got[2], `over`) {
			t.Errorf("closing gave %s", got[2])
		}
		if !strings.Contains(got[3], `got hello\nover\n`) || !strings.Contains(got[4], "process_finished") || !strings.Contains(got[5], "unknown_handle") {
			t.Errorf("results %s", got[3:])
		}
	})
	t.Run("write_stdin refuses a command without a pipe, and signals one that has it", func(t *testing.T) {
		got := k.steps(s, "Ada", "r3", shellCall("sleep 300", `,"background":true`), [2]string{"write_stdin", `{"handle":"proc:3","chars":"x"}`},
			shellCall("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done", `,"background":true,"stdin":true`),
			[2]string{"write_stdin", `{"handle":"proc:4"}`}, [2]string{"write_stdin", `{"handle":"proc:4","signal":"TERM","yield_ms":10000}`}, [2]string{"wait", `{"handles":["proc:4"]}`})
		if !strings.Contains(got[1], "stdin_not_open") || !strings.Contains(got[3], "up") || !strings.Contains(got[4], "bye") || !strings.Contains(got[5], `"exit_code":3`) {
			t.Errorf("results %s", got)
		}
	})
	t.Run("PR-45 outcomes that do not fit a line together fit it alone", func(t *testing.T) {
		var calls [][2]string
		for range 9 {
			calls = append(calls, shellCall(`head -c 65000 /dev/zero | tr '\0' '"'; head -c 65000 /dev/zero | tr '\0' '"' >&2`, `,"background":true`))
		}
		calls = append(calls, [2]string{"wait", `{"handles":["proc:5","proc:6","proc:7","proc:8","proc:9","proc:10","proc:11","proc:12","proc:13"]}`})
		got := k.steps(s, "Ada", "r4", calls...)
		if !strings.Contains(got[9], `"pending":["proc:`) || len(got[9]) > 700<<10 {
			t.Errorf("the tool's result takes %d bytes", len(got[9]))
		}
		k.refused(protocol.ResponseSizeLimit, "wait", `"handles":["proc:5","proc:6","proc:7","proc:8","proc:9","proc:10","proc:11","proc:12","proc:13"]`)
		k.ask(nil, "wait", `"handles":["proc:5"]`)
	})
	t.Run("a background command's long output is kept for its bot", func(t *testing.T) {
		got := k.steps(s, "Ada", "r5", shellCall("head -c 200000 /dev/zero | tr '\\0' z", `,"background":true`), [2]string{"wait", `{"handles":["proc:14"]}`})
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		last := page.Turns[len(page.Turns)-1].Turn
		var w struct {
			Results map[string]struct{ Artifacts []string }
		}
		if err := json.Unmarshal([]byte(got[1]), &w); err != nil || len(w.Results["proc:14"].Artifacts) != 1 {
			t.Fatalf("%v: %.300s", err, got[1])
		}
		parts := strings.Split(w.Results["proc:14"].Artifacts[0], "/")
		var art protocol.ArtifactPage
		k.ask(&art, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"stream":"stdout"`, last, parts[1]))
		if art.TotalBytes != 200_000 {
			t.Errorf("page of %d bytes", art.TotalBytes)
		}
	})
	t.Run("RT-40 PR-46 over a crash a command is lost but lives, and its id is not used again", func(t *testing.T) {
		k.steps(s, "Ada", "r6", shellCall("until [ -e go2 ]; do sleep 0.02; done; touch lived", `,"background":true`))
		p.kill()
		p = h.start()
		k = p.dial()
		var w protocol.Waited
		k.ask(&w, "wait", `"handles":["proc:15"]`)
		if e := w.Results["proc:15"].Err; e == nil || e.Code != protocol.ProcessLost {
			t.Errorf("answer %+v", w.Results["proc:15"])
		}
		os.WriteFile(filepath.Join(h.workspace, "go2"), nil, 0o644)
		h.await("lived")
		if got := k.steps(s, "Ada", "r7", shellCall("true", `,"background":true`)); got[0] != `{"handle":"proc:16","background":true}` {
			t.Errorf("result %s", got[0])
		}
	})
	t.Run("RT-100 a running command does not hold a shutdown, and reads lost later", func(t *testing.T) {
		k.steps(s, "Ada", "r8", shellCall("trap '' TERM; echo $$ > pid; touch began; sleep 300", `,"background":true`))
		h.began()
		began := time.Now()
		k.ask(nil, "shutdown", "")
		if code := p.wait(); code != 0 || time.Since(began) > 5*time.Second {
			t.Errorf("exit %d after %v", code, time.Since(began))
		}
		pid, _ := os.ReadFile(filepath.Join(h.workspace, "pid"))
		if b, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); err == nil {
			t.Errorf("the command lives: %s", b)
		}
		k = h.start().dial()
		var w protocol.Waited
		k.ask(&w, "wait", `"handles":["proc:17"]`)
		if e := w.Results["proc:17"].Err; e == nil || e.Code != protocol.ProcessLost {
			t.Errorf("answer %+v", w.Results["proc:17"])
		}
	})
	s.Verify(t)
}

func TestWriteStdin(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.set.Limits.Processes = 1
	s := h.fake("responses", fakemodel.Options{Lost: true})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell wait write_stdin")
	poll := func(handle, more string) [2]string {
		return [2]string{"write_stdin", fmt.Sprintf(`{"handle":%q%s}`, handle, more)}
	}
	t.Run("a poll that waits for nothing is answered with what there is", func(t *testing.T) {
		calls := [][2]string{shellCall("cat", `,"background":true,"stdin":true`), poll("proc:1", "")}
		for range 20 {
			calls = append(calls, poll("proc:1", `,"yield_ms":0`))
		}
		for _, got := range k.steps(s, "Ada", "r1", calls...)[1:] {
			if got != `{"handle":"proc:1","running":true,"stdout":"","stderr":""}` {
				t.Fatalf("got %s", got)
			}
		}
	})
	t.Run("a command in line has no output yet, and takes nothing", func(t *testing.T) {
		got := k.steps(s, "Ada", "r2", shellCall("echo up; sleep 300", `,"background":true,"stdin":true`), poll("proc:2", `,"yield_ms":0`), poll("proc:2", `,"yield_ms":0,"chars":"x"`))
		if got[1] != `{"handle":"proc:2","running":true,"stdout":"","stderr":""}` || !strings.Contains(got[2], `"stdin_full","detail":"the command still waits in line; 0 bytes`) {
			t.Errorf("results %s", got[1:])
		}
	})
	t.Run("of a command that was killed the exit code is null", func(t *testing.T) {
		got := k.steps(s, "Ada", "r3", poll("proc:1", `,"signal":"KILL","yield_ms":30000`))
		if got[0] != `{"handle":"proc:1","running":false,"stdout":"","stderr":"","exit_code":null,"success":false}` {
			t.Errorf("got %s", got[0])
		}
	})
	t.Run("an interrupt does not wait for a command that takes nothing", func(t *testing.T) {
		text := strings.Repeat("x", 60_000)
		got := k.steps(s, "Ada", "r4", poll("proc:2", `,"yield_ms":30000`), poll("proc:2", `,"yield_ms":0,"chars":"`+text+`"`))
		if !strings.Contains(got[0], `"stdout":"up\n"`) || !strings.Contains(got[1], `"running":true`) {
			t.Errorf("results %s", got)
		}
		s.Queue(fakemodel.Say("next", fakemodel.Call("write_stdin", `{"handle":"proc:2","yield_ms":30000,"chars":"`+text+`"}`)))
		sub := k.submit("Ada", "r5", "go", "")
		k.until("tool_started", sub.Turn)
		began := time.Now()
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, sub.Turn))
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "interrupted" || time.Since(began) > 15*time.Second {
			t.Errorf("%s after %v", o.Status, time.Since(began))
		}
	})
	s.Verify(t)
}

func TestProcessBudget(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.set.Limits.Processes, h.set.Limits.Detached = 1, 2
	s := h.fake("responses", fakemodel.Options{})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell wait")
	t.Run("RT-39 past the budget and its line a command is refused without a row, the accepted ones run in order", func(t *testing.T) {
		got := k.steps(s, "Ada", "r1",
			shellCall("touch began; until [ -e go ]; do sleep 0.02; done; echo 1 >> log", `,"background":true`),
			[2]string{"wait", `{"handles":["proc:1"],"timeout_ms":300}`},
			shellCall("echo 2 >> log", `,"background":true`), shellCall("echo 3 >> log", `,"background":true`))
		if !strings.Contains(got[2], "proc:2") || !strings.Contains(got[3], "capacity_exhausted") {
			t.Errorf("results %s", got)
		}
		var st protocol.Stats
		if k.ask(&st, "stats", ""); st.RunningProcesses != 2 || st.QueuedProcesses != 1 || st.ProcessLimit != 1 {
			t.Errorf("stats %d %d %d", st.RunningProcesses, st.QueuedProcesses, st.ProcessLimit)
		}
		h.letGo()
		k.ask(nil, "wait", `"handles":["proc:1","proc:2"]`)
		var w protocol.Waited
		k.ask(&w, "wait", `"handles":["proc:3"]`)
		if log, _ := os.ReadFile(filepath.Join(h.workspace, "log")); string(log) != "1\n2\n" || w.Results["proc:3"].Err == nil {
			t.Errorf("log %q, proc:3 %+v", log, w.Results["proc:3"])
		}
	})
	t.Run("RT-49 detached commands have a bound, leave their place when they end, and leave no zombie", func(t *testing.T) {
		detach := func(name string) [2]string {
			return shellCall("touch up-"+name+"; until [ -e end-"+name+" ]; do sleep 0.02; done", `,"detach":true`)
		}
		got := k.steps(s, "Ada", "r2", detach("a"), detach("b"), detach("c"))
		if !strings.Contains(got[0], `"detached":true`) || !strings.Contains(got[2], "detached_limit") {
			t.Errorf("results %s", got)
		}
		h.await("up-a")
		os.WriteFile(filepath.Join(h.workspace, "end-a"), nil, 0o644)
		var first struct{ Pid int }
		json.Unmarshal([]byte(got[0]), &first)
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", first.Pid)); err != nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first.Pid)); err == nil {
			t.Errorf("it is still there: %s", b)
		}
		if got := k.steps(s, "Ada", "r3", detach("d")); !strings.Contains(got[0], `"detached":true`) {
			t.Errorf("result %s", got)
		}
		for _, n := range []string{"b", "d"} {
			os.WriteFile(filepath.Join(h.workspace, "end-"+n), nil, 0o644)
		}
	})
	s.Verify(t)
}

func TestPaced(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, echoScript)
		h.set.Limits.Active = 1
		s := h.fake(family, fakemodel.Options{})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "")
		k.bot("Bob", h.workspace, "")
		t.Run("RT-72 a closed pool parks the turn, and another provider's bot runs at once", func(t *testing.T) {
			s.Queue(fakemodel.HTTPError(429, "slow down", "Retry-After", "3"))
			k.follow("Ada", 0)
			sub := k.submit("Ada", "r", "x", "")
			k.until("turn_paced", sub.Turn)
			var st protocol.Stats
			if k.ask(&st, "stats", ""); st.PacedTurns != 1 || st.ActiveTurns != 0 {
				t.Errorf("stats %+v", st)
			}
			if o := k.run("Bob", "r", "hello"); o.Text != "hello" {
				t.Errorf("Bob's %+v", o)
			}
			if n := s.Stats().Requests; n != 1 {
				t.Errorf("%d requests were sent", n)
			}
		})
		t.Run("RT-73 over a crash it stays paced, resumes when due and counts the time once", func(t *testing.T) {
			p.kill()
			p = h.start()
			k = p.dial()
			s.Queue(fakemodel.Say("late"))
			k.ask(nil, "follow", `"bot":"Ada","after":0`)
			k.until("turn_finished", 0)
			var page protocol.TurnPage
			k.ask(&page, "turns", `"bot":"Ada"`)
			tr := page.Turns[0]
			if tr.Status != "completed" || tr.PacedMS < 2000 || tr.PacedMS > 20_000 || tr.Retries != 1 {
				t.Errorf("turn %+v", tr)
			}
		})
		s.Verify(t)
	})
}

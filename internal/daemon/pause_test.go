package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// pauseScript: turns that run and wait in each way there is, and commands that
// outlive them. A command writes its process id to the file named.
const pauseScript = `[
	{"match":{"prefix":"hold"},"steps":[{"text":"held","delay_ms":600000}]},
	{"match":{"equals":"command"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"echo $$$$ >front; exec sleep 600"}}]},{"text":"never"}]},
	{"match":{"regex":"^wait (.*)$"},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["${1}"]}}]},{"text":"never"}]},
	{"match":{"equals":"serve"},"steps":[{"calls":[{"tool":"memory","arguments":{"fact":"x"}}]},{"text":"never"}]},
	{"match":{"equals":"leave"},"steps":[{"calls":[
		{"tool":"shell","arguments":{"command":"echo $$$$ >back; exec sleep 600","background":true}},
		{"tool":"shell","arguments":{"command":"echo $$$$ >apart; exec sleep 600","detach":true}}]},{"text":"left"}]},
	{"match":{"regex":"(?s)^(.*)$"},"repeat_last":true,"steps":[{"text":"${prompt}"}]}]`

// pidIn waits for a command's process id.
func (h *host) pidIn(name string) int {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(h.workspace, name))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return pid
		}
	}
	h.t.Fatalf("%s names no process", name)
	return 0
}

// gone reports that a process has ended: killed, and reaped or soon so.
func gone(pid int) bool {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
	}
	return false
}

// pausedEnd checks that a turn ended by the pause of by.
func (k *conn) pausedEnd(bot string, turn int64, by string) {
	k.t.Helper()
	o := k.result(bot, turn)
	var who string
	json.Unmarshal(o.Extra["by"], &who)
	if o.Status != "interrupted" || o.Error == nil || *o.Error != protocol.Paused || who != by {
		k.t.Errorf("%s's turn %d: %+v", bot, turn, o)
	}
}

// ready is what a session is told first.
func (k *conn) readyLine() (r protocol.Ready) {
	k.t.Helper()
	if err := json.Unmarshal(k.ready, &r); err != nil {
		k.t.Fatal(err)
	}
	return r
}

func TestPauseStopsEverything(t *testing.T) {
	t.Parallel()
	h := newHost(t, pauseScript)
	h.set.Limits.ApprovalHoldMS = 0
	s := h.fake("responses", fakemodel.Options{})
	p := h.start()
	k := p.dial()
	for _, name := range []string{"Hold", "Front", "Wait", "Left", "Idle"} {
		k.bot(name, h.workspace, "shell wait")
	}
	k.served("Serve", h.workspace, "", memoryTool(""))
	k.served("Live", h.workspace, "", memoryTool(""))
	k.ask(nil, "configure", `"bot":"Live","settings":{"approval_hold_ms":600000}`)
	k.fbot("Paced", h.workspace, "")
	k.follow("*", 0)
	left := k.submit("Left", "l", "leave", "")
	k.until("turn_finished", left.Turn)
	back, apart := h.pidIn("back"), h.pidIn("apart")
	holder := p.dial()
	lease := holder.serve("sonny", 600_000)
	turns := map[string]int64{}
	begin := func(bot, prompt, until string) {
		turns[bot] = k.submit(bot, "r", prompt, "").Turn
		if until != "" {
			k.until(until, turns[bot])
		}
	}
	begin("Hold", "hold", "")
	begin("Front", "command", "tool_started")
	begin("Wait", fmt.Sprintf("wait turn:Hold/%d", turns["Hold"]), "turn_waiting")
	begin("Serve", "serve", "turn_waiting")
	begin("Live", "serve", "tool_requested")
	s.Queue(fakemodel.HTTPError(429, "slow down", "Retry-After", "600"))
	begin("Paced", "x", "turn_paced")
	front := h.pidIn("front")
	queued := k.submit("Hold", "q", "after the hold", `"delivery":"queue"`)
	behind := k.submit("Wait", "q", "after the wait", `"delivery":"queue"`)
	quiet := p.dial() // follows nothing

	var pause protocol.Pause
	k.ask(&pause, "pause", fmt.Sprintf(`"from":{"bot":"Hold","turn":%d},"by":"somebody","reason":"a fire"`, turns["Hold"]))
	t.Run("RT-55 RT-109 PR-78 every current turn ends, running, paced and parked ones, with who pulled it", func(t *testing.T) {
		if !pause.Paused || pause.By != "Hold" || pause.ByID == nil || *pause.Turn != turns["Hold"] || *pause.Reason != "a fire" || pause.Already {
			t.Errorf("answer %+v", pause)
		}
		if pause.InterruptedTurns != 6 || pause.EndedProcesses != 2 {
			t.Errorf("answer counts %d turns and %d processes", pause.InterruptedTurns, pause.EndedProcesses)
		}
		for bot, turn := range turns {
			k.pausedEnd(bot, turn, "Hold")
		}
		var st protocol.Stats
		if k.ask(&st, "stats", ""); st.ActiveTurns+st.WaitingTurns+st.PacedTurns+st.RunningProcesses+st.ToolRequests != 0 || st.Paused == nil || st.Paused.By != "Hold" {
			t.Errorf("stats %+v", st)
		}
	})
	t.Run("RT-55 background and detached commands are gone, and the handle says why", func(t *testing.T) {
		for name, pid := range map[string]int{"background": back, "detached": apart, "foreground": front} {
			if !gone(pid) {
				t.Errorf("the %s command lives", name)
			}
		}
		var w protocol.Waited
		if k.ask(&w, "wait", `"handles":["proc:1"]`); w.Results["proc:1"].Err == nil || w.Results["proc:1"].Err.Code != protocol.ProcessStopped {
			t.Errorf("the handle gives %+v", w.Results["proc:1"])
		}
	})
	t.Run("PR-78 the holder of the served call is told, and its late result is stale", func(t *testing.T) {
		call := holder.push()
		told := holder.until("tool_cancelled", turns["Live"])
		if !slices.ContainsFunc(told, func(l line) bool { return l.str("call_id") == call.Data.CallID || l.num("turn") == turns["Live"] }) {
			t.Errorf("told %v", told)
		}
		holder.refused(protocol.StaleTurn, "tool_result", fmt.Sprintf(`"bot":"Live",%s,"output":"late"`,
			strings.TrimPrefix(address(turns["Live"], call.Data.CallID, lease.Lease), `"bot":"Ada",`)))
	})
	t.Run("every session is told, the ready line of a new one says it", func(t *testing.T) {
		l := last(quiet.until("paused", 0))
		var info protocol.PauseInfo
		if err := json.Unmarshal(l.raw, &info); err != nil || info.By != "Hold" || *info.Reason != "a fire" || info.SinceMS != pause.SinceMS {
			t.Errorf("notice %s", l.raw)
		}
		if r := p.dial().readyLine(); r.Paused == nil || r.Paused.By != "Hold" || !r.Has("pause") {
			t.Errorf("ready says %+v", r.Paused)
		}
	})
	t.Run("RT-55 AP-64 while it stands reject is refused with who and why, queue and steer are recorded, the rest works", func(t *testing.T) {
		l := k.refused(protocol.DaemonPaused, "submit", submission("Idle", "r1", "x", ""))
		if l.str("by") != "Hold" || l.num("by_id") != *pause.ByID || l.str("reason") != "a fire" || l.num("since_ms") != pause.SinceMS ||
			!strings.Contains(l.str("detail"), "a fire") {
			t.Errorf("refusal %s", l.raw)
		}
		k.refused(protocol.DaemonPaused, "submit", submission("Hold", "r9", "x", ""))
		k.refused(protocol.StaleTurn, "submit", submission("Idle", "r2", "x", `"delivery":"steer","expected_turn":9`))
		if sub := k.submit("Idle", "r3", "first", `"delivery":"steer"`); sub.Status != "ready" {
			t.Errorf("the steer is %s", sub.Status)
		}
		if sub := k.submit("Idle", "r4", "second", `"delivery":"queue"`); sub.Status != "queued" {
			t.Errorf("the queued one is %s", sub.Status)
		}
		if sub := k.submit("Hold", "q", "after the hold", `"delivery":"queue"`); !sub.Duplicate || sub.Turn != queued.Turn {
			t.Errorf("the repeat gives %+v", sub)
		}
		k.bot("New", h.workspace, "")
		k.ask(nil, "fork", `"source":"Left","bot":"Fork"`)
		k.ask(nil, "configure", `"bot":"New","budget_tokens":1000`)
		drop := k.submit("New", "r", "x", `"delivery":"queue"`)
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"New","turn":%d`, drop.Turn))
		k.ask(nil, "delete", `"bot":"New"`)
		k.ask(nil, "inspect", `"bot":"Fork"`)
		if n := s.Stats().Requests; n != 1 {
			t.Errorf("%d requests went to the provider", n)
		}
	})
	t.Run("RT-111 a second pull changes nothing and reports the first", func(t *testing.T) {
		var again protocol.Pause
		k.ask(&again, "pause", `"by":"another","reason":"another"`)
		if !again.Already || again.By != "Hold" || *again.Reason != "a fire" || again.SinceMS != pause.SinceMS || again.InterruptedTurns+again.EndedProcesses != 0 {
			t.Errorf("answer %+v", again)
		}
	})
	t.Run("RT-109 AP-64 the lift starts the lines in their order, and nothing that was interrupted", func(t *testing.T) {
		var was protocol.Resumed
		k.ask(&was, "resume", "")
		if was.Paused || was.Was == nil || was.Was.By != "Hold" {
			t.Errorf("answer %+v", was)
		}
		if l := last(quiet.until("resumed", 0)); l.str("by") != "Hold" {
			t.Errorf("notice %s", l.raw)
		}
		for bot, turn := range map[string]int64{"Hold": queued.Turn, "Wait": behind.Turn} {
			o := k.outcomeOf(bot, turn)
			if o.Status != "completed" || o.Text != "after the "+strings.ToLower(bot) {
				t.Errorf("%s: %+v", bot, o)
			}
		}
		var page protocol.TurnPage
		k.outcomeOf("Idle", behind.Turn+2)
		k.ask(&page, "turns", `"bot":"Idle"`)
		if len(page.Turns) != 2 || *page.Turns[0].StartedMS > *page.Turns[1].StartedMS || page.Turns[1].Status != "completed" {
			t.Errorf("Idle's turns %+v", page.Turns)
		}
		for bot, turn := range turns {
			k.pausedEnd(bot, turn, "Hold")
		}
		k.ask(&was, "resume", "")
		if was.Was != nil {
			t.Errorf("a second lift gives %+v", was)
		}
		if o := k.run("Idle", "r9", "hello"); o.Text != "hello" {
			t.Errorf("outcome %+v", o)
		}
		if got := k.run("Left", "r9", "leave"); got.Text != "left" {
			t.Errorf("outcome %+v", got)
		}
		k.ask(&pause, "pause", "")
		if pause.By != "client" || pause.ByID != nil || pause.Turn != nil || pause.Reason != nil || pause.EndedProcesses != 2 {
			t.Errorf("answer %+v", pause)
		}
	})
	s.Verify(t)
}

// outcomeOf waits for a turn's end.
func (k *conn) outcomeOf(bot string, turn int64) protocol.Outcome {
	k.t.Helper()
	k.ask(nil, "wait", fmt.Sprintf(`"handles":["turn:%s/%d"]`, bot, turn))
	return k.result(bot, turn)
}

func TestPauseAttribution(t *testing.T) {
	t.Parallel()
	h := newHost(t, pauseScript)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "")
	k.run("Ada", "r", "x")
	for name, row := range map[string]struct {
		members string
		code    protocol.Code
	}{
		"an empty by":                {`"by":""`, protocol.InvalidBy},
		"a by of 129 bytes":          {`"by":"` + strings.Repeat("x", 129) + `"`, protocol.InvalidBy},
		"a reason of 1025 bytes":     {`"reason":"` + strings.Repeat("x", 1025) + `"`, protocol.ReasonLimit},
		"a turn that is not the bot": {`"from":{"bot":"Ada","turn":9}`, protocol.InvalidFrom},
		"a bot that is not there":    {`"from":{"bot":"Bob","turn":1}`, protocol.InvalidFrom},
	} {
		t.Run(name+" is refused and pauses nothing", func(t *testing.T) {
			k.refused(row.code, "pause", row.members)
			var st protocol.Stats
			if k.ask(&st, "stats", ""); st.Paused != nil {
				t.Errorf("it is paused: %+v", st.Paused)
			}
		})
	}
	t.Run("what a client says of itself stands, a person's name as it is", func(t *testing.T) {
		var pause protocol.Pause
		k.ask(&pause, "pause", `"by":"Zoë 🙂","reason":"`+strings.Repeat("x", 1024)+`"`)
		if pause.By != "Zoë 🙂" || pause.ByID != nil || len(*pause.Reason) != 1024 {
			t.Errorf("answer %+v", pause)
		}
	})
}

func TestPauseIsDurable(t *testing.T) {
	t.Parallel()
	h := newHost(t, pauseScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	k.bot("Bob", h.workspace, "")
	k.ask(nil, "pause", `"by":"person","reason":"why"`)
	one := k.submit("Ada", "1", "one", `"delivery":"queue"`)
	two := k.submit("Ada", "2", "two", `"delivery":"queue"`)
	three := k.submit("Bob", "1", "three", `"delivery":"steer"`)
	for _, how := range []struct {
		name string
		end  func()
	}{
		{"an orderly end", func() { p.cmd.Process.Signal(syscall.SIGTERM); p.wait() }},
		{"a kill -9", func() { p.kill() }},
	} {
		t.Run("AP-65 RT-56 it stands after "+how.name+", and nothing that waits has run", func(t *testing.T) {
			how.end()
			p = h.start()
			k = p.dial()
			if r := k.readyLine(); r.Paused == nil || r.Paused.By != "person" || *r.Paused.Reason != "why" {
				t.Errorf("ready says %+v", r.Paused)
			}
			k.refused(protocol.DaemonPaused, "submit", submission("Bob", "9", "x", ""))
			for _, s := range []protocol.Submitted{one, two, three} {
				if o := k.result(s.Bot, s.Turn); o.Finished {
					t.Errorf("turn %d: %+v", s.Turn, o)
				}
			}
		})
	}
	t.Run("AP-65 RT-56 the lift starts each bot's line in order", func(t *testing.T) {
		k.follow("*", 0)
		k.ask(nil, "resume", "")
		for _, s := range []protocol.Submitted{one, two, three} {
			if o := k.outcomeOf(s.Bot, s.Turn); o.Status != "completed" {
				t.Errorf("turn %d: %+v", s.Turn, o)
			}
		}
		seen := kinds(k.notes)
		first, second := slices.Index(seen, fmt.Sprint("turn_finished ", one.Turn)), slices.Index(seen, fmt.Sprint("accepted ", two.Turn))
		if first < 0 || second < first {
			t.Errorf("the order is %v", seen)
		}
	})
}

func TestPauseOverAKill(t *testing.T) {
	t.Parallel()
	for point, number := range map[string]int{
		"job:pause_parked": 1, "job:end_turn": 2, "wrote:process_finish": 1, "job:tell": 1, // the first end is that of the turn that leaves commands
	} {
		t.Run("RT-110 a kill -9 at "+point+" leaves the daemon paused and no turn current", func(t *testing.T) {
			t.Parallel()
			h := newHost(t, pauseScript)
			plan, _ := json.Marshal(faultPlan{Points: []string{point}, Kill: number})
			h.env = []string{planVar + "=" + string(plan)}
			p := h.start()
			k := p.dial()
			for _, name := range []string{"Hold", "Wait", "Left"} {
				k.bot(name, h.workspace, "shell wait")
			}
			k.follow("*", 0)
			k.until("turn_finished", k.submit("Left", "r", "leave", "").Turn)
			back := h.pidIn("back")
			hold := k.submit("Hold", "h", "hold", "")
			wait := k.submit("Wait", "w", fmt.Sprintf("wait turn:Hold/%d", hold.Turn), "")
			k.until("turn_waiting", wait.Turn)
			k.request("pause", `"by":"person"`)
			<-p.exited
			h.env = nil
			k = h.start().dial()
			if r := k.readyLine(); r.Paused == nil || r.Paused.By != "person" {
				t.Errorf("ready says %+v", r.Paused)
			}
			var st protocol.Stats
			if k.ask(&st, "stats", ""); st.ActiveTurns+st.WaitingTurns+st.PacedTurns+st.RunningProcesses != 0 {
				t.Errorf("stats %+v", st)
			}
			k.pausedEnd("Wait", wait.Turn, "person")
			if o := k.result("Hold", hold.Turn); o.Status != "interrupted" {
				t.Errorf("outcome %+v", o)
			}
			var w protocol.Waited
			k.ask(&w, "wait", `"handles":["proc:1"]`)
			if failed := w.Results["proc:1"].Err; failed == nil || failed.Code == protocol.ProcessStopped && !gone(back) {
				t.Errorf("the handle gives %+v", w.Results["proc:1"])
			}
			k.ask(nil, "resume", "")
			if o := k.run("Hold", "n", "hello"); o.Text != "hello" {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestPauseOnAFullDisk(t *testing.T) {
	t.Parallel()
	// stuck has a pause that stands and cannot end the parked turn.
	stuck := func(t *testing.T) (h *host, p *process, k *conn, full string, turn int64, id int) {
		t.Parallel()
		h = newHost(t, pauseScript)
		full = filepath.Join(h.dir, "full")
		plan, _ := json.Marshal(faultPlan{Points: []string{"wrote:pause_parked"}, Full: full})
		h.env = []string{planVar + "=" + string(plan)}
		p = h.start()
		k = p.dial()
		k.bot("Hold", h.workspace, "")
		k.bot("Wait", h.workspace, "wait")
		k.follow("Wait", 0)
		hold := k.submit("Hold", "r", "hold", "")
		turn = k.submit("Wait", "r", fmt.Sprintf("wait turn:Hold/%d", hold.Turn), "").Turn
		k.until("turn_waiting", turn)
		os.WriteFile(full, nil, 0o600)
		id = k.request("pause", `"by":"person"`)
		other := p.dial()
		for st := (protocol.Stats{}); st.Paused == nil || st.ActiveTurns > 0; {
			other.ask(&st, "stats", "")
			if st.WaitingTurns != 1 {
				t.Errorf("stats %+v", st)
			}
		}
		other.refused(protocol.DaemonPaused, "submit", submission("Hold", "n", "x", ""))
		return h, p, k, full, turn, id
	}
	t.Run("RT-109 a parked turn that the store refuses to end is tried again, and the pause answers then", func(t *testing.T) {
		_, _, k, full, turn, id := stuck(t)
		os.Remove(full)
		if l := k.answer(id); !strings.Contains(string(l.raw), `"interrupted_turns":2`) {
			t.Errorf("answer %s", l.raw)
		}
		k.pausedEnd("Wait", turn, "person")
	})
	t.Run("PO-68 a pause that cannot be recorded stops everything all the same, and is recorded when there is room", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, pauseScript)
		full := filepath.Join(h.dir, "full")
		plan, _ := json.Marshal(faultPlan{Points: []string{"wrote:pause", "wrote:end_turn", "wrote:pause_parked"}, Full: full})
		h.env = []string{planVar + "=" + string(plan)}
		daemon := h.start()
		k, k2 := daemon.dial(), daemon.dial()
		k.bot("Hold", h.workspace, "")
		k.bot("Wait", h.workspace, "wait")
		k.follow("Wait", 0)
		hold := k.submit("Hold", "r", "hold", "")
		turn := k.submit("Wait", "r", fmt.Sprintf("wait turn:Hold/%d", hold.Turn), "").Turn
		k.until("turn_waiting", turn)
		os.WriteFile(full, nil, 0o600)
		if l := k2.refused(protocol.StorageError, "pause", `"by":"person"`); !strings.Contains(l.str("detail"), "all is stopped") {
			t.Errorf("detail %s", l.raw)
		}
		k2.refused(protocol.DaemonPaused, "submit", submission("Hold", "n", "x", ""))
		os.Remove(full)
		var p protocol.Pause
		k2.ask(&p, "pause", `"by":"person"`)
		if p.Already || p.By != "person" {
			t.Errorf("%+v", p)
		}
		k.pausedEnd("Wait", turn, "person")
		k2.ask(nil, "resume", "")
		if o := k2.run("Hold", "again", "hello"); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("a pause that is not recorded is lifted like any other", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, pauseScript)
		full := filepath.Join(h.dir, "full")
		plan, _ := json.Marshal(faultPlan{Points: []string{"wrote:pause"}, Full: full})
		h.env = []string{planVar + "=" + string(plan)}
		k := h.start().dial()
		k.bot("Ada", h.workspace, "")
		os.WriteFile(full, nil, 0o600)
		k.refused(protocol.StorageError, "pause", `"by":"person"`)
		var r protocol.Resumed
		k.ask(&r, "resume", "")
		if r.Was == nil || r.Was.By != "person" {
			t.Errorf("%+v", r)
		}
		if o := k.run("Ada", "r", "hello"); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("RT-110 the daemon can be ended meanwhile, and the next one ends that turn", func(t *testing.T) {
		h, p, _, _, turn, _ := stuck(t)
		p.cmd.Process.Signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
		h.env = nil
		k := h.start().dial()
		k.pausedEnd("Wait", turn, "person")
		k.ask(nil, "resume", "")
	})
}

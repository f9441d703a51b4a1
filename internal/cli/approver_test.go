package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"
)

// court is a daemon whose bots are judged, and the approver that does it.
type court struct {
	*ground
	c   *client.Client
	ctx context.Context
}

// newCourt starts a daemon with the models of judge.json: work plans calls, judge
// judges them by the marks they carry.
func newCourt(t *testing.T, env ...string) *court {
	t.Helper()
	models, err := filepath.Abs("testdata/judge.json")
	if err != nil {
		t.Fatal(err)
	}
	g := newGround(t, append([]string{"AGENT_PROVIDER=t=scripted," + models, "AGENT_APPROVER_JUDGE=t/judge", "AGENT_MODEL=t/work"}, env...)...)
	g.must("start")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return &court{ground: g, c: g.client(), ctx: ctx}
}

func (g *court) config(text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.home, ".agent", "config.toml"), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// running is an agent approver under way.
type running struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines chan map[string]any // what it prints, closed at its end
}

// approver starts one and waits until it serves.
func (g *court) approver(args ...string) *running {
	g.t.Helper()
	r := g.start(args...)
	r.until("serving")
	return r
}

func (g *court) start(args ...string) *running {
	g.t.Helper()
	r := &running{t: g.t, cmd: g.command(append([]string{"approver"}, args...)...), lines: make(chan map[string]any, 4096)}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	go r.read(out)
	g.t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
	})
	return r
}

func (r *running) read(out io.Reader) {
	defer close(r.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			r.lines <- line
		}
	}
}

// until is the next line of a kind.
func (r *running) until(event string) map[string]any {
	r.t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case line, more := <-r.lines:
			if !more {
				r.t.Fatalf("the approver ended without a line %s", event)
			}
			if line["event"] == event {
				return line
			}
		case <-late:
			r.t.Fatalf("no line %s came", event)
		}
	}
}

// end stops it by a signal and gives its exit status.
func (r *running) end(signal syscall.Signal) int {
	r.t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		r.t.Fatal(err)
	}
	return r.exited()
}

func (r *running) exited() int {
	for range r.lines {
	}
	r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode()
}

// bot makes one whose calls of these tools the tag auto judges.
func (g *court) bot(name string, expireMS int64, tools ...string) *protocol.Bot {
	g.t.Helper()
	dir := filepath.Join(g.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		g.t.Fatal(err)
	}
	bot, err := g.c.Create(g.ctx, &protocol.Create{
		Bot: name, Model: "t/work", Tools: []string{"shell", "write"}, Workspace: dir,
		Approve: tools, Approver: "auto", ApproveExpireMS: protocol.Set(expireMS),
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return bot
}

func (g *court) submit(r protocol.Submit) *protocol.Submitted {
	g.t.Helper()
	sub, err := g.c.Submit(g.ctx, &r)
	if err != nil {
		g.t.Fatal(err)
	}
	return sub
}

// turn has a bot do something and gives how that ended.
func (g *court) turn(bot, prompt string) *protocol.Outcome {
	g.t.Helper()
	return g.outcome(g.submit(protocol.Submit{Bot: bot, Prompt: prompt}))
}

func (g *court) outcome(sub *protocol.Submitted) *protocol.Outcome {
	g.t.Helper()
	w, err := g.c.Wait(g.ctx, &protocol.Wait{Handles: []string{sub.Handle}})
	if err != nil {
		g.t.Fatal(err)
	}
	return w.Results[sub.Handle].Turn
}

// verdicts are those in a turn's events, as tag, who, decision and reason.
func (g *court) verdicts(bot string, turn int64) (out []string) {
	g.t.Helper()
	for after := int64(0); ; {
		page, err := g.c.Events(g.ctx, bot, after, 256)
		if err != nil {
			g.t.Fatal(err)
		}
		events, err := page.All()
		if err != nil {
			g.t.Fatal(err)
		}
		if len(events) == 0 {
			return out
		}
		for _, e := range events {
			var data struct{ Approvals []protocol.Verdict }
			if e.Turn != turn || json.Unmarshal(e.Data, &data) != nil {
				continue
			}
			for _, v := range data.Approvals {
				by, decision := "nobody", v.Decision
				if v.By != nil {
					by = *v.By
				}
				if e.Kind == protocol.KindToolStarted {
					decision = protocol.Allow
				}
				if e.Kind == protocol.KindToolStarted || decision != protocol.Allow {
					out = append(out, strings.TrimSpace(fmt.Sprint(v.Tag, " ", by, " ", decision, " ", v.Reason)))
				}
			}
		}
		after = page.NextCursor
	}
}

// detail is an outcome's status and why.
func detail(o *protocol.Outcome) string {
	text := o.Status
	if o.Detail != nil {
		text += ": " + *o.Detail
	}
	return text
}

// gate is what a command of a bot waits at, from cat gate until it is opened.
func (g *court) gate(bot string) *os.File {
	g.t.Helper()
	path := filepath.Join(g.dir, bot, "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		g.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // once there is a reader
	if err != nil {
		g.t.Fatal(err)
	}
	return f
}

// judges are the bots under the approver's names.
func (g *court) judges() (names []string) {
	g.t.Helper()
	for bot, err := range g.c.Bots(g.ctx) {
		if err != nil {
			g.t.Fatal(err)
		}
		if strings.HasPrefix(bot.Name, "approver.") {
			names = append(names, bot.Name)
		}
	}
	return names
}

func TestVerdictsOfTheJudge(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	a := g.approver()
	rows := []struct{ name, command, want string }{
		{"AP-45 PO-64 allow and low is allowed, by the approver", "echo yes > ran", "auto approver allow"},
		{"AP-46 allow and critical is denied, whatever the authorization", "touch ran # mark:critical", "auto approver deny judged dangerous: It gives keys away. Do not"},
		{"AP-46 allow and high with low authorization is denied, in one visible line", "touch ran # mark:highlow", "auto approver deny judged dangerous: Nobody asked for it. Do not"},
		{"allow and high with medium authorization is allowed", "touch ran # mark:highmedium", "auto approver allow"},
		{"PO-64 deny is denied", "touch ran # mark:deny", "auto approver deny judged dangerous: It deletes what nobody named. Do not"},
		{"AP-47 unclear is denied as unclear", "touch ran # mark:unclear", "auto approver deny judged unclear: no reason given. Do not"},
		{"AP-48 prose, twice, is a failed check", "touch ran # mark:prose", "auto approver deny not reviewed: the check failed. This is a failure of the check"},
		{"AP-88 a judge that cannot be reached is a failed check, never danger", "touch ran # mark:down", "auto approver deny not reviewed: the check failed. This is a failure of the check"},
	}
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			bot := fmt.Sprint("b", i)
			g.bot(bot, 120_000, "shell")
			o := g.turn(bot, "run "+row.command)
			got := g.verdicts(bot, o.Turn)
			if len(got) != 1 || !strings.HasPrefix(got[0], row.want) {
				t.Errorf("verdicts %q", got)
			}
			_, err := os.Stat(filepath.Join(g.dir, bot, "ran"))
			if allowed := strings.HasSuffix(row.want, "allow"); allowed != (err == nil) {
				t.Errorf("ran: %v", err == nil)
			}
			line := a.until("judged")
			if line["bot"] != bot || line["turn"] != float64(o.Turn) || line["judge_ms"] == nil {
				t.Errorf("line %v", line)
			}
		})
	}
	t.Run("AP-49 a reply without one call's id, or with one twice, denies the whole round", func(t *testing.T) {
		for _, mark := range []string{"missing", "twice"} {
			g.bot(mark, 120_000, "shell")
			o := g.turn(mark, "pair touch ran1 # mark:"+mark+" and touch ran2")
			got := g.verdicts(mark, o.Turn)
			if len(got) < 1 || !strings.HasPrefix(got[0], "auto approver deny not reviewed: the check failed.") {
				t.Errorf("%s: verdicts %q", mark, got)
			}
			if _, err := os.Stat(filepath.Join(g.dir, mark, "ran1")); err == nil {
				t.Errorf("%s: the call that the reply allows ran", mark)
			}
		}
	})
	t.Run("told to stop it ends with 0 and leaves no judge behind", func(t *testing.T) {
		if status := a.end(syscall.SIGTERM); status != 0 {
			t.Errorf("exit %d", status)
		}
		if left := g.judges(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestJudgeDeadline(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	g.config("judge_deadline_ms = 1000\n")
	a := g.approver()
	g.bot("Ada", 120_000, "shell")
	t.Run("AP-50 a judge that never replies: the round is denied at the deadline, long before the gate expires", func(t *testing.T) {
		began := time.Now()
		o := g.turn("Ada", "run touch ran # mark:never")
		got := g.verdicts("Ada", o.Turn)
		if len(got) != 1 || !strings.HasPrefix(got[0], "auto approver deny not reviewed: the check timed out. This is a failure") {
			t.Errorf("verdicts %q", got)
		}
		if took := time.Since(began); took < 900*time.Millisecond || took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
		if line := a.until("judge_failed"); line["bot"] != "Ada" || line["detail"] != "no reply before the deadline" {
			t.Errorf("line %v", line)
		}
	})
	t.Run("a round that is older than the deadline when the tag is taken is denied at once", func(t *testing.T) {
		a.end(syscall.SIGKILL)
		sub := g.submit(protocol.Submit{Bot: "Ada", Prompt: "run touch late"})
		call := g.waits("Ada")
		g.c.Wait(g.ctx, &protocol.Wait{Handles: []string{sub.Handle}, TimeoutMS: protocol.Set(call.AnnouncedMS + 1000 - time.Now().UnixMilli())})
		g.approver()
		g.outcome(sub)
		if got := g.verdicts("Ada", sub.Turn); len(got) != 1 || !strings.HasPrefix(got[0], "auto approver deny not reviewed: the check timed out.") {
			t.Errorf("verdicts %q", got)
		}
	})
}

// waits is the call of a bot that waits, once there is one.
func (g *court) waits(bot string) *protocol.Approval {
	g.t.Helper()
	for g.ctx.Err() == nil {
		for call, err := range g.c.Approvals(g.ctx, client.ApprovalFilter{Bot: bot}) {
			if err != nil {
				g.t.Fatal(err)
			}
			return call
		}
	}
	g.t.Fatalf("no call of %s waits", bot)
	return nil
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	a := g.approver()
	t.Run("AP-52 PO-66 three rounds denied in a row interrupt the turn, which says why", func(t *testing.T) {
		g.bot("Ada", 120_000, "shell")
		o := g.turn("Ada", "again mark:deny")
		got := g.verdicts("Ada", o.Turn)
		if detail(o) != "interrupted: stopped: 3 denials in a row." || len(got) != 3 {
			t.Errorf("%s after %q", detail(o), got)
		}
		if !strings.HasPrefix(got[2], "auto approver deny stopped: 3 denials in a row. judged dangerous: ") || strings.Contains(got[1], "stopped") {
			t.Errorf("verdicts %q", got)
		}
		if line := a.until("breaker"); line["bot"] != "Ada" || line["turn"] != float64(o.Turn) || line["in_row"] != 3.0 || line["recent"] != 3.0 {
			t.Errorf("line %v", line)
		}
	})
	t.Run("AP-55 the next turn starts at zero", func(t *testing.T) {
		if o := g.turn("Ada", "run touch x # mark:deny"); o.Status != protocol.StatusCompleted {
			t.Errorf("%s", detail(o))
		}
	})
	t.Run("AP-52 an allow between resets the row", func(t *testing.T) {
		g.bot("Bob", 120_000, "shell")
		o := g.turn("Bob", "again all but the third")
		if got := g.verdicts("Bob", o.Turn); len(got) != 6 || detail(o) != "interrupted: stopped: 3 denials in a row." {
			t.Errorf("%s after %q", detail(o), got)
		}
	})
	t.Run("AP-53 PO-66 with every fourth denied, the tenth denial interrupts and the ninth does not", func(t *testing.T) {
		g.bot("Cleo", 120_000, "shell")
		o := g.turn("Cleo", "again one in four")
		got := g.verdicts("Cleo", o.Turn)
		if detail(o) != "interrupted: stopped: 10 of the last 50 denied." || len(got) != 40 {
			t.Errorf("%s after %d: %q", detail(o), len(got), got)
		}
		if last := got[len(got)-1]; !strings.HasPrefix(last, "auto approver deny stopped: 10 of the last 50 denied. judged") {
			t.Errorf("last %q", last)
		}
	})
	t.Run("AP-88 denials that nobody judged stop it too, and the outage is named as one", func(t *testing.T) {
		g.bot("Dan", 120_000, "shell")
		o := g.turn("Dan", "again mark:down")
		got := g.verdicts("Dan", o.Turn)
		if detail(o) != "interrupted: stopped: judge unavailable, 3 denials in a row." || len(got) != 3 || !strings.HasPrefix(got[2], "auto approver deny stopped: judge unavailable, 3 denials in a row. not reviewed: the check failed.") {
			t.Errorf("%s after %q", detail(o), got)
		}
	})
	t.Run("AP-94 the turns that the bot queued for itself end too, and the person's runs", func(t *testing.T) {
		bot := g.bot("Eve", 120_000, "shell")
		first := g.submit(protocol.Submit{Bot: "Eve", Prompt: "run cat gate"})
		gate := g.gate("Eve")
		from := &protocol.From{Bot: "Eve", BotID: bot.ID, Turn: first.Turn}
		tripping := g.submit(protocol.Submit{Bot: "Eve", Prompt: "again mark:deny", Delivery: protocol.Queue})
		var own []*protocol.Submitted
		for range 3 {
			own = append(own, g.submit(protocol.Submit{Bot: "Eve", Prompt: "run touch own", Delivery: protocol.Queue, From: from}))
		}
		persons := g.submit(protocol.Submit{Bot: "Eve", Prompt: "run touch persons", Delivery: protocol.Queue})
		gate.Close()
		if o := g.outcome(tripping); detail(o) != "interrupted: stopped: 3 denials in a row." {
			t.Errorf("the turn: %s", detail(o))
		}
		for _, sub := range own {
			if o := g.outcome(sub); detail(o) != "interrupted: stopped: 3 denials in a row." {
				t.Errorf("its own: %s", detail(o))
			}
		}
		if o := g.outcome(persons); o.Status != protocol.StatusCompleted {
			t.Errorf("the person's: %s", detail(o))
		}
		if _, err := os.Stat(filepath.Join(g.dir, "Eve", "own")); err == nil {
			t.Error("what it queued for itself ran")
		}
	})
}

func TestApproverComesBack(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	t.Run("AP-54 an approver that was started anew sees its predecessor's counts", func(t *testing.T) {
		first := g.approver()
		g.bot("Ada", 120_000, "write")
		sub := g.submit(protocol.Submit{Bot: "Ada", Prompt: "two, then one"})
		gate := g.gate("Ada")
		first.end(syscall.SIGKILL)
		g.approver().leave(t)
		gate.Close()
		o := g.outcome(sub)
		if got := g.verdicts("Ada", sub.Turn); detail(o) != "interrupted: stopped: 3 denials in a row." || len(got) != 3 {
			t.Errorf("%s after %q", detail(o), got)
		}
	})
}

func TestWhatAnApproverLeaves(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	first := g.approver()
	g.bot("Ada", 120_000, "write")
	g.outcome(g.submit(protocol.Submit{Bot: "Ada", Prompt: "two, then one"}))
	first.end(syscall.SIGKILL)
	left := g.base()
	t.Run("the next one sweeps up what a killed one left, and no bot of the person's", func(t *testing.T) {
		for _, own := range []string{"approver.auto.mine", "approver.other.0123456789abcdef", "approver"} {
			if _, err := g.c.Create(g.ctx, &protocol.Create{Bot: own, Model: "t/work", Workspace: g.dir}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.c.Create(g.ctx, &protocol.Create{Bot: "approver.auto.fedcba9876543210", Model: "t/work", Workspace: g.dir, Tools: []string{"shell"}}); err != nil {
			t.Fatal(err)
		}
		g.approver().leave(t)
		for {
			if _, err := g.c.Inspect(g.ctx, left); errors.Is(err, protocol.BotNotFound) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if names := g.judges(); len(names) != 3 { // those that begin like one
			t.Errorf("there are %v", names)
		}
	})
}

// leave stops an approver when the test has ended.
func (r *running) leave(t *testing.T) { t.Cleanup(func() { r.end(syscall.SIGTERM) }) }

func TestApproverAsCompanion(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	path, err := exec.LookPath("agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("AP-51 a killed companion is started again; meanwhile calls expire and the turn goes on; the round it meets then is stopped as an outage", func(t *testing.T) {
		g.bot("Ada", 300, "write")
		sub := g.submit(protocol.Submit{Bot: "Ada", Prompt: "three, then one"})
		gate := g.gate("Ada") // the three have expired, and it went on
		if _, err := g.c.SetCompanions(g.ctx, []protocol.CompanionSpec{{Name: "approver", Command: []string{path, "approver"}}}); err != nil {
			t.Fatal(err)
		}
		g.served()
		pid := g.companion()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for next := pid; next == pid || next == 0; {
			next = g.companion()
		}
		g.served()
		gate.Close()
		o := g.outcome(sub)
		got := g.verdicts("Ada", sub.Turn)
		if detail(o) != "interrupted: stopped: judge unavailable, 3 denials in a row." || len(got) != 4 {
			t.Errorf("%s after %q", detail(o), got)
		}
		if got[3] != "auto approver deny stopped: judge unavailable, 3 denials in a row." || !strings.Contains(got[0], "auto nobody") {
			t.Errorf("verdicts %q", got)
		}
	})
}

// served waits until the tag is.
func (g *court) served() {
	g.t.Helper()
	for g.ctx.Err() == nil {
		stats, err := g.c.Stats(g.ctx)
		if err != nil {
			g.t.Fatal(err)
		}
		if len(stats.Approvers) > 0 {
			return
		}
	}
	g.t.Fatal("the tag is not served")
}

// companion is the process id of the one companion, 0 between two of them.
func (g *court) companion() int {
	g.t.Helper()
	all, err := g.c.Companions(g.ctx)
	if err != nil {
		g.t.Fatal(err)
	}
	if len(all) != 1 || all[0].PID == nil {
		return 0
	}
	return int(*all[0].PID)
}

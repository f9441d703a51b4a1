package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/client"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// last is the newest result of a call that a bot was given.
func (n *turn) results() (results []string) {
	n.t.Helper()
	for e, err := range n.c.Follow(n.ctx, n.bot, client.FollowOptions{Turn: n.Turn, UntilLive: true}) {
		if err != nil {
			n.t.Fatal(err)
		}
		if e.Turn == n.Turn && (e.Kind == protocol.KindToolCompleted || e.Kind == protocol.KindToolStarted) {
			results = append(results, string(e.Data))
		}
	}
	return results
}

// overturn overturns the newest denial of a bot's turn.
func (d *desk) overturn(n *turn, call, step string, request int64) {
	d.t.Helper()
	_, err := d.c.Answer(d.ctx, &protocol.Answer{
		Bot: n.bot, Turn: n.Turn, CallID: call, Request: request, Step: step, Decision: protocol.Allow, Overturn: true, By: "you",
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// asked is the announcement of the turn's only call or step that waited.
func (n *turn) asked() (call protocol.RequestedCall) {
	n.t.Helper()
	for e, err := range n.c.Follow(n.ctx, n.bot, client.FollowOptions{Turn: n.Turn, UntilLive: true}) {
		if err != nil {
			n.t.Fatal(err)
		}
		var d protocol.ApprovalRequested
		if e.Turn == n.Turn && e.Kind == protocol.KindApprovalRequested && e.Decode(&d) == nil && len(d.Calls) == 1 {
			call = d.Calls[0]
		}
	}
	return call
}

func settings(more string) sonnytest.Option {
	return sonnytest.Config("model = \"scripted/sonny\"\ntrust_folders = \"always\"\n" + more)
}

func TestTheApprover(t *testing.T) {
	t.Parallel()
	t.Run("PO-64 a new lead's calls are judged by the model of the settings", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		d.lead(d.Repo("demo", nil), lead.Auto)
		n := d.say("demo.lead", "esc: touch ~/outside")
		n.says()
		if got := strings.Join(n.results(), "\n"); !there(d.Path("outside")) || !strings.Contains(got, `"tag":"auto","by":"approver"`) {
			t.Error(got)
		}
	})
	t.Run("PO-64 what the judge calls unclear is denied", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, sonnytest.Judge("unclear"))
		d.lead(d.Repo("demo", nil), lead.Auto)
		if said := d.say("demo.lead", "esc: touch ~/outside").says(); there(d.Path("outside")) || !strings.Contains(said, "approval_denied") {
			t.Error(said)
		}
	})
	t.Run("SO-21 a denial that the person overturns runs once", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, sonnytest.Judge("deny"))
		d.lead(d.Repo("demo", nil), lead.Auto)
		n := d.say("demo.lead", "esc: touch ~/o")
		if said := n.says(); !strings.Contains(said, "The script denies it.") || there(d.Path("o")) {
			t.Error(said)
		}
		asked := n.asked()
		d.overturn(n, asked.CallID, "", asked.Request)
		n = d.say("demo.lead", "esc: touch ~/o")
		n.says()
		if got := strings.Join(n.results(), "\n"); !there(d.Path("o")) || !strings.Contains(got, `"overturned_by":"you"`) {
			t.Error(got)
		}
		if said := d.say("demo.lead", "esc: touch ~/o").says(); !strings.Contains(said, "approval_denied") {
			t.Error(said)
		}
	})
	t.Run("SO-26 three denials in a row interrupt the turn", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, sonnytest.Judge("deny"))
		d.lead(d.Repo("demo", nil), lead.Auto)
		n := d.say("demo.lead", "esc3: true")
		o := n.outcome()
		if detail, _ := deref(o.Detail).(string); o.Status != protocol.StatusInterrupted || detail != "stopped: 3 denials in a row." {
			t.Errorf("%s: %v", o.Status, deref(o.Detail))
		}
		if got := strings.Join(n.results(), "\n"); strings.Count(got, "The script denies it.") != 3 {
			t.Error(got)
		}
	})
	t.Run("SO-22 without an approver a call expires, and the turn goes on", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		d.companions("toolhost")
		d.lead(d.Repo("demo", nil), lead.Auto)
		d.expire("demo.lead", 3000)
		if said := d.say("demo.lead", "esc: true").says(); !strings.Contains(said, "approval_expired") {
			t.Error(said)
		}
	})
	t.Run("SO-131 three expiries that nobody served end the turn", func(t *testing.T) {
		t.Parallel()
		one := `{"command": "true", "sandbox_permissions": "require_escalated", "justification": "asked"}`
		d := newDesk(t, scripted(t, calls("four", "shell", one, "shell", one, "shell", one, "shell", one)))
		d.companions("toolhost")
		d.lead(d.Repo("demo", nil), lead.Auto)
		d.expire("demo.lead", 1000)
		n := d.say("demo.lead", "four")
		o := n.outcome()
		if o.Status != protocol.StatusInterrupted || deref(o.Error) != protocol.ApprovalsUnserved {
			t.Errorf("%s: %v", o.Status, deref(o.Error))
		}
		if got := strings.Count(strings.Join(n.results(), "\n"), `"expired":true`); got != 3 {
			t.Errorf("%d calls expired", got)
		}
		if said := d.say("demo.lead", "say: on").says(); said != "on" {
			t.Error(said)
		}
	})
	t.Run("SO-117 a judge that does not answer has reviewed nothing", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, settings("judge_model = \"scripted/judge-silent\"\njudge_deadline_ms = 2000\n"))
		d.lead(d.Repo("demo", nil), lead.Auto)
		if said := d.say("demo.lead", "esc: true").says(); !strings.Contains(said, "not reviewed") {
			t.Error(said)
		}
	})
	t.Run("SO-132 three of those end the turn as an outage", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, settings("judge_model = \"scripted/judge-silent\"\njudge_deadline_ms = 2000\n"))
		d.lead(d.Repo("demo", nil), lead.Auto)
		o := d.say("demo.lead", "esc3: true").outcome()
		if detail, _ := deref(o.Detail).(string); o.Status != protocol.StatusInterrupted || !strings.HasPrefix(detail, "stopped: judge unavailable") {
			t.Errorf("%s: %v", o.Status, deref(o.Detail))
		}
	})
	t.Run("a judge that is changed in the settings judges what comes then", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, sonnytest.Judge("deny"))
		d.lead(d.Repo("demo", nil), lead.Auto)
		if said := d.say("demo.lead", "esc: touch ~/o").says(); !strings.Contains(said, "approval_denied") {
			t.Error(said)
		}
		if r := d.Sonny("config", "set", "judge_model", "scripted/judge-allow"); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
		d.Until("the approver serves anew", func() bool { return strings.Count(d.log("approver"), `"serving"`) == 2 })
		d.say("demo.lead", "esc: touch ~/o").says()
		if !there(d.Path("o")) {
			t.Error("the old judge judges")
		}
	})
	t.Run("settings that cannot be used serve nobody, until they can", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, sonnytest.Config("row = \"maybe\"\njudge_model = \"scripted/judge-allow\"\n"))
		d.Until("the fault is said", func() bool { return strings.Contains(d.log("approver"), "config_invalid") })
		stats, err := d.c.Stats(d.ctx)
		if err != nil || len(stats.Approvers) != 0 {
			t.Errorf("%v, %v", stats.Approvers, err)
		}
		if err := os.WriteFile(d.Path(".agent", "config.toml"), []byte("judge_model = \"scripted/judge-allow\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		d.Until("the tag is served", func() bool {
			stats, err := d.c.Stats(d.ctx)
			return err == nil && len(stats.Approvers) == 1
		})
	})
}

// expire sets how long the calls of a bot wait.
func (d *desk) expire(bot string, ms int64) {
	d.t.Helper()
	b, err := d.c.Inspect(d.ctx, bot)
	if err != nil {
		d.t.Fatal(err)
	}
	b.Gates[0].ExpireMS = &ms
	if _, err := d.c.Configure(d.ctx, &protocol.Configure{Bot: bot, Gates: protocol.Set(b.Gates)}); err != nil {
		d.t.Fatal(err)
	}
}

func TestAStepThatIsOverturned(t *testing.T) {
	t.Parallel()
	t.Run("CO-125 it runs once without a verdict, after a restart of the host too", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, sonnytest.Judge("deny"))
		dir := d.Repo("demo", nil)
		d.lead(dir, lead.Auto)
		n := d.say("demo.lead", "task: build | say: hi")
		if code, detail := n.failure(); code != "approval_denied" || !strings.Contains(detail, "The script denies it.") {
			t.Fatalf("%s: %s", code, detail)
		}
		asked := n.asked()
		d.overturn(n, asked.CallID, asked.Step, asked.Request)
		d.kill("toolhost")
		n = d.say("demo.lead", "task: build | say: hi")
		var got lead.TaskStarted
		n.answers(&got)
		completed := false
		for e, err := range n.c.Follow(n.ctx, n.bot, client.FollowOptions{Turn: n.Turn, UntilLive: true}) {
			if err != nil {
				t.Fatal(err)
			}
			completed = completed || e.Kind == protocol.KindStepCompleted && strings.Contains(string(e.Data), `"ok":true`)
		}
		if !completed {
			t.Error("no step_completed")
		}
		(&turn{d, protocol.Submitted{Turn: got.Turn}, got.Bot}).says()
		if _, err := d.c.Delete(d.ctx, got.Bot); err != nil {
			t.Fatal(err)
		}
		d.Git(dir, "worktree", "remove", "--force", got.Workspace)
		d.Git(dir, "update-ref", "-d", "refs/heads/"+got.Branch)
		if code, _ := d.say("demo.lead", "task: build | say: hi").failure(); code != "approval_denied" {
			t.Errorf("asked once more: %s", code)
		}
		if there(filepath.Join(d.Path(".agent", "worktrees", "demo"), "build")) {
			t.Error("it was started")
		}
	})
}

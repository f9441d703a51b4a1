package screen_test

import (
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// judge is a fresh home's config with one of the scripted judges.
func judge(name, more string) sonnytest.Option {
	return sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-" + name + "\"\ntrust_folders = \"always\"\n" + more)
}

// judged opens Sonny in a folder, and waits until its approver serves the daemon.
func judged(t *testing.T, h *sonnytest.Home, dir string) *sonnytest.Screen {
	t.Helper()
	s := open(h, dir)
	s.WaitFor("demo.lead")
	served(t, h)
	return s
}

// served waits until an approver serves the daemon.
func served(t *testing.T, h *sonnytest.Home) {
	t.Helper()
	d := daemonOf(t, h)
	h.Until("an approver", func() bool {
		stats, err := d.Stats(d.ctx)
		return err == nil && slices.Contains(stats.Approvers, "auto")
	})
}

// companions sets the daemon's list of them.
func companions(t *testing.T, h *sonnytest.Home, list string) {
	t.Helper()
	if ran := h.Feed(list, "agent", "companions", "--set", "-"); ran.Exit != 0 {
		t.Fatalf("companions: %s", ran.Stderr)
	}
}

// unjudged opens a lead in row auto whose gate expires soon and whose approver was taken
// away.
func unjudged(t *testing.T, h *sonnytest.Home, dir string, expireMS int64) *sonnytest.Screen {
	t.Helper()
	s := open(h, dir)
	s.WaitFor("demo.lead")
	send(s, "say: hi")
	s.WaitFor("✔ done")
	companions(t, h, "[]")
	d := daemonOf(t, h)
	h.Until("no approver", func() bool {
		stats, err := d.Stats(d.ctx)
		return err == nil && len(stats.Approvers) == 0
	})
	gates := d.bot("demo.lead").Gates
	gates[0].ExpireMS = &expireMS
	if _, err := d.Configure(d.ctx, &protocol.Configure{Bot: "demo.lead", Gates: protocol.Set(gates)}); err != nil {
		t.Fatal(err)
	}
	return s
}

func never(t *testing.T, s screen, words string) {
	t.Helper()
	if screen := s.Capture(); strings.Contains(screen, words) {
		t.Errorf("the screen says %q:\n%s", words, screen)
	}
}

func TestTheAutomaticRow(t *testing.T) {
	t.Parallel()

	t.Run("SO-21 F18 a denial of the judge's is overturned once, for the very same call", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, judge("deny", ""))
		s := judged(t, h, dir)
		file := h.Path("o")
		send(s, "esc: touch "+file)
		wants(t, s, "denied by judge", "The script denies it.", "done")
		if exists(file) {
			t.Fatal("it ran")
		}
		toPanel(s)
		wants(t, s, "demo.lead was denied", "1  allow this call once", "2  switch to manual", "3  add a rule for")
		s.Keys("1")
		s.WaitFor("You may now run: touch " + file)
		s.Until("its reply", func(screen string) bool {
			return strings.Count(screen, "approval_denied") > 1 && strings.Contains(screen, "✔ done")
		})
		send(s, "esc: touch "+file)
		s.WaitFor("allowed by you")
		h.Until("the file", func() bool { return exists(file) })
		s.Until("rest", func(screen string) bool { return strings.Contains(screen, "✔ done") })
		send(s, "esc: touch "+file)
		d := daemonOf(t, h)
		s.Until("the third call's denial", func(screen string) bool {
			after := screen[strings.LastIndex(screen, "› esc:")+1:]
			return strings.Contains(after, "denied by judge")
		})
		if o := d.outcome("demo.lead"); o.Status == "" {
			t.Errorf("%+v", o)
		}
	})

	t.Run("the approver is back, and the footer says no more that it is down", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("demo.lead")
		served(t, h)
		d := daemonOf(t, h)
		list, err := d.Companions(d.ctx)
		if err != nil {
			t.Fatal(err)
		}
		companions(t, h, "[]")
		h.Until("no approver", func() bool {
			stats, err := d.Stats(d.ctx)
			return err == nil && len(stats.Approvers) == 0
		})
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("approver down")
		var specs []protocol.CompanionSpec
		for _, c := range list {
			specs = append(specs, protocol.CompanionSpec{Name: c.Name, Command: c.Command})
		}
		if _, err := d.SetCompanions(d.ctx, specs); err != nil {
			t.Fatal(err)
		}
		served(t, h)
		h.Write("demo/release", "")
		s.WaitFor("✔ done")
		s.Until("no word of it", func(screen string) bool { return !strings.Contains(screen, "approver down") })
	})

	t.Run("SO-22 a call that nobody judged expires, and the turn goes on", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := unjudged(t, h, dir, 3000)
		send(s, "esc: true")
		wants(t, s, "judging ", "approver down")
		wants(t, s, "expired, not run", "✔ done")
		if ran := h.Agent("history", "--bot", "demo.lead"); !strings.Contains(ran.Stdout, "approval_expired") {
			t.Error(ran.Stdout)
		}
		if reply := lastReply(t, h.Agent("history", "--bot", "demo.lead").Stdout); !strings.Contains(reply, "approval_expired") {
			t.Errorf("the reply is %q", reply)
		}
		if o := daemonOf(t, h).outcome("demo.lead"); o.Status != protocol.StatusCompleted {
			t.Errorf("%+v", o)
		}
	})

	t.Run("SO-26 three denials stop the turn, the reason and the ways on are shown, and one notification is sent", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, judge("deny", "[notifications]\nroute = \"osc9\"\n"))
		s := judged(t, h, dir)
		s.Focus(false)
		send(s, "esc3: true")
		wants(t, s, "stopped: 3 denials in a row", "1  switch to manual", "2  continue")
		if o := daemonOf(t, h).outcome("demo.lead"); o.Status != protocol.StatusInterrupted {
			t.Errorf("%+v", o)
		}
		s.WaitRaw(0, "\x1b]9;sonny: demo.lead: demo.lead was stopped by its approver")
		if n := strings.Count(string(s.Raw()), "\x1b]9;sonny"); n != 1 {
			t.Errorf("%d notifications", n)
		}
		toPanel(s)
		s.Keys("1")
		s.WaitFor("manual · workspace-write")
		send(s, "esc: true")
		s.WaitFor("allow once")
	})

	t.Run("SO-117 a check that failed is no verdict, and two in a row offer manual", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, judge("silent", "judge_deadline_ms = 2000\n"))
		s := judged(t, h, dir)
		send(s, "esc: true")
		wants(t, s, "judging ", "not reviewed, not run", "✔ done")
		never(t, s, "switch to manual")
		send(s, "esc: true")
		wants(t, s, "the approver does not answer", "switch to manual", "its log:")
		never(t, s, "denied by judge")
	})

	t.Run("SO-131 three expiries while nobody serves the gate end the turn as an outage", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("[notifications]\nroute = \"osc9\"\n"), sonnytest.OwnScript(fourCalls()))
		s := unjudged(t, h, dir, 1000)
		s.Focus(false)
		send(s, "esc4: true")
		wants(t, s, "stopped: the approver does not answer")
		s.Until("three expired calls", func(screen string) bool { return strings.Count(screen, "expired, not run") == 3 })
		never(t, s, "denied by judge")
		s.WaitRaw(0, "\x1b]9;sonny: demo.lead: demo.lead was stopped by its approver")
		s.Keys("M-a")
		takesKeys(s)
		s.Keys("Escape")
		s.WaitGone("switch to manual")
		send(s, "say: next")
		s.Until("the next turn", func(screen string) bool {
			return strings.Count(headless(screen), "next") > 1 && strings.Contains(screen, "✔ done")
		})
	})

	t.Run("SO-132 a judge that fails three times ends the turn as an outage", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, judge("silent", "judge_deadline_ms = 2000\n"), sonnytest.OwnScript(fourCalls()))
		s := judged(t, h, dir)
		send(s, "esc4: true") // the fourth waits while the approver ends the turn
		wants(t, s, "stopped: the approver does not answer")
		never(t, s, "denied by judge")
		o := daemonOf(t, h).outcome("demo.lead")
		if o.Status != protocol.StatusInterrupted || o.Detail == nil || !strings.HasPrefix(*o.Detail, "stopped: judge unavailable") {
			t.Errorf("%+v", o)
		}
	})
}

// fourCalls is the script with a prompt more, at which the model makes four calls,
// whatever comes of them, and says much, slowly: on a busy machine the fourth may be denied
// before the turn is ended.
func fourCalls() string {
	call := `{"calls": [{"tool": "shell", "arguments": {"command": "${1}", "sandbox_permissions": "require_escalated", "justification": "The person asked for this command."}}]}, `
	entry := `{"match": {"regex": "^esc4: (.+)$"}, "repeat_last": true, "steps": [` + strings.Repeat(call, 4) +
		`{"text": "` + strings.Repeat("on and ", 500) + `on", "pace_ms": 20}]},`
	return strings.Replace(sonnytest.Script, `"scripts": [`, `"scripts": [`+entry, 1)
}

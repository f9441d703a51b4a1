package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/protocol"
)

// record is a bot as it stands.
func (g *court) record(name string) *protocol.Bot {
	g.t.Helper()
	bot, err := g.c.Inspect(g.ctx, name)
	if err != nil {
		g.t.Fatal(err)
	}
	return bot
}

func TestApprovalAuto(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	t.Run("AP-86 CL-85 run makes a gate that expires after two minutes, and starts an approver", func(t *testing.T) {
		g.must("run", "--new", "--bot", "Ada", "--workspace", g.dir, "--approval", "auto", "run echo yes > ran")
		bot := g.record("Ada")
		if len(bot.Gates) != 1 || bot.Gates[0].Tag != "auto" || bot.Gates[0].ExpireMS == nil || *bot.Gates[0].ExpireMS != 120_000 {
			t.Errorf("gates %+v", bot.Gates)
		}
		if text, err := os.ReadFile(filepath.Join(g.dir, "ran")); err != nil || string(text) != "yes\n" {
			t.Errorf("%q %v", text, err)
		}
		if got := g.verdicts("Ada", 1); len(got) != 1 || got[0] != "auto approver allow" {
			t.Errorf("verdicts %q", got)
		}
		log := filepath.Join(g.home, ".agent", "state.sqlite.companions", "approver.log")
		if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	})
	t.Run("an approver that serves already counts, and no second is started", func(t *testing.T) {
		g.must("run", "--new", "--bot", "Bob", "--workspace", g.dir, "--approval", "auto", "hello")
		g.must("fork", "--source", "Ada", "--bot", "Ann")
		if gates := g.record("Ann").Gates; len(gates) != 1 || gates[0].Tag != "auto" {
			t.Errorf("gates %+v", gates)
		}
		if n := len(g.pids()); n != 1 {
			t.Errorf("%d approvers", n)
		}
	})
	t.Run("going on with such a bot, and forking it, start one again", func(t *testing.T) {
		for _, line := range [][]string{{"run", "--bot", "Ada", "hello"}, {"fork", "--source", "Ada", "--bot", "Amy"}} {
			before := len(g.pids())
			g.stopApprover()
			g.must(line...)
			if n := len(g.pids()); n != before+1 {
				t.Errorf("%v: %d approvers came", line, n-before)
			}
		}
	})
	t.Run("CL-65 inside a bot's shell none is started, and approver is refused", func(t *testing.T) {
		g.stopApprover()
		before := len(g.pids())
		inside := g.command("run", "--detach", "--bot", "Ada", "hello")
		inside.Env = append(inside.Env, "AGENT_SHELL_CONTEXT=1")
		if r := finish(t, inside); r.status != 0 {
			t.Fatalf("exit %d: %s", r.status, r.stderr)
		}
		if n := len(g.pids()); n != before {
			t.Errorf("%d approvers came", n-before)
		}
		inside = g.command("approver")
		inside.Env = append(inside.Env, "AGENT_BOT=Ada")
		if r := finish(t, inside); r.status != 1 || r.code() != "inside_a_bot" {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
	})
	t.Run("when the daemon goes the approver goes, and says so", func(t *testing.T) {
		a := g.approver()
		g.must("shutdown")
		a.until("daemon_gone")
		if status := a.exited(); status != 1 {
			t.Errorf("exit %d", status)
		}
	})
}

// pids are those of the approvers that have begun to serve, by their log.
func (g *court) pids() (pids []int) {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.home, ".agent", "state.sqlite.companions", "approver.log"))
	if err != nil {
		g.t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		var l struct {
			Event string
			PID   int
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Event == "serving" {
			pids = append(pids, l.PID)
		}
	}
	return pids
}

// stopApprover ends the one that a command started, and waits until the tag is
// free.
func (g *court) stopApprover() {
	g.t.Helper()
	pids := g.pids()
	if err := syscall.Kill(pids[len(pids)-1], syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	for g.ctx.Err() == nil {
		stats, err := g.c.Stats(g.ctx)
		if err != nil {
			g.t.Fatal(err)
		}
		if len(stats.Approvers) == 0 {
			return
		}
	}
}

func TestNoApprover(t *testing.T) {
	t.Parallel()
	g := newCourt(t, "AGENT_APPROVER_JUDGE=nobody/m")
	t.Run("AP-44 when no approver can be started, auto fails and makes no bot", func(t *testing.T) {
		r := g.run("run", "--new", "--bot", "Ada", "--workspace", g.dir, "--approval", "auto", "hello")
		if r.status != 1 || r.code() != "approver_unavailable" || !strings.Contains(r.stderr, "provider_unavailable") {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
		g.bot("Bob", 120_000, "shell")
		if r := g.run("fork", "--source", "Bob", "--bot", "Ben"); r.code() != "approver_unavailable" {
			t.Errorf("fork: %s", r.stderr)
		}
		if r := g.run("run", "--bot", "Bob", "hello"); r.code() != "approver_unavailable" {
			t.Errorf("run: %s", r.stderr)
		}
		for bot, err := range g.c.Bots(g.ctx) {
			if err != nil || bot.Name != "Bob" {
				t.Errorf("%v %v", bot, err)
			}
		}
		if head := g.record("Bob").Head; head != nil {
			t.Error("the prompt was sent")
		}
	})
	t.Run("an expiry that the judge's deadline does not leave is refused", func(t *testing.T) {
		for config, want := range map[string]string{"": "45000", "judge_deadline_ms = 90000\n": "105000"} {
			g.config(config)
			r := g.run("run", "--new", "--bot", "Ada", "--workspace", g.dir, "--approval", "auto", "--approve-expire-ms", "44999", "hello")
			if r.code() != "invalid_approve_expiry" || !strings.Contains(r.stderr, want) {
				t.Errorf("%q: %s", config, r.stderr)
			}
		}
	})
}

func TestApproverSettings(t *testing.T) {
	t.Parallel()
	g := newCourt(t)
	note := filepath.Join(g.dir, "note")
	if err := os.WriteFile(note, []byte(strings.Repeat("n", 8193)), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name, config string
		args         []string
		code         string
	}{
		{name: "a judge_ key that is none", config: "judge_modell = \"t/judge\"\n", code: "config_invalid"},
		{name: "judge_model of another kind", config: "judge_model = 3\n", code: "config_invalid"},
		{name: "judge_model that is no model", config: "judge_model = \"judge\"\n", code: "config_invalid"},
		{name: "judge_note of another kind", config: "judge_note = true\n", code: "config_invalid"},
		{name: "judge_note of no fixed place", config: "judge_note = \"note\"\n", code: "config_invalid"},
		{name: "judge_deadline_ms past its most", config: "judge_deadline_ms = 90001\n", code: "config_invalid"},
		{name: "judge_deadline_ms as a text", config: "judge_deadline_ms = \"30000\"\n", code: "config_invalid"},
		{name: "a judge of a provider that the daemon has not", args: []string{"--judge", "nobody/m"}, code: "provider_unavailable"},
		{name: "a judge that is no model", args: []string{"--judge", "m"}, code: "invalid_model"},
		{name: "a tag that leaves no room for the judges' names", args: []string{"--tag", strings.Repeat("a", 100)}, code: "invalid_approver"},
		{name: "a note that is too long", args: []string{"--note", note}, code: "config_invalid"},
		{name: "a note that is a folder", args: []string{"--note", g.dir}, code: "config_invalid"},
		{name: "a note that is not there", args: []string{"--note", note + "x"}, code: "file_error"},
	}
	for _, row := range rows {
		t.Run(row.name+" ends it with 2", func(t *testing.T) {
			g.config(row.config)
			if r := g.run(append([]string{"approver"}, row.args...)...); r.status != 2 || r.code() != row.code {
				t.Errorf("exit %d: %s", r.status, r.stderr)
			}
		})
	}
	t.Run("config.toml names the judge where the line and the environment do not", func(t *testing.T) {
		g.config("judge_model = \"nobody/m\"\n")
		if r := g.run("approver", "--judge", "t/judge", "--tag", "a b"); r.status != 2 || r.code() != "invalid_approver" {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
		cmd := g.command("approver")
		cmd.Env = append(cmd.Env, "AGENT_APPROVER_JUDGE=")
		if r := finish(t, cmd); r.status != 2 || r.code() != "provider_unavailable" {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
	})
	t.Run("another holder's tag is not taken", func(t *testing.T) {
		g.config("")
		g.approver().leave(t)
		if r := g.run("approver"); r.status != 1 || r.code() != "approvals_served" {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
		if names := g.judges(); len(names) != 0 {
			t.Errorf("judges that have judged nothing are left: %v", names)
		}
	})
}

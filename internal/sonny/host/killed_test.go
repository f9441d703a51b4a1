package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"agent/client"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// longSetup tells by files how far it is, and goes on when the test says so. It has a
// child of its own.
const longSetup = `echo began
sleep 1000 &
echo $! > "$AGENT_SOURCE/../child"
echo $$ > "$AGENT_SOURCE/../setup-pid"
until [ -e "$AGENT_SOURCE/../go" ]; do sleep 0.02; done
`

// pid reads a process's number that a script has written.
func (d *desk) pid(name string) int {
	d.t.Helper()
	n := 0
	d.Until("the file "+name, func() bool {
		text, err := os.ReadFile(d.Path(name))
		if err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	return n
}

// marker is what is kept of the start under way.
func (d *desk) marker() string {
	paths, _ := filepath.Glob(filepath.Join(d.sonny(), "starting", "*.json"))
	if len(paths) != 1 {
		return ""
	}
	text, _ := os.ReadFile(paths[0])
	return string(text)
}

// gone waits for a process's end.
func (d *desk) gone(pid int) {
	d.t.Helper()
	d.Until("the end of process "+strconv.Itoa(pid), func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil && syscall.Kill(pid, 0) == syscall.ESRCH || err == nil && strings.Contains(string(stat), ") Z ")
	})
}

func TestTheHostIsKilled(t *testing.T) {
	t.Parallel()
	t.Run("CO-115 while a step waits: it is asked anew, and runs once", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", map[string]string{".agents/setup": "echo x >> \"$AGENT_SOURCE/../runs\"\n"})
		d.lead(dir, lead.Manual)
		n := d.say("demo.lead", "task: build | say: done")
		first := d.waiting("demo.lead")
		d.Until("the turn is parked", func() bool {
			b, err := d.c.Inspect(d.ctx, "demo.lead")
			return err == nil && b.Status == protocol.StatusWaiting
		})
		d.KillDaemon()
		d.must("start")
		var again *protocol.Approval
		d.Until("another step", func() bool {
			again = d.waiting("demo.lead")
			return again.Step != first.Step
		})
		if string(again.Arguments) != string(first.Arguments) {
			t.Errorf("the same action is shown differently:\n%s\n%s", first.Arguments, again.Arguments)
		}
		d.answer(again, protocol.Allow, "")
		var got lead.TaskStarted
		n.answers(&got)
		if runs := d.Run("cat", d.Path("runs")).Stdout; runs != "x\n" {
			t.Errorf("it ran: %q", runs)
		}
	})

	t.Run("while the setup runs: it is ended, and nothing is left", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", map[string]string{".agents/setup": longSetup})
		d.lead(dir, lead.Full)
		n := d.say("demo.lead", "task: build | say: done")
		child, script := d.pid("child"), d.pid("setup-pid")
		d.Until("the setup is written down", func() bool { return strings.Contains(d.marker(), `"pid":`+strconv.Itoa(script)) })
		d.kill("toolhost")
		code, detail := n.failure()
		if code != "outcome_unknown" || !strings.Contains(detail, "undone") {
			t.Errorf("%s: %s", code, detail)
		}
		d.gone(child)
		d.gone(script)
		d.untouched(dir, 1)
	})

	t.Run("while git makes the worktree: git is ended, and nothing is left", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		real, err := exec.LookPath("git")
		if err != nil {
			t.Fatal(err)
		}
		// It may write in the repository alone, and sees other process ids than the host's.
		at, token := filepath.Join("demo", ".git", "at-add"), "1000."+strconv.Itoa(os.Getpid())
		h.Write("bin/git", "#!/bin/sh\ncase \"$*\" in *'worktree add'*) echo up > "+h.Path(at)+"; sleep "+token+";; esac\nexec "+real+" \"$@\"\n")
		if err := os.Chmod(h.Path("bin", "git"), 0o755); err != nil {
			t.Fatal(err)
		}
		d := deskOf(t, h.With("PATH="+h.Path("bin")+":"+sonnytest.Programs(t)+":"+os.Getenv("PATH")))
		dir := d.Repo("demo", nil)
		d.lead(dir, lead.Full)
		n := d.say("demo.lead", "task: build | say: done")
		d.Until("git is at it, and written down", func() bool {
			_, err := os.Stat(h.Path(at))
			return err == nil && strings.Contains(d.marker(), `"pid":`)
		})
		d.kill("toolhost")
		if code, detail := n.failure(); code != "outcome_unknown" {
			t.Errorf("%s: %s", code, detail)
		}
		d.Until("git is gone", func() bool {
			lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			return !slices.ContainsFunc(lines, func(path string) bool {
				words, _ := os.ReadFile(path)
				return string(words) == "sleep\x00"+token+"\x00"
			})
		})
		d.untouched(dir, 1)
	})

	t.Run("after the bot is made, before its brief is sent: the start is brought to its end", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", map[string]string{".agents/setup": setup})
		bot := d.lead(dir, lead.Full)
		s := d.starter(bot)
		s.Client = d.losing(`"op":"submit"`)
		start, err := s.Resolve(d.ctx, lead.TaskRequest{Name: "build", Brief: "say: done"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := start.Do(d.ctx); protocol.CodeOf(err) != "outcome_unknown" {
			t.Fatalf("%v", err)
		}
		d.kill("toolhost") // the next one settles it
		d.Until("the task's turn", func() bool {
			for turn, err := range d.c.Turns(d.ctx, "demo.build", 0) {
				return err == nil && turn.Status == protocol.StatusCompleted && turn.Prompt == "say: done"
			}
			return false
		})
		left, err := lead.SettleStarts(d.ctx, d.c, d.sonny(), s.Store)
		if markers, _ := os.ReadDir(filepath.Join(d.sonny(), "starting")); err != nil || len(left) > 0 || len(markers) > 0 {
			t.Errorf("%v, %v, %v", left, markers, err)
		}
	})

	t.Run("after the answer to create is lost: the bot that was made is taken", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		bot := d.lead(d.Repo("demo", nil), lead.Full)
		s := d.starter(bot)
		s.Client = d.losingAnswer(`"op":"create"`, "demo.build")
		start, err := s.Resolve(d.ctx, lead.TaskRequest{Name: "build", Brief: "say: done"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := start.Do(d.ctx)
		if err != nil || got.Bot != "demo.build" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// losing is a client whose connection ends before the first line with a text is sent.
func (d *desk) losing(text string) *client.Client { return d.cut(text, nil) }

// losingAnswer is one whose connection ends after that line was sent and has made a bot.
func (d *desk) losingAnswer(text, bot string) *client.Client {
	return d.cut(text, func() {
		d.Until("the bot", func() bool { _, err := d.c.Inspect(d.ctx, bot); return err == nil })
	})
}

func (d *desk) cut(text string, after func()) *client.Client {
	c := &client.Client{Target: d.c.Target}
	var done atomic.Bool
	c.Dial = func(ctx context.Context, socket string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		return &cutConn{conn, text, after, &done}, nil
	}
	d.t.Cleanup(func() { c.Close() })
	return c
}

// cutConn is a connection that ends at a line, once for all of its client's.
type cutConn struct {
	net.Conn
	text  string
	after func() // nil: the line is not sent
	done  *atomic.Bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if !strings.Contains(string(p), c.text) || c.done.Swap(true) {
		return c.Conn.Write(p)
	}
	if c.after != nil {
		if n, err := c.Conn.Write(p); err != nil {
			return n, err
		}
		c.after()
	}
	c.Conn.Close()
	return 0, errors.New("cut off")
}

func TestTwoHosts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.lead(d.Repo("demo", nil), lead.Manual)
	d.say("demo.lead", "plan: one;two;three").says()
	self := filepath.Join(sonnytest.Programs(t), "sonny")
	second := exec.CommandContext(d.ctx, self, "companion", "toolhost", "--settings", d.Path(".agent", "config.toml"))
	second.Env = append(d.Env, "AGENT_COMPANION=toolhost", "AGENT_STORE="+d.c.Target.Store, "AGENT_SOCKET="+d.c.Target.Socket)
	second.Dir = d.Dir
	said, err := second.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, _ := said.Read(line)
	if !strings.HasPrefix(string(line[:n]), "companion_running") {
		t.Errorf("it says %q", line[:n])
	}
	if said := d.say("demo.lead", "plan: a;b;c").says(); said != `{"steps":3}` {
		t.Errorf("the first does not answer any more: %s", said)
	}
	first := d.companion("toolhost")
	d.companions() // none: the daemon ends the first
	if said := d.say("demo.lead", "plan: a;b;c").says(); said != `{"steps":3}` {
		t.Errorf("the second has not taken over from %d: %s", *first.PID, said)
	}
	d.KillDaemon()
	if err := second.Wait(); err != nil {
		t.Errorf("it ends badly without its daemon: %v", err)
	}
}

func TestTheSetup(t *testing.T) {
	t.Parallel()
	t.Run("SO-66 one that fails leaves nothing, and tells what it printed", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", map[string]string{".agents/setup": "echo it is broken; exit 3\n"})
		d.lead(dir, lead.Full)
		code, detail := d.say("demo.lead", "task: build | say: done").failure()
		if code != "setup_failed" || !strings.Contains(detail, "it is broken") || !strings.Contains(detail, "exit status 3") {
			t.Errorf("%s: %s", code, detail)
		}
		d.untouched(dir, 1)
	})
	t.Run("SO-67 one that takes too long is ended with its child", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, func() sonnytest.Option {
			return sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n[tasks]\nsetup_timeout = \"2s\"\n")
		}())
		dir := d.Repo("demo", map[string]string{".agents/setup": longSetup})
		d.lead(dir, lead.Full)
		n := d.say("demo.lead", "task: build | say: done")
		child := d.pid("child")
		if code, detail := n.failure(); code != "setup_failed" || !strings.Contains(detail, "2s") {
			t.Errorf("%s: %s", code, detail)
		}
		d.gone(child)
		d.untouched(dir, 1)
	})
	t.Run("an interrupt ends it, and undoes the start", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", map[string]string{".agents/setup": longSetup})
		d.lead(dir, lead.Full)
		n := d.say("demo.lead", "task: build | say: done")
		child := d.pid("child")
		if _, err := d.c.Interrupt(d.ctx, "demo.lead", n.Turn, ""); err != nil {
			t.Fatal(err)
		}
		n.outcome()
		d.gone(child)
		d.Until("nothing left", func() bool { return !there(d.Path(".agent", "worktrees", "demo", "build")) })
		d.Until("no marker", func() bool {
			left, _ := os.ReadDir(filepath.Join(d.sonny(), "starting"))
			return len(left) == 0
		})
		d.untouched(dir, 1)
	})
	t.Run("PO-114 it has no provider's key, and an executable one is run itself", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		env, err := os.ReadFile(h.Path(".agent", "env"))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(".agent/env", string(env)+"MY_TOKEN=from-the-file\n")
		d := deskOf(t, h.With("OPENAI_API_KEY=sk-secret", "PLAIN=kept"))
		dir := d.Repo("demo", map[string]string{".agents/setup": "#!/usr/bin/env python3\nimport os, json\nopen('env', 'w').write(json.dumps(dict(os.environ)))\n"})
		if err := os.Chmod(filepath.Join(dir, ".agents", "setup"), 0o755); err != nil {
			t.Fatal(err)
		}
		d.lead(dir, lead.Full)
		var got lead.TaskStarted
		d.say("demo.lead", "task: build | say: done").answers(&got)
		var vars map[string]string
		text, err := os.ReadFile(filepath.Join(got.Workspace, "env"))
		if err != nil || json.Unmarshal(text, &vars) != nil {
			t.Fatalf("%v %s", err, text)
		}
		if vars["PLAIN"] != "kept" || vars["AGENT_SOURCE"] != dir {
			t.Errorf("%v", vars)
		}
		for name, value := range vars {
			if name == "OPENAI_API_KEY" || name == "MY_TOKEN" || name == "AGENT_PROVIDER" || strings.Contains(value, "sk-secret") {
				t.Errorf("%s is there", name)
			}
		}
	})
}

func TestWhereTasksWork(t *testing.T) {
	t.Parallel()
	t.Run("SO-110 without git it shares the folder and waits for nobody; with git it waits", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		plain := d.Path("plain")
		if err := os.Mkdir(plain, 0o755); err != nil {
			t.Fatal(err)
		}
		d.lead(plain, lead.Manual)
		var got lead.TaskStarted
		d.say("plain.lead", "task: a | say: hi").answers(&got)
		if got.Workspace != plain || got.Branch != "" || got.Setup != "none" {
			t.Errorf("%+v", got)
		}
		dir := d.Repo("demo", map[string]string{"f": "x"})
		d.Write("demo/f", "changed")
		d.lead(dir, lead.Manual)
		n := d.say("demo.lead", "task: a | say: hi")
		a := d.waiting("demo.lead")
		var shown struct{ Bot, Brief, Base, Worktree, Branch string }
		if err := a.Decode(&shown); err != nil || shown.Bot != "demo.a" || shown.Brief != "say: hi" ||
			shown.Base != d.Git(dir, "rev-parse", "HEAD") || shown.Worktree != d.Path(".agent", "worktrees", "demo", "a") || shown.Branch != "agent/demo.a" {
			t.Errorf("%+v, %v", shown, err)
		}
		d.answer(a, protocol.Allow, "")
		n.answers(&got)
		if got.Uncommitted != 1 || !strings.Contains(got.Note, "1 uncommitted") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a denial is read, and a denied step changes nothing", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", nil)
		d.lead(dir, lead.Manual)
		n := d.say("demo.lead", "task: a | say: hi")
		d.answer(d.waiting("demo.lead"), protocol.Deny, "not today")
		if code, detail := n.failure(); code != "approval_denied" || !strings.Contains(detail, "not today") {
			t.Errorf("%s: %s", code, detail)
		}
		d.untouched(dir, 1)
	})
	t.Run("without a gate a sandboxed lead's start is denied at once", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", nil)
		d.lead(dir, lead.Full, func(p *lead.Plan) { p.Settings.Sandbox = protocol.SandboxWorkspace })
		if code, detail := d.say("demo.lead", "task: a | say: hi").failure(); code != "approval_denied" || !strings.Contains(detail, "no approval gate") {
			t.Errorf("%s: %s", code, detail)
		}
		d.untouched(dir, 1)
	})
	t.Run("a brief of 60 KiB is shown in part, by its digest, and sent whole", func(t *testing.T) {
		t.Parallel()
		brief := "say: " + strings.Repeat("é", 30_000)
		arguments, _ := json.Marshal(map[string]string{"name": "big", "brief": brief})
		d := newDesk(t, scripted(t, calls("a big one", "start_task", string(arguments))))
		d.lead(d.Repo("demo", nil), lead.Manual)
		n := d.say("demo.lead", "a big one")
		a := d.waiting("demo.lead")
		var shown struct {
			Brief  string `json:"brief"`
			Bytes  int    `json:"brief_bytes"`
			SHA256 string `json:"brief_sha256"`
		}
		if err := a.Decode(&shown); err != nil || len(shown.Brief) > 16<<10 || !strings.HasPrefix(brief, shown.Brief) || shown.Bytes != len(brief) || len(shown.SHA256) != 64 {
			t.Errorf("%d shown, %d in all, %s, %v", len(shown.Brief), shown.Bytes, shown.SHA256, err)
		}
		d.answer(a, protocol.Allow, "")
		var got lead.TaskStarted
		n.answers(&got)
		p, err := d.c.Prompts(d.ctx, got.Bot, got.Turn, 1)
		if err != nil || p.Prompts[0].Text != brief || p.Prompts[0].From == nil || p.Prompts[0].From.Bot != "demo.lead" {
			t.Errorf("%d bytes, %v", len(p.Prompts[0].Text), err)
		}
	})
	t.Run("a root of worktrees that is a link is followed once, and what stands there is not touched", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		dir := d.Repo("demo", nil)
		elsewhere := d.Path("elsewhere")
		if err := os.MkdirAll(filepath.Join(elsewhere, "build"), 0o700); err != nil {
			t.Fatal(err)
		}
		bot := d.lead(dir, lead.Full)
		if err := os.MkdirAll(d.Path(".agent", "worktrees"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, d.Path(".agent", "worktrees", "demo")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "build", Brief: "b"}); !errors.Is(err, protocol.WorktreeExists) {
			t.Errorf("%v", err)
		}
		if err := os.Symlink("/nonexistent", filepath.Join(elsewhere, "dangling")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "dangling", Brief: "b"}); !errors.Is(err, protocol.WorktreeExists) {
			t.Errorf("%v", err)
		}
		if !there(filepath.Join(elsewhere, "build")) {
			t.Error("what stood there is gone")
		}
	})
}

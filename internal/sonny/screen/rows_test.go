package screen_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// idle opens a lead that has had a turn.
func idle(h *sonnytest.Home, dir string) *sonnytest.Screen {
	s := open(h, dir)
	s.WaitFor("demo.lead")
	send(s, "say: hi")
	s.WaitFor("✔ done")
	return s
}

// footer waits for words in the last rows of the screen.
func footer(s screen, words string) {
	s.Until("the footer "+words, func(screen string) bool {
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		return strings.Contains(strings.Join(lines[max(0, len(lines)-2):], "\n"), words)
	})
}

func tags(b *protocol.Bot) (out []string) {
	for _, g := range b.Gates {
		out = append(out, g.Tag)
	}
	return out
}

func TestRowsOfALead(t *testing.T) {
	t.Parallel()

	t.Run("SO-23 Shift+Tab steps the row and comes back to what the lead began with", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := idle(h, dir)
		d := daemonOf(t, h)
		first := d.bot("demo.lead")
		footer(s, "auto · workspace-write")
		for _, step := range []struct {
			shows, line string
			tags        []string
			sandbox     string
		}{
			{"manual · workspace-write", "from here on: manual · workspace-write · net on", []string{"manual"}, protocol.SandboxWorkspace},
			{"look · read-only", "from here on: look · read-only · net on", nil, protocol.SandboxReadOnly},
			{"auto · workspace-write", "from here on: auto · workspace-write · net on", []string{"auto"}, protocol.SandboxWorkspace},
		} {
			s.Keys("BTab")
			s.WaitFor(step.line)
			footer(s, step.shows)
			b := d.bot("demo.lead")
			if !slices.Equal(tags(b), step.tags) || b.Sandbox != step.sandbox {
				t.Errorf("%s: %v, %s", step.shows, tags(b), b.Sandbox)
			}
		}
		last := d.bot("demo.lead")
		if !slices.Equal(first.WritableRoots, last.WritableRoots) || !slices.Equal(first.Gates[0].Tools, last.Gates[0].Tools) {
			t.Errorf("at first %+v, at last %+v", first, last)
		}
	})

	t.Run("Shift+Tab pressed quickly steps as far as it was pressed", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := idle(h, dir)
		d := daemonOf(t, h)
		first := d.bot("demo.lead")
		s.Keys("BTab", "BTab", "BTab", "BTab", "BTab")
		footer(s, "look · read-only")
		s.Keys("BTab")
		footer(s, "auto · workspace-write")
		h.Until("the row", func() bool {
			b := d.bot("demo.lead")
			return b.Sandbox == first.Sandbox && slices.Equal(b.WritableRoots, first.WritableRoots) && slices.Equal(tags(b), tags(first))
		})
	})

	t.Run("SO-24 full is taken when its name was typed, and shown as long as it lasts", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := idle(h, dir)
		send(s, "/approval full")
		s.WaitFor("Type full to take it")
		s.Keys("Enter")
		s.Type("ful")
		s.Keys("Enter")
		s.WaitFor("› ful")
		if b := daemonOf(t, h).bot("demo.lead"); b.Sandbox != protocol.SandboxWorkspace || len(b.Gates) != 1 {
			t.Errorf("it changed: %s, %v", b.Sandbox, b.Gates)
		}
		s.Type("l")
		s.Keys("Enter")
		footer(s, "full · no sandbox")
		if b := daemonOf(t, h).bot("demo.lead"); b.Sandbox != protocol.SandboxFull || len(b.Gates) != 0 {
			t.Errorf("%s, %v", b.Sandbox, b.Gates)
		}
	})

	t.Run("SO-101 look refuses what would change something, and gives back what was", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := idle(h, dir)
		d := daemonOf(t, h)
		before := d.bot("demo.lead")
		send(s, "/look")
		footer(s, "look · read-only")
		send(s, "write: x.txt | y")
		s.WaitFor("refused: no gate")
		s.WaitFor("✔ done")
		never(t, s, "allow once")
		if exists(filepath.Join(dir, "x.txt")) {
			t.Error("the file was written")
		}
		if ran := h.Agent("history", "--bot", "demo.lead"); !strings.Contains(ran.Stdout, "escalation_refused") {
			t.Error(ran.Stdout)
		}
		send(s, "/look")
		footer(s, "manual · workspace-write")
		h.Until("the sandbox", func() bool { return d.bot("demo.lead").Sandbox == protocol.SandboxWorkspace })
		after := d.bot("demo.lead")
		if !slices.Equal(before.WritableRoots, after.WritableRoots) || !slices.Equal(tags(before), tags(after)) {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})

	t.Run("a working bot's sandbox and network change when its turn is over", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := idle(h, dir)
		d := daemonOf(t, h)
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("working")
		send(s, "/network off")
		footer(s, "network off: after this turn")
		send(s, "/writable "+h.Dir)
		s.WaitFor("may write " + h.Dir + ": after this turn")
		send(s, "/approval auto")
		footer(s, "auto · workspace-write")
		if b := d.bot("demo.lead"); !b.Network {
			t.Error("the network changed while the turn ran")
		}
		h.Write("demo/release", "")
		footer(s, "net off")
		b := d.bot("demo.lead")
		if b.Network || !slices.Contains(b.WritableRoots, h.Dir) || tags(b)[0] != "auto" {
			t.Errorf("%v %v %v", b.Network, b.WritableRoots, tags(b))
		}
	})

	t.Run("what is to hold after a turn holds though Sonny is left before, and is seen when it is opened again", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := idle(h, dir)
		d := daemonOf(t, h)
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("working")
		send(s, "/sandbox read-only")
		s.WaitFor("sandbox read-only: after this turn")
		send(s, "/network off")
		s.WaitFor("network off: after this turn")
		h.Until("the file", func() bool {
			l, err := filepath.Glob(h.Path(".agent", "sonny", "later", "*"))
			return err == nil && len(l) == 1
		})
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir)
		footer(s, "network off: after")
		s.Keys("C-d")
		s.Exit()
		h.Write("demo/release", "")
		h.Until("the sandbox", func() bool {
			b := d.bot("demo.lead")
			return b.Sandbox == protocol.SandboxReadOnly && !b.Network && len(b.WritableRoots) == 0
		})
		h.Until("no file", func() bool {
			l, err := filepath.Glob(h.Path(".agent", "sonny", "later", "*"))
			return err == nil && len(l) == 0
		})
	})

	t.Run("tasks keep their gates unless the person says so", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := idle(h, dir)
		d := daemonOf(t, h)
		if ran := h.In(dir).Agent("run", "--new", "--bot", "demo.task", "--model", "scripted/sonny", "--workspace", dir,
			"--approval", "manual", "--sandbox", "workspace-write", "--", "say: x"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		footer(s, "tasks 1")
		send(s, "/approval auto")
		footer(s, "auto · workspace-write")
		if got := tags(d.bot("demo.task")); !slices.Equal(got, []string{"manual"}) {
			t.Errorf("the task's gates: %v", got)
		}
		send(s, "/approval")
		s.WaitFor("[ ] also its 1 task")
		s.Keys("t")
		s.WaitFor("[x] also its 1 task")
		s.Keys("Enter")
		h.Until("the task's gate", func() bool { return slices.Equal(tags(d.bot("demo.task")), []string{"auto"}) })
	})
}

func TestThePause(t *testing.T) {
	t.Parallel()

	t.Run("SO-104 a pause outlives the daemon, and no bot lifts it", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, "esc: true")
		send(s, "/pause why")
		footer(s, "why")
		s.Keys("C-d")
		s.Exit()
		h.KillDaemon()
		s = open(h, dir)
		footer(s, "‖ paused by you: why")
		o := daemonOf(t, h).outcome("demo.lead")
		if o.Status != protocol.StatusInterrupted || o.Error == nil || *o.Error != protocol.Paused {
			t.Errorf("%+v", o)
		}
		inside := h.With("AGENT_BOT=demo.lead")
		for _, ran := range []sonnytest.Ran{inside.Agent("resume"), inside.Sonny("unpause")} {
			if ran.Exit == 0 {
				t.Errorf("it was lifted: %s", ran.Stdout)
			}
		}
		footer(s, "‖ paused by")
	})

	t.Run("SO-46 a pause ends every turn and keeps every message until it is lifted", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := idle(h, dir)
		for name, prompt := range map[string]string{"demo.asks": "esc: true", "demo.works": "slow: 20"} {
			if ran := h.In(dir).Agent("run", "--new", "--detach", "--bot", name, "--model", "scripted/sonny", "--workspace", dir,
				"--approval", "manual", "--sandbox", "workspace-write", "--", prompt); ran.Exit != 0 {
				t.Fatal(ran.Stderr)
			}
		}
		send(s, "slow: 20")
		wants(t, s, "word2", "tasks 2 ● 1 ! 1")
		s.Type("say: queued")
		s.Keys("Tab")
		s.WaitFor("queued 1")
		send(s, "/pause testing")
		footer(s, "‖ paused by")
		footer(s, ": testing")
		d := daemonOf(t, h)
		for _, name := range []string{"demo.asks", "demo.works"} {
			if o := d.outcome(name); o.Status != protocol.StatusInterrupted || o.Error == nil || *o.Error != protocol.Paused {
				t.Errorf("%s: %+v", name, o)
			}
		}
		send(s, "say: meanwhile")
		s.WaitFor("queued 2")
		send(s, "&say: task meanwhile")
		wants(t, s, "demo.say-task-meanwhile", "it begins when /unpause lets all go on")
		if list := turns(t, h, "demo.say-task-meanwhile"); len(list) != 1 || list[0].Status != "queued" && list[0].Status != "ready" {
			t.Errorf("the task's turns: %+v", list)
		}
		send(s, "/unpause")
		wants(t, s, "paused by", "Let all bots go on?")
		s.Keys("y")
		s.Until("both replies", func(screen string) bool {
			return strings.Count(headless(screen), "queued") > 1 && strings.Count(headless(screen), "meanwhile") > 1 && !strings.Contains(screen, "paused by")
		})
		h.Until("the turns' ends", func() bool {
			var statuses []string
			for turn, err := range d.Turns(d.ctx, "demo.lead", 0) {
				if err != nil {
					t.Fatal(err)
				}
				statuses = append(statuses, turn.Status)
			}
			return slices.Equal(statuses, []string{"completed", "interrupted", "completed", "completed"})
		})
		h.Until("the task's turn", func() bool {
			list := turns(t, h, "demo.say-task-meanwhile")
			return len(list) == 1 && list[0].Status == "completed"
		})
	})
}

func TestNoSandboxOnThisSystem(t *testing.T) {
	t.Parallel()
	t.Run("SO-106 asked about every call, a command waits before anything runs", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		bare := []string{"--dev-bind", "/", "/"}
		for _, path := range []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"} {
			if exists(path) {
				bare = append(bare, "--ro-bind", "/dev/null", path)
			}
		}
		if ran := h.Run("bwrap", append(bare, filepath.Join(sonnytest.Programs(t), "agent"), "start")...); ran.Exit != 0 {
			t.Fatalf("%s %s", ran.Stdout, ran.Stderr)
		}
		s := open(h, dir)
		s.WaitFor("demo.lead")
		send(s, "say: x")
		wants(t, s, "sandbox_unavailable", "bwrap", "check again", "ask me for every call, no sandbox")
		if list := bots(t, h); len(list) != 0 {
			t.Errorf("there are bots: %+v", list)
		}
		s.Keys("Down", "Enter")
		s.WaitFor("Nothing confines its commands")
		s.Type("full")
		s.Keys("Enter")
		footer(s, "asks everything · no sandbox")
		s.WaitFor("✔ done")
		send(s, "sh: echo hi > f")
		wants(t, s, "allow once", "echo hi > f")
		if exists(filepath.Join(dir, "f")) {
			t.Error("it ran before it was allowed")
		}
		toPanel(s)
		s.Keys("1")
		h.Until("the file", func() bool {
			text, err := os.ReadFile(filepath.Join(dir, "f"))
			return err == nil && string(text) == "hi\n"
		})
		footer(s, "asks everything · no sandbox")
	})
}

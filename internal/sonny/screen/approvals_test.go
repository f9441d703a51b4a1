package screen_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/client"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// manual is a fresh home's config with the row manual.
func manual() sonnytest.Option { return settings("row = \"manual\"\n") }

// waiting opens Sonny in a folder, sends a prompt whose call waits for the person, and
// waits for the panel.
func waiting(h *sonnytest.Home, dir, prompt string) *sonnytest.Screen {
	s := open(h, dir)
	s.WaitFor("demo.lead")
	send(s, prompt)
	s.WaitFor("allow once")
	return s
}

// toPanel moves to the question, and waits until it takes keys.
func toPanel(s screen) {
	s.Keys("M-a")
	takesKeys(s)
}

// takesKeys waits until the panel has the keyboard and is no longer deaf: then the key
// line says what its keys do.
func takesKeys(s screen) {
	s.Until("a panel that takes keys", func(screen string) bool {
		return strings.Contains(screen, " decide ") || strings.Contains(screen, "Enter close") || strings.Contains(screen, "↑↓ Enter")
	})
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// daemon is a client of the home's daemon, for one test.
type daemon struct {
	*client.Client
	t   *testing.T
	ctx context.Context
}

func daemonOf(t *testing.T, h *sonnytest.Home) *daemon {
	return &daemon{h.Client(), t, context.Background()}
}

func (d *daemon) bot(name string) *protocol.Bot {
	d.t.Helper()
	b, err := d.Inspect(d.ctx, name)
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}

// waits are the calls that wait for a verdict.
func (d *daemon) waits() (out []*protocol.Approval) {
	d.t.Helper()
	for a, err := range d.Approvals(d.ctx, client.ApprovalFilter{}) {
		if err != nil {
			d.t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// outcome is how a bot's newest turn ended.
func (d *daemon) outcome(name string) *protocol.Outcome {
	d.t.Helper()
	last := int64(0)
	for turn, err := range d.Turns(d.ctx, name, 0) {
		if err != nil {
			d.t.Fatal(err)
		}
		last = turn.Turn
	}
	o, err := d.Result(d.ctx, name, last)
	if err != nil {
		d.t.Fatal(err)
	}
	return o
}

func TestAPanelForACallThatLeavesTheSandbox(t *testing.T) {
	t.Parallel()

	t.Run("SO-13 the panel shows the command, the folder and four choices, and nothing runs", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, "esc: touch "+h.Path("outside"))
		wants(t, s, "demo.lead asks to leave the sandbox", "touch "+h.Path("outside"), "shell in ~/demo",
			"runs with all your permissions", "no time limit", "it says: The person asked",
			"1  allow once", "2  allow, and stop asking for", "in this", "3  deny", "4  deny and say why", "! needs you")
		if exists(h.Path("outside")) {
			t.Error("the call ran")
		}
	})

	t.Run("SO-14 F17 a key that comes as the panel opens decides nothing", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := open(h, dir)
		s.WaitFor("demo.lead")
		send(s, "hold: touch "+h.Path("outside"))
		s.WaitFor("working 0:02") // no key came for two seconds
		h.Write("demo/release", "")
		s.WaitFor("no key is taken yet")
		s.Keys("1")
		s.WaitFor("1–4 decide")
		if n := len(daemonOf(t, h).waits()); n != 1 || exists(h.Path("outside")) {
			t.Fatalf("%d calls wait, ran: %v", n, exists(h.Path("outside")))
		}
		s.Keys("1")
		s.WaitFor("allowed by you")
		h.Until("the file", func() bool { return exists(h.Path("outside")) })
	})

	t.Run("SO-15 F17 keys of a message that is being typed never answer", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := open(h, dir)
		s.WaitFor("demo.lead")
		send(s, "hold: touch "+h.Path("outside"))
		s.WaitFor("working")
		s.Type("words ")
		h.Write("demo/release", "")
		h.Until("the panel, while keys go on", func() bool {
			s.Type("111 y 1 ")
			return strings.Contains(s.Capture(), "allow once")
		})
		s.WaitFor("keys go to your message")
		s.Type("111 y 1")
		s.Keys("Space", "Enter")
		s.WaitFor("steering")
		s.Type("1")
		s.WaitFor("› 1")
		if n := len(daemonOf(t, h).waits()); n != 1 || exists(h.Path("outside")) {
			t.Errorf("%d calls wait, ran: %v", n, exists(h.Path("outside")))
		}
		wants(t, s, "allow once")
	})

	t.Run("SO-16 F18 a denial carries the person's reason to the model", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, "esc: touch "+h.Path("outside"))
		toPanel(s)
		s.Keys("4")
		s.WaitFor("why")
		s.Type("not now")
		s.Keys("Enter")
		s.WaitFor("denied by you: not now")
		s.WaitFor("✔ done")
		if ran := h.Agent("history", "--bot", "demo.lead"); !strings.Contains(ran.Stdout, "approval_denied") || !strings.Contains(ran.Stdout, "not now") {
			t.Error(ran.Stdout)
		}
		if reply := lastReply(t, h.Agent("history", "--bot", "demo.lead").Stdout); !strings.Contains(reply, "not now") {
			t.Errorf("the reply is %q", reply)
		}
	})

	t.Run("SO-19 a call that somebody else answered closes, and a late key is told so", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		first := waiting(h, dir, "esc: touch "+h.Path("outside"))
		toPanel(first)
		second := open(h, dir)
		second.WaitFor("allow once")
		toPanel(second)
		if err := syscall.Kill(first.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		second.Keys("3")
		second.WaitFor("denied by you")
		first.Keys("1")
		if err := syscall.Kill(first.PID(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		first.WaitFor("too late")
		first.WaitGone("allow once")
		if exists(h.Path("outside")) {
			t.Error("the late key ran the call")
		}
		first.Keys("C-d")
		first.Exit()
		first = open(h, dir)
		first.WaitFor("denied")
		send(first, "esc: touch "+h.Path("outside"))
		wants(t, first, "allow once")
		second.WaitFor("allow once")
		toPanel(second)
		second.Keys("3")
		first.WaitFor("answered by")
		first.WaitGone("allow once")
	})

	t.Run("SO-20 what a terminal would act on is shown as text", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, "emit: command")
		wants(t, s, `\u{1b}[2J`, "emit: command  ! needs you", "1  allow once", "manual · workspace-write")
		if n := strings.Count(s.Capture(), "\n"); n < 23 {
			t.Errorf("the screen has %d rows", n)
		}
	})

	t.Run("SO-113 Esc decides nothing; a second one stops the turn", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, "esc: touch "+h.Path("outside"))
		s.WaitFor("Esc Esc stops the turn")
		s.Keys("Escape")
		s.WaitFor("allow once")
		d := daemonOf(t, h)
		if len(d.waits()) != 1 {
			t.Error("the first Esc decided")
		}
		h.Until("the turn's end", func() bool {
			s.Keys("Escape") // those that come within 600 ms are of the first press
			return d.bot("demo.lead").Status == protocol.StatusInterrupted
		})
		wants(t, s, "interrupted")
		s.WaitGone("allow once")
		if exists(h.Path("outside")) || len(d.waits()) != 0 {
			t.Error("the call was not cancelled")
		}
	})
}

func TestAllowAndStopAsking(t *testing.T) {
	t.Parallel()

	t.Run("SO-17 F18 a rule for the session lets the same call run unasked, there and nowhere else", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, "esc: git push origin v1")
		wants(t, s, "git push origin …", "in this session")
		toPanel(s)
		s.Keys("2")
		wants(t, s, "allowed by you", "done")
		send(s, "esc: git push origin v1")
		s.WaitFor("allowed by rule git push origin")
		if list, err := os.ReadDir(h.Path(".agent", "rules")); len(list) > 0 {
			t.Errorf("~/.agent/rules holds %v, %v", list, err)
		}
		other := h.Repo("other", nil)
		s = open(h, other)
		s.WaitFor("other.lead")
		send(s, "esc: git push origin v1")
		wants(t, s, "other.lead asks to leave the sandbox")
	})

	t.Run("SO-102 F18 a rule for every bot stands among the person's and holds in other folders", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		other := h.Repo("other", nil)
		o := open(h, other)
		o.WaitFor("other.lead")
		send(o, "say: hi")
		o.WaitFor("✔ done")
		s := waiting(h, dir, "esc: git push origin v1")
		toPanel(s)
		s.Keys("Tab")
		s.WaitFor("every bot, every folder")
		s.Keys("2")
		wants(t, s, "allowed by you", "done")
		text, err := os.ReadFile(h.Path(".agent", "rules", "sonny.rules"))
		if err != nil || string(text) != "prefix_rule(pattern=[\"git\", \"push\", \"origin\"], decision=\"allow\")\n" {
			t.Errorf("%s, %v", text, err)
		}
		send(o, "esc: git push origin v1")
		o.WaitFor("allowed by rule git push origin")
		if n := len(daemonOf(t, h).waits()); n != 0 {
			t.Errorf("%d calls wait", n)
		}
	})

	t.Run("SO-18 no rule is offered for a shell that runs another command", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, `esc: bash -c "git push"`)
		wants(t, s, "4  deny and say why")
		if screen := s.Capture(); strings.Contains(screen, "stop asking") {
			t.Error(screen)
		}
	})

	t.Run("F18 the words of a rule are the person's to edit, and must fit the call", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := waiting(h, dir, "esc: git push origin v1")
		toPanel(s)
		s.Keys("e")
		s.WaitFor("the rule's words")
		s.Keys("C-u")
		s.Type("git pull")
		s.Keys("Enter")
		s.WaitFor("does not let this call through")
		s.Keys("C-u")
		s.Type("git")
		s.Keys("Enter")
		s.WaitFor("needs more words")
		s.Keys("C-u")
		s.Type("git push")
		s.Keys("Enter")
		s.WaitFor("stop asking for  git push …")
		s.Keys("2")
		wants(t, s, "allowed by you", "done")
		send(s, "esc: git push elsewhere")
		s.WaitFor("allowed by rule git push")
	})
}

func TestRulesThatAreUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		{"SO-112 a rule file that cannot be read refuses every command", "bad.rules"},
		{"SO-112 a rule file that does not parse refuses every command", "bad.rules:3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t, manual())
			h.Write(".agent/rules/good.rules", "prefix_rule(pattern=[\"true\"])\n")
			if c.want == "bad.rules" {
				if err := os.Symlink("nowhere", h.Path(".agent", "rules", "bad.rules")); err != nil {
					t.Fatal(err)
				}
			} else {
				h.Write(".agent/rules/bad.rules", "# a rule\nprefix_rule(\n")
			}
			s := open(h, dir)
			s.WaitFor("demo.lead")
			send(s, "sh: true")
			wants(t, s, "command_forbidden", "done")
			s.Until("the footer", func(screen string) bool {
				lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
				return strings.Contains(lines[len(lines)-2], "rules: ")
			})
			rules := daemonOf(t, h).bot("demo.lead").Rules
			if rules == nil || !rules.Unreadable || !strings.Contains(rules.Reason, c.want) {
				t.Errorf("%+v", rules)
			}
			if err := os.RemoveAll(h.Path(".agent", "rules", "bad.rules")); err != nil {
				t.Fatal(err)
			}
			send(s, "esc: true")
			s.WaitFor("allowed by rule true")
		})
	}
}

func TestApprovalsOfTasks(t *testing.T) {
	t.Parallel()
	t.Run("SO-25 a task's call is counted, and Alt+A shows it under the task's name", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := open(h, dir)
		s.WaitFor("demo.lead")
		send(s, "say: hi")
		s.WaitFor("✔ done")
		for _, name := range []string{"demo.first", "demo.second"} {
			ran := h.In(dir).Agent("run", "--new", "--detach", "--bot", name, "--model", "scripted/sonny", "--workspace", dir,
				"--approval", "manual", "--sandbox", "workspace-write", "--", "esc: touch "+h.Path(name))
			if ran.Exit != 0 {
				t.Fatal(ran.Stderr)
			}
		}
		s.WaitFor("approvals 2")
		if strings.Contains(s.Capture(), "allow once") {
			t.Error("a task's call opened the panel of the lead")
		}
		toPanel(s)
		wants(t, s, "demo.first asks to leave the sandbox", "1 of 2")
		s.Keys("M-a")
		wants(t, s, "demo.second asks to leave the sandbox", "2 of 2")
		takesKeys(s)
		s.Keys("1")
		h.Until("the file", func() bool { return exists(h.Path("demo.second")) })
		wants(t, s, "demo.first asks")
		takesKeys(s)
		if exists(h.Path("demo.first")) {
			t.Error("the verdict fell on another call")
		}
		s.Keys("a")
		wants(t, s, "Space mark", "manual    ")
		s.Keys("1")
		s.WaitFor("mark calls with Space first")
		s.Keys("Space")
		s.WaitFor("✔ demo.first")
		s.Keys("3")
		s.WaitFor("nothing waits")
		h.Until("the denial", func() bool { return len(daemonOf(t, h).waits()) == 0 })
		if exists(h.Path("demo.first")) {
			t.Error("it ran")
		}
	})
}

func TestProtectedFilesThatWereReplaced(t *testing.T) {
	t.Parallel()
	t.Run("SO-137 a panel names the call and the path, and answers nothing", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("[notifications]\nroute = \"osc9\"\n"))
		s := open(h, dir)
		s.WaitFor("demo.lead")
		send(s, "sh: touch began; until [ -e release ]; do sleep 0.1; done; echo over")
		s.WaitFor("working")
		s.Focus(false)
		config := filepath.Join(dir, ".git", "config")
		text, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		h.Until("the command", func() bool { return exists(filepath.Join(dir, "began")) })
		h.Write("demo/.git/config.new", string(text))
		if err := os.Rename(config+".new", config); err != nil {
			t.Fatal(err)
		}
		h.Write("demo/release", "")
		wants(t, s, "protected files were replaced", "until [ -e release ]", ".git/config", "over")
		s.WaitRaw(0, "\x1b]9;sonny: demo.lead: demo.lead: protected files")
		toPanel(s)
		s.Keys("v")
		s.WaitFor("-rw")
		s.Keys("Escape")
		s.WaitGone("protected files were replaced")
		if o := daemonOf(t, h).outcome("demo.lead"); o.Status != protocol.StatusCompleted {
			t.Errorf("%+v", o)
		}
	})
}

func TestQuestionsOfBots(t *testing.T) {
	t.Parallel()

	t.Run("a choice goes to the bot, and nothing else is answered by it", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		s := open(h, dir)
		s.WaitFor("demo.lead")
		send(s, "ask: Which one? | red | dark blue")
		wants(t, s, "demo.lead asks you", "Which one?", "1  red", "2  dark blue", "3  say it in your own words", "! needs you")
		toPanel(s)
		s.Keys("2")
		s.Until("the reply", func(screen string) bool {
			return strings.Contains(screen, `["dark blue"]`) && strings.Contains(screen, "✔ done")
		})
	})

	t.Run("SO-19 a question that another screen answered closes here", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, manual())
		first := open(h, dir)
		first.WaitFor("demo.lead")
		send(first, "ask: Which one? | red | dark blue")
		first.WaitFor("demo.lead asks you")
		second := open(h, dir)
		second.WaitFor("demo.lead asks you")
		toPanel(second)
		second.Keys("3")
		second.WaitFor("answer")
		second.Type("a third one")
		second.Keys("Enter")
		first.WaitGone("demo.lead asks you")
		first.Until("the reply", func(screen string) bool {
			return strings.Count(screen, "a third one") > 0 && strings.Contains(screen, "✔ done")
		})
	})
}

func TestAScreenThatOpensOnACallThatWaits(t *testing.T) {
	t.Parallel()
	t.Run("its line says that it waits, and a denial can be overturned after a restart", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, judge("deny", ""))
		s := judged(t, h, dir)
		file := h.Path("o")
		send(s, "esc: touch "+file)
		wants(t, s, "denied by judge", "✔ done")
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir)
		wants(t, s, "denied: judged dangerous")
		toPanel(s)
		s.Keys("1")
		s.WaitFor("You may now run: touch " + file)
		s.WaitFor("✔ done")
		send(s, "esc: touch "+file)
		s.WaitFor("allowed by you")
		h.Until("the file", func() bool { return exists(file) })
		s.WaitFor("✔ done")

		send(s, "/approval manual")
		footer(s, "manual · workspace-write")
		send(s, "esc: true")
		s.WaitFor("allow once")
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir)
		s.WaitFor("allow once")
		s.Until("the call's line", func(screen string) bool {
			for line := range strings.SplitSeq(screen, "\n") {
				if strings.Contains(line, "▸ shell  true") && strings.HasSuffix(strings.TrimRight(line, " "), "waiting") {
					return true
				}
			}
			return false
		})
	})
}

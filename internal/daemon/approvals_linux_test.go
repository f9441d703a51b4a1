package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// leaveScript has besides boxScript's calls some that leave the sandbox in other
// ways.
const leaveScript = `[
 {"match":{"regex":"(?s)^feed (.+)$"},"steps":[
  {"calls":[{"tool":"shell","arguments":{"command":"cat > fed; echo $AGENT_SOCKET > sock","background":true,"stdin":true,"sandbox_permissions":"require_escalated","justification":"a test"}}],"capture":{"h":"proc:[0-9]+"}},
  {"calls":[{"tool":"write_stdin","arguments":{"handle":"${h}","yield_ms":1}}]},
  {"calls":[{"tool":"write_stdin","arguments":{"handle":"${h}","chars":"${1}","close":true}}]},
  {"calls":[{"tool":"wait","arguments":{"handles":["${h}"]}}]},{"text":"${last}"}]},
 {"match":{"regex":"(?s)^patch (.+)$"},"steps":[{"calls":[{"tool":"apply_patch","arguments":{"patch":"*** Begin Patch\n*** Add File: inside\n+a\n*** Add File: ${1}\n+b\n*** End Patch\n"}}]},{"text":"${last}"}]},
 {"match":{"regex":"(?s)^late (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"ln -s ../out link"}},{"tool":"write","arguments":{"path":"link/${1}","content":"x"}}]},{"text":"${last}"}]},
 {"match":{"regex":"^unjustified$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"true","sandbox_permissions":"require_escalated"}}]},{"text":"${last}"}]},`

// leaver is a box whose daemon gates can be asked of.
type leaver struct {
	*gated
	b *box
}

// newLeaver makes a sandboxed bot Ada; more are further members.
func newLeaver(t *testing.T, holdMS int64, more string) *leaver {
	t.Helper()
	h := newHost(t, leaveScript+boxScript[1:])
	h.set.Limits.ApprovalHoldMS = holdMS
	for _, dir := range []string{"home/.agent/run", "out", "other"} {
		if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.set.Walls = []string{filepath.Join(h.dir, "home/.agent/run")}
	h.env = append(h.env, "HOME="+filepath.Join(h.dir, "home"))
	l := &leaver{gated: &gated{host: h, p: h.start()}}
	l.attach()
	l.b = &box{host: h, p: l.p, k: l.k}
	l.box("Ada", more)
	return l
}

func (l *leaver) box(name, more string) (r protocol.Bot) {
	l.t.Helper()
	l.k.ask(&r, "create", fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":["shell","write","edit","apply_patch","write_stdin","wait"],`+
		`"workspace":%q,"sandbox":"workspace-write","exclude_slash_tmp":true%s`, name, l.workspace, more))
	return r
}

const allGated = `,"approve":["shell","write","edit","apply_patch","write_stdin"],"approver":"manual"`

// link makes name in the place a link to what it is to lead to.
func (l *leaver) link(name, to string) {
	l.t.Helper()
	os.Remove(filepath.Join(l.dir, name))
	if err := os.Symlink(filepath.Join(l.dir, to), filepath.Join(l.dir, name)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *leaver) done(turn int64) string {
	l.t.Helper()
	lines, o := l.ended("Ada", turn)
	if o.Status != "completed" {
		l.t.Errorf("%v %+v", kinds(lines), o)
	}
	return o.Text
}

func TestLeavingTheSandbox(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{60_000, 0} {
		t.Run(fmt.Sprintf("held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			l := newLeaver(t, hold, allGated)
			t.Run("AP-29 PO-63 a confined call is asked of nobody", func(t *testing.T) {
				turn := l.submit("Ada", "run touch in")
				if lines, _ := l.ended("Ada", turn); len(of(lines, "approval_requested")) != 0 || !l.b.exists("w/in") {
					t.Errorf("%v", kinds(lines))
				}
				l.done(l.submit("Ada", "write in2"))
			})
			t.Run("AP-30 PO-43 an escalation waits, and allowed runs outside with the daemon's own socket", func(t *testing.T) {
				turn := l.submit("Ada", "escalate touch ../out/esc; echo $AGENT_SOCKET,$AGENT_SANDBOX")
				a := l.k.waiting(1)[0]
				if a.Cause != "escalation" || !a.Escalated || a.Justification != "a test" || l.b.exists("out/esc") {
					t.Errorf("listed %+v", a)
				}
				l.k.allow(a, "")
				lines, o := l.ended("Ada", turn)
				if !l.b.exists("out/esc") || !strings.Contains(o.Text, l.set.Socket+",\\n") || !strings.Contains(string(of(lines, "tool_started")[0].raw), `"sandboxed":false`) {
					t.Errorf("got %s", o.Text)
				}
			})
			t.Run("a denied escalation runs nowhere", func(t *testing.T) {
				turn := l.submit("Ada", "escalate touch ../out/no no")
				l.k.deny(l.k.waiting(1)[0], "")
				l.b.says(l.done(turn), protocol.ApprovalDenied, "")
				if l.b.exists("out/no") || l.b.exists("w/no") {
					t.Error("it ran")
				}
			})
			t.Run("AP-33 a write through a link that leads outside waits with its real path, and is carried out there", func(t *testing.T) {
				l.link("w/door", "out")
				turn := l.submit("Ada", "write door/deep/file")
				a := l.k.waiting(1)[0]
				real, _ := filepath.EvalSymlinks(filepath.Join(l.dir, "out"))
				if a.Cause != "outside_write" || !a.Escalated || len(a.Target) != 1 || a.Target[0] != filepath.Join(real, "deep/file") {
					t.Errorf("listed %+v", a)
				}
				l.k.allow(a, "")
				if got := l.done(turn); !strings.Contains(got, "Wrote 1 bytes") || !l.b.exists("out/deep/file") {
					t.Errorf("got %s", got)
				}
			})
			t.Run("AP-33 SB-67 when the path leads elsewhere by the time of the verdict nothing is written", func(t *testing.T) {
				l.link("w/door", "out")
				turn := l.submit("Ada", "write door/moved")
				a := l.k.waiting(1)[0]
				l.link("w/door", "other")
				l.k.allow(a, "")
				lines, o := l.ended("Ada", turn)
				l.b.says(o.Text, protocol.PathChanged, "")
				if l.b.exists("out/moved") || l.b.exists("other/moved") || len(of(lines, "tool_started")) != 0 || !strings.Contains(raws(of(lines, "tool_completed")), `"decision":"allow"`) {
					t.Errorf("%v", kinds(lines))
				}
				os.MkdirAll(filepath.Join(l.dir, "out/parent"), 0o700)
				turn = l.submit("Ada", "write ../out/parent/file")
				a = l.k.waiting(1)[0]
				os.Remove(filepath.Join(l.dir, "out/parent"))
				l.link("out/parent", "other")
				l.k.allow(a, "")
				l.b.says(l.done(turn), protocol.PathChanged, "")
				if l.b.exists("other/file") {
					t.Error("it was written elsewhere")
				}
			})
			t.Run("a patch with one file outside waits as a whole and is applied as a whole", func(t *testing.T) {
				turn := l.submit("Ada", "patch ../out/patched")
				a := l.k.waiting(1)[0]
				if a.Name != "apply_patch" || len(a.Target) != 1 || l.b.exists("w/inside") {
					t.Errorf("listed %+v", a)
				}
				l.k.allow(a, "")
				if got := l.done(turn); !l.b.exists("w/inside") || !l.b.exists("out/patched") {
					t.Errorf("got %s", got)
				}
			})
			t.Run("a call that leaves only once it is to run is announced alone", func(t *testing.T) {
				turn := l.submit("Ada", "late found")
				a := l.k.waiting(1)[0]
				if a.Name != "write" || a.Cause != "outside_write" || a.Request != 1 || len(a.Target) != 1 {
					t.Errorf("listed %+v", a)
				}
				l.k.allow(a, "")
				lines, _ := l.ended("Ada", turn)
				if asked := of(lines, "approval_requested"); len(asked) != 1 || !l.b.exists("out/found") {
					t.Errorf("%v", kinds(lines))
				}
			})
			t.Run("SB-72 input to a command outside waits each time, a look at it does not", func(t *testing.T) {
				turn := l.submit("Ada", "feed hello")
				l.k.allow(l.k.waiting(1)[0], "")
				a := l.k.nextOf("write_stdin")
				if a.Cause != "escalation" || !a.Escalated || !strings.Contains(string(a.Arguments), "hello") || l.b.text("w/fed") != "" {
					t.Errorf("listed %+v", a)
				}
				l.k.allow(a, "")
				l.done(turn)
				if l.b.text("w/fed") != "hello" || l.b.text("w/sock") != l.set.Socket+"\n" {
					t.Errorf("fed %q, socket %q", l.b.text("w/fed"), l.b.text("w/sock"))
				}
				turn = l.submit("Ada", "feed evil")
				l.k.allow(l.k.waiting(1)[0], "")
				l.k.deny(l.k.nextOf("write_stdin"), "")
				l.k.until("turn_waiting", turn) // it waits for the command, which nothing ends
				l.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, turn))
				l.ended("Ada", turn)
				if l.b.text("w/fed") != "" {
					t.Errorf("fed %q", l.b.text("w/fed"))
				}
			})
			t.Run("AP-34 an escalation without a justification is no call", func(t *testing.T) {
				lines, o := l.ended("Ada", l.submit("Ada", "unjustified"))
				if l.b.says(o.Text, protocol.InvalidToolArguments, ""); len(of(lines, "approval_requested")) != 0 {
					t.Errorf("%v", kinds(lines))
				}
			})
			t.Run("AP-28 AP-31 without its gate an escalation is refused, and what waits for it waits on", func(t *testing.T) {
				turn := l.submit("Ada", "escalate touch ../out/first")
				a := l.k.waiting(1)[0]
				l.k.ask(nil, "configure", `"bot":"Ada","gates":[]`)
				if l.k.waiting(1); l.b.exists("out/first") {
					t.Error("it ran")
				}
				l.k.allow(a, "")
				l.done(turn)
				l.b.says(l.done(l.submit("Ada", "escalate touch ../out/second")), protocol.EscalationRefused, "agent configure --approval manual")
				l.b.says(l.done(l.submit("Ada", "write ../out/third")), protocol.EscalationRefused, "agent configure --approval manual")
				if !l.b.exists("out/first") || l.b.exists("out/second") || l.b.exists("out/third") {
					t.Error("the wrong ones ran")
				}
			})
		})
	}
}

// nextOf gives the one call that waits, which is of a tool.
func (k *conn) nextOf(tool string) protocol.Approval {
	k.t.Helper()
	for {
		if a := k.waiting(1)[0]; a.Name == tool {
			return a
		}
	}
}

func (b *box) text(path string) string {
	text, _ := os.ReadFile(filepath.Join(b.dir, path))
	return string(text)
}

func TestRulesAndGates(t *testing.T) {
	t.Parallel()
	rules := `,"rules":{"files":[{"name":"r.rules","text":` + quoted(`prefix_rule(pattern=["touch"], decision="prompt", justification="it makes files")`+"\n"+
		`prefix_rule(pattern=["rm"], decision="forbidden")`+"\n"+`prefix_rule(pattern=["true"], decision="allow")`+"\n") + `}]}`
	l := newLeaver(t, 0, allGated+rules)
	t.Run("AP-32 PO-45 a prompt rule has a confined command wait, which then runs inside", func(t *testing.T) {
		turn := l.submit("Ada", "run touch in; touch ../out/x")
		a := l.k.waiting(1)[0]
		if a.Cause != "rule_prompt" || a.Escalated || len(a.Rules) != 1 || fmt.Sprint(a.Rules[0].Prefix) != "[touch]" || a.Rules[0].Decision != "prompt" || a.Rules[0].Justification != "it makes files" {
			t.Errorf("listed %+v", a)
		}
		l.k.allow(a, "")
		lines, _ := l.ended("Ada", turn)
		if !l.b.exists("w/in") || l.b.exists("out/x") || !strings.Contains(string(of(lines, "tool_started")[0].raw), `"sandboxed":true`) {
			t.Errorf("%v", kinds(lines))
		}
	})
	t.Run("AP-85 an escalation that a prompt rule catches says both", func(t *testing.T) {
		turn := l.submit("Ada", "escalate touch ../out/both")
		a := l.k.waiting(1)[0]
		if a.Cause != "rule_prompt" || !a.Escalated || len(a.Rules) != 1 || a.Justification != "a test" {
			t.Errorf("listed %+v", a)
		}
		l.k.allow(a, "")
		if l.done(turn); !l.b.exists("out/both") {
			t.Error("it did not run outside")
		}
	})
	t.Run("SB-77 AP-32 a forbidden rule refuses even what a gate would allow, and what an allow was given for", func(t *testing.T) {
		lines, o := l.ended("Ada", l.submit("Ada", "escalate rm ../out/both"))
		if l.b.says(o.Text, protocol.CommandForbidden, ""); len(of(lines, "approval_requested")) != 0 || !l.b.exists("out/both") {
			t.Errorf("%v", kinds(lines))
		}
		turn := l.submit("Ada", "escalate mkdir ../out/dir")
		a := l.k.waiting(1)[0]
		l.k.ask(nil, "configure", `"bot":"Ada","rules":{"files":[{"name":"r","text":`+quoted(`prefix_rule(pattern=["mkdir"], decision="forbidden")`+"\n")+`}]}`)
		l.k.allow(a, "")
		if l.b.says(l.done(turn), protocol.CommandForbidden, ""); l.b.exists("out/dir") {
			t.Error("it ran")
		}
	})
	t.Run("SB-78 PO-45 a prompt rule without a gate refuses", func(t *testing.T) {
		l.box("Bea", rules)
		lines, o := l.ended("Bea", l.submit("Bea", "run touch bea"))
		if l.b.says(o.Text, protocol.EscalationRefused, "it makes files"); l.b.exists("w/bea") || len(of(lines, "tool_started")) != 0 {
			t.Errorf("%v", kinds(lines))
		}
	})
	t.Run("an allow after a denial is for the sandbox that the call was to run in", func(t *testing.T) {
		l.box("Cid", allGated+rules)
		turn := l.submit("Cid", "run touch ../out/cid")
		a := l.k.waiting(1)[0]
		l.k.deny(a, "")
		l.ended("Cid", turn)
		l.k.ask(nil, "answer", verdict(a, `"decision":"allow","overturn":true`))
		l.k.ask(nil, "configure", `"bot":"Cid","sandbox":"danger-full-access"`)
		turn = l.submit("Cid", "run touch ../out/cid")
		l.k.deny(l.k.waiting(1)[0], "")
		_, o := l.ended("Cid", turn)
		if l.b.says(o.Text, protocol.ApprovalDenied, ""); l.b.exists("out/cid") {
			t.Error("it ran")
		}
	})
	t.Run("a call that was judged as one within the sandbox is asked for again when its bot is not held any more", func(t *testing.T) {
		l.k.ask(nil, "create", l.creation("Top", ""))
		var top protocol.Bot
		l.k.ask(&top, "inspect", `"bot":"Top"`)
		l.k.ask(nil, "create", l.creation("Kid", manual+fmt.Sprintf(`,"created_by":"Top","created_by_id":%d`, top.ID)+rules))
		l.k.ask(nil, "configure", `"bot":"Top","sandbox":"read-only"`+rules)
		turn := l.submit("Kid", "run touch ../out/kid")
		a := l.k.waiting(1)[0]
		if a.Cause != "rule_prompt" || a.Escalated {
			t.Errorf("listed %+v", a)
		}
		l.k.ask(nil, "configure", `"bot":"Top","sandbox":"workspace-write"`)
		l.k.allow(a, "")
		again := l.k.until2(a)
		l.k.ask(nil, "configure", `"bot":"Top","sandbox":"danger-full-access"`)
		l.k.allow(again, "")
		for again.Request == 2 {
			again = l.k.waiting(1)[0]
		}
		if again.Cause != "rule_prompt" || again.Request != 3 || l.b.exists("out/kid") {
			t.Errorf("listed %+v", again)
		}
		l.k.allow(again, "")
		lines, _ := l.ended("Kid", turn)
		if !l.b.exists("out/kid") || len(of(lines, "approval_requested")) != 3 || !strings.Contains(string(of(lines, "tool_started")[0].raw), `"sandboxed":false`) {
			t.Errorf("%v", kinds(lines))
		}
	})
	t.Run("SB-71 a gate's deadline is met whatever the bot does", func(t *testing.T) {
		l.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["shell"],"expire_ms":300}]`)
		l.b.says(l.done(l.submit("Ada", "escalate touch ../out/late")), protocol.ApprovalExpired, "not reviewed: no verdict")
		if l.b.exists("out/late") {
			t.Error("it ran")
		}
	})
}

func TestGatedServedToolsOfASandboxedBot(t *testing.T) {
	t.Parallel()
	h := newHost(t, servedScript)
	h.set.Limits.ApprovalHoldMS = 0
	p := h.start()
	k := p.dial()
	k.ask(nil, "follow", `"bot":"*","after":0`)
	make := func(name, more string) {
		k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":["echo"],"workspace":%q,"client_tools":[%s]%s`, name, h.workspace, memoryTool(""), more))
	}
	const sandboxed = `,"sandbox":"workspace-write"`
	const gate = `,"approve":["memory"],"approver":"manual"`
	s := p.dial()
	lease := s.serve("sonny", 600_000)
	for i, more := range []string{gate, gate + sandboxed} {
		t.Run("PO-63 a gated served tool is handed over once it is allowed, and with the verdict"+more, func(t *testing.T) {
			name := fmt.Sprint("Ada", i)
			make(name, more)
			sub := k.submit(name, "r", "one x", "")
			a := k.waiting(1)[0]
			if a.Cause != "served" || a.Escalated != (i == 1) || a.Name != "memory" {
				t.Errorf("listed %+v", a)
			}
			var page protocol.ToolCallPage
			if k.ask(&page, "tool_calls", ""); len(page.Calls) != 0 || len(s.notes) != 0 {
				t.Errorf("handed over before the verdict: %+v", page)
			}
			k.allow(a, `,"by":"pat"`)
			c := s.push()
			if len(c.Data.Approvals) != 1 || *c.Data.Approvals[0].By != "pat" {
				t.Errorf("pushed %+v", c.Data)
			}
			s.ask(nil, "tool_result", fmt.Sprintf(`"bot":%q,"turn":%d,"call_id":%q,"request":1,"tag":"sonny","lease":%d,"output":"ok"`, name, sub.Turn, a.CallID, lease.Lease))
			k.until("turn_finished", sub.Turn)
			if o := k.result(name, sub.Turn); o.Text != "got ok" {
				t.Errorf("outcome %+v", o)
			}
			sub = k.submit(name, "r2", "one x", "")
			k.deny(k.waiting(1)[0], "")
			k.until("turn_finished", sub.Turn)
			if o := k.result(name, sub.Turn); !strings.Contains(o.Text, "approval_denied") {
				t.Errorf("outcome %+v", o)
			}
		})
	}
	t.Run("a served call that fails makes the rest of its round wait again", func(t *testing.T) {
		make("Two", gate)
		sub := k.submit("Two", "r", "two", "")
		list := k.waiting(2)
		k.allow(list[1], "")
		k.allow(list[0], "")
		c := s.push()
		s.ask(nil, "tool_result", fmt.Sprintf(`"bot":"Two","turn":%d,"call_id":%q,"request":1,"tag":"sonny","lease":%d,"error":{"code":"no"}`, sub.Turn, c.Data.CallID, lease.Lease))
		again := k.until2(list[1])
		if again.Failed != list[0].CallID {
			t.Errorf("listed %+v", again)
		}
		k.deny(again, "")
		k.until("turn_finished", sub.Turn)
	})
}

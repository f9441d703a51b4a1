package cells

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/screen/md"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// clock is moved by hand.
type clock struct{ now time.Time }

// told is a transcript to which a test tells what happened.
type told struct {
	*Transcript
	t *testing.T
	c *clock
}

// A background command is its card; unfolded it is what the call answered.
func TestACardInPlaceOfAHandle(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	var handle string
	var since time.Time
	d.Process = func(h string, at time.Time) *Card {
		handle, since = h, at
		return &Card{Mark: text.Span{Text: "●"}, Name: "proc 3", Plan: "running", Took: "0:12", Last: "compiling"}
	}
	d.call("shell", `{"command":"make","background":true}`)
	d.event(protocol.KindToolStarted, protocol.ToolStarted{CallID: "c1", Name: "shell", Arguments: `{"command":"make","background":true}`})
	d.event(protocol.KindToolCompleted, protocol.ToolCompleted{CallID: "c1"})
	d.result(`{"handle":"proc:3","status":"running"}`)
	c := d.Call("c1")
	lines := func(open bool) string {
		var out []string
		for _, l := range c.layout(Look{Width: 30, Fold: DefaultFold()}, open) {
			out = append(out, strings.TrimRight(l.String(), " "))
		}
		return strings.Join(out, "\n")
	}
	if got, want := lines(false), "▸ shell  make  background\n● proc 3  running         0:12\n  compiling"; !strings.HasPrefix(got, "▸ shell  make  background") || !strings.HasSuffix(got, want[len("▸ shell  make  background"):]) {
		t.Errorf("it is\n%s", got)
	}
	if handle != "proc:3" || since != d.c.now {
		t.Errorf("asked of %q, since %v", handle, since)
	}
	if got := lines(true); !strings.Contains(got, `"handle": "proc:3"`) {
		t.Errorf("unfolded it is\n%s", got)
	}
}

func newTold(t *testing.T) *told {
	c := &clock{time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	tr := New(md.Options{})
	tr.Now = func() time.Time { return c.now }
	return &told{tr, t, c}
}

func (d *told) call(name, arguments string) *told {
	d.t.Helper()
	item, err := json.Marshal(map[string]any{"role": "assistant", "calls": []map[string]any{{"id": "c1", "tool": name, "arguments": json.RawMessage(arguments)}}})
	if err != nil {
		d.t.Fatal(err)
	}
	d.Item(1, 1, item, About{}, false)
	if d.Call("c1") == nil {
		d.t.Fatalf("the item has no call: %s", item)
	}
	return d
}

func (d *told) event(kind string, data any) *told {
	d.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Event(&protocol.Event{Kind: kind, Turn: 1, Durable: true, Data: raw})
	return d
}

func (d *told) result(text string) *told {
	d.t.Helper()
	item, err := json.Marshal(map[string]any{"role": "tool", "id": "c1", "output": text})
	if err != nil {
		d.t.Fatal(err)
	}
	d.Item(2, 1, item, About{}, false)
	return d
}

func (d *told) pass(t time.Duration) *told { d.c.now = d.c.now.Add(t); return d }

// lines are the transcript's, with the roles of what they say of verdicts.
func (d *told) lines(width int) string {
	var out []string
	for _, row := range d.Rows(Look{Width: width, Fold: DefaultFold()}, 0, 1000) {
		out = append(out, strings.TrimRight(row.Line.String(), " "))
	}
	return strings.Join(out, "\n")
}

// role is that of the span which holds words.
func (d *told) role(words string) text.Role {
	d.t.Helper()
	for _, row := range d.Rows(Look{Width: 100, Fold: DefaultFold()}, 0, 1000) {
		for _, s := range row.Line.Spans {
			if strings.Contains(s.Text, words) {
				return s.Role
			}
		}
	}
	d.t.Fatalf("no span holds %q in\n%s", words, d.lines(100))
	return 0
}

func by(name string) *string { return &name }

func (d *told) asks(tag string) *told {
	return d.event(protocol.KindApprovalRequested, protocol.ApprovalRequested{Calls: []protocol.RequestedCall{{
		CallID: "c1", Request: 1, Gates: []string{tag}, Name: "shell", AnnouncedMS: d.c.now.UnixMilli(),
	}}})
}

func (d *told) started(approvals []protocol.Verdict, overturned *string) *told {
	return d.event(protocol.KindToolStarted, protocol.ToolStarted{CallID: "c1", Name: "shell", Approvals: approvals, OverturnedBy: overturned})
}

func (d *told) denied(v protocol.Verdict) *told {
	v.Decision = protocol.Deny
	d.result(`{"error":"approval_denied","detail":"` + v.Reason + `"}`)
	return d.event(protocol.KindToolCompleted, protocol.ToolCompleted{CallID: "c1", Denied: true, Approvals: []protocol.Verdict{v}})
}

const (
	escalated = `{"command":"git push","sandbox_permissions":"require_escalated","justification":"x"}`
	ran       = `{"stdout":"","stderr":"","exit_code":0,"success":true}`
	next      = " Do not seek the same effect another way. Use a safer way, or end the turn saying what is needed, so that the person can name the action in a message."
	again     = " This is a failure of the check, not a finding about the action; it may be tried once more."
)

func TestVerdictWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		tell func(d *told)
		want string // at the end of the line
		role text.Role
	}{
		{"a call that waits for the person", func(d *told) { d.asks("manual") }, "waiting", text.Need},
		{"a call that is being judged says for how long", func(d *told) { d.asks("auto").pass(800 * time.Millisecond) }, "judging 0.8s", text.Wait},
		{"allowed by the judge, with its time", func(d *told) {
			d.asks("auto").started([]protocol.Verdict{{Tag: "auto", By: by("approver"), WaitedMS: 1100}}, nil).result(ran)
		}, "allowed by judge  1.1s", text.Dim},
		{"allowed by the person", func(d *told) {
			d.asks("manual").started([]protocol.Verdict{{Tag: "manual", By: by(You), WaitedMS: 5000}}, nil).result(ran)
		}, "allowed by you", text.Dim},
		{"allowed by another program", func(d *told) {
			d.started([]protocol.Verdict{{Tag: "ci", By: by("build bot")}}, nil).result(ran)
		}, "allowed by build bot", text.Dim},
		{"SO-17 allowed by a rule that is known", func(d *told) {
			d.Rule = func(string) (string, bool) { return "git push", true }
			d.started(nil, nil).result(ran)
		}, "allowed by rule git push", text.Dim},
		{"allowed by a rule that is not known", func(d *told) {
			d.Rule = func(string) (string, bool) { return "", true }
			d.started(nil, nil).result(ran)
		}, "allowed by rule", text.Dim},
		{"a bot without a sandbox is allowed by nobody", func(d *told) {
			d.Rule = func(string) (string, bool) { return "", false }
			d.started(nil, nil).result(ran)
		}, "git push  outside", text.Dim},
		{"SO-21 allowed after a denial", func(d *told) {
			d.started([]protocol.Verdict{{Tag: "auto", By: by(You)}}, by(You)).result(ran)
		}, "allowed by you", text.Run},
		{"SO-21 denied by the judge, without what the model is told", func(d *told) {
			d.asks("auto").denied(protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "judged dangerous: it pushes." + next})
		}, "denied by judge: judged dangerous: it pushes.", text.Fail},
		{"SO-16 denied by the person, with the reason", func(d *told) {
			d.asks("manual").denied(protocol.Verdict{Tag: "manual", By: by(You), Reason: "not now"})
		}, "denied by you: not now", text.Fail},
		{"denied by the person without a word", func(d *told) {
			d.denied(protocol.Verdict{Tag: "manual", By: by(You)})
		}, "denied by you", text.Fail},
		{"SO-117 a check that failed is said in other words and another colour", func(d *told) {
			d.denied(protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "not reviewed: the check timed out." + again})
		}, "not reviewed, not run: the check timed out.", text.Wait},
		{"SO-132 so is the one at which an outage stopped the turn", func(d *told) {
			d.denied(protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "stopped: judge unavailable, 3 denials in a row. not reviewed: the check timed out." + again})
		}, "not reviewed, not run: the check timed out.", text.Wait},
		{"SO-26 the denial at which the breaker stopped the turn is a verdict", func(d *told) {
			d.denied(protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "stopped: 3 denials in a row. judged dangerous: it pushes." + next})
		}, "denied by judge: stopped: 3 denials in a row. judged dangerous: it pushes.", text.Fail},
		{"SO-22 expired", func(d *told) {
			d.asks("auto").result(`{"error":"approval_expired","detail":"not reviewed: no verdict"}`)
			d.event(protocol.KindToolCompleted, protocol.ToolCompleted{CallID: "c1", Denied: true, Expired: true, Approvals: []protocol.Verdict{{Tag: "auto"}}})
		}, "expired, not run", text.Wait},
		{"SO-101 refused without a gate", func(d *told) { d.result(`{"error":"escalation_refused","detail":"no gate"}`) }, "refused: no gate", text.Fail},
		{"of the past: denied", func(d *told) {
			d.result(`{"error":"approval_denied","detail":"judged dangerous: it pushes.` + next + `"}`)
		}, "denied: judged dangerous: it pushes.", text.Fail},
		{"of the past: not reviewed", func(d *told) {
			d.result(`{"error":"approval_denied","detail":"not reviewed: the check failed.` + again + `"}`)
		}, "not reviewed, not run: the check failed.", text.Wait},
		{"of the past: expired", func(d *told) { d.result(`{"error":"approval_expired","detail":"not reviewed: no verdict"}`) }, "expired, not run", text.Wait},
		{"a command that failed says by what", func(d *told) {
			d.started(nil, nil).pass(3*time.Second).event(protocol.KindToolCompleted, protocol.ToolCompleted{CallID: "c1"})
			d.result(`{"stdout":"","stderr":"no","exit_code":2}`)
		}, "✘ 2  3s", text.Fail},
		{"a command that took too long", func(d *told) { d.started(nil, nil).result(`{"stdout":"","stderr":"","timed_out":true}`) }, "✘ timed out", text.Fail},
		{"an error that is no verdict", func(d *told) { d.result(`{"error":"path_changed","detail":"the target moved"}`) }, "✘ path_changed", text.Fail},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTold(t).call("shell", escalated)
			c.tell(d)
			got, _, _ := strings.Cut(d.lines(140), "\n")
			if !strings.HasPrefix(got, "▸ shell  git push") || !strings.HasSuffix(got, c.want) {
				t.Errorf("%s", got)
			}
			words, _, _ := strings.Cut(c.want, "  ")
			if role := d.role(strings.TrimPrefix(words, "git push")); role != c.role && !strings.HasPrefix(c.want, "git push") {
				t.Errorf("the role is %v, not %v", role, c.role)
			}
		})
	}
}

func TestAReasonThatLeavesNoRoom(t *testing.T) {
	t.Parallel()
	d := newTold(t).call("shell", escalated)
	d.denied(protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "judged dangerous: " + strings.Repeat("a long reason ", 12)})
	lines := strings.Split(d.lines(60), "\n")
	if lines[0] != "▸ shell  git push" || !strings.HasPrefix(lines[1], "  denied by judge: judged dangerous") || len(lines) < 4 {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if text.Width(l) > 60 {
			t.Errorf("%d cells: %s", text.Width(l), l)
		}
	}
}

func TestTheTimeOfAJudgementGoesOn(t *testing.T) {
	t.Parallel()
	d := newTold(t).call("shell", escalated).asks("auto")
	for _, want := range []string{"judging 0.0s", "judging 1.0s", "judging 2s"} {
		if got := d.lines(100); !strings.Contains(got, want) {
			t.Errorf("%s: %s", want, got)
		}
		d.pass(time.Second)
	}
}

func TestStepsOfAServedCall(t *testing.T) {
	t.Parallel()
	step := func(d *told, decision string, v ...protocol.Verdict) {
		d.event(protocol.KindStepDecided, protocol.StepDecided{CallID: "c1", Step: "s1", Name: "start_task.start", Decision: decision, Approvals: v})
	}
	asks := func(d *told, tag string) {
		d.event(protocol.KindApprovalRequested, protocol.ApprovalRequested{Calls: []protocol.RequestedCall{{
			CallID: "c1", Step: "s1", Request: 4, Gates: []string{tag}, Name: "start_task.start", AnnouncedMS: d.c.now.UnixMilli(),
		}}})
	}
	for _, c := range []struct {
		name string
		tell func(d *told)
		want string
	}{
		{"one that waits for the person", func(d *told) { asks(d, "manual") }, "start_task.start  waiting"},
		{"one that is judged", func(d *told) { asks(d, "auto"); d.pass(time.Second) }, "start_task.start  judging 1.0s"},
		{"allowed by the judge", func(d *told) {
			step(d, protocol.Allow, protocol.Verdict{Tag: "auto", By: by("approver"), WaitedMS: 1100})
		}, "start_task.start  allowed by judge  1.1s"},
		{"denied by the judge", func(d *told) {
			step(d, protocol.Deny, protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "judged unclear: what for?" + next})
		}, "start_task.start  denied by judge: judged unclear: what for?"},
		{"not reviewed", func(d *told) {
			step(d, protocol.Deny, protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "not reviewed: the check failed." + again})
		}, "start_task.start  not reviewed, not run: the check failed."},
		{"expired", func(d *told) { step(d, protocol.Expired, protocol.Verdict{Tag: "auto"}) }, "start_task.start  expired, not run"},
		{"denied, since no gate asks", func(d *told) { step(d, protocol.Deny) }, "start_task.start  denied: no gate"},
		{"allowed, and then failed", func(d *told) {
			step(d, protocol.Allow, protocol.Verdict{Tag: "manual", By: by(You)})
			d.event(protocol.KindStepCompleted, protocol.StepCompleted{CallID: "c1", Step: "s1", Name: "start_task.start", Detail: "setup failed"})
		}, "start_task.start  allowed by you  ✘ setup failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTold(t).call("start_task", `{"name":"a","brief":"b"}`)
			c.tell(d)
			lines := strings.Split(d.lines(100), "\n")
			if len(lines) != 2 || strings.TrimSpace(lines[1]) != c.want {
				t.Errorf("%s", strings.Join(lines, "\n"))
			}
		})
	}
}

func TestLinesOfCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, arguments, result string
		want                    string
	}{
		{"shell", `{"command":"go test\n./x\n./y"}`, `{"stdout":"ok\n","stderr":"","exit_code":0}`, "▸ shell  go test  +2 lines\n  ok"},
		{"shell", `{"command":"sleep 9","background":true}`, "", "▸ shell  sleep 9  background"},
		{"shell", `{"command":"x","detach":true}`, "", "▸ shell  x  detached"},
		{"shell", `{"command":"x"}`, `{"stdout":"1\n2\n3\n4\n","stderr":"","exit_code":0}`, "▸ shell  x\n  1\n  2\n  +2 lines"},
		{"shell", `{"command":"x"}`, `{"stdout":"1\n2\n3\n4\n","stderr":"","exit_code":1}`, "▸ shell  x                                               ✘ 1\n  3\n  4\n  +2 lines"},
		{"shell", `{"command":"x"}`, `{"stdout":"","stderr":"","exit_code":0,"left_running":true}`, "▸ shell  x  left running"},
		{"shell", `{"command":"x"}`, `{"stdout":"","stderr":"","exit_code":0,"sandbox_hint":"it wanted /etc"}`, "▸ shell  x\n  it wanted /etc"},
		{"shell", `{"command":"printf '\u001b[2J'"}`, "", `▸ shell  printf '\u{1b}[2J'`},
		{"write_stdin", `{"handle":"proc:3","text":"y"}`, "", "▸ stdin →  proc 3"},
		{"read", `{"path":"a.go"}`, `"text"`, "▸ read  a.go"},
		{"read", `{"path":"a.go","offset":20}`, `"text"`, "▸ read  a.go:20"},
		{"write", `{"path":"a","content":"1\n2\n"}`, `{}`, "▸ write  a  +2"},
		{"edit", `{"path":"a","old":"1\n","new":"2\n3\n"}`, `{}`, "▸ edit  a  +2 −1"},
		{"web_fetch", `{"url":"https://example.com/a"}`, `"x"`, "▸ fetch  example.com/a"},
		{"wait", `{"handles":["turn:demo.server/4","proc:3"]}`, "", "◐ waiting on  demo.server, proc 3"},
		{"note", `{"text":"remember"}`, `{}`, "▸ note\n  remember"},
		{"start_task", `{"name":"server","brief":"x"}`, "", "▸ start_task  server"},
		{"show_agent", `{"bot":"demo.server"}`, "", "▸ show_agent  demo.server"},
		{"mcp_tool", `{"first":"a thing","second":1}`, `{"a":1}`, "▸ mcp_tool  a thing\n  {\n    \"a\": 1\n  }"},
	} {
		t.Run(c.tool+" "+c.arguments, func(t *testing.T) {
			d := newTold(t).call(c.tool, c.arguments)
			if c.result != "" {
				d.result(c.result)
			}
			got := d.lines(60)
			if c.tool == "write" || c.tool == "edit" {
				got, _, _ = strings.Cut(got, "\n")
			}
			if got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func TestRunsOfReadsJoin(t *testing.T) {
	t.Parallel()
	d := newTold(t)
	for i, path := range []string{"x/session.go", "cookie.go"} {
		item, err := json.Marshal(map[string]any{"role": "assistant", "calls": []map[string]any{{"id": fmt.Sprint(i), "tool": "read", "arguments": map[string]any{"path": path}}}})
		if err != nil {
			t.Fatal(err)
		}
		d.Item(int64(i+1), 1, item, About{}, false)
	}
	if got := d.lines(60); got != "▸ read 2 files  session.go, cookie.go" {
		t.Error(got)
	}
}

func TestTheNewestDenial(t *testing.T) {
	t.Parallel()
	d := newTold(t).call("shell", escalated).asks("auto")
	if got := d.Denied(func(Denial) bool { return true }); got != nil {
		t.Errorf("a call that waits is a denial: %+v", got)
	}
	d.denied(protocol.Verdict{Tag: "auto", By: by("approver"), Reason: "judged dangerous: it pushes." + next})
	got := d.Denied(func(Denial) bool { return true })
	if got == nil || got.Call != "c1" || got.Turn != 1 || got.Request != 1 || got.Name != "shell" || got.Arguments != escalated ||
		got.Words != "denied by judge: judged dangerous: it pushes." {
		t.Errorf("%+v", got)
	}
	if got := d.Denied(func(Denial) bool { return false }); got != nil {
		t.Errorf("one that was dealt with: %+v", got)
	}
}

func TestWhatWaitsWhenAScreenOpens(t *testing.T) {
	t.Parallel()
	d := newTold(t).call("shell", escalated)
	d.Ask(protocol.RequestedCall{CallID: "c1", Request: 1, Gates: []string{"manual"}, AnnouncedMS: d.c.now.UnixMilli()})
	d.Ask(protocol.RequestedCall{CallID: "unknown", Request: 1, Gates: []string{"manual"}})
	if got := d.lines(60); !strings.HasSuffix(got, "waiting") {
		t.Error(got)
	}
	d.result(ran)
	d.Ask(protocol.RequestedCall{CallID: "c1", Request: 1, Gates: []string{"manual"}})
	if got := d.lines(60); strings.Contains(got, "waiting") {
		t.Errorf("a call that has ended waits: %s", got)
	}
}

func TestProtectedPathsOfACall(t *testing.T) {
	t.Parallel()
	d := newTold(t).call("shell", escalated).result(`{"stdout":"","stderr":"","exit_code":0,"protected_changed":["/a/.git/config"]}`)
	if got := d.Call("c1").Exposed(); !slices.Equal(got, []string{"/a/.git/config"}) {
		t.Errorf("%v", got)
	}
}

func TestHowATurnEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, status, code, detail string
		want                       string
		kind                       Kind
	}{
		{"SO-26 the breaker", protocol.StatusInterrupted, "", "stopped: 3 denials in a row.", "stopped: 3 denials in a row.", Error},
		{"SO-131 nobody served the gate", protocol.StatusInterrupted, string(protocol.ApprovalsUnserved), "", OutageWords, Fault},
		{"SO-132 the judge was unavailable", protocol.StatusInterrupted, "", "stopped: judge unavailable, 3 denials in a row.", OutageWords, Fault},
		{"SO-104 a pause", protocol.StatusInterrupted, string(protocol.Paused), "", "interrupted: paused", Notice},
		{"the person", protocol.StatusInterrupted, "", "", "interrupted", Notice},
		{"a failure", protocol.StatusFailed, "provider_http_500", "it said no", "failed: provider_http_500", Error},
	} {
		d := newTold(t)
		d.Ended(1, c.status, c.code, c.detail)
		if last := d.At(d.Len() - 1); last.Text != c.want || last.Kind != c.kind {
			t.Errorf("%s: %q, %v", c.name, last.Text, last.Kind)
		}
	}
}

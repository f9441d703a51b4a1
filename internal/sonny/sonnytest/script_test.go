package sonnytest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"
)

// desk is a home whose daemon runs, and its bots.
type desk struct {
	*Home
	t   *testing.T
	c   *client.Client
	ctx context.Context
}

func newDesk(t *testing.T, options ...Option) *desk {
	t.Helper()
	h := Fresh(t, options...)
	d := &desk{Home: h, t: t, c: h.Client()}
	d.must("start")
	var cancel context.CancelFunc
	d.ctx, cancel = context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return d
}

// in is the desk for a part of its test.
func (d *desk) in(t *testing.T) *desk {
	t.Helper()
	other := *d
	other.t = t
	return &other
}

func (d *desk) must(args ...string) string {
	d.t.Helper()
	r := d.Agent(args...)
	if r.Exit != 0 {
		d.t.Fatalf("agent %s: exit %d: %s", strings.Join(args, " "), r.Exit, r.Stderr)
	}
	return r.Stdout
}

// send makes a bot, or goes on with one, in a folder of its own, and gives it a prompt.
func (d *desk) send(bot, prompt string, flags ...string) *turn {
	d.t.Helper()
	dir := d.Path("work", bot)
	line := []string{"run", "--detach", "--bot", bot}
	if _, err := os.Stat(dir); err != nil {
		d.folder(dir)
		line = append(line, "--new", "--model", "scripted/sonny", "--workspace", dir)
	}
	out := d.must(append(append(line, flags...), "--", prompt)...)
	made := &turn{desk: d, bot: bot, dir: dir}
	if err := json.Unmarshal([]byte(out), &made.Submitted); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	return made
}

// turn is a turn under way.
type turn struct {
	*desk
	protocol.Submitted
	bot, dir string
}

// until follows the turn to the next event that fits.
func (n *turn) until(what string, fits func(e *protocol.Event) bool) *protocol.Event {
	n.t.Helper()
	for e, err := range n.c.Follow(n.ctx, n.bot, client.FollowOptions{Turn: n.Turn}) {
		if err != nil {
			n.t.Fatal(err)
		}
		if e.Turn == n.Turn && fits(e) {
			return e
		}
	}
	n.t.Fatalf("the turn has ended without %s", what)
	return nil
}

// outcome waits for the turn's end.
func (n *turn) outcome() *protocol.Outcome {
	n.t.Helper()
	n.until("an end", func(e *protocol.Event) bool { return e.Kind == protocol.KindTurnFinished })
	o, err := n.c.Result(n.ctx, n.bot, n.Turn)
	if err != nil {
		n.t.Fatal(err)
	}
	return o
}

// says is what the bot has said last in a turn that completes.
func (n *turn) says() string {
	n.t.Helper()
	o := n.outcome()
	if o.Status != "completed" {
		n.t.Fatalf("the turn is %s: %v %v", o.Status, o.Error, o.Detail)
	}
	return o.Text
}

// events are the durable ones of the turn, as their lines.
func (n *turn) events(kind string) (lines []string) {
	n.t.Helper()
	for e, err := range n.c.Follow(n.ctx, n.bot, client.FollowOptions{Turn: n.Turn, UntilLive: true}) {
		if err != nil {
			n.t.Fatal(err)
		}
		if e.Turn == n.Turn && e.Kind == kind {
			lines = append(lines, string(e.Data))
		}
	}
	return lines
}

// waiting is the call of the turn that waits for a verdict.
func (n *turn) waiting() (call *protocol.Approval) {
	n.t.Helper()
	n.Until("a call that waits", func() bool {
		for a, err := range n.c.Approvals(n.ctx, client.ApprovalFilter{Bot: n.bot}) {
			if err != nil {
				n.t.Fatal(err)
			}
			call = a
		}
		return call != nil
	})
	return call
}

func (n *turn) answer(a *protocol.Approval, decision string) {
	n.t.Helper()
	if _, err := n.c.Answer(n.ctx, &protocol.Answer{Bot: n.bot, Turn: a.Turn, CallID: a.CallID, Request: a.Request, Decision: decision}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *turn) file(name string) string {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text)
}

func TestPromptsThatAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, row := range []struct{ bot, prompt, want string }{
		{"say", "say: hello there", "hello there"},
		{"lines", "say: one\ntwo ${last}", "one\ntwo ${last}"},
		{"think", "think: A | B", "B"},
		{"low", "usage: low", "ok"},
		{"high", "usage: high", "ok"},
		{"controls", "emit: controls", "before \x1b[2J clear, \a bell, \u009b1m eight bits, \u202e backwards, after"},
		{"other", "hello", "No script for: hello"},
		{"sh", "sh: echo hi", `{"stdout":"hi\n","stderr":"","exit_code":0,"success":true}`},
		{"command", "emit: command", `{"stdout":"\u001b[2J","stderr":"","exit_code":0,"success":true}`},
		{"bg", "bg: echo hi; exit 3", `"stdout":"hi\n","stderr":"","exit_code":3,`},
		{"esc", "esc: echo hi | tr h H", `{"stdout":"Hi\n","stderr":"","exit_code":0,"success":true}`},
		{"esc3", "esc3: echo x >> f", "gave up"},
		{"write", "write: a/x.txt | one | two\n", "done"},
		{"drop", "drop: 1", "The first paragraph of three.\n\nThe second paragraph of three.\n\nThe third paragraph of three."},
		{"fetch", "fetch: http://127.0.0.1:1/", "127.0.0.1"},
	} {
		t.Run(row.prompt, func(t *testing.T) {
			t.Parallel()
			d := d.in(t)
			n := d.send(row.bot, row.prompt)
			if got := n.says(); got != row.want && !(strings.Contains(got, row.want) && slices.Contains([]string{"bg", "fetch"}, row.bot)) {
				t.Errorf("%q, wanted %q", got, row.want)
			}
			d.look(n)
		})
	}
}

// look looks at what else a prompt of the table does.
func (d *desk) look(n *turn) {
	t := d.t
	has := func(kind string, want ...string) {
		t.Helper()
		got := n.events(kind)
		if len(got) != len(want) {
			t.Fatalf("%d events %s, wanted %d: %q", len(got), kind, len(want), got)
		}
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s does not contain %s", got[i], want[i])
			}
		}
	}
	switch n.bot {
	case "think":
		if out := d.must("history", "--bot", n.bot, "--limit", "1"); !strings.Contains(out, `"thinking":"A"`) {
			t.Error(out)
		}
	case "low":
		has(protocol.KindUsage, `"input_tokens":20000,"output_tokens":10,"cached_input_tokens":0,`)
	case "high":
		has(protocol.KindUsage, `"input_tokens":90000,"output_tokens":1000,"cached_input_tokens":80000,`)
	case "bg":
		has(protocol.KindToolStarted, `\"background\"`, `\"proc:`)
	case "esc", "command":
		has(protocol.KindToolStarted, `require_escalated`)
	case "esc3":
		has(protocol.KindToolStarted, `require_escalated`, `require_escalated`, `require_escalated`)
		if got := n.file("f"); got != "x\nx\nx\n" {
			t.Errorf("%q", got)
		}
	case "write":
		if got := n.file("a/x.txt"); got != "one | two\n" {
			t.Errorf("%q", got)
		}
		if got := d.send(n.bot, "edit: a/x.txt | one | 1").says(); got != "done" || n.file("a/x.txt") != "1 | two\n" {
			t.Errorf("%s: %q", got, n.file("a/x.txt"))
		}
	case "drop":
		has(protocol.KindUsage, "", "") // the attempt that was cut off, and the whole one
	case "fetch":
		has(protocol.KindToolStarted, `"name":"web_fetch"`)
	}
}

func TestMarkdownOfTheScript(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.send("all", "md: everything").says()
	for _, part := range []string{"# Heading one\n", "\n- [x] ", "\n> > ", "\n```go\n", "\n    code", "\n---\n", "\n| :--- |", "[^1]: ", "漢字", "```mermaid"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q", part)
		}
	}
	for row := range strings.SplitSeq(d.send("wide", "md: wide").says(), "\n") {
		if !strings.HasPrefix(row, "| ") || len(row) < 3*80 && !strings.Contains(row, "---") && !strings.Contains(row, "column") {
			t.Errorf("%q", row)
		}
	}
}

// retried waits for the notice of a repeated call, of that attempt or a later one: who
// follows a turn that is under way does not hear of what was before.
func (n *turn) retried(attempt int, code string) {
	n.t.Helper()
	n.until("a retry", func(e *protocol.Event) bool {
		var r struct {
			Attempt int    `json:"attempt"`
			Error   string `json:"error"`
		}
		return e.Kind == "retry" && e.Decode(&r) == nil && r.Attempt >= attempt && r.Error == code
	})
}

func TestPromptsThatFail(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	t.Run("limit holds the second attempt up, too", func(t *testing.T) {
		t.Parallel()
		d := d.in(t)
		n := d.send("limit", "limit: 2")
		began := time.Now()
		if got := n.says(); got != "ok" || time.Since(began) < time.Second {
			t.Errorf("%q after %s", got, time.Since(began))
		}
	})
	t.Run("fail goes on failing", func(t *testing.T) {
		t.Parallel()
		d := d.in(t)
		n := d.send("fail", "fail: provider_http_500")
		n.retried(4, "provider_http_500") // one more attempt than limit: 2 and drop: 1 need
		if _, err := n.c.Interrupt(n.ctx, n.bot, n.Turn, ""); err != nil {
			t.Fatal(err)
		}
		if o := n.outcome(); o.Status != "interrupted" {
			t.Errorf("%+v", o)
		}
	})
}

func TestSlow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	t.Run("it takes its time", func(t *testing.T) {
		t.Parallel()
		d := d.in(t)
		began := time.Now()
		got := d.send("a", "slow: 3").says()
		if took := time.Since(began); took < 3*time.Second || len(strings.Fields(got)) != 31 {
			t.Errorf("%d words in %s", len(strings.Fields(got)), took)
		}
	})
	t.Run("a steer that no script knows adds a round", func(t *testing.T) {
		t.Parallel()
		d := d.in(t)
		n := d.send("b", "slow: 3")
		n.until("words", func(e *protocol.Event) bool { return e.IsDelta() })
		steer := d.send("b", "keep flag", "--delivery", "steer")
		if got := n.says(); got != "slow done" {
			t.Errorf("%q", got)
		}
		if o, err := d.c.Result(d.ctx, "b", steer.Turn); err != nil || o.Status != "steered" || o.Into != n.Turn {
			t.Errorf("%+v %v", o, err)
		}
	})
	t.Run("each takes as many seconds as it says", func(t *testing.T) {
		var file struct {
			Models map[string]struct {
				Scripts []struct {
					Match struct{ Equals string }
					Steps []struct {
						Text   string
						PaceMS int `json:"pace_ms"`
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(Script), &file); err != nil {
			t.Fatal(err)
		}
		took := map[string]int{}
		for _, s := range file.Models["sonny"].Scripts {
			if strings.HasPrefix(s.Match.Equals, "slow: ") {
				took[s.Match.Equals] = (len(strings.Fields(s.Steps[0].Text)) - 1) * s.Steps[0].PaceMS
			}
		}
		if len(took) != 3 || took["slow: 3"] != 3000 || took["slow: 10"] != 10_000 || took["slow: 20"] != 20_000 {
			t.Errorf("%v ms", took)
		}
	})
}

func TestCallsThatWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, decision := range []string{protocol.Allow, protocol.Deny} {
		t.Run("esc waits at a gate: "+decision, func(t *testing.T) {
			t.Parallel()
			d := d.in(t)
			n := d.send(decision, "esc: touch there", "--approval", "manual", "--sandbox", "workspace-write")
			a := n.waiting()
			var args struct {
				Command string `json:"command"`
			}
			if err := a.Decode(&args); err != nil || args.Command != "touch there" || a.Justification == "" || !a.Escalated {
				t.Errorf("%+v %v", a, err)
			}
			n.answer(a, decision)
			got := n.says()
			_, err := os.Stat(filepath.Join(n.dir, "there"))
			if ran := err == nil; ran != (decision == protocol.Allow) || ran == strings.Contains(got, "approval_denied") {
				t.Errorf("%q, ran: %v", got, ran)
			}
		})
	}
	t.Run("hold waits for the file release", func(t *testing.T) {
		t.Parallel()
		d := d.in(t)
		n := d.send("hold", "hold: echo escaped")
		n.until("a command", func(e *protocol.Event) bool { return e.Kind == protocol.KindToolStarted })
		if got := n.events(protocol.KindToolCompleted); len(got) > 0 {
			t.Errorf("the command has ended: %q", got)
		}
		d.Write(filepath.Join("work", "hold", "release"), "")
		if got := n.says(); !strings.Contains(got, "escaped") {
			t.Errorf("%q", got)
		}
		if got := n.events(protocol.KindToolStarted); len(got) != 2 || strings.Contains(got[0], "require_escalated") || !strings.Contains(got[1], "require_escalated") {
			t.Errorf("%q", got)
		}
	})
}

// servedTools are the tools of the script that Sonny's tool host serves.
const servedTools = `[
 {"name":"start_task","parameters":{"type":"object"},"tag":"sonny","gated":false},
 {"name":"ask_person","parameters":{"type":"object"},"tag":"sonny","gated":false},
 {"name":"memory","parameters":{"type":"object"},"tag":"sonny","gated":false},
 {"name":"plan","parameters":{"type":"object"},"tag":"sonny","gated":false},
 {"name":"run_in_pane","parameters":{"type":"object"},"tag":"sonny","gated":false}
]`

func TestPromptsForTheToolHost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, stop := context.WithCancel(d.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- d.c.ServeTools(ctx, "sonny", client.ServeOptions{}, func(_ context.Context, call *client.ToolCall) (client.ToolOutput, error) {
			return client.ToolOutput{Text: call.Name + " " + string(call.Arguments)}, nil
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	tools := d.Write("tools.json", servedTools)
	for bot, row := range map[string]struct{ prompt, want string }{
		"task": {"task: a | say: hi\nthere", `start_task {"name": "a", "brief": "say: hi\nthere"}`},
		"ask":  {"ask: Which one? | red | dark blue", `ask_person {"question": "Which one?", "choices": ["red", "dark blue"]}`},
		"save": {"save: a-fact | Text of it", `memory {"action": "save", "name": "a-fact", "type": "project", "description": "Text of it", "text": "Text of it", "source": "the person"}`},
		"plan": {"plan: one;two;three", `plan {"steps": [{"text": "one", "state": "doing"}, {"text": "two", "state": "todo"}, {"text": "three", "state": "todo"}]}`},
		"pane": {"pane: echo pane-ok; sleep 30", `run_in_pane {"command": "echo pane-ok; sleep 30"}`},
	} {
		t.Run(row.prompt, func(t *testing.T) {
			t.Parallel()
			d := d.in(t)
			if got := d.send(bot, row.prompt, "--client-tools", tools).says(); got != row.want {
				t.Errorf("%s, wanted %s", got, row.want)
			}
			if got := d.send(bot+"-without", row.prompt).says(); got != "Tool "+strings.Fields(row.want)[0]+" is not available to this bot." {
				t.Errorf("without the tool: %s", got)
			}
		})
	}
}

func TestJudges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		judge, config, want string
		runs                bool
	}{
		{"allow", "", "", true},
		{"deny", "", "The script denies it.", false},
		{"unclear", "", "The script cannot tell.", false},
		{"silent", "judge_deadline_ms = 1000\n", "not reviewed", false},
	} {
		t.Run(row.judge, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, Judge(row.judge), func(p *parts) { p.config += row.config })
			n := d.send("a", "esc: touch there", "--approval", "auto")
			n.says()
			kind := protocol.KindToolStarted
			if !row.runs {
				kind = protocol.KindToolCompleted
			}
			if got := n.events(kind); len(got) != 1 || !strings.Contains(got[0], `"by":"approver"`) || !strings.Contains(got[0], row.want) {
				t.Errorf("%q", got)
			}
			if _, err := os.Stat(filepath.Join(n.dir, "there")); (err == nil) != row.runs {
				t.Errorf("ran: %v", err == nil)
			}
		})
	}
}

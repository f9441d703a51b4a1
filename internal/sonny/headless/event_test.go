package headless

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/client/termsafe"
	"agent/protocol"

	"github.com/google/jsonschema-go/jsonschema"
)

// everyEvent has each type of line, with all its members.
func everyEvent() []event {
	n, usd := int64(3), 0.5
	used := Usage{Input: 1, Cached: 2, Write: 3, Output: 4, Reasoning: 5, CostUSD: &usd}
	files := []FileChange{{Path: "a", Added: 1, Removed: 2}}
	return []event{
		&sessionEvent{BotID: 1, Session: "s", Workspace: "/w", Branch: "b", Model: "p/m", Suggested: true, Effort: "low", Row: "deny", Sandbox: protocol.SandboxWorkspace, Network: true, Created: true, Version: "1"},
		&turnStartedEvent{PromptBytes: 1, Delivery: "queue"},
		&deltaEvent{Delta: "x"}, &deltaEvent{thinking: true, Delta: "x"},
		&messageEvent{Text: "x", Round: 1},
		&toolStartedEvent{Call: "c", Tool: "shell", Summary: "s", Arguments: "{}", Truncated: true},
		&toolFinishedEvent{Call: "c", Tool: "shell", Status: callError, Error: "x", Exit: &n, MS: 1, Output: "o", Artifacts: []string{"stdout"}, Files: files},
		&approvalEvent{Call: "c", Step: "s", State: denied, By: "judge", Reason: "r"},
		&waitEvent{what: "steered", Into: 4}, &waitEvent{what: "queued"},
		&waitEvent{what: "paced", ResumeAt: stamp(time.Unix(0, 0))}, &waitEvent{what: "waiting", Handles: []string{"proc:1"}},
		&taskEvent{Task: "t", Status: "running", Branch: "b", Text: "x"}, &taskEvent{finished: true, Task: "t", Status: "completed", Branch: "b", Text: "x"},
		&usageEvent{Usage: used},
		&noteEvent{Code: "c", Detail: "d"}, &noteEvent{fault: true, Code: "c", Detail: "d"},
		&Result{
			Status: Unfit, Text: "x", Data: json.RawMessage(`{"a":1}`), Usage: used, Files: files,
			Error: &Failure{"schema", "d"}, Session: "s", Worktree: &Worktree{"/w", "b", true}, Exit: 5,
		},
	}
}

func TestEveryEventIsInTheSchema(t *testing.T) {
	t.Parallel()
	var doc struct {
		OneOf []map[string]string `json:"oneOf"`
		Defs  map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, named := range []bool{false, true} {
		for _, e := range everyEvent() {
			var out bytes.Buffer
			o := &Output{Stdout: &out, JSON: true}
			if named {
				o.on("bot", 7)
			}
			o.tell(e)
			var value map[string]any
			if err := json.Unmarshal(out.Bytes(), &value); err != nil || strings.Count(out.String(), "\n") != 1 {
				t.Fatalf("%v: %s", err, &out)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v", &out, err)
			}
			seen[e.kind()] = true
			want := slices.Sorted(maps.Keys(doc.Defs[e.kind()].Properties))
			got := slices.Sorted(maps.Keys(value))
			if e.kind() == "result" || e.kind() == "tool_finished" || e.kind() == "session" {
				if !slices.Equal(got, want) {
					t.Errorf("%s has %v, the schema %v", e.kind(), got, want)
				}
			}
			for _, name := range got {
				if !slices.Contains(want, name) {
					t.Errorf("%s has %s, which the schema does not name", e.kind(), name)
				}
			}
		}
	}
	if len(seen) != len(doc.OneOf) {
		t.Errorf("%d types are told, and the schema has %d", len(seen), len(doc.OneOf))
	}
}

func TestEveryEventIsOneLineOfText(t *testing.T) {
	t.Parallel()
	for _, e := range everyEvent() {
		var out, errs bytes.Buffer
		o := &Output{Stdout: &out, Stderr: &errs}
		switch e := e.(type) {
		case *noteEvent:
			e.Detail = "one\x1b[2J\ntwo"
		case *approvalEvent:
			e.Reason = "one\x1b[2J\ntwo"
		}
		o.tell(e)
		if strings.Count(errs.String(), "\n") > 1 && e.kind() != "result" || strings.Contains(errs.String(), "\x1b") {
			t.Errorf("%s: %q", e.kind(), &errs)
		}
	}
}

// broken is a stdout that fails.
type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("closed")
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	b := &broken{}
	o := &Output{Stdout: b, JSON: true}
	for range 3 {
		o.note("c", "d")
	}
	if b.writes != 1 || o.closed == nil {
		t.Errorf("%d writes, %v", b.writes, o.closed)
	}
}

// full is a stdout on a full disk: it takes so many bytes, and again when there is room.
type full struct {
	got  bytes.Buffer
	room int
}

func (f *full) Write(p []byte) (int, error) {
	n := min(f.room, len(p))
	f.room -= n
	f.got.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestAnOutputThatCannotBeWrittenIsNoSuccess(t *testing.T) {
	t.Parallel()
	reply := &messageEvent{Text: "the reply"}
	for _, c := range []struct {
		name         string
		json, quiet  bool
		stdout       io.Writer
		result       Result
		status, line string
		exit         int
	}{
		{"a reply on a full disk", false, false, &full{}, Result{Status: Completed}, Failed, "output_failed", 1},
		{"a final reply alone", false, true, &full{}, Result{Status: Completed, Text: "the reply"}, Failed, "output_failed", 1},
		{"JSON", true, false, &full{}, Result{Status: Completed}, Failed, "output_failed", 1},
		{"a part of it", false, false, &full{room: 3}, Result{Status: Completed}, Failed, "output_failed", 1},
		{"a turn that was ended for it", false, false, &full{}, Result{Status: Interrupted, Exit: 1}, Failed, "output_failed", 1},
		{"a run that failed of itself", false, false, &full{}, Result{Status: Unfit, Exit: 5, Error: &Failure{Code: "schema"}}, Unfit, "output_failed", 5},
		{"a reader that has gone", false, false, gone{}, Result{Status: Completed}, Completed, "", 0},
	} {
		var errs bytes.Buffer
		o := &Output{Stdout: c.stdout, Stderr: &errs, JSON: c.json, Quiet: c.quiet}
		o.tell(reply)
		o.end(&c.result)
		if c.result.Status != c.status || c.result.Exit != c.exit {
			t.Errorf("%s: %s, exit %d", c.name, c.result.Status, c.result.Exit)
		}
		if n := strings.Count(errs.String(), "output_failed"); c.line == "" && errs.Len() > 0 || c.line != "" && n != 1 {
			t.Errorf("%s: stderr says %q", c.name, &errs)
		}
	}
}

type gone struct{}

func (gone) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "stdout", Err: syscall.EPIPE}
}

func TestTheResultIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	stdout, errs := &full{room: 9}, &bytes.Buffer{}
	o := &Output{Stdout: stdout, Stderr: errs, JSON: true}
	o.tell(&messageEvent{Text: "the reply"})
	stdout.room = 1 << 20
	o.end(&Result{Status: Completed})
	lines := strings.Split(strings.TrimSpace(stdout.got.String()), "\n")
	var r struct {
		Status string   `json:"status"`
		Exit   int      `json:"exit"`
		Error  *Failure `json:"error"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil || len(lines) != 2 {
		t.Fatalf("%v: %q", err, &stdout.got)
	}
	if r.Status != Failed || r.Exit != 1 || r.Error == nil || r.Error.Code != OutputFailed || !strings.Contains(errs.String(), "output_failed") {
		t.Errorf("%+v, stderr %q", r, errs)
	}
}

func TestOneResultIsTold(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := &Output{Stdout: &out, JSON: true}
	if status := o.Refuse(protocol.Fail(protocol.UsageError, "x")); status != 2 {
		t.Errorf("status %d", status)
	}
	o.Refuse(errors.New("y"))
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	code := func(c protocol.Code) *protocol.Code { return &c }
	says := func(s string) *string { return &s }
	for _, c := range []struct {
		name   string
		end    protocol.TurnFinished
		why    reason
		calls  denials
		status string
		exit   int
	}{
		{"a turn that completed", protocol.TurnFinished{Status: "completed"}, reason{}, denials{}, Completed, 0},
		{"one that completed as the time ended", protocol.TurnFinished{Status: "completed"}, reason{is: byTimeout}, denials{}, Completed, 0},
		{"a failure", protocol.TurnFinished{Status: "failed", Error: code("provider_http_500")}, reason{}, denials{}, Failed, 1},
		{"a sign-in that is over", protocol.TurnFinished{Status: "failed", Error: code(protocol.ProviderLoginExpired)}, reason{}, denials{}, Failed, 6},
		{"a budget", protocol.TurnFinished{Status: "failed", Error: code(protocol.BudgetExhausted)}, reason{}, denials{}, OverBudget, 3},
		{"a timeout", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.Cancelled)}, reason{is: byTimeout}, denials{}, TimedOut, 3},
		{"a signal", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.Cancelled)}, reason{is: bySignal, signal: 2}, denials{}, Interrupted, 130},
		{"another signal", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.Cancelled)}, reason{is: bySignal, signal: 15}, denials{}, Interrupted, 143},
		{"the breaker, after denied calls alone", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.Cancelled), Detail: says("stopped: 3 denials in a row.")}, reason{}, denials{denied: 3}, Denied, 4},
		{"the breaker, after work", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.Cancelled), Detail: says("stopped: 3 denials in a row.")}, reason{}, denials{denied: 3, other: 1}, Interrupted, 1},
		{"nobody who judges", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.ApprovalsUnserved)}, reason{}, denials{denied: 3}, Denied, 4},
		{"a pause", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.Paused)}, reason{}, denials{}, Interrupted, 1},
		{"a closed output", protocol.TurnFinished{Status: "interrupted", Error: code(protocol.Cancelled)}, reason{is: byClosedOutput}, denials{}, Interrupted, 1},
	} {
		if status, exit := endOf(&c.end).verdict(c.why, c.calls); status != c.status || exit != c.exit {
			t.Errorf("%s: %s, %d", c.name, status, exit)
		}
	}
}

// A terminal that is shown the events acts on nothing in them (sonny.md 8.4, cli.md 5).
func TestNoEventHoldsWhatATerminalActsOn(t *testing.T) {
	t.Parallel()
	acting := "a\u009b31mb\u202ec\x7fd\u2028e\U000e0041f\x1b[2Jg\xff"
	var out bytes.Buffer
	o := &Output{Stdout: &out, JSON: true}
	o.on(acting, 1)
	for _, e := range []event{
		&messageEvent{Text: acting}, &toolFinishedEvent{Call: acting, Output: acting, Files: []FileChange{{Path: acting}}},
		&noteEvent{Code: "c", Detail: acting}, &Result{Status: Completed, Text: acting, Data: json.RawMessage(`"` + "\u009b" + `"`)},
	} {
		o.tell(e)
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("%d lines", n)
	}
	for _, r := range out.String() {
		if r != '\n' && termsafe.Acts(r) {
			t.Fatalf("U+%04X is written as it is:\n%q", r, out.String())
		}
	}
	var first struct{ Text string }
	if err := json.Unmarshal(bytes.SplitN(out.Bytes(), []byte("\n"), 2)[0], &first); err != nil || first.Text != strings.ToValidUTF8(acting, "\ufffd") {
		t.Errorf("it means %q, %v", first.Text, err)
	}
}

package cells

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/client/termsafe"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/diff"
	"agent/protocol"
)

// ToolCall is a call of a tool, with all that was told of it.
type ToolCall struct {
	ID, Name  string
	Arguments string // JSON

	At fault.Where // where what it came to is read

	Started, Ended time.Time // as far as they were seen
	Asked          time.Time // since when it waits
	Asks           []string  // the tags that it waits for
	Request        int64     // the number under which it asked last; 0: not seen
	Judged         []protocol.Verdict
	Overturned     string // who overturned a denial, "" for nobody
	Outside        bool   // it ran outside the sandbox
	Rule           string // the command rule that let it, "" for none
	ByRule         bool   // a rule let it, whether it is known or not
	Cancelled      bool
	Unknown        bool // nobody knows whether it ran
	Denied         bool
	Expired        bool
	Steps          []Step

	now   func() time.Time
	cards func(*ToolCall) *Card

	started *string // the task that it started, once read; "" for none
	handle  *string // the same of a background command

	done   bool
	Result string
	failed string // the code, where the result is an error
	why    string
	shell  *shellResult

	args   arguments
	did    []*diff.File // to files, once diffed
	diffed bool
}

// Step is a part of a served call that was asked about.
type Step struct {
	ID, Name   string
	Asked      time.Time
	Asks       []string
	Request    int64
	Decision   string
	Judged     []protocol.Verdict
	Overturned string
	Done       bool
	OK         bool
	Detail     string
}

// arguments are those that calls of several tools share.
type arguments struct {
	Command     string   `json:"command"`
	Path        string   `json:"path"`
	Content     string   `json:"content"`
	Old         string   `json:"old"`
	New         string   `json:"new"`
	Patch       string   `json:"patch"`
	URL         string   `json:"url"`
	Query       string   `json:"query"`
	Text        string   `json:"text"`
	Note        string   `json:"note"`
	Name        string   `json:"name"`
	Action      string   `json:"action"`
	Bot         string   `json:"bot"`
	Question    string   `json:"question"`
	Offset      int64    `json:"offset"`
	Limit       int64    `json:"limit"`
	Handles     []string `json:"handles"`
	Handle      string   `json:"handle"`
	Background  bool     `json:"background"`
	Detach      bool     `json:"detach"`
	Permissions string   `json:"sandbox_permissions"`
	Reason      string   `json:"justification"`
}

// shellResult is what shell and the tools like it answer.
type shellResult struct {
	Stdout      *string         `json:"stdout"`
	Stderr      string          `json:"stderr"`
	ExitCode    *int64          `json:"exit_code"`
	TimedOut    bool            `json:"timed_out"`
	Signal      json.RawMessage `json:"signal"`
	LeftRunning json.RawMessage `json:"left_running"`
	Hint        string          `json:"sandbox_hint"`
	Protected   []string        `json:"protected_changed"`
}

func newCall(id, name, args string, now func() time.Time) *ToolCall {
	c := &ToolCall{ID: id, Name: name, Arguments: args, now: now}
	_ = json.Unmarshal([]byte(args), &c.args) // arguments of other kinds show as they are
	return c
}

// reads reports whether the call only looks, so that a run of such joins.
func (c *ToolCall) reads() bool { return c.Name == "read" || c.Name == "history" }

func (c *ToolCall) start(d *protocol.ToolStarted, now time.Time) {
	c.Started, c.Judged = now, d.Approvals
	c.Asks = nil
	if d.OverturnedBy != nil {
		c.Overturned = *d.OverturnedBy
	}
	c.Outside = !d.Sandboxed && c.args.Permissions == "require_escalated"
}

func (c *ToolCall) ask(r *protocol.RequestedCall) {
	at := time.UnixMilli(r.AnnouncedMS)
	if r.Step == "" {
		c.Asks, c.Request, c.Asked = r.Gates, r.Request, at
		return
	}
	s := c.step(r.Step, r.Name)
	s.Asks, s.Request, s.Asked = r.Gates, r.Request, at
}

// waits reports whether a verdict on the call, or on a step of it, is awaited.
func (c *ToolCall) waits() bool {
	return !c.done && (len(c.Asks) > 0 || slices.ContainsFunc(c.Steps, func(s Step) bool { return len(s.Asks) > 0 }))
}

// moves reports whether the call is laid out anew each time.
func (c *ToolCall) moves() bool {
	return c.waits() || c.cards != nil && (c.task() != "" || c.process() != "")
}

func (c *ToolCall) step(id, name string) *Step {
	i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.ID == id })
	if i < 0 {
		c.Steps = append(c.Steps, Step{ID: id, Name: name})
		i = len(c.Steps) - 1
	}
	return &c.Steps[i]
}

func (c *ToolCall) decided(d *protocol.StepDecided) {
	s := c.step(d.Step, d.Name)
	s.Asks, s.Decision, s.Judged = nil, d.Decision, d.Approvals
	if d.OverturnedBy != nil {
		s.Overturned = *d.OverturnedBy
	}
}

func (c *ToolCall) stepped(d *protocol.StepCompleted) {
	s := c.step(d.Step, d.Name)
	s.Done, s.OK, s.Detail = true, d.OK, d.Detail
}

func (c *ToolCall) completed(d *protocol.ToolCompleted, now time.Time) {
	c.Ended, c.Asks, c.done = now, nil, true
	if len(d.Approvals) > 0 {
		c.Judged = d.Approvals
	}
	c.Cancelled, c.Unknown, c.Denied, c.Expired = d.Cancelled, d.OutcomeUnknown, d.Denied, d.Expired
}

// finish takes the call's result.
func (c *ToolCall) finish(result string) {
	c.done, c.Result = true, result
	var failed struct {
		Error  *string `json:"error"`
		Detail string  `json:"detail"`
		Reason string  `json:"reason"`
	}
	var sh shellResult
	switch {
	case json.Unmarshal([]byte(result), &sh) == nil && sh.Stdout != nil:
		c.shell = &sh
	case json.Unmarshal([]byte(result), &failed) == nil && failed.Error != nil:
		c.failed, c.why = *failed.Error, c.At.Detail(protocol.Fail(protocol.Code(*failed.Error), failed.Detail))
		if failed.Reason != "" {
			c.why = failed.Reason
		}
	}
}

// Done reports whether the call has ended.
func (c *ToolCall) Done() bool { return c.done }

// took is how long it ran, where both ends were seen.
func (c *ToolCall) took(now time.Time) time.Duration {
	switch {
	case c.Started.IsZero():
		return 0
	case c.Ended.IsZero():
		return now.Sub(c.Started)
	}
	return c.Ended.Sub(c.Started)
}

// ok reports whether the call came to what it was made for.
func (c *ToolCall) ok() bool {
	return c.failed == "" && (c.shell == nil || c.shell.ExitCode != nil && *c.shell.ExitCode == 0)
}

// Subject is what the call is about, in one line.
func (c *ToolCall) Subject() string {
	a := &c.args
	first := func(s string) string {
		line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
		line = termsafe.OneLine(line)
		if n := strings.Count(rest, "\n"); rest != "" {
			line += fmt.Sprintf("  +%d lines", n+1)
		}
		return line
	}
	switch c.Name {
	case "shell":
		return first(a.Command)
	case "write_stdin":
		return termsafe.OneLine(HandleName(a.Handle))
	case "read":
		if a.Offset > 0 {
			return termsafe.OneLine(fmt.Sprintf("%s:%d", a.Path, a.Offset))
		}
		return termsafe.OneLine(a.Path)
	case "write", "edit":
		return termsafe.OneLine(a.Path)
	case "web_fetch":
		return termsafe.OneLine(strings.TrimPrefix(strings.TrimPrefix(a.URL, "https://"), "http://"))
	case "wait":
		names := make([]string, len(a.Handles))
		for i, h := range a.Handles {
			names[i] = HandleName(h)
		}
		return termsafe.OneLine(strings.Join(names, ", "))
	case "start_task":
		return termsafe.OneLine(a.Name)
	case "memory":
		return termsafe.OneLine(strings.TrimSpace(a.Action + " " + a.Name))
	case "show_agent":
		return termsafe.OneLine(a.Bot)
	case "ask_person":
		return first(a.Question)
	case "note", "plan", "history", "pause", "apply_patch":
		return ""
	case "run_in_pane":
		return first(a.Command)
	}
	return first(firstText(c.Arguments))
}

// firstText is the first text among a call's arguments, or all of them as they are.
func firstText(arguments string) string {
	dec := json.NewDecoder(strings.NewReader(arguments))
	depth, key := 0, false
	for {
		tok, err := dec.Token()
		if err != nil {
			return arguments
		}
		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
			key = false
		case string:
			if depth == 1 && !key {
				key = true
				continue
			}
			if v != "" {
				return v
			}
			key = false
		default:
			key = false
		}
	}
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agent/client"
	"agent/client/termsafe"
	"agent/protocol"
)

var approvalsVerb = verb{
	name: "approvals", short: "calls that wait for a verdict",
	long: "Lists the calls that wait on a gate, in the order of their announcement. With\n" +
		"--pretty each is shown whole, with the two commands that decide it.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.ApprovalsRequest
		var full bool
		t.filled(&r.Bot, "bot", "NAME", "only those of this bot")
		t.filled(&r.Tag, "tag", "TAG", "only those that this tag has to judge")
		t.toggle(&full, "full", "arguments whole, however long")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.approvals(ctx, l, &r, full)
		})
	},
}

// approvals prints all pages of the calls that wait.
func (a *app) approvals(ctx context.Context, l *link, r *protocol.ApprovalsRequest, full bool) error {
	array := &array{a: a}
	for {
		answer, err := l.raw(ctx, protocol.OpApprovals, r)
		if err != nil {
			return err
		}
		page, next, err := entries(answer, "approvals", "next_after")
		if err != nil {
			return err
		}
		for _, entry := range page {
			var call protocol.Approval
			if err := json.Unmarshal(entry, &call); err != nil {
				return protocol.Fail(protocol.InvalidJSON, "a call in the answer cannot be read: "+err.Error())
			}
			whole := true
			if full || a.pretty {
				call.Arguments, whole = l.wholeArguments(ctx, &call)
			}
			if a.pretty {
				if err := a.write(waitingCall(&call, whole, targetFlags(l.target))); err != nil {
					return err
				}
				continue
			}
			if full && whole {
				call.ArgumentsCut, call.ArgumentsOmitted = []string{}, 0
				if entry, err = protocol.Append(nil, call); err != nil {
					return err
				}
			}
			array.add(entry)
		}
		switch {
		case next == nil && a.pretty:
			return nil
		case next == nil:
			return array.end()
		case !a.pretty:
			if err := array.flush(); err != nil {
				return err
			}
		}
		if err := json.Unmarshal(next, &r.After); err != nil {
			return err
		}
	}
}

// approvalRequested shows the calls of an announcement that still wait, whole.
func (p *pretty) approvalRequested(ctx context.Context, e *protocol.Event) error {
	var round protocol.ApprovalRequested
	if err := e.Decode(&round); err != nil {
		return err
	}
	type asked struct{ call, step string }
	requests := map[asked]int64{}
	for _, c := range round.Calls {
		requests[asked{c.CallID, c.Step}] = c.Request
	}
	for call, err := range p.link.Approvals(ctx, client.ApprovalFilter{Bot: e.Bot}) {
		if err != nil {
			return err
		}
		if call.Turn != e.Turn || requests[asked{call.CallID, call.Step}] != call.Request {
			continue
		}
		var whole bool
		call.Arguments, whole = p.link.wholeArguments(ctx, call)
		if err := p.line(strings.TrimSuffix(string(waitingCall(call, whole, targetFlags(p.link.target))), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// waitingCall is a call as a person judges it: all of it, escaped, and for each
// open gate the two commands that decide it (cli.md 6). whole says that its
// arguments are not cut.
func waitingCall(c *protocol.Approval, whole bool, target string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "⏸ %s%s\n", termsafe.OneLine(c.Name), why(c))
	fmt.Fprintf(&b, "  %s, turn %d\n", termsafe.OneLine(c.Bot), c.Turn)
	step := ""
	if c.Step != "" {
		fmt.Fprintf(&b, "  step %s of call %s\n", termsafe.OneLine(c.Step), termsafe.OneLine(c.CallID))
		step = " " + termsafe.ShellWord("--step="+c.Step)
	}
	for _, path := range c.Target {
		fmt.Fprintf(&b, "  outside: %s\n", termsafe.OneLine(path))
	}
	for _, rule := range c.Rules {
		fmt.Fprintf(&b, "  rule: %s", termsafe.OneLine(strings.Join(rule.Prefix, " ")))
		if rule.Justification != "" {
			fmt.Fprintf(&b, ": %s", termsafe.OneLine(rule.Justification))
		}
		b.WriteByte('\n')
	}
	argumentLines(&b, c, whole)
	for _, tag := range c.Gates {
		fmt.Fprintf(&b, "  waits for %s since %s", termsafe.OneLine(tag), clock(c.AnnouncedMS))
		if c.ExpiresMS != nil {
			fmt.Fprintf(&b, ", expires %s", clock(*c.ExpiresMS))
		}
		b.WriteByte('\n')
		for _, decision := range []string{protocol.Allow, protocol.Deny} {
			fmt.Fprintf(&b, "    agent answer%s --bot %s --turn %d %s%s --request %d --tag %s %s\n",
				target, termsafe.ShellWord(c.Bot), c.Turn, termsafe.ShellWord("--call="+c.CallID), step, c.Request, termsafe.ShellWord(tag), decision)
		}
	}
	return b.Bytes()
}

// why says what a call waits for.
func why(c *protocol.Approval) string {
	text := ""
	switch {
	case c.Escalated:
		text = "  leaves the sandbox"
	case c.Cause == "rule_prompt":
		text = "  caught by a rule"
	}
	if c.Failed != "" {
		text += "  again, since " + termsafe.OneLine(c.Failed) + " failed"
	}
	if c.Justification != "" {
		text += ": " + termsafe.OneLine(fmt.Sprintf("%q", c.Justification))
	}
	return text
}

func clock(ms int64) string { return time.UnixMilli(ms).Format(time.TimeOnly) }

// argumentLines prints every line of every argument.
func argumentLines(b *bytes.Buffer, c *protocol.Approval, whole bool) {
	var command struct {
		Command *string `json:"command"`
	}
	var members map[string]json.RawMessage
	switch {
	case json.Unmarshal(c.Arguments, &members) != nil:
		b.WriteString("    [its arguments are no object]\n")
	case c.Name == "shell" && c.Step == "" && json.Unmarshal(c.Arguments, &command) == nil && command.Command != nil:
		bodyLines(b, "", *command.Command)
		delete(members, "command")
		delete(members, "justification")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var text string
		if json.Unmarshal(members[name], &text) != nil {
			text = string(members[name])
		}
		bodyLines(b, name+": ", text)
	}
	if !whole {
		fmt.Fprintf(b, "    … cut: %s and %d more; read node %d before you decide\n", termsafe.OneLine(strings.Join(c.ArgumentsCut, ", ")), c.ArgumentsOmitted, c.Node)
	}
}

// bodyLines prints a text under its name. Each of several lines begins with a bar there,
// so that none can be taken for another argument.
func bodyLines(b *bytes.Buffer, name, text string) {
	indent := "    "
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if name != "" {
		b.WriteString("    " + termsafe.OneLine(name))
		if len(lines) > 1 {
			b.WriteByte('\n')
			indent = "    │ "
		} else {
			b.WriteString(termsafe.Block.Text(lines[0]) + "\n")
			return
		}
	}
	for _, line := range lines {
		b.WriteString(indent + termsafe.Block.Text(line) + "\n")
	}
}

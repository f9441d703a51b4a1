package decide

import (
	"slices"
	"strings"
	"time"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// body is what would run and what is known of it, in the order of sonny.md 9.1.
func (q *Call) body(k Known, w int, whole bool) []text.Line {
	out := q.Subject(w, whole)
	out = append(out, text.Line{}, text.Of(text.Dim, "  "+strings.Join(q.facts(k), " · ")).Cut(w))
	for _, target := range q.Target {
		out = append(out, text.Of(text.Warn, "  wants "+termsafe.OneLine(target)).Cut(w))
	}
	for _, r := range q.Rules {
		line := "  rule: " + r.Decision + " " + termsafe.OneLine(strings.Join(r.Prefix, " "))
		if r.Justification != "" {
			line += ": " + termsafe.OneLine(r.Justification)
		}
		out = append(out, text.Of(text.Warn, line).Cut(w))
	}
	if q.Justification != "" {
		out = append(out, quoted("it says: ", q.Justification, text.Dim, w)...)
	}
	if diff := cells.Changes(q.Name, q.Args, w-4); len(diff) > 0 && q.Step == "" {
		out = append(out, text.Line{})
		for _, line := range clipped(diff, whole) {
			out = append(out, text.Line{Spans: append(text.Indent(2), line.Spans...), End: line.End})
		}
	}
	if judged := q.judged(k); judged != "" {
		out = append(out, text.Of(text.Dim, "  "+judged).Cut(w))
	}
	return out
}

// facts are where it would run, as whom, and how long it waits.
func (q *Call) facts(k Known) []string {
	folder := ""
	if k.Bot != nil && k.Bot.Workspace != nil {
		folder = " in " + termsafe.OneLine(human.Path(*k.Bot.Workspace))
	}
	permissions := "runs with all your permissions"
	if k.Bot != nil && q.Cause == "rule_prompt" && !q.Escalated && k.Bot.Sandbox != protocol.SandboxFull {
		permissions = "runs in its sandbox"
	}
	out := []string{termsafe.OneLine(q.Name) + folder, permissions}
	if q.ExpiresMS == nil {
		return append(out, "no time limit")
	}
	left := time.UnixMilli(*q.ExpiresMS).Sub(k.Now)
	return append(out, "expires in "+cells.Span(max(0, left)))
}

// judged says which other gates have let the call through: those of the bot that name
// the tool and are no longer open.
func (q *Call) judged(k Known) string {
	if k.Bot == nil || q.Step != "" {
		return ""
	}
	var tags []string
	for _, gate := range k.Bot.Gates {
		if slices.Contains(gate.Tools, q.Name) && !slices.Contains(q.Gates, gate.Tag) {
			tags = append(tags, termsafe.OneLine(gate.Tag))
		}
	}
	switch {
	case len(tags) > 0:
		return "allowed so far by " + strings.Join(tags, ", ")
	case len(q.Gates) > 1:
		return "asked as well: " + termsafe.OneLine(strings.Join(q.Gates, ", "))
	}
	return ""
}

package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// commandRows is how many rows of a command are shown, unless all is asked for.
const commandRows = 12

// body is what would run and what is known of it, in the order of sonny.md 9.1.
func (q *approval) body(a *App, w int, whole bool) []text.Line {
	c := q.c
	out := q.subject(w, whole)
	out = append(out, text.Line{}, text.Of(text.Dim, "  "+strings.Join(q.facts(a), " · ")).Cut(w))
	for _, target := range c.Target {
		out = append(out, text.Of(text.Warn, "  wants "+termsafe.OneLine(target)).Cut(w))
	}
	for _, r := range c.Rules {
		line := "  rule: " + r.Decision + " " + termsafe.OneLine(strings.Join(r.Prefix, " "))
		if r.Justification != "" {
			line += ": " + termsafe.OneLine(r.Justification)
		}
		out = append(out, text.Of(text.Warn, line).Cut(w))
	}
	if c.Justification != "" {
		out = append(out, quoted("it says: ", c.Justification, text.Dim, w)...)
	}
	if diff := cells.Changes(c.Name, q.args, w-4); len(diff) > 0 && c.Step == "" {
		out = append(out, text.Line{})
		for _, line := range clipped(diff, whole) {
			out = append(out, text.Line{Spans: append(text.Indent(2), line.Spans...), End: line.End})
		}
	}
	if judged := q.judged(a); judged != "" {
		out = append(out, text.Of(text.Dim, "  "+judged).Cut(w))
	}
	return out
}

func wrapped(s string, role text.Role, w int) []text.Line {
	return text.Wrap([]text.Span{{Text: s, Role: role}}, text.Frame{Width: w - 2, First: text.Indent(2), Rest: text.Indent(2)})
}

// clipped are the first rows, unless all is asked for.
func clipped(lines []text.Line, whole bool) []text.Line {
	if whole || len(lines) <= commandRows {
		return lines
	}
	n := len(lines) - commandRows
	return append(lines[:commandRows:commandRows], text.Of(text.Dim, fmt.Sprintf("    +%d lines, v shows all", n)))
}

// facts are where it would run, as whom, and how long it waits.
func (q *approval) facts(a *App) []string {
	c := q.c
	folder := ""
	if b := a.world.Bot(c.Bot); b != nil && b.Record.Workspace != nil {
		folder = " in " + termsafe.OneLine(human.Path(*b.Record.Workspace))
	}
	permissions := "runs with all your permissions"
	if b := a.world.Bot(c.Bot); b != nil && c.Cause == "rule_prompt" && !c.Escalated && b.Record.Sandbox != protocol.SandboxFull {
		permissions = "runs in its sandbox"
	}
	out := []string{termsafe.OneLine(c.Name) + folder, permissions}
	if c.ExpiresMS == nil {
		return append(out, "no time limit")
	}
	left := time.UnixMilli(*c.ExpiresMS).Sub(a.o.Clock())
	return append(out, "expires in "+cells.Span(max(0, left)))
}

// judged says which other gates have let the call through: those of the bot that name
// the tool and are no longer open.
func (q *approval) judged(a *App) string {
	b := a.world.Bot(q.c.Bot)
	if b == nil || q.c.Step != "" {
		return ""
	}
	var tags []string
	for _, gate := range b.Record.Gates {
		if slices.Contains(gate.Tools, q.c.Name) && !slices.Contains(q.c.Gates, gate.Tag) {
			tags = append(tags, termsafe.OneLine(gate.Tag))
		}
	}
	switch {
	case len(tags) > 0:
		return "allowed so far by " + strings.Join(tags, ", ")
	case len(q.c.Gates) > 1:
		return "asked as well: " + termsafe.OneLine(strings.Join(q.c.Gates, ", "))
	}
	return ""
}

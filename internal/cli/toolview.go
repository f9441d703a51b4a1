package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agent/client/items"
	"agent/client/termsafe"
	"agent/protocol"
)

// How much of a tool's result is shown.
const (
	resultLines = 20
	resultRunes = 200
)

// toolStarted shows a call in one line: its command, its path or its
// arguments.
func (p *pretty) toolStarted(e *protocol.Event) error {
	var t protocol.ToolStarted
	if err := e.Decode(&t); err != nil {
		return err
	}
	c := p.calls(e.Turn)
	line := c.planned[t.CallID] // from the message, which has the arguments whole
	delete(c.planned, t.CallID)
	if line == "" || !t.ArgumentsTruncated {
		line = callLine(t.Name, t.Arguments)
	}
	c.open++
	return p.dimLine(line)
}

func callLine(name, arguments string) string {
	return strings.TrimRight("▸ "+termsafe.OneLine(name)+" "+callSummary(arguments), " ")
}

// callCommand is what a call's arguments come to for a person: its command or
// its path; "" when they have neither.
func callCommand(arguments string) string {
	var a struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	if json.Unmarshal([]byte(arguments), &a) != nil || a.Command == "" {
		return a.Path
	}
	return a.Command
}

func callSummary(arguments string) string {
	summary := callCommand(arguments)
	if summary == "" {
		summary = arguments
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(summary), "\n")
	first = cutRunes(first, resultRunes)
	if rest != "" && !strings.HasSuffix(first, "…") {
		first += " …"
	}
	return termsafe.OneLine(first)
}

// cutRunes is the first characters of a text, with … where some are left out.
func cutRunes(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// toolCompleted shows the result, which the event names by its node.
func (p *pretty) toolCompleted(ctx context.Context, e *protocol.Event) error {
	var t protocol.ToolCompleted
	if err := e.Decode(&t); err != nil {
		return err
	}
	c := p.calls(e.Turn)
	if line, never := c.planned[t.CallID]; never { // it was refused before it started
		delete(c.planned, t.CallID)
		if err := p.dimLine(line); err != nil {
			return err
		}
	} else {
		c.open = max(c.open-1, 0)
	}
	if err := p.result(ctx, e.Bot, t.Node); err != nil {
		return err
	}
	return p.release(e.Turn)
}

// result shows the result at a node.
func (p *pretty) result(ctx context.Context, bot string, node int64) error {
	item, err := p.link.Item(ctx, bot, node)
	if err != nil {
		return err
	}
	for _, part := range items.Parts(item) {
		text := resultText(part.Text)
		if part.Kind != items.Result || text == "" {
			continue
		}
		if err := p.line(text); err != nil {
			return err
		}
	}
	return nil
}

// shellResult is the result of shell, and of the tools that answer as it does.
type shellResult struct {
	Stdout   *string         `json:"stdout"`
	Stderr   string          `json:"stderr"`
	ExitCode *int64          `json:"exit_code"`
	TimedOut bool            `json:"timed_out"`
	Signal   json.RawMessage `json:"signal"`
}

// resultText lays a result out: safe, indented, and no longer than a glance.
func resultText(output string) string {
	var failed struct {
		Error  *string `json:"error"`
		Detail *string `json:"detail"`
	}
	var shell shellResult
	switch {
	case json.Unmarshal([]byte(output), &shell) == nil && shell.Stdout != nil:
		return shell.text()
	case json.Unmarshal([]byte(output), &failed) == nil && failed.Error != nil:
		text := "[error] " + *failed.Error
		if failed.Detail != nil && *failed.Detail != "" {
			text += ": " + *failed.Detail
		}
		return indented(text)
	}
	return indented(output)
}

func (s *shellResult) text() string {
	body := strings.TrimRight(*s.Stdout, "\n")
	if s.Stderr != "" {
		body = strings.TrimLeft(body+"\n[stderr]\n"+strings.TrimRight(s.Stderr, "\n"), "\n")
	}
	end := ""
	switch {
	case s.ExitCode != nil:
		end = fmt.Sprintf("  [exit %d]", *s.ExitCode)
	case s.TimedOut:
		end = "  [timed out]"
	case len(s.Signal) > 0:
		end = "  [signal " + termsafe.OneLine(plain(s.Signal)) + "]"
	default:
		end = "  [killed]"
	}
	if text := indented(body); text != "" {
		return text + "\n" + end
	}
	return end
}

// indented is the first lines of a text, each cut and indented by two.
func indented(text string) string {
	var b strings.Builder
	n := 0
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if n == resultLines {
			b.WriteString("\n  …")
			break
		}
		if n > 0 {
			b.WriteByte('\n')
		}
		if line != "" {
			b.WriteString("  " + termsafe.Prose.Text(cutRunes(line, resultRunes)))
		}
		n++
	}
	return b.String()
}

// plain is the text of a JSON string, or any other value as it stands.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

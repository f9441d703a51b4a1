package plain

import (
	"fmt"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// The labels that lines begin with.
const (
	You     = "you"
	Thought = "thought"
	Tool    = "tool"
	Result  = "result"
	Task    = "task"
	Needs   = "needs you"
	Notice  = "notice"
	Error   = "error"
)

// shortResult is how many lines of a result are printed with its call; more are asked
// for.
const shortResult = 2

// Labelled is a text under a label: its first line after it, the others indented.
func Labelled(label, body string) []string {
	lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
	for i := range lines {
		if i == 0 {
			lines[i] = label + ": " + lines[i]
		} else if lines[i] != "" {
			lines[i] = "  " + lines[i]
		}
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// Piece is a part of a bot's transcript in labelled lines.
func Piece(bot string, p cells.Piece) (out []string) {
	c := p.Cell
	switch c.Kind {
	case cells.User:
		return message(c)
	case cells.Thought:
		return thought(c)
	case cells.Reply:
		for _, block := range p.Blocks() {
			out = append(out, Labelled(termsafe.OneLine(bot), block)...)
		}
		return out
	case cells.Call:
		return call(c.Calls[0])
	case cells.Reads:
		return reads(c.Calls)
	case cells.Error:
		return Labelled(Error, both(c))
	}
	return Labelled(Notice, both(c))
}

func both(c *cells.Cell) string {
	if c.Detail == "" {
		return c.Text
	}
	return c.Text + "\n" + c.Detail
}

func message(c *cells.Cell) []string {
	label := You
	switch {
	case c.From != "":
		label = termsafe.OneLine(c.From)
	case c.Origin != "":
		label = termsafe.OneLine(c.Origin)
	}
	body := c.Text
	if c.Steer {
		body = "steered in: " + body
	}
	return Labelled(label, body)
}

func thought(c *cells.Cell) []string {
	if c.Took == 0 {
		return []string{Thought + ": some"}
	}
	return []string{Thought + ": " + cells.SpanWords(c.Took)}
}

func call(c *cells.ToolCall) []string {
	words, rest := c.Words(), c.Output()
	if len(rest) > shortResult {
		words += fmt.Sprintf(` %d lines. type "show" for output.`, len(rest))
		rest = nil
	}
	out := []string{Tool + ": " + words}
	for _, s := range c.Steps {
		out = append(out, Tool+": step "+s.Words())
	}
	if c.Name == "start_task" && c.Done() && c.Failed() == "" {
		out = append(out, Task+": "+c.Subject()+" started.")
	}
	if len(rest) > 0 {
		out = append(out, Labelled(Result, strings.Join(rest, "\n"))...)
	}
	return out
}

func reads(calls []*cells.ToolCall) (out []string) {
	if len(calls) == 1 {
		return []string{Tool + ": " + calls[0].Words()}
	}
	names := make([]string, 0, len(calls))
	for _, c := range calls {
		if c.Failed() != "" {
			out = append(out, Tool+": "+c.Words())
			continue
		}
		name := c.Subject()
		if name == "" {
			name = c.Name
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		out = append([]string{fmt.Sprintf("%s: read %d files: %s.", Tool, len(names), strings.Join(names, ", "))}, out...)
	}
	return out
}

// Shown is what a call came to, whole.
func Shown(c *cells.ToolCall) []string {
	rest := c.Output()
	if len(rest) == 0 {
		return []string{Result + ": nothing"}
	}
	return Labelled(Result, strings.Join(rest, "\n"))
}

// Question is a call that waits for the person, whole, with its choices (sonny.md 9.1).
type Question struct {
	Bot, Folder string
	Call        *protocol.Approval
	Command     string // what would run or be done, of as many lines as it has
	Rule        string // the words of the rule that choice 2 writes; "": it is not offered
	Limit       string // when it expires, in words; "": never
	More        int    // others that wait
}

// Lines are the question as it is printed.
func (q *Question) Lines() []string {
	head := fmt.Sprintf("%s: %s %s", Needs, termsafe.OneLine(q.Bot), wants(q.Call))
	if q.Folder != "" {
		head += " in " + termsafe.OneLine(q.Folder)
	}
	out := []string{head + ":"}
	for line := range strings.SplitSeq(strings.TrimRight(q.Command, "\n"), "\n") {
		out = append(out, "  "+termsafe.OneLine(line))
	}
	if !q.Call.Whole() {
		out = append(out, "  some of it is too long to be shown here")
	}
	for _, t := range q.Call.Target {
		out = append(out, "  it wants "+termsafe.OneLine(t))
	}
	if q.Call.Justification != "" {
		out = append(out, "  reason it gave: "+termsafe.OneLine(q.Call.Justification))
	}
	out = append(out, "  it runs with all your permissions", "  1 allow once")
	if q.Rule != "" {
		out = append(out, "  2 allow, and stop asking for "+termsafe.OneLine(q.Rule)+` in this session ("2 all": every bot, every folder)`)
	}
	out = append(out, "  3 deny", "  4 REASON deny with a reason")
	limit := "no time limit"
	if q.Limit != "" {
		limit = "expires in " + q.Limit
	}
	if q.More > 0 {
		limit += fmt.Sprintf(", %d more wait", q.More)
	}
	return append(out, limit+". answer "+q.numbers()+", then Enter:")
}

func (q *Question) numbers() string {
	if q.Rule == "" {
		return "1, 3 or 4"
	}
	return "1 to 4"
}

func wants(c *protocol.Approval) string {
	switch c.Cause {
	case "escalation", "outside_write":
		return "wants to run outside the sandbox"
	case "rule_prompt":
		return "asks, since a rule of yours wants it,"
	case "served", "step":
		return "wants to use " + termsafe.OneLine(c.Name)
	}
	return "asks"
}

// Choice is an answer to a Question.
type Choice struct {
	Number int    // 1 to 4
	All    bool   // of 2: every bot, every folder
	Reason string // of 4
}

// ChoiceOf reads a line as an answer. ok is false for a line that is none: it is a
// message.
func ChoiceOf(line string) (c Choice, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case (word == "1" || word == "3") && rest == "":
		return Choice{Number: int(word[0] - '0')}, true
	case word == "2" && (rest == "" || rest == "all"):
		return Choice{Number: 2, All: rest == "all"}, true
	case word == "4":
		return Choice{Number: 4, Reason: rest}, true
	}
	return Choice{}, false
}

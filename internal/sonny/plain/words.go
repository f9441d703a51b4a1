package plain

import (
	"fmt"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/cells"
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
	words, rest := c.Words(), c.Said()
	if len(rest) > shortResult {
		words += fmt.Sprintf(` %d lines. type "show" for output.`, len(rest))
		rest = nil
	}
	out := []string{Tool + ": " + words}
	for _, s := range c.Steps {
		out = append(out, Tool+": step "+s.Words())
	}
	if c.Name == "start_task" && c.Done() && c.OK() {
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
		if code, _ := c.Failed(); code != "" {
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
	rest := c.Said()
	if len(rest) == 0 {
		return []string{Result + ": nothing"}
	}
	return Labelled(Result, strings.Join(rest, "\n"))
}

// Question is what waits for the person's word, whole, with its choices (sonny.md 9).
type Question struct {
	Head    string   // who wants what, a sentence without its end
	Body    []string // all there is to know of it, line by line
	Choices []Choice // in their order
	Limit   string   // when it expires, in words; "": never
	More    int      // others that wait
}

// Choice is one answer to a question.
type Choice struct {
	Number int
	Does   string
	Words  string // what is typed after the number, "REASON"; "": nothing is
	Maybe  bool   // it may be left out
}

// Lines are the question as it is printed. Its texts are made harmless here.
func (q *Question) Lines() []string {
	out := []string{Needs + ": " + termsafe.OneLine(q.Head) + ":"}
	for _, line := range q.Body {
		out = append(out, "  "+termsafe.OneLine(line))
	}
	numbers := make([]string, 0, len(q.Choices))
	for _, c := range q.Choices {
		number := fmt.Sprint(c.Number)
		numbers = append(numbers, number)
		if c.Words != "" && !c.Maybe {
			number += " " + c.Words
		}
		out = append(out, "  "+number+" "+termsafe.OneLine(c.Does))
	}
	limit := "no time limit"
	if q.Limit != "" {
		limit = "expires in " + q.Limit
	}
	if q.More > 0 {
		limit += fmt.Sprintf(", %d more wait", q.More)
	}
	return append(out, limit+". answer "+listed(numbers)+", then Enter:")
}

// listed are numbers as a sentence names them: 1 to 4, or 1, 3 or 4.
func listed(numbers []string) string {
	n := len(numbers)
	switch {
	case n == 0:
		return "with Enter"
	case n == 1:
		return numbers[0]
	case numbers[0] == "1" && numbers[n-1] == fmt.Sprint(n):
		return "1 to " + numbers[n-1]
	}
	return strings.Join(numbers[:n-1], ", ") + " or " + numbers[n-1]
}

// Answer reads a line as one of the question's choices, with the words after its number.
// ok is false for a line that is none: it is a message.
func (q *Question) Answer(line string) (c Choice, words string, ok bool) {
	number, words, _ := strings.Cut(strings.TrimSpace(line), " ")
	words = strings.TrimSpace(words)
	for _, c := range q.Choices {
		if fmt.Sprint(c.Number) == number && (words == "" || c.Words != "") {
			return c, words, true
		}
	}
	return Choice{}, "", false
}

// Looks reports whether a line looks like an answer, to whatever question.
func Looks(line string) bool {
	number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return len(number) == 1 && number[0] >= '1' && number[0] <= '9'
}

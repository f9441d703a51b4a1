package screen

import (
	"encoding/json"
	"strings"
	"time"

	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// sayQuestion prints what waits for the person, and what it is that no longer does.
func (f *plainFront) sayQuestion(a *App) {
	now := a.questionID()
	if now == f.asked {
		return
	}
	if f.asked != "" {
		f.con.Closed(f.asked)
	}
	if f.asked = now; now != "" {
		f.con.Ask(now, a.question().Lines()...)
	}
}

// answered takes a line for the answer of the question that stood there before it was
// begun. One that was begun before it is a message (sonny.md 14).
func (f *plainFront) answered(a *App, done plain.Typed) bool {
	if done.Question == "" {
		return false
	}
	if a.questionID() != done.Question {
		if plain.Looks(done.Text) {
			f.con.Print(plain.Notice + ": too late: that question is no longer open. nothing was decided or sent.")
			return true
		}
		return false
	}
	q := a.question()
	choice, words, ok := q.Answer(done.Text)
	switch {
	case ok:
		a.pickChoice(choice.Number, words)
	case done.Text == "":
		f.con.Print(q.Lines()...)
	case plain.Looks(done.Text):
		f.con.Print(plain.Notice + ": that is none of the choices. nothing was decided or sent.")
	default:
		if !strings.HasPrefix(done.Text, "/") {
			f.con.Print(plain.Notice + ": that is no answer; it goes as a message. the question is still open.")
		}
		return false
	}
	return true
}

// questionID names what waits for the person; "" where nothing does.
func (a *App) questionID() string {
	if !a.answers.open(a) {
		return ""
	}
	return callKey(a.answers.current())
}

// questionRows are what the panel says of the call on screen, without its choices;
// choiceRows are those.
func (a *App) questionRows(w int) []text.Line {
	rows := a.answers.rows(a, w)
	return rows[:max(0, len(rows)-choicesAt)]
}

func (a *App) choiceRows(w int) []text.Line {
	rows := a.answers.rows(a, w)
	return tail(rows, choicesAt)
}

// choicesAt is how many rows of the panel are its choices.
const choicesAt = 4

// question is the call that waits, in the words of the plain mode.
func (a *App) question() *plain.Question {
	c := a.answers.current()
	q := &plain.Question{Head: c.Bot + " " + wantsWords(c), Body: strings.Split(strings.TrimRight(shownCall(c), "\n"), "\n"), More: len(a.answers.list) - 1}
	if b := a.world.Bot(c.Bot); b != nil && b.Record.Workspace != nil {
		q.Head += " in " + tilde(*b.Record.Workspace)
	}
	for _, t := range c.Target {
		q.Body = append(q.Body, "it wants "+t)
	}
	if c.Justification != "" {
		q.Body = append(q.Body, "reason it gave: "+c.Justification)
	}
	q.Choices = []plain.Choice{{Number: 1, Does: "allow once"}, {Number: 3, Does: "deny"}, {Number: 4, Words: "REASON", Does: "deny with a reason"}}
	if c.ExpiresMS != nil {
		q.Limit = cells.SpanWords(max(0, time.UnixMilli(*c.ExpiresMS).Sub(a.o.Now())))
	}
	return q
}

// pickChoice takes one of the choices.
func (a *App) pickChoice(number int, words string) {
	if number == 1 {
		a.answers.decide(a, protocol.Allow, "")
		return
	}
	a.answers.decide(a, protocol.Deny, words)
}

func wantsWords(c *protocol.Approval) string {
	switch c.Cause {
	case "escalation", "outside_write":
		return "wants to run outside the sandbox"
	case "rule_prompt":
		return "asks, since a rule of yours wants it,"
	case "served", "step":
		return "wants to use " + c.Name
	}
	return "asks"
}

// shownCall is what a call would do: its command, its file, or its arguments.
func shownCall(c *protocol.Approval) string {
	var args struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	if json.Unmarshal(c.Arguments, &args) == nil {
		switch {
		case args.Command != "":
			return args.Command
		case args.Path != "":
			return c.Name + " " + args.Path
		}
	}
	return string(c.Arguments)
}

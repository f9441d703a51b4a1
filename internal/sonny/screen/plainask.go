package screen

import (
	"fmt"
	"strings"
	"time"

	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
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
	if q := a.answers.current(a); q != nil {
		return q.id()
	}
	return ""
}

// questionRows are all that the panel says of what waits, without its choices;
// choiceRows are those.
func (a *App) questionRows(w int) []text.Line {
	q := a.answers.current(a)
	if q == nil {
		return nil
	}
	s := q.sheet(a, w, true)
	rows := append([]text.Line{text.Titled(cells.OneLine(s.title), "", w)}, s.body...)
	for _, c := range s.choices { // whole: below it has one row
		if c.label.Width() > w-5 {
			rows = append(rows, wrapped(fmt.Sprintf("%d  %s", c.n, c.label), text.Dim, w)...)
		}
	}
	return rows
}

func (a *App) choiceRows(w int) []text.Line {
	q := a.answers.current(a)
	if q == nil {
		return nil
	}
	rows := a.answers.choices(q.sheet(a, w, false), w, false, false)
	return rows[:len(rows)-1]
}

// plainWidth is a width at which nothing that is read aloud is wrapped, in cells.
const plainWidth = 4000

// question is what waits, in the words of the plain mode.
func (a *App) question() *plain.Question {
	q := a.answers.current(a)
	s := q.sheet(a, plainWidth, true)
	out := &plain.Question{Head: s.title, More: len(a.answers.visible(a)) - 1}
	for _, line := range s.body {
		row := line.String()
		if rest, marked := strings.CutPrefix(row, barred[0].Text); marked {
			row = plainBar + rest
		}
		if words := strings.TrimSpace(row); words != "" {
			out.Body = append(out.Body, words)
		}
	}
	for _, c := range s.choices {
		choice := plain.Choice{Number: c.n, Does: c.label.String()}
		if c.words != "" {
			choice.Words = "WORDS"
		}
		out.Choices = append(out.Choices, choice)
	}
	if len(out.Choices) == 0 { // it only tells
		out.Choices = []plain.Choice{{Number: 1, Does: "close it"}}
	}
	if call, is := q.(*approval); is {
		call.inPlain(a, out)
	}
	return out
}

// pickChoice takes one of the choices.
func (a *App) pickChoice(number int, words string) {
	q := a.answers.current(a)
	if len(q.sheet(a, plainWidth, true).choices) == 0 {
		a.answers.drop(a, q.id(), "")
		return
	}
	q.pick(a, number, words)
}

// inPlain puts a call's own words into a question.
func (q *approval) inPlain(a *App, out *plain.Question) {
	c := q.c
	out.Head, out.Body = c.Bot+" "+wantsWords(c), q.spelled()
	if b := a.world.Bot(c.Bot); b != nil && b.Record.Workspace != nil {
		out.Head += " in " + human.Path(*b.Record.Workspace)
	}
	if !c.Whole() {
		out.Body = append(out.Body, "some of it is too long to be shown here: deny what you cannot read")
	}
	for _, t := range c.Target {
		out.Body = append(out.Body, "it wants "+t)
	}
	if c.Justification != "" {
		out.Body = append(out.Body, "reason it gave: "+c.Justification)
	}
	for _, line := range cells.Changes(c.Name, q.args, plainWidth) {
		out.Body = append(out.Body, plainBar+line.String())
	}
	out.Choices = []plain.Choice{{Number: 1, Does: "allow once"}}
	if q.rule.offered() {
		does := "allow, and stop asking for " + q.rule.text() + " in this session (\"2 all\": every bot, every folder)"
		out.Choices = append(out.Choices, plain.Choice{Number: 2, Does: does, Words: everyBot, Maybe: true})
	}
	out.Choices = append(out.Choices, plain.Choice{Number: 3, Does: "deny"}, plain.Choice{Number: 4, Words: "REASON", Does: "deny with a reason"})
	if c.ExpiresMS != nil {
		out.Limit = cells.SpanWords(max(0, time.UnixMilli(*c.ExpiresMS).Sub(a.o.Clock())))
	}
}

// everyBot is what is typed after a rule's number to have it hold everywhere.
const everyBot = "all"

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

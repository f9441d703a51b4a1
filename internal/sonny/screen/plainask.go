package screen

import (
	"fmt"
	"strings"

	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/text"
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
	rows := append([]text.Line{text.Titled(cells.OneLine(s.Title), "", w)}, s.Body...)
	for _, c := range s.Choices { // whole: below it has one row
		if c.Label.Width() > w-5 {
			rows = append(rows, decide.Said(fmt.Sprintf("%d  %s", c.N, c.Label), text.Dim, w)...)
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

// question is what waits, in the words of the plain mode.
func (a *App) question() *plain.Question {
	q, more := a.answers.current(a), len(a.answers.visible(a))-1
	if call, is := q.(approval); is {
		return call.Spoken(a.knownOf(call.Bot), more)
	}
	return decide.Spoken(func(w int) decide.Sheet { return q.sheet(a, w, true) }, more)
}

// pickChoice takes one of the choices.
func (a *App) pickChoice(number int, words string) {
	q := a.answers.current(a)
	if len(q.sheet(a, a.w, true).Choices) == 0 {
		a.answers.drop(a, q.id(), "")
		return
	}
	q.pick(a, number, words)
}

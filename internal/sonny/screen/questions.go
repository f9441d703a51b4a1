package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/internal/sonny/live"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/screen/decide"
	"agent/protocol"
)

// Questions are those that bots ask the person (sonny.md 9.4), as the tool host keeps
// them: the open ones of all bots.
type Questions func(ctx context.Context) ([]decide.Question, error)

// questionWatch reads the open questions when they may have changed.
var questionWatch = feature{
	event: func(a *App, b *live.Bot, e *protocol.Event) {
		switch e.Kind {
		case protocol.KindToolRequested, protocol.KindToolCompleted, protocol.KindTurnFinished:
			a.readQuestions()
		}
	},
	opened: func(a *App, _ *session) { a.readQuestions() },
}

// readQuestions asks for the open ones.
func (a *App) readQuestions() {
	if a.o.Questions == nil {
		return
	}
	if a.reading {
		a.readAgain = true
		return
	}
	a.reading = true
	do(a, func(ctx context.Context) ([]decide.Question, error) { return a.o.Questions(ctx) },
		func(list []decide.Question, err error) {
			a.reading = false
			if err == nil {
				a.asked(list)
			}
			if a.readAgain {
				a.readAgain = false
				a.readQuestions()
			}
		})
}

// asked takes the questions that are open now.
func (a *App) asked(list []decide.Question) {
	p := &a.answers
	open := map[string]int{}
	for _, q := range list {
		if !a.replied[q.ID] {
			open[q.Bot]++
		}
	}
	for bot := range a.world.Bots() {
		bot.Questions = open[bot.Record.Name]
	}
	for _, old := range slices.Clone(p.list) {
		q, is := old.(*personAsked)
		if is && !slices.ContainsFunc(list, func(n decide.Question) bool { return n.ID == q.q.ID }) {
			p.drop(a, q.id(), "answered elsewhere")
		}
	}
	for _, q := range list {
		if a.replied[q.ID] || slices.ContainsFunc(p.list, func(old asking) bool { return old.id() == questionID(q.ID) }) {
			continue
		}
		p.add(a, &personAsked{q: q})
		if b := a.world.Bot(q.Bot); b != nil && a.concerns(b) {
			a.tell(notify.Question(q.Bot))
		}
	}
}

func questionID(id string) string { return "question " + id }

// personAsked is a question in the panel.
type personAsked struct {
	q      decide.Question
	marked []string // of several that may be taken
}

func (q *personAsked) id() string       { return questionID(q.q.ID) }
func (q *personAsked) bot() string      { return q.q.Bot }
func (q *personAsked) since() time.Time { return q.q.Announced }

func (q *personAsked) sheet(_ *App, w int, whole bool) decide.Sheet {
	return q.q.Sheet(q.marked, w, whole)
}

func (q *personAsked) pick(a *App, n int, words string) {
	switch choices := len(q.q.Choices); {
	case n <= choices && !q.q.Multiple:
		a.reply(q, decide.Reply{Choices: []string{q.q.Choices[n-1]}})
	case n <= choices:
		q.toggle(q.q.Choices[n-1])
	case q.q.Multiple && n == choices+1:
		if len(q.marked) == 0 {
			a.notes.say("mark at least one")
			return
		}
		a.reply(q, decide.Reply{Choices: q.marked})
	case strings.TrimSpace(words) == "":
		a.notes.say("nothing was written")
	default:
		a.reply(q, decide.Reply{Choices: q.marked, Text: words})
	}
}

func (q *personAsked) toggle(choice string) {
	if i := slices.Index(q.marked, choice); i >= 0 {
		q.marked = slices.Delete(q.marked, i, i+1)
		return
	}
	q.marked = append(q.marked, choice)
}

func (q *personAsked) own(*App, string) {}

// leave answers that the person will not say now.
func (q *personAsked) leave(a *App) bool {
	a.reply(q, decide.Reply{NotNow: true})
	return true
}

// reply gives the answer. Where that fails the question comes again.
func (a *App) reply(q *personAsked, r decide.Reply) {
	if a.replied == nil {
		a.replied = map[string]bool{}
	}
	a.replied[q.q.ID] = true
	a.answers.drop(a, q.id(), "")
	do(a, func(context.Context) (struct{}, error) { return struct{}{}, q.q.Answer(r) },
		func(_ struct{}, err error) {
			if err == nil {
				return
			}
			if protocol.CodeOf(err) == protocol.CallAlreadyAnswered {
				a.notes.say(fmt.Sprintf("too late: %s", protocol.CallAlreadyAnswered))
				return
			}
			delete(a.replied, q.q.ID)
			a.notes.fail(err)
			a.readQuestions()
		})
}

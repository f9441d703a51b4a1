package ahead

import (
	"context"

	"agent/internal/sonny/screen/text"
)

// HomeFolder asks what to open where a person opens their home folder itself: their own
// agent, which reads it, or a lead, which could write all of it (sonny.md 3.6).
type HomeFolder struct{ Term Terminal }

// The verdicts of HomeFolder, besides Leave.
const (
	OwnAgent Verdict = iota + 10
	LeadThere
)

// Ask shows the question until it is answered.
func (q *HomeFolder) Ask(ctx context.Context) (Verdict, error) {
	ask := &question{
		t: q.Term, title: "your home folder",
		choices: []answer{{"open sonny home", OwnAgent}, {"a lead in the home folder", LeadThere}, {"leave", Leave}},
		words: func(say func(text.Role, string)) {
			say(text.Plain, "sonny home is your own agent: it reads, tells what runs and what waits, and passes work on to the leads of your projects.")
			say(text.Plain, "")
			say(text.Warn, "A lead here could write all of your home folder.")
		},
	}
	return ask.run(ctx)
}

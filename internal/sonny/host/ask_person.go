package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"agent/internal/sonny/host/questions"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/notify"
	"agent/protocol"
)

// How many questions of one bot are open at once, how long a question and a choice of
// it may be in bytes, and how many choices it has.
const (
	maxOpen     = 3
	maxQuestion = 2000
	maxChoice   = 200
	maxChoices  = 4
)

// answerEarly is how long before the daemon would end it a question ends by itself,
// so that the agent reads no_person and not that nobody serves its tool.
const answerEarly = 5 * time.Second

// askPerson asks the person and waits for what they say (sonny.md 29).
func askPerson(c *Call) (any, error) {
	var a questions.Arguments
	if err := c.decode(&a); err != nil {
		return nil, err
	}
	if err := checkQuestion(&a); err != nil {
		return nil, err
	}
	if s := c.h.session(c.BotID); s != nil && s.Kind == lead.KindExec {
		return nil, protocol.Fail(noPerson, "this run has nobody to ask; go on with the safest reading, and say so")
	}
	if !c.h.asked.open(c.BotID) {
		return nil, protocol.Fail(invalidArguments, fmt.Sprintf("question: %d questions of yours wait already; wait for their answers", maxOpen))
	}
	defer c.h.asked.close(c.BotID)
	reply, err := c.answer(&a)
	if err != nil {
		return nil, err
	}
	if reply.NotNow {
		return nil, protocol.Fail(noPerson, "the person does not answer now; go on with the safest reading, and say so")
	}
	return struct {
		Choices []string `json:"choices,omitempty"`
		Text    string   `json:"text,omitempty"`
	}{reply.Choices, reply.Text}, nil
}

// answer waits for the reply, until shortly before the daemon gives the call up.
func (c *Call) answer(a *questions.Arguments) (reply *questions.Reply, err error) {
	c.h.notice(notify.Question(c.bot.Name))
	err = c.waits(func() error {
		deadline := time.UnixMilli(c.ExpiresMS).Add(-answerEarly)
		ctx, cancel := context.WithDeadlineCause(c.ctx, deadline, errNobody)
		defer cancel()
		reply, err = c.h.answers.Wait(ctx, tools.CallKey(&c.ToolCall.ToolCall), a, c.h.logf)
		return err
	})
	if errors.Is(err, errNobody) {
		err = protocol.Fail(noPerson, "nobody has answered; go on with the safest reading, and say so")
	}
	return reply, err
}

var errNobody = errors.New("nobody has answered")

// checkQuestion says what no schema says, and what the schema does once more.
func checkQuestion(a *questions.Arguments) error {
	switch {
	case strings.TrimSpace(a.Question) == "" || len(a.Question) > maxQuestion:
		return invalid("question", fmt.Sprintf("1 to %d bytes", maxQuestion))
	case len(a.Choices) > maxChoices:
		return invalid("choices", fmt.Sprintf("at most %d", maxChoices))
	case len(a.Choices) == 0 && !a.FreeText():
		return invalid("text", "without choices the answer is in the person's words; leave it out")
	case len(a.Choices) == 0 && a.Multiple:
		return invalid("multiple", "there are no choices to take several of")
	}
	for i, choice := range a.Choices {
		if strings.TrimSpace(choice) == "" || len(choice) > maxChoice {
			return invalid("choices", fmt.Sprintf("each is 1 to %d bytes", maxChoice))
		}
		for _, other := range a.Choices[:i] {
			if other == choice {
				return invalid("choices", "two of them are the same")
			}
		}
	}
	return nil
}

// openQuestions counts those of each bot. It is safe for concurrent use.
type openQuestions struct {
	mu sync.Mutex
	of map[int64]int
}

func (q *openQuestions) open(bot int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = map[int64]int{}
	}
	if q.of[bot] >= maxOpen {
		return false
	}
	q.of[bot]++
	return true
}

func (q *openQuestions) close(bot int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of[bot]--; q.of[bot] <= 0 {
		delete(q.of, bot)
	}
}

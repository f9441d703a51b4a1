// Package questions is how ask_person reaches the person (sonny.md 9.4, 29).
//
// A question is a call of ask_person that the tool host holds. The daemon keeps it,
// over restarts of anything, and lists it: Open asks for the list, and a screen asks
// again when an event tool_requested, tool_completed or turn_finished tells that it may
// have changed. Any screen may answer: Answer writes the reply to a file of the call's
// own in ~/.agent/sonny/answers, whole and once, so that the first answer is the one
// that counts and a later one is told that it is too late. The host watches that folder
// and gives the reply to the agent. A reply that is written while no host runs is found
// by the next.
//
// The folder is among the daemon's protected paths: no sandboxed agent answers its own
// question.
package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/client"
	"agent/internal/place"
	"agent/internal/sonny/host/tools"
	"agent/protocol"
)

// Tool is the tool whose calls are questions.
const Tool = "ask_person"

// Question is one that waits for the person.
type Question struct {
	Bot       string
	BotID     int64
	Turn      int64
	Text      string
	Choices   []string
	Multiple  bool // several choices may be taken
	FreeText  bool // an answer in own words is possible
	Announced time.Time
	Expires   time.Time

	key string
}

// Arguments are a question as an agent asks it.
type Arguments struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
	Multiple bool     `json:"multiple"`
	Text     *bool    `json:"text"` // nil: true
}

// FreeText reports whether an answer in own words is possible.
func (a *Arguments) FreeText() bool { return a.Text == nil || *a.Text }

// Open lists the questions that wait, of all bots, the oldest first.
func Open(ctx context.Context, c *client.Client) ([]Question, error) {
	var out []Question
	for call, err := range c.ToolCalls(ctx, client.ApprovalFilter{Tag: tools.Tag}) {
		if err != nil {
			return nil, err
		}
		if call.Name != Tool {
			continue
		}
		var a Arguments
		if json.Unmarshal([]byte(call.Arguments), &a) != nil {
			continue // the host refuses it
		}
		out = append(out, Question{
			Bot: call.Bot, BotID: call.BotID, Turn: call.Turn, Text: a.Question, Choices: a.Choices,
			Multiple: a.Multiple, FreeText: a.FreeText(), key: KeyOf(call),
			Announced: time.UnixMilli(call.AnnouncedMS), Expires: time.UnixMilli(call.ExpiresMS),
		})
	}
	slices.SortStableFunc(out, func(a, b Question) int { return a.Announced.Compare(b.Announced) })
	return out, nil
}

// KeyOf is the name of a call's answer.
func KeyOf(call *protocol.ToolCall) string { return tools.CallKey(call) }

// Reply is what the person said. NotNow is Esc: they looked, and answer later or never.
type Reply struct {
	Choices []string `json:"choices,omitempty"`
	Text    string   `json:"text,omitempty"`
	NotNow  bool     `json:"not_now,omitempty"`
}

// MaxText bounds an answer in own words, in bytes.
const MaxText = 32 << 10

// check says what is wrong with a reply.
func (r *Reply) check(choices []string, multiple, free bool) error {
	wrong := ""
	switch {
	case r.NotNow && (len(r.Choices) > 0 || r.Text != ""):
		wrong = "not now is no answer, and has none beside it"
	case r.NotNow:
	case len(r.Choices) == 0 && strings.TrimSpace(r.Text) == "":
		wrong = "it is empty"
	case len(r.Choices) > 1 && !multiple:
		wrong = "one choice may be taken"
	case r.Text != "" && !free:
		wrong = "the question takes choices alone"
	case len(r.Text) > MaxText:
		wrong = fmt.Sprintf("it is longer than %d KiB", MaxText>>10)
	case slices.ContainsFunc(r.Choices, func(c string) bool { return !slices.Contains(choices, c) }):
		wrong = "it is none of the choices"
	}
	if wrong == "" {
		return nil
	}
	return protocol.Fail(protocol.UsageError, "the answer: "+wrong)
}

// tooLate is the code of a question that was answered already.
const tooLate = protocol.CallAlreadyAnswered

// Answer answers a question. sonny is ~/.agent/sonny. usage for a reply that does not fit
// the question; call_already_answered where somebody else was faster.
func Answer(sonny string, q Question, r Reply) error {
	if err := r.check(q.Choices, q.Multiple, q.FreeText); err != nil {
		return err
	}
	dir := dirOf(sonny)
	if err := place.MakePrivateDir(dir); err != nil {
		return err
	}
	text, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	err = place.CreatePrivate(filepath.Join(dir, q.key+".json"), text)
	if errors.Is(err, fs.ErrExist) {
		return protocol.Fail(tooLate, "somebody has answered this question already")
	}
	return err
}

func dirOf(sonny string) string { return filepath.Join(sonny, "answers") }

// maxReply bounds an answer's file, in bytes: a text and choices, escaped.
const maxReply = 6*MaxText + 16<<10

// read is the answer that was given under a key; nil for none.
func read(dir, key string, a *Arguments) (*Reply, error) {
	path := filepath.Join(dir, key+".json")
	text, _, err := place.ReadOwn(path, maxReply)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := new(Reply)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err == nil {
		err = r.check(a.Choices, a.Multiple, a.FreeText())
	}
	if err != nil { // nobody's answer: the question stays open
		return nil, errors.Join(fmt.Errorf("%s is no answer: %w", path, err), os.Remove(path))
	}
	return r, nil
}

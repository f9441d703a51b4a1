package approver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"agent/client"
	"agent/internal/secret"
)

// gatherer shows the planned calls and the person's prompts.
type gatherer struct {
	c    *client.Client
	note string
}

func newGatherer(c *client.Client, note string) *gatherer { return &gatherer{c, note} }

type shownPrompt struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

type shownCall struct {
	ID            string          `json:"id"`
	Tool          string          `json:"tool"`
	Cause         string          `json:"cause"`
	Arguments     json.RawMessage `json:"arguments"`
	Target        []string        `json:"target,omitempty"`
	Justification string          `json:"justification,omitempty"`
}

func (g *gatherer) gather(ctx context.Context, r *round) (*evidence, error) {
	prompts, err := g.c.Prompts(ctx, r.bot, r.turn, 0)
	if err != nil {
		return nil, err
	}
	doc := struct {
		Note       string        `json:"note"`
		Transcript []shownPrompt `json:"transcript"`
		Calls      []shownCall   `json:"planned_calls"`
	}{Note: g.note}
	for _, p := range prompts.Prompts {
		if p.Truncated {
			return nil, errTooMuch
		}
		kind := "person"
		if p.From != nil {
			kind = "agent " + p.From.Bot
		} else if p.Origin != "" {
			kind = "event " + p.Origin
		}
		doc.Transcript = append(doc.Transcript, shownPrompt{kind, p.Text})
	}
	ev := &evidence{refused: map[int]string{}}
	for i, call := range r.calls {
		if !call.Whole() {
			ev.refused[i] = "not reviewed: the call is too long to show"
			continue
		}
		id := fmt.Sprintf("c%d", i+1)
		ev.ids, ev.shown = append(ev.ids, id), append(ev.shown, i)
		doc.Calls = append(doc.Calls, shownCall{id, call.Name, call.Cause, call.Arguments, call.Target, call.Justification})
	}
	text, err := json.Marshal(doc)
	ev.document = newRedact()(string(text))
	return ev, err
}

// newRedact masks secrets in what leaves the machine and in what comes back.
func newRedact() func(string) string {
	var known secret.Values
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") {
			known.Add(secret.Named{Name: name, Value: secret.NewValue(value)})
		}
	}
	r := secret.NewRedactor(&known)
	return func(text string) string { return string(r.Bytes([]byte(text))) }
}

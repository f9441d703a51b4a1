package approver

import (
	"encoding/json"
	"fmt"
	"slices"

	"agent/protocol"
)

// doneCall is a call of the turn that has run, or is running.
type doneCall struct {
	N         int64      `json:"n"` // its place in the history
	Tool      string     `json:"tool"`
	Arguments string     `json:"arguments"`
	State     string     `json:"state"` // succeeded, failed, running
	Steps     []doneStep `json:"steps,omitempty"`
}

// doneStep is a step of a served call.
type doneStep struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// doneBudget is how much of the tools' budget the calls of the turn may take, so
// that results keep the rest.
const doneBudget = toolBudget / 2

// done puts the calls that have run into the document, as many of the newest as
// fit, in their order. room is what is left of the tools' budget.
func (a *collecting) done(d *document, room *int) error {
	d.Done = []doneCall{}
	left, more := doneBudget, 0
	list := a.prompts.Calls
	for end := len(list); end > 0; {
		at := end - 1
		for at > 0 && list[at].Step != "" {
			at--
		}
		c, steps := &list[at], list[at+1:end]
		end = at
		if _, parent := a.isJudged(c); c.Step != "" || !c.Done && !parent {
			continue
		}
		if left < 0 {
			more++
			continue
		}
		shown, err := a.doneCall(c, steps)
		if err != nil {
			return err
		}
		text, err := encode(shown)
		if err != nil {
			return err
		}
		cost := tokens(string(text))
		if left -= cost; left < 0 {
			more++
			continue
		}
		*room -= cost
		d.Done = append(d.Done, shown)
	}
	slices.Reverse(d.Done)
	if more > 0 {
		d.DoneLeftOut = fmt.Sprintf("%d earlier calls of the turn are left out for want of room", more)
	}
	return nil
}

func (a *collecting) doneCall(c *protocol.PromptCall, steps []protocol.PromptCall) (doneCall, error) {
	out := doneCall{N: c.Node, Tool: a.text(clipped(c.Name, maxNameTokens)), State: stateOf(c.Done, !c.Failed)}
	raw, err := a.promptArguments(c)
	switch {
	case notOwn(err) != nil:
		return out, err
	case err != nil:
		out.Arguments = omission(int(c.ArgumentsBytes))
	default:
		out.Arguments = clipped(a.readable(shortWrite(c.Name, raw)), toolCap)
	}
	for i := range steps {
		s := &steps[i]
		if a.isWaiting(s) {
			continue
		}
		out.Steps = append(out.Steps, doneStep{Name: a.text(s.Name), State: stateOf(s.Done, s.OK), Detail: clipped(a.text(s.Detail), toolCap)})
	}
	return out, nil
}

// isWaiting reports whether a step is one that the judge decides on.
func (a *collecting) isWaiting(s *protocol.PromptCall) bool {
	return slices.ContainsFunc(a.r.calls, func(r protocol.Approval) bool { return r.CallID == s.CallID && r.Step == s.Step })
}

func stateOf(done, ok bool) string {
	switch {
	case !done:
		return "running"
	case ok:
		return "succeeded"
	}
	return "failed"
}

// shortWrite is the arguments of a write with the content's size in its place,
// any other's as they are.
func shortWrite(tool, raw string) string {
	if tool != toolWrite {
		return raw
	}
	var w struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if json.Unmarshal([]byte(raw), &w) != nil || w.Content == nil {
		return raw
	}
	text, err := encode(struct {
		Path string `json:"path"`
		Size int    `json:"content_bytes"`
	}{w.Path, len(*w.Content)})
	if err != nil {
		return raw
	}
	return string(text)
}

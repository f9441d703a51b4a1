package approver

import (
	"encoding/json"
	"errors"
	"fmt"

	"agent/client/items"
	"agent/protocol"
)

// plannedCall is a call that the judge decides on.
type plannedCall struct {
	ID            string               `json:"id"`
	Tool          string               `json:"tool"`
	Cause         string               `json:"cause"`
	Escalated     bool                 `json:"leaves_sandbox,omitempty"`
	Arguments     json.RawMessage      `json:"arguments"`
	Cwd           string               `json:"cwd"`
	Target        []string             `json:"target,omitempty"`
	Justification string               `json:"justification,omitempty"`
	Rules         []protocol.RuleMatch `json:"command_rules,omitempty"`
	AfterFailure  bool                 `json:"asked_again_after_a_failure,omitempty"`
	Files         []shownFile          `json:"files,omitempty"`
}

// unjudged is a call of the same response that runs without a verdict, and may
// run before those that need one.
type unjudged struct {
	Ref       string          `json:"ref"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// plan is a call that has not ended, in the order of the response, as the files
// of the calls behind it depend on it.
type plan struct {
	name  string // as the document names it
	tool  string
	raw   string // its arguments
	texts []argument
	cut   bool // it is not in the document as a whole
}

// calls puts the planned calls into the document, and says which of them cannot
// be shown.
func (a *collecting) calls(d *document, e *evidence) error {
	written, err := a.written()
	if err != nil {
		return err
	}
	f := &filer{a: a, written: written}
	if err := a.running(d, f); err != nil {
		return err
	}
	d.Planned = []plannedCall{}
	for i := range a.r.calls {
		call := &a.r.calls[i]
		shown, reason, err := a.planned(call, f, fmt.Sprintf("c%d", i+1))
		switch {
		case err != nil:
			return err
		case reason != "":
			e.refused[i] = reason
		default:
			d.Planned = append(d.Planned, *shown)
			e.ids, e.shown = append(e.ids, shown.ID), append(e.shown, i)
		}
	}
	return nil
}

// planned is a call as it is shown, or the reason why it cannot be.
func (a *collecting) planned(call *protocol.Approval, f *filer, id string) (shown *plannedCall, reason string, err error) {
	raw, err := a.arguments(call)
	if err != nil {
		f.plans = append(f.plans, plan{name: id, tool: call.Name, cut: true})
		return nil, tooLongToShow, notOwn(err)
	}
	p := plan{name: id, tool: call.Name, raw: raw}
	shown = &plannedCall{
		ID: id, Tool: a.text(call.Name), Cause: visible(call.Cause), Escalated: call.Escalated, Cwd: a.text(a.cwd),
		Justification: a.code(call.Justification), AfterFailure: call.Failed != "",
	}
	if shown.Arguments, p.texts, err = a.shown(raw); err != nil {
		p.cut = true
		f.plans = append(f.plans, p)
		return nil, tooLongToShow, notOwn(err)
	}
	for _, path := range call.Target {
		shown.Target = append(shown.Target, a.code(path))
	}
	for _, rule := range call.Rules {
		words := []string{}
		for _, word := range rule.Prefix {
			words = append(words, a.code(word))
		}
		shown.Rules = append(shown.Rules, protocol.RuleMatch{Prefix: words, Decision: rule.Decision, Justification: a.text(rule.Justification)})
	}
	shown.Files, reason = f.of(&p)
	p.cut = reason != ""
	f.plans = append(f.plans, p)
	return shown, reason, nil
}

// notOwn is an error that is not of the call alone.
func notOwn(err error) error {
	if errors.Is(err, errTooLong) {
		return nil
	}
	return err
}

// arguments are a call's whole arguments. The announcement cuts long ones: they
// are read by the call's node. A step's are kept nowhere else.
func (a *collecting) arguments(call *protocol.Approval) (string, error) {
	if call.Whole() {
		return string(call.Arguments), nil
	}
	if call.Step != "" {
		return "", errTooLong
	}
	raw, err := a.argumentsAt(call.Node, call.CallID)
	if err != nil {
		return "", err
	}
	// What else was left out of the announcement (targets, rules) is counted with
	// the members, and is nowhere to be read.
	var all, announced map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &all) != nil || json.Unmarshal(call.Arguments, &announced) != nil {
		return raw, nil
	}
	if int64(len(all)-len(announced)) != call.ArgumentsOmitted {
		return "", errTooLong
	}
	return raw, nil
}

// argumentsAt are the arguments of a call as its item keeps them.
func (a *collecting) argumentsAt(node int64, callID string) (string, error) {
	parts, err := a.partsAt(node)
	if err != nil {
		return "", err
	}
	found, text := 0, ""
	for _, p := range parts {
		if p.Kind == items.Call && p.CallID == callID {
			found++
			text = p.Text
		}
	}
	if found != 1 { // none, or which of them is not to be told
		return "", errTooLong
	}
	return text, nil
}

// What is read item by item is bounded, in items and in bytes.
const (
	maxReadItems = 256
	maxReadBytes = 8 << 20
)

// partsAt are the parts of an item, which is read once. One too large for a
// message is errTooLong.
func (a *collecting) partsAt(node int64) ([]items.Part, error) {
	if parts, ok := a.read[node]; ok {
		return parts, nil
	}
	if len(a.read) == maxReadItems || a.readBytes > maxReadBytes {
		return nil, fmt.Errorf("%w: the turn's calls", errTooMuch)
	}
	item, err := a.client.Item(a.ctx, a.r.bot, node)
	if errors.Is(err, protocol.ResponseSizeLimit) {
		return nil, errTooLong
	}
	if err != nil {
		return nil, err
	}
	a.readBytes += len(item)
	if a.read == nil {
		a.read = map[int64][]items.Part{}
	}
	a.read[node] = items.Parts(item)
	return a.read[node], nil
}

// isJudged reports whether a call, or a step of it, is one of the round's.
func (a *collecting) isJudged(c *protocol.PromptCall) (call, step bool) {
	for i := range a.r.calls {
		r := &a.r.calls[i]
		if r.CallID != c.CallID || r.Step == "" && r.Node != c.Node {
			continue
		}
		call, step = call || r.Step == "", step || r.Step != ""
	}
	return call, step
}

// running puts the calls of the response that run without a verdict into the
// document, and takes them for what may change files before the others run.
func (a *collecting) running(d *document, f *filer) error {
	for i := range a.prompts.Calls {
		c := &a.prompts.Calls[i]
		if c.Step != "" || c.Done {
			continue
		}
		if call, step := a.isJudged(c); call || step {
			continue
		}
		raw, err := a.promptArguments(c)
		p := plan{name: fmt.Sprintf("r%d", len(d.Unjudged)+1), tool: c.Name, raw: raw}
		shown := unjudged{Ref: p.name, Tool: a.text(c.Name)}
		if err == nil {
			shown.Arguments, p.texts, err = a.shown(raw)
		}
		if notOwn(err) != nil {
			return err
		}
		if p.cut = err != nil; p.cut { // no call may build on what it changes
			if shown.Arguments, err = encode(clipped(a.readable(shortWrite(c.Name, raw)), toolCap)); err != nil {
				return err
			}
		}
		d.Unjudged = append(d.Unjudged, shown)
		f.plans = append(f.plans, p)
	}
	return nil
}

// promptArguments are the whole arguments of a call of the turn.
func (a *collecting) promptArguments(c *protocol.PromptCall) (string, error) {
	if !c.ArgumentsTruncated {
		return c.Arguments, nil
	}
	return a.argumentsAt(c.Node, c.CallID)
}

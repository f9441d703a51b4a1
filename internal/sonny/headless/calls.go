package headless

import (
	"context"
	"errors"
	"slices"
	"time"

	"agent/client/items"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// How much of a call is told, in bytes.
const (
	maxArguments = 2 << 10
	maxOutput    = 4 << 10
)

// call is a tool call under way.
type call struct {
	*cells.ToolCall
	began   time.Time
	started bool
}

func newCall(id, name, arguments string) *call {
	c := &call{ToolCall: cells.NewCall(id, name, arguments)}
	c.At = fault.Exec
	return c
}

func (r *run) toolStarted(_ context.Context, e *protocol.Event) error {
	var d protocol.ToolStarted
	if err := e.Decode(&d); err != nil {
		return err
	}
	c := r.calls[d.CallID]
	if c == nil { // of a turn that was joined while it ran
		c = newCall(d.CallID, d.Name, d.Arguments)
		r.calls[d.CallID] = c
	}
	c.began, c.started = r.out.now(), true
	r.verdicts(d.CallID, allowed, d.Approvals)
	arguments, short := cut(c.Arguments, maxArguments)
	r.out.tell(&toolStartedEvent{
		Call: d.CallID, Tool: c.Name, Summary: c.Subject(), Arguments: arguments, Truncated: short,
	})
	return nil
}

// verdicts tell who answered.
func (r *run) verdicts(id, state string, all []protocol.Verdict) {
	for _, v := range all {
		by := v.Tag
		if v.By != nil && *v.By != "" {
			by = *v.By
		}
		r.out.tell(&approvalEvent{Call: id, State: state, By: by, Reason: v.Reason})
	}
}

func (r *run) toolCompleted(ctx context.Context, e *protocol.Event) error {
	var d protocol.ToolCompleted
	if err := e.Decode(&d); err != nil {
		return err
	}
	c := r.calls[d.CallID]
	if c == nil {
		return nil // it was planned before this run joined the turn
	}
	raw, err := r.c.Item(ctx, r.bot.Name, d.Node)
	if err != nil {
		return err
	}
	for _, p := range items.Parts(raw) {
		if p.Kind == items.Result && p.CallID == d.CallID {
			c.Finish(p.Text)
		}
	}
	done := r.doneCall(c, &d)
	if !c.started && (done.Status == callDenied || done.Status == callExpired) {
		r.verdicts(d.CallID, done.Status, d.Approvals)
	}
	r.count(done)
	r.out.tell(done)
	delete(r.calls, d.CallID)
	return nil
}

// doneCall is the call's end as it is told.
func (r *run) doneCall(c *call, d *protocol.ToolCompleted) *toolFinishedEvent {
	code, _ := c.Failed()
	done := &toolFinishedEvent{
		Call: d.CallID, Tool: c.Name, Status: statusOf(c, d), Error: string(code), Artifacts: d.Artifacts, Files: []FileChange{},
	}
	if done.Artifacts == nil {
		done.Artifacts = []string{}
	}
	if c.started {
		done.MS = r.out.now().Sub(c.began).Milliseconds()
	}
	if code, ok := c.ExitCode(); ok {
		done.Exit = &code
	}
	done.Output, _ = cut(c.Output(), maxOutput)
	if done.Status == callOK {
		for _, f := range c.Files() {
			done.Files = append(done.Files, FileChange{Path: f.Path(), Added: f.Added, Removed: f.Removed})
		}
	}
	return done
}

func statusOf(c *call, d *protocol.ToolCompleted) string {
	code, _ := c.Failed()
	switch {
	case d.Expired, code == protocol.ApprovalExpired:
		return callExpired
	case d.Denied, code == protocol.ApprovalDenied, code == protocol.EscalationRefused:
		return callDenied
	case d.OutcomeUnknown, code == protocol.OutcomeUnknown, code == protocol.ToolOutcomeUnknown:
		return callUnknown
	case d.Cancelled, code == protocol.Cancelled:
		return callCancelled
	case !c.OK():
		return callError
	}
	return callOK
}

// count counts what came of a call, and joins what it did to files.
func (r *run) count(done *toolFinishedEvent) {
	if done.Status == callDenied || done.Status == callExpired {
		r.counts.denied++
	} else {
		r.counts.other++
	}
	for _, f := range done.Files {
		i := slices.IndexFunc(r.files, func(o FileChange) bool { return o.Path == f.Path })
		if i < 0 {
			r.files = append(r.files, f)
			continue
		}
		r.files[i].Added += f.Added
		r.files[i].Removed += f.Removed
	}
}

// nobodyHere is what the model reads where a call waits for a person and none is there.
const nobodyHere = "sonny exec runs without a person who could answer; go on without it, or say what you need"

// asked tells of calls that wait for a verdict, and answers those that wait for the
// person: nobody is here.
func (r *run) asked(ctx context.Context, e *protocol.Event) error {
	var d protocol.ApprovalRequested
	if err := e.Decode(&d); err != nil {
		return err
	}
	for _, c := range d.Calls {
		for _, tag := range c.Gates {
			r.out.tell(&approvalEvent{Call: c.CallID, Step: c.Step, State: waiting, By: tag})
		}
		if !slices.Contains(c.Gates, lead.Manual.Tag()) {
			continue
		}
		_, err := r.c.Answer(ctx, &protocol.Answer{
			Bot: r.bot.Name, Turn: e.Turn, CallID: c.CallID, Request: c.Request, Step: c.Step,
			Decision: protocol.Deny, Tag: lead.Manual.Tag(), Reason: nobodyHere, By: "sonny exec",
		})
		if err != nil && !answeredElsewhere(err) {
			return err
		}
	}
	return nil
}

// answeredElsewhere reports that somebody was faster, or that the call is no more.
func answeredElsewhere(err error) bool {
	for _, code := range []protocol.Code{
		protocol.ApprovalAlreadyAnswered, protocol.ApprovalSuperseded, protocol.NoPendingApproval, protocol.StaleTurn,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// stepDecided tells of a part of a served call that was judged.
func (r *run) stepDecided(_ context.Context, e *protocol.Event) error {
	var d protocol.StepDecided
	if err := e.Decode(&d); err != nil {
		return err
	}
	state := map[string]string{protocol.Allow: allowed, protocol.Deny: denied, protocol.Expired: expired}[d.Decision]
	told := &approvalEvent{Call: d.CallID, Step: d.Step, State: state}
	for _, v := range d.Approvals {
		if told.By = v.Tag; v.By != nil && *v.By != "" {
			told.By = *v.By
		}
		if v.Reason != "" {
			told.Reason = v.Reason
		}
	}
	if state != allowed {
		r.counts.denied++
	}
	r.out.tell(told)
	return nil
}

package engine

import (
	"fmt"

	"agent/internal/store"
	"agent/protocol"
)

// Answer gives a verdict. It returns once the verdict is committed: it is never
// lost then, and whatever fails before gives none (approvals.md 5).
func (e *Engine) Answer(srv Server, r *protocol.Answer) (*protocol.Answered, *protocol.Error) {
	if r.Overturn {
		return e.overturn(r)
	}
	l, lost := e.answering(srv, r)
	answer := &protocol.Answered{Bot: r.Bot, Turn: r.Turn, CallID: r.CallID, Request: r.Request, Decision: r.Decision}
	err := e.store.Do("answer", func(tx *store.Tx) error { return e.answerJob(tx, r, answer, l, lost) })
	if l != nil {
		v := &e.verdicts
		v.mu.Lock()
		l.leave(err == nil)
		v.mu.Unlock()
	}
	if err != nil {
		return nil, asError(err)
	}
	return answer, nil
}

// answering begins an answer under a lease, whose clock stands meanwhile. lost
// says that there is no such lease, nil that none was named.
func (e *Engine) answering(srv Server, r *protocol.Answer) (l *lease, lost *protocol.Error) {
	if r.Lease == 0 || r.Tag == "" {
		return nil, nil
	}
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	if l, lost = v.tags.held(r.Tag, srv, r.Lease); lost != nil {
		return nil, lost
	}
	l.enter()
	return l, nil
}

// answerJob checks in the order of approvals.md 5 and writes the verdict.
func (e *Engine) answerJob(tx *store.Tx, r *protocol.Answer, answer *protocol.Answered, l *lease, lost *protocol.Error) error {
	bot, err := findBot(tx.Conn(), r.Bot, 0)
	if err != nil {
		return err
	}
	if err := checkAnswer(r); err != nil {
		return err
	}
	j, err := e.answeredApproval(tx.Conn(), &bot, r)
	if err != nil {
		return err
	}
	row, of := j.row, j.of(r.Turn)
	at, err := gateAnswered(row, r)
	if err != nil {
		return err
	}
	switch {
	case lost != nil:
		return lost
	case l != nil && !l.stands():
		return protocol.Fail(protocol.ApprovalsLost, fmt.Sprintf("lease %d of %s is over", r.Lease, r.Tag))
	case row.standing() != undecided || row.Gates[at].Decision != "" || j.step == nil && j.call.Status != "planned" || e.overdue(of, row):
		return protocol.Fail(protocol.ApprovalAlreadyAnswered, "it has that verdict, or was denied, or its time is over")
	}
	row = row.clone()
	g := &row.Gates[at]
	g.Decision, g.AnsweredMS, g.Leased = r.Decision, e.nowMS(), l != nil
	g.Reason = string(e.cfg.Redact.Bytes([]byte(r.Reason)))
	if r.By != "" {
		g.By = &r.By
	}
	if err := e.keepVerdict(tx, &bot, r.Turn, j, row); err != nil {
		return err
	}
	counts, err := countsIn(&bot, r.Turn)
	if err != nil {
		return err
	}
	counts.judged(g.Tag, g.Decision)
	if err := keepCounts(tx, bot.ID, &counts); err != nil {
		return err
	}
	answer.Tag, answer.Pending = g.Tag, row.open()
	return nil
}

func checkAnswer(r *protocol.Answer) *protocol.Error {
	switch {
	case r.Decision != protocol.Allow && r.Decision != protocol.Deny:
		return protocol.Fail(protocol.InvalidDecision, "decision is allow or deny")
	case r.Reason != "" && r.Decision != protocol.Deny:
		return protocol.Fail(protocol.InvalidReason, "a reason goes with deny")
	case len(r.Reason) > protocol.MaxAnswerReason:
		return protocol.Fail(protocol.ReasonLimit, fmt.Sprintf("the reason has %d bytes of at most %d", len(r.Reason), protocol.MaxAnswerReason))
	case len(r.By) > protocol.MaxBy:
		return protocol.Fail(protocol.InvalidBy, fmt.Sprintf("by has %d bytes of at most %d", len(r.By), protocol.MaxBy))
	case r.CallID == "":
		return protocol.Fail(protocol.InvalidCallID, "call_id is empty")
	case r.Step != "" && !protocol.ValidName(r.Step):
		return badStep()
	case r.Tag != "" && !protocol.ValidName(r.Tag):
		return badApprover()
	case r.Lease != 0 && r.Tag == "":
		return protocol.Fail(protocol.InvalidLease, "a lease goes with its tag")
	}
	return nil
}

// answeredApproval is the call, or the step, that a verdict is for, with its
// gates.
func (e *Engine) answeredApproval(c *store.Conn, bot *store.Bot, r *protocol.Answer) (*judged, error) {
	if bot.RunningTurn != r.Turn || r.Turn == 0 {
		return nil, protocol.Fail(protocol.StaleTurn, fmt.Sprintf("turn %d of %s is over, or not its current one", r.Turn, bot.Name))
	}
	what := r.CallID
	if r.Step != "" {
		what = "step " + r.Step + " of " + r.CallID
	}
	none := protocol.Fail(protocol.NoPendingApproval, fmt.Sprintf("turn %d waits for no verdict on %s, request %d", r.Turn, what, r.Request))
	call, ok, err := store.CallByID(c, r.Turn, r.CallID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, none
	}
	j := &judged{call: call}
	if r.Step == "" {
		j.row, err = approvalOf(&call)
	} else {
		err = e.answeredStep(c, bot, r, j)
	}
	switch {
	case err != nil:
		return nil, err
	case j.row == nil, r.Request > j.row.Request:
		return nil, none
	case r.Request < j.row.Request:
		return nil, protocol.Fail(protocol.ApprovalSuperseded, fmt.Sprintf("the call was announced again: its request is %d", j.row.Request))
	}
	return j, nil
}

// answeredStep fills in the step that a verdict is for; it has no row when there
// is none, or its server asks no more.
func (e *Engine) answeredStep(c *store.Conn, bot *store.Bot, r *protocol.Answer, j *judged) error {
	if err := e.goesOn(c, bot, r.Turn); err != nil {
		return err
	}
	steps, err := stepsOf(c, r.Turn, r.CallID)
	if err != nil {
		return err
	}
	step := steps.find(r.Step)
	if step == nil || step.decision() == "" && e.verdicts.find(asked{r.Turn, r.CallID, r.Step}) == nil {
		return nil
	}
	j.row, j.step, j.steps = step.Approval, step, steps
	return nil
}

// gateAnswered is the gate that a verdict is of.
func gateAnswered(row *approvalRow, r *protocol.Answer) (int, error) {
	if r.Tag != "" {
		for i := range row.Gates {
			if row.Gates[i].Tag == r.Tag {
				return i, nil
			}
		}
		return 0, protocol.Fail(protocol.NoPendingApproval, "no gate of the call has the tag "+r.Tag)
	}
	switch open := row.open(); len(open) {
	case 0:
		return 0, protocol.Fail(protocol.ApprovalAlreadyAnswered, "the call has its verdicts, or was denied")
	case 1:
		for i := range row.Gates {
			if row.Gates[i].Tag == open[0] {
				return i, nil
			}
		}
	}
	return 0, protocol.Fail(protocol.ApprovalTagRequired, "several gates are open; name one of their tags")
}

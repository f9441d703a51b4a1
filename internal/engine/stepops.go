package engine

import (
	"cmp"
	"fmt"

	"agent/internal/store"
	"agent/protocol"
)

// ApproveStep asks the gates of a bot for a verdict on one step of a call that
// the session holds. answer is called once: when the step is decided, when it is
// withdrawn (step_cancelled), or with what is wrong with the request. It must not
// block; the store's goroutine may call it. ApproveStep itself waits for no
// verdict.
//
// Codes: invalid_tag, invalid_call_id, invalid_name, step_limit, reason_limit,
// tools_lost, bot_not_found, stale_turn, no_pending_call, call_superseded,
// call_already_answered, step_exists.
func (e *Engine) ApproveStep(srv Server, r *protocol.Step, answer func(*protocol.StepVerdict, *protocol.Error)) {
	if err := checkStep(r); err != nil {
		answer(nil, err)
		return
	}
	l, err := e.served.answering(srv, r.Tag, cmp.Or(r.Lease, -1))
	if err != nil {
		answer(nil, err)
		return
	}
	if err := e.verdicts.reserve(len(r.Arguments)); err != nil {
		e.served.answered(l, false)
		answer(nil, err)
		return
	}
	s := &stepRequest{e: e, r: r, l: l, ask: &question{step: r.Step, args: r.Arguments, lease: l.n, answer: answer}}
	e.store.Go("approve_step", s.job, s.done)
}

func checkStep(r *protocol.Step) *protocol.Error {
	switch {
	case !protocol.ValidName(r.Tag):
		return badTag()
	case r.CallID == "":
		return protocol.Fail(protocol.InvalidCallID, "call_id is empty")
	case !protocol.ValidName(r.Step):
		return badStep()
	case r.Name == "" || len(r.Name) > protocol.MaxName:
		return protocol.Fail(protocol.InvalidName, fmt.Sprintf("name, the action, has 1 to %d bytes", protocol.MaxName))
	case len(r.Arguments) > protocol.MaxStepArguments:
		return protocol.Fail(protocol.StepLimit, fmt.Sprintf("the arguments have %d bytes of at most %d", len(r.Arguments), protocol.MaxStepArguments))
	case len(r.Reason) > protocol.MaxReason:
		return protocol.Fail(protocol.ReasonLimit, fmt.Sprintf("the reason has %d bytes of at most %d", len(r.Reason), protocol.MaxReason))
	}
	return nil
}

func badStep() *protocol.Error {
	return protocol.Fail(protocol.InvalidName, fmt.Sprintf("a step's name is 1 to %d bytes of letters, digits, - _ and .", protocol.MaxName))
}

// reserve makes room in memory for a step's arguments. It is given back by
// forgetAsked, or by release where nothing came to wait.
func (v *verdicts) reserve(n int) *protocol.Error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.held+n > maxHeldSteps {
		return protocol.Fail(protocol.StepLimit, fmt.Sprintf("the steps that wait have %d bytes of arguments together, of at most %d; wait until some are judged", v.held, maxHeldSteps))
	}
	v.held += n
	return nil
}

func (v *verdicts) release(n int) {
	v.mu.Lock()
	v.held -= n
	v.mu.Unlock()
}

// stepRequest is an approve_step on its way through the store's writer. Its job
// may be run twice.
type stepRequest struct {
	e   *Engine
	r   *protocol.Step
	l   *lease
	ask *question

	verdict *protocol.StepVerdict // where nobody needs to be asked
}

// done answers what is decided already. It runs behind the commit; a step that
// waits is answered by the job that decides it.
func (s *stepRequest) done(err error) {
	s.e.served.answered(s.l, false)
	if err == nil && s.verdict == nil {
		return
	}
	s.e.verdicts.release(len(s.ask.args))
	s.ask.answer(s.verdict, asError(err))
}

func (s *stepRequest) job(tx *store.Tx) error {
	s.verdict = nil
	e, r := s.e, s.r
	bot, err := findBot(tx.Conn(), r.Bot, 0)
	if err != nil {
		return err
	}
	call, err := s.call(tx.Conn(), &bot)
	if err != nil {
		return err
	}
	steps, err := stepsOf(tx.Conn(), r.Turn, r.CallID)
	switch {
	case err != nil:
		return err
	case steps.find(r.Step) != nil:
		return protocol.Fail(protocol.StepExists, "the call has a step "+r.Step+" already; each has a name of its own")
	case len(steps) >= protocol.MaxSteps:
		return protocol.Fail(protocol.StepLimit, fmt.Sprintf("a call has at most %d steps", protocol.MaxSteps))
	}
	row, undecided, err := s.asked(tx, &bot, call)
	if err != nil {
		return err
	}
	steps = append(steps, stepRow{Step: r.Step, Name: r.Name, Same: sameStep(call.Name, r.Name, r.Arguments), Approval: row})
	step := &steps[len(steps)-1]
	if !undecided {
		s.verdict = step.verdict()
		return e.decideStep(tx, &bot, r.Turn, &judged{call: *call, row: row, step: step, steps: steps})
	}
	one := announcement{callID: r.CallID, tool: r.Name, seq: call.Seq, row: row, ask: s.ask}
	if err := e.announceCalls(tx, bot.ID, bot.Name, r.Turn, []announcement{one}, ""); err != nil {
		return err
	}
	tx.AfterCommit(func() {
		if !s.l.stands() { // it ended before the step could be found
			e.loseSteps(s.l.n)
		}
	})
	if err := steps.keep(tx, r.Turn, r.CallID); err != nil {
		return err
	}
	return e.keepClock(tx, r.Turn, r.CallID, steps)
}

// call is the call that the step is of, if the session holds it and it goes on.
func (s *stepRequest) call(c *store.Conn, bot *store.Bot) (*store.ToolCall, error) {
	r := s.r
	call, err := answeredCall(c, bot, address{r.Bot, r.Turn, r.CallID, r.Request, r.Tag})
	if err != nil {
		return nil, err
	}
	if err := s.e.goesOn(c, bot, r.Turn); err != nil {
		return nil, err
	}
	return call, s.e.served.holds(s.l, r.Turn, r.CallID)
}

// holds says why a call is not that of a lease's holder, nil when it is.
func (s *served) holds(l *lease, turn int64, callID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.calls[turn]
	switch {
	case !l.stands():
		return protocol.Fail(s.tags.lost, fmt.Sprintf("lease %d of %s is over", l.n, l.tag))
	case sc == nil || sc.callID != callID || sc.lease != l.n:
		return protocol.Fail(protocol.NoPendingCall, "the call "+callID+" was not handed to this session")
	}
	return nil
}

// goesOn refuses what would be done within a turn that is being ended: nothing
// is allowed behind an interrupt or a pause that was answered.
func (e *Engine) goesOn(c *store.Conn, bot *store.Bot, turn int64) error {
	if t := e.taskOf(bot.ID); t != nil && t.turn == turn && t.stopped() != nil {
		return protocol.Fail(protocol.StaleTurn, fmt.Sprintf("turn %d was interrupted", turn))
	}
	pause, err := e.standingPause(c)
	if err == nil && pause != nil {
		err = protocol.Fail(protocol.StaleTurn, fmt.Sprintf("the daemon is paused, and turn %d ends", turn))
	}
	return err
}

// asked is the row of a new step, and whether anybody is to judge it. Without a
// gate what a sandboxed bot has done outside its sandbox is denied (approvals.md
// 8); a step that a person overturned has its verdict.
func (s *stepRequest) asked(tx *store.Tx, bot *store.Bot, call *store.ToolCall) (row *approvalRow, undecided bool, err error) {
	e := s.e
	gates, err := gatesIn(bot.ID, bot.Gates)
	if err != nil {
		return nil, false, err
	}
	h, err := e.holdOf(tx.Conn(), bot.ID)
	if err != nil {
		return nil, false, err
	}
	served, err := servedRowOf(call)
	if err != nil {
		return nil, false, err
	}
	now, sandboxed := e.nowMS(), h.setting.Confines()
	j := &judgement{cause: causeStep, escalated: sandboxed, justification: s.r.Reason}
	row = asking(naming(gates, call.Name), now, served.Node, j)
	if len(row.Gates) == 0 {
		row.Gates = []gateVerdict{{Decision: protocol.Allow, AnsweredMS: now}}
		if sandboxed {
			row.Gates = []gateVerdict{{Decision: protocol.Deny, Reason: "no approval gate", AnsweredMS: now}}
		}
		return row, false, nil
	}
	used, err := e.overturned(tx, bot.ID, sameStep(call.Name, s.r.Name, s.r.Arguments), sameJudge(bot.Gates, encodeHold(h)), row)
	return row, !used, err
}

// StepResult records what came of an allowed step, also when its call, or the
// turn, is over by then: what was begun is not taken back.
//
// Codes: as of ApproveStep, and no_pending_step for a step that is unknown, was
// not allowed, or has its result.
func (e *Engine) StepResult(srv Server, r *protocol.StepResult) (*protocol.Empty, *protocol.Error) {
	switch {
	case !protocol.ValidName(r.Tag):
		return nil, badTag()
	case r.CallID == "":
		return nil, protocol.Fail(protocol.InvalidCallID, "call_id is empty")
	case !protocol.ValidName(r.Step):
		return nil, badStep()
	case len(r.Detail) > protocol.MaxStepDetail:
		return nil, protocol.Fail(protocol.StepLimit, fmt.Sprintf("the detail has %d bytes of at most %d", len(r.Detail), protocol.MaxStepDetail))
	}
	l, err := e.served.answering(srv, r.Tag, cmp.Or(r.Lease, -1))
	if err != nil {
		return nil, err
	}
	failed := e.store.Do("step_result", func(tx *store.Tx) error { return e.stepResultJob(tx, l, r) })
	e.served.answered(l, failed == nil)
	if failed != nil {
		return nil, asError(failed)
	}
	return &protocol.Empty{}, nil
}

func (e *Engine) stepResultJob(tx *store.Tx, l *lease, r *protocol.StepResult) error {
	bot, err := findBot(tx.Conn(), r.Bot, 0)
	if err != nil {
		return err
	}
	if !l.stands() {
		return protocol.Fail(protocol.ToolsLost, fmt.Sprintf("lease %d of %s is over", l.n, l.tag))
	}
	none := protocol.Fail(protocol.NoPendingStep, fmt.Sprintf("call %s of turn %d has no step %s that was allowed and has no result", r.CallID, r.Turn, r.Step))
	turn, ok, err := store.TurnByID(tx.Conn(), r.Turn)
	if err != nil {
		return err
	}
	if !ok || turn.Bot != bot.Name {
		return none
	}
	call, ok, err := store.CallByID(tx.Conn(), r.Turn, r.CallID)
	if err != nil {
		return err
	}
	if !ok || call.Served == nil {
		return none
	}
	row, err := servedRowOf(&call)
	switch {
	case err != nil:
		return err
	case row.Tag != r.Tag || row.Request != r.Request:
		return none
	}
	steps, err := stepsOf(tx.Conn(), r.Turn, r.CallID)
	if err != nil {
		return err
	}
	step := steps.find(r.Step)
	if step == nil || step.decision() != protocol.Allow || step.Done {
		return none
	}
	step.Done, step.OK = true, r.OK
	step.Detail = cutBytes(string(e.cfg.Redact.Bytes([]byte(r.Detail))), protocol.MaxStepDetail)
	data := newObject().str("call_id", r.CallID).str("step", step.Step).str("name", step.Name).bool("ok", step.OK).opt("detail", step.Detail).done()
	if _, err := tx.AddEvent(bot.ID, bot.Name, r.Turn, protocol.KindStepCompleted, data); err != nil {
		return err
	}
	return steps.keep(tx, r.Turn, r.CallID)
}

package engine

import (
	"encoding/json"
	"fmt"

	"agent/internal/store"
	"agent/protocol"
)

// A served call may do several things that each deserve a verdict. Its server
// asks for each, as a step of the call, and waits (approvals.md 8). A step is
// announced, listed and judged as a call is; what it has of its own is here:
//
//   - Its row is in the row of its call, and says for good what was decided. It
//     keeps a digest of the arguments and not the arguments.
//   - While it waits it is in verdicts, with its arguments and with who asked.
//     Only what is there takes a verdict: a step whose asker went away, or that an
//     earlier daemon left behind, is allowed by nothing.
//   - It costs no goroutine and no poll: the job that decides it answers.

// causeStep is the cause for which a step waits.
const causeStep = "step"

// maxHeldSteps bounds the bytes of arguments that steps which wait keep in
// memory.
const maxHeldSteps = 64 << 20

// question is the server of a call that waits for a verdict on a step.
type question struct {
	step  string
	args  json.RawMessage
	lease int64 // under which it was asked
	// answer is called once, with either, and does not block.
	answer func(*protocol.StepVerdict, *protocol.Error)
}

// stepRow is what a call's row keeps of one of its steps.
type stepRow struct {
	Step     string       `json:"step"`
	Name     string       `json:"name"` // the action
	Same     string       `json:"same"` // digest of what makes another the same step
	Approval *approvalRow `json:"approval"`
	// Withdrawn says that who asked went away before it was decided.
	Withdrawn bool   `json:"withdrawn,omitempty"`
	Done      bool   `json:"done,omitempty"` // its server said what came of it
	OK        bool   `json:"ok,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// stepRows are the steps of a call in the order in which they were asked.
type stepRows []stepRow

// stepsOf reads the steps of a call. What cannot be read is an error and never an
// allow.
func stepsOf(c *store.Conn, turn int64, callID string) (stepRows, error) {
	raw, err := store.CallSteps(c, turn, callID)
	if err != nil {
		return nil, err
	}
	return readSteps(callID, raw)
}

func readSteps(callID string, raw json.RawMessage) (rows stepRows, err error) {
	if raw == nil {
		return nil, nil
	}
	bad := protocol.Fail(protocol.StoreRowInvalid, "the call "+callID+": steps cannot be read")
	if json.Unmarshal(raw, &rows) != nil {
		return nil, bad
	}
	for i := range rows {
		if a := rows[i].Approval; a == nil || len(a.Gates) == 0 || rows[i].Step == "" {
			return nil, bad
		}
	}
	return rows, nil
}

func (rows stepRows) keep(tx *store.Tx, turn int64, callID string) error {
	raw, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return tx.SetSteps(turn, callID, raw)
}

// find gives a step, nil when there is none of that name.
func (rows stepRows) find(step string) *stepRow {
	for i := range rows {
		if rows[i].Step == step {
			return &rows[i]
		}
	}
	return nil
}

// waits reports whether any step waits.
func (rows stepRows) waits() bool {
	for i := range rows {
		if rows[i].waits() {
			return true
		}
	}
	return false
}

func (s *stepRow) waits() bool { return !s.Withdrawn && s.Approval.standing() == undecided }

// decision is allow, deny or expired, "" before there is one.
func (s *stepRow) decision() string {
	switch s.Approval.standing() {
	case allowedByAll:
		return protocol.Allow
	case deniedByOne:
		if s.Approval.expired() {
			return protocol.Expired
		}
		return protocol.Deny
	}
	return ""
}

// reason is why it was denied.
func (s *stepRow) reason() string {
	for i := range s.Approval.Gates {
		if g := &s.Approval.Gates[i]; g.Decision == protocol.Deny {
			return g.Reason
		}
	}
	return ""
}

// approvals are its verdicts as they are shown, a denial's with what was decided
// and why.
func (s *stepRow) approvals() []protocol.Verdict {
	return s.Approval.given(s.decision() != protocol.Allow)
}

func (s *stepRow) verdict() *protocol.StepVerdict {
	return &protocol.StepVerdict{Step: s.Step, Decision: s.decision(), Reason: s.reason(), Approvals: s.approvals()}
}

// sameStep digests what makes a step the same as another, in whatever call.
func sameStep(tool, action string, args json.RawMessage) string {
	return digest(causeStep, tool, action, string(args))
}

// openSteps are the steps of a turn's call that wait for a verdict.
func (e *Engine) openSteps(c *store.Conn, turn int64) (out []judged, err error) {
	var calls []store.ToolCall
	err = store.OpenCalls(c, turn, func(call store.ToolCall) {
		if call.Status == "executing" && call.Served != nil {
			calls = append(calls, call)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, call := range calls {
		steps, err := stepsOf(c, turn, call.CallID)
		if err != nil {
			return nil, err
		}
		for i := range steps {
			j := judged{call: call, row: steps[i].Approval, step: &steps[i], steps: steps}
			if steps[i].waits() && e.verdicts.find(j.of(turn)) != nil {
				out = append(out, j)
			}
		}
	}
	return out, nil
}

// keepVerdict writes how a call, or a step, stands with its gates, and tells who
// waits for it.
func (e *Engine) keepVerdict(tx *store.Tx, bot *store.Bot, turn int64, j *judged, row *approvalRow) error {
	of := j.of(turn)
	if j.step == nil {
		tx.AfterCommit(func() { e.replaced(of, row) })
		return setApproval(tx, turn, of.callID, row)
	}
	j.step.Approval = row
	if row.standing() == undecided {
		tx.AfterCommit(func() { e.replaced(of, row) })
		return j.steps.keep(tx, turn, of.callID)
	}
	return e.decideStep(tx, bot, turn, j)
}

// decideStep writes that a step has its verdict, with its event. Who asked is
// answered behind the commit.
func (e *Engine) decideStep(tx *store.Tx, bot *store.Bot, turn int64, j *judged) error {
	step := j.step
	data := newObject().str("call_id", j.call.CallID).str("step", step.Step).str("name", step.Name).str("decision", step.decision()).
		raw("approvals", encodeVerdicts(step.approvals()))
	if by := step.Approval.OverturnedBy; by != nil {
		data.str("overturned_by", *by)
	}
	if _, err := tx.AddEvent(bot.ID, bot.Name, turn, protocol.KindStepDecided, data.done()); err != nil {
		return err
	}
	if err := j.steps.keep(tx, turn, j.call.CallID); err != nil {
		return err
	}
	of, verdict := j.of(turn), step.verdict()
	tx.AfterCommit(func() {
		for _, a := range e.forgetAsked(turn, func(a *announced) bool { return a.asked == of }) {
			a.ask.answer(verdict, nil)
		}
	})
	return e.keepClock(tx, turn, j.call.CallID, j.steps)
}

// loseSteps withdraws what was asked under a lease that is over. served.mu may be
// held.
func (e *Engine) loseSteps(lease int64) {
	v := &e.verdicts
	v.mu.Lock()
	var turns []int64
	for turn := range v.turns {
		turns = append(turns, turn)
	}
	v.mu.Unlock()
	for _, turn := range turns {
		gone := e.forgetAsked(turn, func(a *announced) bool { return a.ask != nil && a.ask.lease == lease })
		for _, a := range gone {
			a.ask.answer(nil, protocol.Fail(protocol.StepCancelled, fmt.Sprintf("lease %d, under which it was asked, is over", lease)))
		}
		if len(gone) > 0 {
			go e.noteWithdrawn(gone)
		}
	}
}

// noteWithdrawn writes that steps of one call were withdrawn: the call's clock
// goes on. A store that refuses is asked again; what a daemon leaves behind the
// next one withdraws.
func (e *Engine) noteWithdrawn(gone []*announced) {
	err := e.untilStored("withdraw_steps", func(tx *store.Tx) error {
		return e.withdrawSteps(tx, gone[0].turn, gone[0].callID, func(step string) bool {
			for _, a := range gone {
				if a.step == step {
					return true
				}
			}
			return false
		})
	})
	if err != nil && !e.isClosing() {
		e.cfg.Log.Error("that steps were withdrawn could not be stored", "turn", gone[0].turn, "error", err)
	}
}

// withdrawSteps marks steps that wait as withdrawn.
func (e *Engine) withdrawSteps(tx *store.Tx, turn int64, callID string, fits func(step string) bool) error {
	call, ok, err := store.CallByID(tx.Conn(), turn, callID)
	if err != nil || !ok || call.Status != "executing" {
		return err
	}
	steps, err := stepsOf(tx.Conn(), turn, callID)
	if err != nil {
		return err
	}
	for i := range steps {
		if steps[i].waits() && fits(steps[i].Step) {
			steps[i].Withdrawn = true
		}
	}
	if err := steps.keep(tx, turn, callID); err != nil {
		return err
	}
	return e.keepClock(tx, turn, callID, steps)
}

// keepClock has the deadline of a call stand while a step of it waits, and move
// on by the time that took when none does.
func (e *Engine) keepClock(tx *store.Tx, turn int64, callID string, steps stepRows) error {
	call, ok, err := store.CallByID(tx.Conn(), turn, callID)
	if err != nil || !ok {
		return err
	}
	row, err := servedRowOf(&call)
	if err != nil {
		return err
	}
	now := e.nowMS()
	switch waits := steps.waits(); {
	case waits && row.StandsMS == 0:
		row.StandsMS = now
	case !waits && row.StandsMS != 0:
		row.ExpiresMS, row.StandsMS = row.due(now), 0
	default:
		return nil
	}
	tx.AfterCommit(func() { e.setClock(turn, callID, row.servedClock) })
	return setServed(tx, turn, callID, &row)
}

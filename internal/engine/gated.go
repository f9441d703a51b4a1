package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"agent/internal/model"
	"agent/internal/sandbox"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// parkVerdict is the kind of a park that waits for a verdict.
const parkVerdict = "verdict"

// errDecided says that a call got its verdict while its turn was being parked.
var errDecided = errors.New("the call was judged")

// gatePlan is what the calls of a response need, as it was found out before the
// commit that plans them, and what that was found out by.
type gatePlan struct {
	gates, hold []byte
	list        []protocol.Gate
	calls       map[string]judgement // of those that wait where a gate names their tool
	nodes       map[string]int       // which of the response's items made a call
}

// planGates finds out which calls of a response wait for verdicts (approvals.md
// 3), as far as that can be seen before any of them runs.
func (t *task) planGates(done *model.Completion) (*gatePlan, error) {
	p := &gatePlan{calls: map[string]judgement{}, nodes: map[string]int{}}
	var h hold
	// Also when the turn is being stopped: its answer is stored all the same.
	err := t.e.read(context.WithoutCancel(t.ctx), "gates", func(c *store.Conn) (err error) {
		if p.gates, err = store.BotGates(c, t.bot); err != nil {
			return err
		}
		h, err = t.e.holdOf(c, t.bot)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.hold = encodeHold(h)
	if p.list, err = gatesIn(t.bot, p.gates); err != nil {
		return nil, err
	}
	for i := range done.Calls {
		call := &done.Calls[i]
		if _, refusal := t.plannedRefusal(call); refusal != nil || len(naming(p.list, call.Name)) == 0 {
			continue
		}
		j, err := t.judge(&h, call, true)
		if err != nil {
			return nil, err
		}
		if j.refusal == nil && j.cause != "" {
			p.calls[call.ID] = j
		}
	}
	for i, item := range done.Items {
		d, err := t.e.describe(string(t.family), 0, item)
		if err != nil {
			return nil, err
		}
		for _, call := range d.Calls {
			p.nodes[call.ID] = i
		}
	}
	return p, nil
}

// announce marks the calls that wait, in the commit that plans them; nodes are
// those of the response's items. A plan that was made by other gates, or another
// sandbox, than the bot has now is to be made again: errSettleAgain.
func (t *task) announce(tx *store.Tx, p *gatePlan, calls []model.Call, seq int, nodes []int64) error {
	raw, err := store.BotGates(tx.Conn(), t.bot)
	if err != nil || raw == nil {
		return err
	}
	if p == nil || !bytes.Equal(raw, p.gates) {
		return errSettleAgain
	}
	h, err := t.e.holdOf(tx.Conn(), t.bot)
	if err != nil {
		return err
	}
	if !bytes.Equal(encodeHold(h), p.hold) {
		return errSettleAgain
	}
	now := t.e.nowMS()
	var list []announcement
	for i := range calls {
		call := &calls[i]
		j, waits := p.calls[call.ID]
		if !waits {
			continue
		}
		node := nodes[len(nodes)-1]
		if at, ok := p.nodes[call.ID]; ok && at < len(nodes) {
			node = nodes[at]
		}
		one := announcement{callID: call.ID, tool: call.Name, seq: seq + i, row: asking(naming(p.list, call.Name), now, node, &j)}
		used, err := t.overturned(tx, call, one.row, raw, p.hold)
		switch {
		case err != nil:
			return err
		case used:
			tx.AfterCommit(func() { t.enter(one) })
		default:
			list = append(list, one)
		}
	}
	return t.e.announceCalls(tx, t.bot, t.name, t.turn, list, "")
}

// enter makes a call of the turn known that has its verdicts without being
// announced.
func (t *task) enter(one announcement) {
	t.e.enter(one.entry(t.bot, t.name, t.turn))
}

// cleared is a call that may start, and where it runs.
type cleared struct {
	where
	row *approvalRow // nil: no gate was asked
}

// clear waits until a call may start, or gives the refusal that is its result. It
// asks about the sandbox once more, on the files as they are then: a call that
// turns out to leave it without a verdict is announced alone, as is one that a rule
// refused when it was planned and refuses no more, and one that was judged as held
// more closely; one that is not what was judged any more is refused (approvals.md 3,
// sandbox.md 7).
func (t *task) clear(call *model.Call, rest []model.Call) (c cleared, refusal *tool.Result, err error) {
	for {
		row, err := t.await(call, rest)
		if err != nil {
			return c, nil, err
		}
		if row != nil && row.standing() != allowedByAll {
			code, detail, _ := deniedCode(row)
			return c, t.refusal(code, detail), nil
		}
		if row == nil && t.clientTool(call.Name) == nil && !tool.Confined(call.Name) {
			return c, nil, nil
		}
		h, covered, err := t.held(call.Name)
		if err != nil {
			return c, nil, err
		}
		j, err := t.judge(&h, call, row != nil)
		if err != nil {
			return c, nil, err
		}
		c = cleared{where: j.where, row: row}
		switch {
		case j.refusal != nil:
			return c, j.refusal, nil
		case j.cause == "" || row == nil && j.lacking == nil && !covered:
			return c, changedSince(t, row, &j), nil
		case row == nil || j.escalated && !row.Escalated || t.widened(row, &j):
			if refusal, err := t.askAlone(call, &j, row); refusal != nil || err != nil {
				return c, refusal, err
			}
			continue
		}
		if refusal := changedSince(t, row, &j); refusal != nil {
			return c, refusal, nil
		}
		c.allowed = row.Escalated
		if len(j.target) > 0 {
			c.outside = j.paths
		}
		return c, nil, nil
	}
}

// widened reports whether a call that was judged as one within the sandbox would
// now run in a wider one, or in none.
func (t *task) widened(row *approvalRow, j *judgement) bool {
	if row.Held == nil || row.Escalated {
		return false
	}
	var held sandbox.Setting
	return j.confinement == nil || json.Unmarshal(row.Held, &held) != nil || t.e.world().Widens(j.confinement.Setting, &held) != ""
}

// changedSince refuses a call whose folder or files are not those that were
// judged.
func changedSince(t *task, row *approvalRow, j *judgement) *tool.Result {
	switch {
	case row == nil:
	case row.Folder != j.folder:
		return t.refusal(protocol.PathChanged, t.workspace+" is not the folder that was judged; nothing was run")
	case !slices.Equal(row.Paths, j.paths):
		return t.refusal(protocol.PathChanged, "the paths of this call lead elsewhere than when it was judged; nothing was written")
	}
	return nil
}

// await gives a call's row once it is decided; nil for a call that no gate was
// asked about. It waits live for a while and then parks the turn.
func (t *task) await(call *model.Call, rest []model.Call) (*approvalRow, error) {
	of := asked{turn: t.turn, callID: call.ID}
	a := t.e.verdicts.find(of)
	if a == nil {
		return nil, nil
	}
	hold := time.NewTimer(t.hold())
	defer hold.Stop()
	for {
		row, due := t.e.verdicts.now(a)
		if row.standing() != undecided {
			return row, nil
		}
		var late <-chan time.Time
		if !due.IsZero() {
			left := time.Until(due)
			if left <= 0 {
				if err := t.e.expireTurn(t.bot, of, false); err != nil {
					return nil, err
				}
				if s := t.stopped(); s != nil {
					return nil, s
				}
				continue
			}
			timer := time.NewTimer(left)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-a.changed:
		case <-late:
		case <-t.ctx.Done():
			return nil, t.stopped()
		case <-hold.C:
			if err := t.parkOnVerdict(call, rest, row); !errors.Is(err, errDecided) {
				return nil, err
			}
		}
	}
}

// parkOnVerdict parks the turn on a call that has no verdict yet; the call is the
// first of what is left to run.
func (t *task) parkOnVerdict(call *model.Call, rest []model.Call, seen *approvalRow) error {
	rec := parkRecord{
		Kind: parkVerdict, CallID: call.ID, DeadlineMS: seen.expiresMS(),
		Pending: toParked(append([]model.Call{*call}, rest...)),
	}
	return t.parkWith(rec, func(tx *store.Tx) error {
		stored, _, err := store.CallByID(tx.Conn(), t.turn, call.ID)
		if err != nil {
			return err
		}
		row, err := approvalOf(&stored)
		if err != nil {
			return err
		}
		if row == nil || row.standing() != undecided {
			return errDecided
		}
		return nil
	})
}

// askAlone announces a call that turned out, now that it is to run, to need a
// verdict that it does not have: by the gates as they are now, or, for one that
// was judged as something less, by those that it had. refusal is its result where
// none covers it.
func (t *task) askAlone(call *model.Call, j *judgement, was *approvalRow) (refusal *tool.Result, err error) {
	again, err := t.judgeWhole(call)
	if err != nil {
		return nil, err
	}
	*j = again
	node, err := t.nodeOf(call.ID)
	if err != nil {
		return nil, err
	}
	err = t.e.store.Do("announce", func(tx *store.Tx) error {
		refusal = nil
		stored, ok, err := store.CallByID(tx.Conn(), t.turn, call.ID)
		if err != nil {
			return err
		}
		have, err := approvalOf(&stored)
		if err != nil {
			return err
		}
		if !ok || (have == nil) != (was == nil) || have != nil && have.Request != was.Request {
			return protocol.Fail(protocol.StoreRowInvalid, "the call "+call.ID+" is not as it was judged")
		}
		raw, err := store.BotGates(tx.Conn(), t.bot)
		if err != nil {
			return err
		}
		gates, err := gatesIn(t.bot, raw)
		if err != nil {
			return err
		}
		row := asking(naming(gates, call.Name), t.e.nowMS(), node, j)
		if was != nil {
			row.Request = was.Request + 1
			row.Gates = row.Gates[:0]
			for _, g := range was.Gates {
				row.Gates = append(row.Gates, gateVerdict{Tag: g.Tag, ExpireMS: g.ExpireMS})
			}
		}
		if len(row.Gates) == 0 || j.cause == "" {
			if refusal = j.lacking; refusal == nil {
				refusal = t.refusal(protocol.EscalationRefused, "no approval gate of this bot covers "+call.Name)
			}
			return nil
		}
		one := announcement{callID: call.ID, tool: call.Name, seq: stored.Seq, row: row}
		h, err := t.e.holdOf(tx.Conn(), t.bot)
		if err != nil {
			return err
		}
		used, err := t.overturned(tx, call, row, raw, encodeHold(h))
		if err != nil {
			return err
		}
		if used {
			tx.AfterCommit(func() { t.enter(one) })
			return nil
		}
		return t.e.announceCalls(tx, t.bot, t.name, t.turn, []announcement{one}, "")
	})
	return refusal, err
}

// judgeWhole is judge with everything that a gate is shown.
func (t *task) judgeWhole(call *model.Call) (j judgement, err error) {
	h, _, err := t.held(call.Name)
	if err != nil {
		return j, err
	}
	return t.judge(&h, call, true)
}

// answerCall records that a call has its result. It gives the row of one that was
// judged and never started.
func (e *Engine) answerCall(tx *store.Tx, turn int64, callID string) (*approvalRow, error) {
	call, _, err := store.CallByID(tx.Conn(), turn, callID)
	if err != nil {
		return nil, err
	}
	row, err := approvalOf(&call)
	if err != nil {
		return nil, err
	}
	tx.AfterCommit(func() { e.withdraw(turn, callID) })
	if call.Status != "planned" {
		row = nil
	}
	return row, tx.AnswerCall(turn, callID)
}

// askAgainAfter announces the rest of a round anew when a call of it failed.
func (e *Engine) askAgainAfter(tx *store.Tx, bot, turn int64, callID string, res *tool.Result) error {
	if !res.Failed {
		return nil
	}
	rest, err := openApprovals(tx.Conn(), turn)
	if err != nil || len(rest) == 0 {
		return err
	}
	call, ok, err := store.CallByID(tx.Conn(), turn, callID)
	if err != nil || !ok {
		return err
	}
	b, ok, err := store.BotByID(tx.Conn(), bot)
	if err != nil || !ok {
		return err
	}
	return e.askAgain(tx, &b, turn, &call, rest)
}

// deniedCode is the result of a call that a gate denied. mark is "": its event
// says so by its verdicts.
func deniedCode(row *approvalRow) (code protocol.Code, detail, mark string) {
	if row.expired() {
		return protocol.ApprovalExpired, "not reviewed: no verdict", ""
	}
	for i := range row.Gates {
		if g := &row.Gates[i]; g.Decision == protocol.Deny {
			return protocol.ApprovalDenied, g.Reason, ""
		}
	}
	return protocol.ApprovalDenied, "", ""
}

// judgedData adds to a tool_completed how a call that never started was judged.
func judgedData(o *object, row *approvalRow) {
	if row.standing() == deniedByOne {
		o.bool("denied", true)
		if row.expired() {
			o.bool("expired", true)
		}
	}
	o.raw("approvals", encodeVerdicts(row.given(true)))
}

func encodeVerdicts(list []protocol.Verdict) json.RawMessage {
	raw, _ := protocol.Append(nil, list) // its error only says that U+FFFD was put in
	return raw
}

// verdictsOf are the verdicts that let a call start.
func verdictsOf(call *store.ToolCall) ([]protocol.Verdict, error) {
	row, err := approvalOf(call)
	if err != nil || row == nil {
		return []protocol.Verdict{}, err
	}
	return row.given(false), nil
}

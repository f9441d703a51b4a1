package engine

import (
	"agent/internal/store"
	"agent/protocol"
)

// announcement is a call on its way to be announced, or announced again.
type announcement struct {
	callID, tool string // of a step, its action
	seq          int
	row          *approvalRow
	ask          *question // of a step; its row is kept by who announces it
}

func (a *announcement) step() string {
	if a.ask == nil {
		return ""
	}
	return a.ask.step
}

// announceCalls records that calls wait for verdicts, with one event for all.
// failed is the call that made them wait again, "" for none. What is pushed
// follows once the commit is known.
func (e *Engine) announceCalls(tx *store.Tx, bot int64, name string, turn int64, list []announcement, failed string) error {
	if len(list) == 0 {
		return nil
	}
	data := newObject().raw("calls", announcedCalls(list)).opt("failed", failed).done()
	cursor, err := tx.AddEvent(bot, name, turn, protocol.KindApprovalRequested, data)
	if err != nil {
		return err
	}
	for _, one := range list {
		if one.row.Cursor = cursor; one.ask != nil {
			continue
		}
		if err := setApproval(tx, turn, one.callID, one.row); err != nil {
			return err
		}
	}
	if err := rememberGated(tx, bot, turn, list); err != nil {
		return err
	}
	tx.AfterCommit(func() {
		for _, one := range list {
			e.enter(one.entry(bot, name, turn))
		}
		e.pushSoon(turn, cursor)
	})
	return nil
}

// entry is an announcement as it waits.
func (a *announcement) entry(bot int64, name string, turn int64) *announced {
	return &announced{asked: asked{turn, a.callID, a.step()}, bot: bot, name: name, tool: a.tool, seq: a.seq, ask: a.ask, row: a.row}
}

func announcedCalls(list []announcement) []byte {
	b := []byte{'['}
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		one, row := &list[i], list[i].row
		tags := make([]string, len(row.Gates))
		for j := range row.Gates {
			tags[j] = row.Gates[j].Tag
		}
		b = append(b, newObject().str("call_id", one.callID).int("request", row.Request).int("announced_ms", row.AnnouncedMS).
			intOrNull("expires_ms", row.expiresMS()).strs("gates", tags).str("name", one.tool).int("node", row.Node).
			str("cause", row.Cause).bool("escalated", row.Escalated).opt("step", one.step()).done()...)
	}
	return append(b, ']')
}

// asking is a row that asks gates, for the first time.
func asking(gates []protocol.Gate, now int64, node int64, j *judgement) *approvalRow {
	row := &approvalRow{
		Request: 1, Node: node, AnnouncedMS: now, Cause: j.cause, Escalated: j.escalated, Folder: j.folder,
		Paths: j.paths, Target: j.target, Justification: j.justification, Rules: j.rules,
	}
	if j.confinement != nil {
		row.Held = encodeSetting(j.confinement.Setting)
	}
	row.Gates = unasked(gates)
	return row
}

func unasked(gates []protocol.Gate) (out []gateVerdict) {
	for _, g := range gates {
		v := gateVerdict{Tag: g.Tag}
		if g.ExpireMS != nil {
			v.ExpireMS = *g.ExpireMS
		}
		out = append(out, v)
	}
	return out
}

// askAgain announces the later gated calls of a round anew, since one of it was
// denied or failed; their verdicts are void. One whose time has passed is denied
// with it (approvals.md 4). calls are those of the turn that gates were asked about
// and that have no result.
func (e *Engine) askAgain(tx *store.Tx, bot *store.Bot, turn int64, failed *store.ToolCall, calls []judged) error {
	now := e.nowMS()
	var again []announcement
	var late []judged
	for _, c := range calls {
		switch {
		case c.call.Seq <= failed.Seq || c.call.Status != "planned" || c.row.OverturnedBy != nil || c.row.expired():
		case c.row.standing() == undecided && e.overdue(c.of(turn), c.row):
			late = append(late, c)
		default:
			row := c.row.clone()
			row.Request, row.AnnouncedMS, row.Failed = row.Request+1, now, failed.CallID
			for i := range row.Gates {
				row.Gates[i] = gateVerdict{Tag: row.Gates[i].Tag, ExpireMS: row.Gates[i].ExpireMS}
			}
			again = append(again, announcement{callID: c.call.CallID, tool: c.call.Name, seq: c.call.Seq, row: row})
		}
	}
	if err := e.expire(tx, bot, turn, late, nil); err != nil {
		return err
	}
	return e.announceCalls(tx, bot.ID, bot.Name, turn, again, failed.CallID)
}

// judged is a call that has neither started nor ended, or a step that waits, with
// its gates.
type judged struct {
	call store.ToolCall
	row  *approvalRow
	step *stepRow // in steps; nil for the call itself
	// All steps of the call.
	steps stepRows
}

func (j *judged) of(turn int64) asked {
	of := asked{turn: turn, callID: j.call.CallID}
	if j.step != nil {
		of.step = j.step.Step
	}
	return of
}

// openApprovals are a turn's calls that gates were asked about and that have no
// result.
func openApprovals(c *store.Conn, turn int64) (out []judged, err error) {
	var calls []store.ToolCall
	if err := store.OpenCalls(c, turn, func(call store.ToolCall) {
		if call.Approval != nil && call.Status == "planned" {
			calls = append(calls, call)
		}
	}); err != nil {
		return nil, err
	}
	for _, call := range calls {
		row, err := approvalOf(&call)
		if err != nil {
			return nil, err
		}
		out = append(out, judged{call: call, row: row})
	}
	return out, nil
}

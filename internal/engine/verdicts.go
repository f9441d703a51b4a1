package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"agent/internal/store"
	"agent/protocol"
)

// How a call stands with its gates is in its row, and nothing but a row in which
// every gate says allow lets it start: the job that starts it reads the row
// again. What is kept here, as the last commit left it, finds the calls that
// wait, wakes who waits for them, and knows who serves their tags (approvals.md
// 4, 5). A verdict is committed as it is given, whether the turn is live or
// parked: the store's one writer orders answers, deadlines, parks and starts.

// verdicts are the announced calls of current turns that have not started or
// ended, and the steps of calls whose servers wait for them. It is safe for
// concurrent use.
type verdicts struct {
	mu     sync.Mutex
	tags   tags
	turns  map[int64][]*announced // by turn, in plan order
	newest int64                  // the greatest order number given
	held   int                    // bytes of arguments that steps keep in memory
}

func (v *verdicts) init() {
	v.turns = map[int64][]*announced{}
	v.tags = tags{served: protocol.ApprovalsServed, lost: protocol.ApprovalsLost, lostKind: protocol.KindApprovalsLost}
	v.tags.init()
}

// asked names what gates are asked about: a call of a turn or, with step, a step
// of it.
type asked struct {
	turn   int64
	callID string
	step   string
}

// announced is a call, or a step, that was announced. Its row is replaced, never
// changed.
type announced struct {
	asked
	bot  int64
	name string // the bot's
	tool string // or the step's action
	seq  int
	ask  *question // who waits for a step; nil for a call
	// changed holds a token when the row was replaced.
	changed chan struct{}

	// Guarded by verdicts.mu.
	order  int64 // calls are listed and pushed in this order; anew with each request
	row    *approvalRow
	due    []time.Time // by gate; zero: never
	parked bool        // its turn is parked on it
	expiry *waiter     // while it is parked
}

// approvalRow is what a call's row keeps of its gates.
type approvalRow struct {
	Request       int64                `json:"request"`
	Node          int64                `json:"node"` // the item that made the call
	Cursor        int64                `json:"cursor"`
	AnnouncedMS   int64                `json:"announced_ms"`
	Cause         string               `json:"cause"`
	Escalated     bool                 `json:"escalated,omitempty"`
	Folder        string               `json:"folder,omitempty"` // the workspace as it was judged
	Held          json.RawMessage      `json:"held,omitempty"`   // the sandbox that it was to run in; nil: none
	Paths         []string             `json:"paths,omitempty"`  // all files that the call would change
	Target        []string             `json:"target,omitempty"` // those outside
	Justification string               `json:"justification,omitempty"`
	Rules         []protocol.RuleMatch `json:"rules,omitempty"`
	Failed        string               `json:"failed,omitempty"`
	OverturnedBy  *string              `json:"overturned_by,omitempty"`
	Gates         []gateVerdict        `json:"gates"`
}

// gateVerdict is one gate of an announced call, as it was then.
type gateVerdict struct {
	Tag        string  `json:"tag"`
	ExpireMS   int64   `json:"expire_ms,omitempty"` // 0: never
	Decision   string  `json:"decision,omitempty"`  // allow, deny, expired; "": none yet
	By         *string `json:"by,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	AnsweredMS int64   `json:"answered_ms,omitempty"`
	Leased     bool    `json:"leased,omitempty"`
}

// standing is what the gates of a call say together.
type standing int

const (
	undecided standing = iota
	allowedByAll
	deniedByOne
)

// standing is an allow only where every gate has one. Anything else that a row
// may hold is none.
func (r *approvalRow) standing() standing {
	allows := 0
	for i := range r.Gates {
		switch r.Gates[i].Decision {
		case protocol.Allow:
			allows++
		case "":
		default:
			return deniedByOne
		}
	}
	if allows > 0 && allows == len(r.Gates) {
		return allowedByAll
	}
	return undecided
}

// open are the tags that have given no verdict, none once a call is denied.
func (r *approvalRow) open() []string {
	tags := []string{}
	if r.standing() != undecided {
		return tags
	}
	for i := range r.Gates {
		if r.Gates[i].Decision == "" {
			tags = append(tags, r.Gates[i].Tag)
		}
	}
	return tags
}

// expiresMS is the nearest deadline of a gate that is open, 0 for none.
func (r *approvalRow) expiresMS() (ms int64) {
	for i := range r.Gates {
		if g := &r.Gates[i]; g.Decision == "" && g.ExpireMS != 0 {
			if at := r.AnnouncedMS + g.ExpireMS; ms == 0 || at < ms {
				ms = at
			}
		}
	}
	return ms
}

// expired reports that the call is denied since nobody judged it in time.
func (r *approvalRow) expired() bool {
	late := false
	for i := range r.Gates {
		switch r.Gates[i].Decision {
		case protocol.Deny:
			return false
		case protocol.Expired:
			late = true
		}
	}
	return late
}

// given are the verdicts as events show them. whole adds what was decided and
// why.
func (r *approvalRow) given(whole bool) []protocol.Verdict {
	out := []protocol.Verdict{}
	for i := range r.Gates {
		g := &r.Gates[i]
		if g.Decision == "" {
			continue
		}
		v := protocol.Verdict{Tag: g.Tag, By: g.By, WaitedMS: max(g.AnsweredMS-r.AnnouncedMS, 0)}
		if whole {
			v.Decision, v.Reason = g.Decision, g.Reason
		}
		out = append(out, v)
	}
	return out
}

func (r *approvalRow) clone() *approvalRow {
	c := *r
	c.Gates = slices.Clone(r.Gates)
	return &c
}

// approvalOf reads the row of a call; nil for one that no gate was asked about. A
// row that cannot be read, or names no gate, is an error and never an allow.
func approvalOf(call *store.ToolCall) (*approvalRow, error) {
	if call.Approval == nil {
		return nil, nil
	}
	var row approvalRow
	if json.Unmarshal(call.Approval, &row) != nil || len(row.Gates) == 0 || row.Request < 1 {
		return nil, protocol.Fail(protocol.StoreRowInvalid, "the call "+call.CallID+": approval cannot be read")
	}
	return &row, nil
}

func setApproval(tx *store.Tx, turn int64, callID string, row *approvalRow) error {
	raw, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return tx.SetApproval(turn, callID, raw)
}

// find gives what was announced under a name, nil when there is none.
func (v *verdicts) find(of asked) *announced {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at(of)
}

func (v *verdicts) at(of asked) *announced {
	for _, a := range v.turns[of.turn] {
		if a.asked == of {
			return a
		}
	}
	return nil
}

// now is a call's row and its nearest open deadline, zero for none.
func (v *verdicts) now(a *announced) (*approvalRow, time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return a.row, a.nearest()
}

// nearest is the nearest deadline of an open gate. verdicts.mu is held.
func (a *announced) nearest() (at time.Time) {
	for i := range a.row.Gates {
		if d := a.due[i]; a.row.Gates[i].Decision == "" && !d.IsZero() && (at.IsZero() || d.Before(at)) {
			at = d
		}
	}
	return at
}

// passed reports whether the deadline of an open gate has passed. A running
// daemon measures it; only what is not in memory goes by the stored time.
func (e *Engine) passed(of asked, row *approvalRow, gate int) bool {
	g := &row.Gates[gate]
	if g.Decision != "" || g.ExpireMS == 0 {
		return false
	}
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.at(of); a != nil && a.row.Request == row.Request && gate < len(a.due) {
		return !time.Now().Before(a.due[gate])
	}
	return e.nowMS() >= row.AnnouncedMS+g.ExpireMS
}

// overdue reports whether any open gate's deadline has passed.
func (e *Engine) overdue(of asked, row *approvalRow) bool {
	for i := range row.Gates {
		if e.passed(of, row, i) {
			return true
		}
	}
	return false
}

// enter makes a call known as a commit left it.
func (e *Engine) enter(a *announced) {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	row := a.row
	if have := v.at(a.asked); have != nil {
		a = have
	} else {
		a.changed = make(chan struct{}, 1)
		v.turns[a.turn] = append(v.turns[a.turn], a)
		slices.SortFunc(v.turns[a.turn], func(x, y *announced) int { return cmp.Compare(x.seq, y.seq) })
	}
	a.row, a.due = row, make([]time.Time, len(row.Gates))
	for i := range row.Gates {
		if ms := row.Gates[i].ExpireMS; ms != 0 {
			a.due[i] = e.deadline(row.AnnouncedMS + ms)
		}
	}
	v.newest++
	a.order = v.newest
	e.tell(a)
}

// replaced puts the row of a commit that judged a call in place, and wakes who
// waits for it.
func (e *Engine) replaced(of asked, row *approvalRow) {
	v := &e.verdicts
	v.mu.Lock()
	a := v.at(of)
	if a == nil {
		v.mu.Unlock()
		return
	}
	a.row = row
	e.tell(a)
	bot := a.bot
	v.mu.Unlock()
	if row.standing() == undecided {
		return
	}
	if p := e.parkedTurnOf(bot); p != nil && p.turn == of.turn && p.kind == parkVerdict && p.callID == of.callID {
		e.wake(p)
	}
}

// tell wakes the task that waits for a call and sets its deadline anew.
// verdicts.mu is held.
func (e *Engine) tell(a *announced) {
	select {
	case a.changed <- struct{}{}:
	default:
	}
	e.arm(a)
}

// arm has the nearest deadline of a step, or of a parked call, watched. A live
// call's task does that itself. verdicts.mu is held.
func (e *Engine) arm(a *announced) {
	if a.expiry != nil {
		e.waits.drop(a.expiry)
		a.expiry = nil
	}
	if !a.parked && a.ask == nil || a.row.standing() != undecided {
		return
	}
	if at := a.nearest(); !at.IsZero() {
		of, bot := a.asked, a.bot
		a.expiry = newWaiter(nil, false, at, func() { go e.expireLater(bot, of) })
		e.waits.add(a.expiry)
	}
}

// parkOn notes that a turn is parked on a call, or that it is no more.
func (e *Engine) parkOn(turn int64, callID string, parked bool) {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.at(asked{turn: turn, callID: callID}); a != nil {
		a.parked = parked
		e.arm(a)
	}
}

// withdraw forgets a call that has started or ended, with the steps that wait
// within it; "" is every call of the turn.
func (e *Engine) withdraw(turn int64, callID string) {
	for _, a := range e.forgetAsked(turn, func(a *announced) bool { return callID == "" || a.callID == callID }) {
		if a.ask != nil {
			a.ask.answer(nil, protocol.Fail(protocol.StepCancelled, "its call is over"))
		}
	}
}

// forgetAsked takes what fits out of what a turn waits for, and gives it.
func (e *Engine) forgetAsked(turn int64, fits func(*announced) bool) (gone []*announced) {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	left := slices.DeleteFunc(v.turns[turn], func(a *announced) bool {
		if !fits(a) {
			return false
		}
		gone = append(gone, a)
		return true
	})
	if len(left) == 0 {
		delete(v.turns, turn)
	} else {
		v.turns[turn] = left
	}
	for _, a := range gone {
		if a.ask != nil {
			v.held -= len(a.ask.args)
		}
		if a.parked = false; a.expiry != nil {
			e.waits.drop(a.expiry)
			a.expiry = nil
		}
	}
	return gone
}

package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
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
// ended. It is safe for concurrent use.
type verdicts struct {
	mu     sync.Mutex
	tags   tags
	turns  map[int64][]*announced // by turn, in plan order
	newest int64                  // the greatest order number given
}

func (v *verdicts) init() {
	v.turns = map[int64][]*announced{}
	v.tags = tags{served: protocol.ApprovalsServed, lost: protocol.ApprovalsLost, lostKind: protocol.KindApprovalsLost}
	v.tags.init()
}

// announced is a call that was announced. Its row is replaced, never changed.
type announced struct {
	bot    int64
	name   string // the bot's
	turn   int64
	callID string
	tool   string
	seq    int
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

// find gives the announced call of a turn, nil when there is none.
func (v *verdicts) find(turn int64, callID string) *announced {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at(turn, callID)
}

func (v *verdicts) at(turn int64, callID string) *announced {
	for _, a := range v.turns[turn] {
		if a.callID == callID {
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
func (e *Engine) passed(turn int64, callID string, row *approvalRow, gate int) bool {
	g := &row.Gates[gate]
	if g.Decision != "" || g.ExpireMS == 0 {
		return false
	}
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.at(turn, callID); a != nil && a.row.Request == row.Request && gate < len(a.due) {
		return !time.Now().Before(a.due[gate])
	}
	return e.nowMS() >= row.AnnouncedMS+g.ExpireMS
}

// overdue reports whether any open gate's deadline has passed.
func (e *Engine) overdue(turn int64, callID string, row *approvalRow) bool {
	for i := range row.Gates {
		if e.passed(turn, callID, row, i) {
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
	if have := v.at(a.turn, a.callID); have != nil {
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
func (e *Engine) replaced(turn int64, callID string, row *approvalRow) {
	v := &e.verdicts
	v.mu.Lock()
	a := v.at(turn, callID)
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
	if p := e.parkedTurnOf(bot); p != nil && p.turn == turn && p.kind == parkVerdict && p.callID == callID {
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

// arm has a parked call's nearest deadline watched. A live one's task does that
// itself. verdicts.mu is held.
func (e *Engine) arm(a *announced) {
	if a.expiry != nil {
		e.waits.drop(a.expiry)
		a.expiry = nil
	}
	if !a.parked || a.row.standing() != undecided {
		return
	}
	if at := a.nearest(); !at.IsZero() {
		turn, bot, callID := a.turn, a.bot, a.callID
		a.expiry = newWaiter(nil, false, at, func() { go e.expireParked(bot, turn, callID) })
		e.waits.add(a.expiry)
	}
}

// parkOn notes that a turn is parked on a call, or that it is no more.
func (e *Engine) parkOn(turn int64, callID string, parked bool) {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.at(turn, callID); a != nil {
		a.parked = parked
		e.arm(a)
	}
}

// withdraw forgets a call that has started or ended; "" is every call of the
// turn.
func (e *Engine) withdraw(turn int64, callID string) {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	left := slices.DeleteFunc(v.turns[turn], func(a *announced) bool {
		if callID != "" && a.callID != callID {
			return false
		}
		a.parked = false
		e.arm(a)
		return true
	})
	if len(left) == 0 {
		delete(v.turns, turn)
	} else {
		v.turns[turn] = left
	}
}

// announcement is a call on its way to be announced, or announced again.
type announcement struct {
	callID, tool string
	seq          int
	row          *approvalRow
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
		one.row.Cursor = cursor
		if err := setApproval(tx, turn, one.callID, one.row); err != nil {
			return err
		}
	}
	if err := rememberGated(tx, bot, turn, list); err != nil {
		return err
	}
	tx.AfterCommit(func() {
		for _, one := range list {
			e.enter(&announced{bot: bot, name: name, turn: turn, callID: one.callID, tool: one.tool, seq: one.seq, row: one.row})
		}
		e.pushSoon(turn, cursor)
	})
	return nil
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
			str("cause", row.Cause).bool("escalated", row.Escalated).done()...)
	}
	return append(b, ']')
}

// asking is a row that asks gates, for the first time.
func asking(gates []protocol.Gate, now int64, node int64, j *judgement) *approvalRow {
	row := &approvalRow{
		Request: 1, Node: node, AnnouncedMS: now, Cause: j.cause, Escalated: j.escalated, Folder: j.folder,
		Paths: j.paths, Target: j.target, Justification: j.justification, Rules: j.rules,
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
// with it (approvals.md 4).
func (e *Engine) askAgain(tx *store.Tx, bot *store.Bot, turn int64, failed *store.ToolCall) error {
	calls, err := openApprovals(tx.Conn(), turn)
	if err != nil || len(calls) == 0 {
		return err
	}
	now := e.nowMS()
	var again []announcement
	var late []openApproval
	for _, c := range calls {
		switch {
		case c.call.Seq <= failed.Seq || c.call.Status != "planned" || c.row.OverturnedBy != nil || c.row.expired():
		case c.row.standing() == undecided && e.overdue(turn, c.call.CallID, c.row):
			late = append(late, c)
		default:
			row := c.row.clone()
			row.Request, row.AnnouncedMS, row.Failed = row.Request+1, now, failed.CallID
			for i := range row.Gates {
				row.Gates[i] = gateVerdict{Tag: row.Gates[i].Tag, ExpireMS: row.Gates[i].ExpireMS}
			}
			again = append(again, announcement{c.call.CallID, c.call.Name, c.call.Seq, row})
		}
	}
	if err := e.expire(tx, bot, turn, late, nil); err != nil {
		return err
	}
	return e.announceCalls(tx, bot.ID, bot.Name, turn, again, failed.CallID)
}

// openApproval is a call of a turn that has neither started nor ended, with its
// gates.
type openApproval struct {
	call store.ToolCall
	row  *approvalRow
}

// openApprovals are a turn's calls that gates were asked about and that have no
// result.
func openApprovals(c *store.Conn, turn int64) (out []openApproval, err error) {
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
		out = append(out, openApproval{call, row})
	}
	return out, nil
}

// expire denies calls at their deadline, in the commit that it is a part of. The
// deadlines of one tag that pass together count once. lapsed, if not nil, is told
// each tag with its count.
func (e *Engine) expire(tx *store.Tx, bot *store.Bot, turn int64, late []openApproval, lapsed func(tag string, expired int64)) error {
	if len(late) == 0 {
		return nil
	}
	fresh, ok, err := store.BotByID(tx.Conn(), bot.ID) // as the jobs before left it
	if err != nil || !ok {
		return err
	}
	counts, err := countsIn(&fresh, turn)
	if err != nil {
		return err
	}
	now := e.nowMS()
	var tags []string
	for _, c := range late {
		row := c.row.clone()
		for i := range row.Gates {
			if !e.passed(turn, c.call.CallID, c.row, i) {
				continue
			}
			g := &row.Gates[i]
			g.Decision, g.AnsweredMS = protocol.Expired, now
			counts.expired(g.Tag)
			if !contains(tags, g.Tag) {
				tags = append(tags, g.Tag)
			}
		}
		if err := setApproval(tx, turn, c.call.CallID, row); err != nil {
			return err
		}
		tx.AfterCommit(func() { e.replaced(turn, c.call.CallID, row) })
	}
	for _, tag := range tags {
		counts.tag(tag).Expired++
		if lapsed != nil {
			lapsed(tag, counts.tag(tag).Expired)
		}
	}
	return keepCounts(tx, bot.ID, &counts)
}

// maxUnserved is how many deadlines in a row may pass with nobody there to meet
// them (approvals.md 14).
const maxUnserved = 3

// expireTurn denies what of a turn's round is due, when its turn waits for the
// call that is. starting says that the daemon is not serving yet: then nobody
// can serve a tag, and nothing is concluded from that.
func (e *Engine) expireTurn(bot, turn int64, callID string, starting bool) error {
	return e.store.Do("expire", func(tx *store.Tx) error {
		b, ok, err := store.BotByID(tx.Conn(), bot)
		if err != nil || !ok || b.RunningTurn != turn {
			return err
		}
		calls, err := openApprovals(tx.Conn(), turn)
		if err != nil {
			return err
		}
		var late []openApproval
		waited := false
		for _, c := range calls {
			if c.row.standing() == undecided && e.overdue(turn, c.call.CallID, c.row) {
				late = append(late, c)
				waited = waited || c.call.CallID == callID
			}
		}
		if !waited {
			return nil
		}
		var unserved *stop
		err = e.expire(tx, &b, turn, late, func(tag string, expired int64) {
			if unserved == nil && expired >= maxUnserved && !starting && !e.isServed(tag) {
				unserved = unservedStop(tag, expired)
			}
		})
		if err != nil || unserved == nil {
			return err
		}
		return e.endUnserved(tx, &b, turn, unserved)
	})
}

func unservedStop(tag string, expired int64) *stop {
	fail := protocol.Fail(protocol.ApprovalsUnserved, "").With("tag", tag).With("expired", expired)
	return &stop{
		err: protocol.ApprovalsUnserved, facts: fail.Facts,
		why: fmt.Sprintf("nobody serves %s: %d deadlines passed in a row; start who answers it, or answer by hand (agent approvals)", tag, expired),
	}
}

// endUnserved ends a turn whose calls nobody is there to judge: a parked one
// here, a live one by its task, whose last commit denies them.
func (e *Engine) endUnserved(tx *store.Tx, bot *store.Bot, turn int64, cause *stop) error {
	if bot.Status != protocol.StatusWaiting {
		tx.AfterCommit(func() {
			if t := e.taskOf(bot.ID); t != nil && t.turn == turn {
				t.stopWith(cause)
			}
		})
		return nil
	}
	row, _, err := store.TurnByID(tx.Conn(), turn)
	if err != nil {
		return err
	}
	end := interrupted(cause)
	end.retries, end.pacedMS = row.Retries, row.PacedMS
	return e.endTurn(tx, bot.ID, turn, end)
}

// isServed reports whether a session serves a tag now.
func (e *Engine) isServed(tag string) bool {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.tags.byTag[tag]
	return l != nil && !l.lapsed()
}

// expireParked is expireTurn for a parked turn. A store that refuses is asked
// again.
func (e *Engine) expireParked(bot, turn int64, callID string) {
	for wait := firstEndWait; ; wait = min(2*wait, time.Second) {
		err := e.expireTurn(bot, turn, callID, false)
		if err == nil {
			return
		}
		if protocol.CodeOf(err) != protocol.StorageError || !e.sleepOpen(wait) {
			e.cfg.Log.Error("a call could not be denied at its deadline", "turn", turn, "error", err)
			return
		}
	}
}

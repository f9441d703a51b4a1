package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// served are the calls of clients' tools that wait for a result, and who serves
// their tags (runtime.md 13). A call that waits costs this entry and its
// deadline in the one heap, whether its turn is live or parked. It is safe for
// concurrent use.
type served struct {
	mu     sync.Mutex
	tags   tags
	calls  map[int64]*servedCall // by turn: a turn has one at a time
	newest int64                 // the greatest cursor a call was announced with
}

// init makes it ready. ended is told each lease that is over, with mu held.
func (s *served) init(ended func(lease int64)) {
	s.calls = map[int64]*servedCall{}
	s.tags = tags{served: protocol.ToolsServed, lost: protocol.ToolsLost, lostKind: protocol.KindToolsLost, ended: ended}
	s.tags.init()
}

// servedCall is a call that waits. What was asked is in its row and its node.
type servedCall struct {
	bot    int64
	name   string // the bot's
	turn   int64
	callID string
	tool   string // its name
	tag    string
	cursor int64 // of its tool_requested: calls are listed in this order

	// Guarded by served.mu.
	clock     servedClock
	expiry    *waiter
	live      bool  // its turn's task waits; a crash ends the turn, so that handing it over needs no commit
	delivered bool  // it was handed to somebody
	lease     int64 // under which it was handed over last
	before    bool  // delivered, as it was before that lease
	over      bool  // it has its result, or its turn is over

	// Set before answered is closed.
	head     int64
	external bool
	answered chan struct{}
}

// servedRow is what a call's row keeps of it.
type servedRow struct {
	Request     int64  `json:"request"`
	Tag         string `json:"tag"`
	Node        int64  `json:"node"` // the item that made the call
	Cursor      int64  `json:"cursor"`
	AnnouncedMS int64  `json:"announced_ms"`
	servedClock
	Delivered bool `json:"delivered"`
}

// servedClock is when a call is to have its result. It stands while a step of the
// call waits for a verdict.
type servedClock struct {
	ExpiresMS int64 `json:"expires_ms"`
	StandsMS  int64 `json:"stands_ms,omitempty"` // since when; 0: it goes
}

// due is the deadline as it is now.
func (c servedClock) due(now int64) int64 {
	if c.StandsMS == 0 {
		return c.ExpiresMS
	}
	return c.ExpiresMS + max(now-c.StandsMS, 0)
}

// firstRequest is the number of a served call's one announcement.
const firstRequest = 1

// parkServed is the kind of a park that waits for a served call's result.
const parkServed = "served"

// errAnswered says that a call got its result while its turn was being parked.
var errAnswered = errors.New("the call was answered")

func servedRowOf(call *store.ToolCall) (row servedRow, err error) {
	if json.Unmarshal(call.Served, &row) != nil {
		return row, protocol.Fail(protocol.StoreRowInvalid, "the call "+call.CallID+": served cannot be read")
	}
	return row, nil
}

func setServed(tx *store.Tx, turn int64, callID string, row *servedRow) error {
	raw, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return tx.SetServed(turn, callID, raw)
}

// serve runs a call of a client's tool: it is announced, handed to who serves
// its tag, and waits, live for a while and then parked. judged is the row of a
// gated call, which every gate allowed; nil for one that none was asked about.
func (t *task) serve(call *model.Call, decl *protocol.ClientTool, rest []model.Call, judged *approvalRow) error {
	sc, err := t.announceServed(call, decl, judged)
	if err != nil {
		return err
	}
	handed, err := t.offer(sc)
	if err != nil {
		return err
	}
	if handed {
		if err := t.holdServed(sc); err != errUnanswered {
			return err
		}
	}
	rec := parkRecord{Kind: parkServed, CallID: call.ID, DeadlineMS: t.e.dueMS(sc), Pending: toParked(rest)}
	err = t.parkWith(rec, func(tx *store.Tx) error { return t.e.parkCall(tx, sc) })
	if errors.Is(err, errAnswered) {
		t.takeAnswer(sc)
		return nil
	}
	return err
}

// announceServed commits that the call is under way, with its event.
func (t *task) announceServed(call *model.Call, decl *protocol.ClientTool, judged *approvalRow) (sc *servedCall, err error) {
	node, err := t.nodeOf(call.ID)
	if err != nil {
		return nil, err
	}
	now := t.e.nowMS()
	row := servedRow{
		Request: firstRequest, Tag: decl.Tag, Node: node, AnnouncedMS: now, servedClock: servedClock{ExpiresMS: now + expiryOf(decl)},
	}
	data := newObject().str("call_id", call.ID).int("request", row.Request).str("name", call.Name).
		int("node", node).str("tag", decl.Tag).done()
	sc = &servedCall{bot: t.bot, name: t.name, turn: t.turn, callID: call.ID, tool: call.Name, tag: decl.Tag, live: true, answered: make(chan struct{})}
	err = t.e.store.Do("call_start", func(tx *store.Tx) (err error) {
		if _, err := t.execute(tx, call.ID, judged); err != nil {
			return err
		}
		if row.Cursor, err = tx.AddEvent(t.bot, t.name, t.turn, protocol.KindToolRequested, data); err != nil {
			return err
		}
		cursor := row.Cursor
		tx.AfterCommit(func() { sc.cursor = cursor; t.e.enterServed(sc, row.servedClock) })
		return setServed(tx, t.turn, call.ID, &row)
	})
	return sc, err
}

// nodeOf is callNode in a read of its own.
func (t *task) nodeOf(callID string) (node int64, err error) {
	err = t.e.read(t.ctx, "call_node", func(c *store.Conn) (err error) {
		node, err = t.callNode(c, callID)
		return err
	})
	return node, err
}

// callNode finds the item of the turn's newest round that made a call.
func (t *task) callNode(c *store.Conn, callID string) (node int64, err error) {
	var failed error
	err = store.Walk(c, t.head, func(n store.Node) bool {
		item, _, err := store.ItemOf(c, nil, n.ID)
		if err != nil {
			failed = err
			return false
		}
		d, err := t.e.describe(string(t.family), n.ID, item)
		if err != nil {
			failed = err
			return false
		}
		for _, call := range d.Calls {
			if call.ID == callID {
				node = n.ID
			}
		}
		return node == 0 && n.Turn == 0
	})
	if err == nil {
		err = failed
	}
	if err == nil && node == 0 {
		err = protocol.Fail(protocol.StoreRowInvalid, "no item of the turn made the call "+callID)
	}
	return node, err
}

// enterServed makes a call wait, with its deadline.
func (e *Engine) enterServed(sc *servedCall, clock servedClock) {
	s := &e.served
	s.mu.Lock()
	s.calls[sc.turn] = sc
	s.newest = max(s.newest, sc.cursor)
	s.mu.Unlock()
	e.setClock(sc.turn, sc.callID, clock)
}

// setClock sets the deadline of a call that waits.
func (e *Engine) setClock(turn int64, callID string, clock servedClock) {
	s := &e.served
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.calls[turn]
	if sc == nil || sc.callID != callID {
		return
	}
	if sc.clock = clock; sc.expiry != nil {
		e.waits.drop(sc.expiry)
		sc.expiry = nil
	}
	if clock.StandsMS == 0 {
		sc.expiry = newWaiter(nil, false, e.deadline(clock.ExpiresMS), func() { go e.expireServed(sc, clock.ExpiresMS) })
		e.waits.add(sc.expiry)
	}
}

// dueMS is the deadline of a call as it is now.
func (e *Engine) dueMS(sc *servedCall) int64 {
	e.served.mu.Lock()
	defer e.served.mu.Unlock()
	return sc.clock.due(e.nowMS())
}

// offer hands a new call to who serves its tag. It reports whether anybody
// does; if not, the call is not live any more.
func (t *task) offer(sc *servedCall) (bool, error) {
	s := &t.e.served
	s.mu.Lock()
	l := s.tags.due(sc.tag)
	sc.live = l != nil
	s.mu.Unlock()
	if l == nil {
		return false, nil
	}
	var entry protocol.ToolCall
	err := t.e.read(t.ctx, "tool_call", func(c *store.Conn) (err error) {
		entry, _, err = t.e.toolCall(c, sc)
		return err
	})
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l = s.tags.due(sc.tag); l == nil {
		sc.live = false
		return false, nil
	}
	if !sc.over && sc.cursor > l.through {
		sc.hand(l)
		l.server.Push(pushLine(sc, l, entry), l.stands)
	}
	return true, nil
}

// hand notes that a call goes to a lease's holder. served.mu is held.
func (sc *servedCall) hand(l *lease) {
	if sc.lease == l.n {
		return
	}
	sc.lease, sc.before, sc.delivered = l.n, sc.delivered, true
}

func pushLine(sc *servedCall, l *lease, entry protocol.ToolCall) []byte {
	entry.Bot, entry.Turn, entry.Tag, entry.Delivered = "", 0, "", sc.before
	line, _ := protocol.AppendLive(nil, protocol.KindToolRequested, protocol.ToolPush{
		Bot: sc.name, Turn: sc.turn, Cursor: sc.cursor, Tag: sc.tag, Lease: l.n, Data: entry,
	})
	return line
}

// errUnanswered says that the hold passed without a result.
var errUnanswered = errors.New("no answer yet")

// holdServed waits for the result of a call that somebody has, as long as a
// turn waits live.
func (t *task) holdServed(sc *servedCall) error {
	timer := time.NewTimer(t.hold())
	defer timer.Stop()
	select {
	case <-sc.answered:
		t.takeAnswer(sc)
		return nil
	case <-t.ctx.Done():
		return t.stopped()
	case <-timer.C:
	}
	s := &t.e.served
	s.mu.Lock()
	sc.live = false // from here on handing it over takes a commit
	s.mu.Unlock()
	return errUnanswered
}

// hold is how long a turn waits live for a verdict or a served call.
func (t *task) hold() time.Duration { return t.lim.Hold }

// takeAnswer goes on behind a result that was committed for the task.
func (t *task) takeAnswer(sc *servedCall) {
	<-sc.answered
	t.head = sc.head
	if sc.external && !contains(t.external, sc.tool) {
		t.external = append(t.external, sc.tool)
	}
}

// parkCall is the served call's part of parking its turn: its row takes the
// mark that it was handed over.
func (e *Engine) parkCall(tx *store.Tx, sc *servedCall) error {
	call, ok, err := store.CallByID(tx.Conn(), sc.turn, sc.callID)
	if err != nil {
		return err
	}
	if ok && call.Status == "completed" {
		return errAnswered
	}
	row, err := servedRowOf(&call)
	if err != nil {
		return err
	}
	e.served.mu.Lock()
	row.Delivered = row.Delivered || sc.delivered
	e.served.mu.Unlock()
	return setServed(tx, sc.turn, sc.callID, &row)
}

// endServed commits the result of a served call whose turn, live or parked, is
// the bot's current one. tell has the holder of the call told that none is
// wanted of it any more.
func (e *Engine) endServed(tx *store.Tx, bot *store.Bot, call *store.ToolCall, res *tool.Result, tell bool) error {
	turn := bot.RunningTurn
	pictures := shown(res.Pictures)
	codec := e.cfg.Codecs[model.Family(bot.Family)]
	out := model.Result{CallID: call.CallID, Output: res.Output, Failed: res.Failed, Pictures: inItem(pictures)}
	own, apart, err := heldPictures(tx, codec, turn, call.CallID, pictures)
	if err != nil {
		return err
	}
	node, err := tx.AppendNode(bot.Head, store.NewNode{
		Item: codec.Result(out), Pictures: own, Stub: stubOf(codec, bot.Effective(), out),
	})
	if err != nil {
		return err
	}
	if err := tx.SetHead(bot.ID, turn, node); err != nil {
		return err
	}
	if err := e.keepArtifacts(tx, turn, call.CallID, res); err != nil {
		return err
	}
	if _, err := e.answerCall(tx, turn, call.CallID); err != nil {
		return err
	}
	head, err := e.showApart(tx, codec, bot.ID, turn, node, apart)
	if err != nil {
		return err
	}
	if res.External {
		if err := addExternalName(tx, turn, call.Name); err != nil {
			return err
		}
	}
	if _, err := tx.AddEvent(bot.ID, bot.Name, turn, protocol.KindToolCompleted, completedData(call.CallID, node, res, nil)); err != nil {
		return err
	}
	if err := e.askAgainAfter(tx, bot.ID, turn, call.CallID, res); err != nil {
		return err
	}
	tx.AfterCommit(func() {
		sc := e.leaveServed(turn, tell)
		if sc != nil {
			sc.head, sc.external = head, res.External
			close(sc.answered)
		}
		e.mu.Lock()
		p := e.parked[bot.ID]
		e.mu.Unlock()
		if p != nil && p.turn == turn && p.kind == parkServed {
			e.wake(p)
		}
	})
	return nil
}

// addExternalName notes, once, in a turn's row that a tool brought outside
// content into it.
func addExternalName(tx *store.Tx, turn int64, name string) error {
	t, _, err := store.TurnByID(tx.Conn(), turn)
	if err != nil {
		return err
	}
	var names []string
	if t.External != nil && json.Unmarshal(t.External, &names) != nil {
		return protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("turns %d: external cannot be read", turn))
	}
	if contains(names, name) {
		return nil
	}
	raw, err := json.Marshal(append(names, name))
	if err != nil {
		return err
	}
	return tx.SetExternal(turn, raw)
}

// leaveServed takes the call of a turn out, nil when none waits. tell has its
// holder told that no result of it is wanted any more.
func (e *Engine) leaveServed(turn int64, tell bool) *servedCall {
	s := &e.served
	s.mu.Lock()
	sc := s.calls[turn]
	if sc == nil {
		s.mu.Unlock()
		return nil
	}
	delete(s.calls, turn)
	sc.over = true
	if l := s.tags.byTag[sc.tag]; tell && l != nil && l.n == sc.lease {
		line, _ := protocol.AppendLive(nil, protocol.KindToolCancelled, protocol.ToolCancelled{
			Bot: sc.name, Turn: turn, CallID: sc.callID, Request: firstRequest, Tag: sc.tag, Lease: l.n,
		})
		l.server.Push(line, l.stands)
	}
	expiry := sc.expiry
	s.mu.Unlock()
	if expiry != nil {
		e.waits.drop(expiry)
	}
	return sc
}

// expireServed ends a call that nobody answered by a time, unless a step of it
// moved its deadline meanwhile. A store that refuses is asked again.
func (e *Engine) expireServed(sc *servedCall, at int64) {
	res := tool.Fail(string(protocol.ToolNotServed), "no result came in time from whoever serves "+sc.tag)
	err := e.untilStored("call_finish", func(tx *store.Tx) error {
		bot, ok, err := store.BotByID(tx.Conn(), sc.bot)
		if err != nil || !ok || bot.RunningTurn != sc.turn {
			return err
		}
		call, ok, err := store.CallByID(tx.Conn(), sc.turn, sc.callID)
		if err != nil || !ok || call.Status != "executing" {
			return err
		}
		if row, err := servedRowOf(&call); err != nil || row.StandsMS != 0 || row.ExpiresMS != at {
			return err
		}
		return e.endServed(tx, &bot, &call, &res, true)
	})
	if err != nil {
		e.cfg.Log.Error("a served call could not be ended at its time", "turn", sc.turn, "error", err)
	}
}

// untilStored is store.Do, again and again while the store refuses and the engine
// is open.
func (e *Engine) untilStored(op string, job func(*store.Tx) error) error {
	for wait := firstEndWait; ; wait = min(2*wait, time.Second) {
		err := e.store.Do(op, job)
		if err == nil || protocol.CodeOf(err) != protocol.StorageError || !e.sleepOpen(wait) {
			return err
		}
	}
}

// restoreServed enters the call of a turn found parked at start; one that has
// its result wakes the turn.
func (e *Engine) restoreServed(p *parkedTurn, callID string) error {
	var call store.ToolCall
	err := e.read(context.Background(), "served", func(c *store.Conn) (err error) {
		call, _, err = store.CallByID(c, p.turn, callID)
		return err
	})
	if err != nil {
		return err
	}
	if call.Status != "executing" {
		e.wake(p)
		return nil
	}
	row, err := servedRowOf(&call)
	if err == nil && row.StandsMS != 0 {
		row, err = e.withdrawLeft(p.turn, callID)
	}
	if err != nil {
		return err
	}
	sc := &servedCall{
		bot: p.bot, name: p.name, turn: p.turn, callID: callID, tool: call.Name, tag: row.Tag, cursor: row.Cursor,
		delivered: row.Delivered, answered: make(chan struct{}),
	}
	e.enterServed(sc, row.servedClock)
	return nil
}

// withdrawLeft withdraws the steps that an earlier daemon left waiting: who asked
// is gone. It gives the call's row as it is then.
func (e *Engine) withdrawLeft(turn int64, callID string) (row servedRow, err error) {
	err = e.store.Do("withdraw_steps", func(tx *store.Tx) error {
		if err := e.withdrawSteps(tx, turn, callID, func(string) bool { return true }); err != nil {
			return err
		}
		call, _, err := store.CallByID(tx.Conn(), turn, callID)
		if err != nil {
			return err
		}
		row, err = servedRowOf(&call)
		return err
	})
	return row, err
}

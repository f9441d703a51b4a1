package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agent/protocol"
)

// oracle says what bots and turns do, in memory and one thing after another: the
// states of runtime.md 4, the loop of 5, the deliveries of 6, the waits of 8 and
// the interrupts of 14. It knows nothing of tasks, rows or commits.
type oracle struct {
	active, pending int
	bots            map[string]*oracleBot
	turns           map[int64]*oracleTurn
	parked          []*oracleTurn // turns that wait for handles, in the order of their parking
	wakes           []*oracleTurn // parked turns whose condition is met
	top             int64         // the highest turn id
	log             []string
}

type oracleBot struct {
	name    string
	status  string
	current int64
	turns   []int64
	events  []string
}

type oracleTurn struct {
	id      int64
	bot     string
	request protocol.Submit
	state   string
	err     protocol.Code
	into    int64
	rounds  int64
	calls   int // model calls in this daemon's life
	// Of a parked turn.
	wait *oracleCall
	rest []oracleCall
}

// oracleCall is a tool call that the model asks for.
type oracleCall struct {
	tool    string
	bad     bool // its arguments do not match
	how     string
	any     bool
	handles []string
}

func (c *oracleCall) arguments() json.RawMessage {
	switch {
	case c.bad:
		return json.RawMessage(`{"nothing":1}`)
	case c.tool == "echo":
		return json.RawMessage(`{"text":"x"}`)
	case c.tool == "write":
		return json.RawMessage(`{"path":"x","content":"y"}`)
	}
	args := map[string]any{"handles": c.handles, "any": c.any}
	switch c.how {
	case "poll":
		args["timeout_ms"] = 0
	case "brief":
		args["timeout_ms"] = 1
	}
	raw, _ := json.Marshal(args)
	return raw
}

func newOracle(active, pending int) *oracle {
	return &oracle{active: active, pending: pending, bots: map[string]*oracleBot{}, turns: map[int64]*oracleTurn{}}
}

func (o *oracle) note(format string, args ...any) {
	o.log = append(o.log, fmt.Sprintf(format, args...))
}

func (o *oracle) create(name string) {
	o.note("create %s", name)
	o.bots[name] = &oracleBot{name: name, status: protocol.StatusIdle, events: []string{"created 0"}}
}

func (o *oracle) event(t *oracleTurn, kind string, words ...any) {
	b := o.bots[t.bot]
	line := fmt.Sprint(kind, " ", t.id)
	for _, w := range words {
		line += fmt.Sprint(" ", w)
	}
	b.events = append(b.events, strings.TrimSpace(line))
}

// with are the turns in a state, by id.
func (o *oracle) with(states ...string) (ids []int64) {
	for id, t := range o.turns {
		if slices.Contains(states, t.state) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (o *oracle) running() []int64 { return o.with(protocol.StatusRunning) }

// crowded says that other work waits for a slot.
func (o *oracle) crowded() bool { return len(o.wakes) > 0 || len(o.with(protocol.StatusReady)) > 0 }

// submit is the admission of runtime.md 6. id is the one the daemon gave.
func (o *oracle) submit(req *protocol.Submit, id int64) (t *oracleTurn, duplicate bool, code protocol.Code) {
	b := o.bots[req.Bot]
	for _, id := range b.turns {
		if t := o.turns[id]; t.request.RequestID == req.RequestID {
			if t.request.Prompt != req.Prompt {
				return nil, false, protocol.IdempotencyConflict
			}
			return t, true, ""
		}
	}
	free := len(o.running())+len(o.with(protocol.StatusReady))+len(o.wakes) < o.active
	busy := b.current != 0 || slices.ContainsFunc(b.turns, func(id int64) bool { return o.turns[id].state == protocol.StatusReady })
	waiting := len(o.with(protocol.StatusQueued, protocol.StatusReady))
	switch {
	case req.Delivery == protocol.Reject && !free:
		return nil, false, protocol.ActiveAgentLimit
	case req.ExpectedTurn != 0 && req.ExpectedTurn != b.current:
		return nil, false, protocol.StaleTurn
	case req.Delivery == protocol.Reject && busy:
		return nil, false, protocol.BotBusy
	case (busy || !free) && waiting+1 > o.pending:
		return nil, false, protocol.PendingLimit
	}
	o.note("submit %s %s turn %d expected %d", req.Bot, req.Delivery, id, req.ExpectedTurn)
	t = &oracleTurn{id: id, bot: req.Bot, request: *req}
	if id <= o.top {
		t.id = o.top + 1 // ids only grow
	}
	o.top = t.id
	o.turns[t.id] = t
	b.turns = append(b.turns, t.id)
	switch {
	case busy:
		t.state = protocol.StatusQueued
		o.event(t, protocol.KindQueued)
	case free:
		o.start(t)
		o.takeUp(t)
	default:
		t.state = protocol.StatusReady
		o.event(t, protocol.KindQueued)
	}
	return t, false, ""
}

// start makes a turn run; takeUp is what it does then.
func (o *oracle) start(t *oracleTurn) {
	b := o.bots[t.bot]
	t.state, b.status, b.current = protocol.StatusRunning, protocol.StatusRunning, t.id
	o.event(t, protocol.KindAccepted)
}

// run gives free slots away: to parked turns whose condition is met, in the
// order it was, then to the lowest ready turn. What these do comes after: it is
// no reason for a slot that was free before.
func (o *oracle) run() {
	for {
		var begun []*oracleTurn
		for len(o.running()) < o.active {
			ready := o.with(protocol.StatusReady)
			switch {
			case len(o.wakes) > 0:
				begun = append(begun, o.wakes[0])
				o.wakes = o.wakes[1:]
				o.resume(begun[len(begun)-1])
				continue
			case len(ready) > 0:
				begun = append(begun, o.turns[ready[0]])
				o.start(begun[len(begun)-1])
				continue
			}
			break // nothing waits
		}
		if len(begun) == 0 {
			return
		}
		for _, t := range begun {
			o.takeUp(t)
		}
	}
}

// absorb takes the queued steers into a running turn at a boundary.
func (o *oracle) absorb(t *oracleTurn) (took bool) {
	for _, id := range o.bots[t.bot].turns {
		s := o.turns[id]
		if s.state != protocol.StatusQueued || s.request.Delivery != protocol.Steer ||
			s.request.ExpectedTurn != 0 && s.request.ExpectedTurn != t.id {
			continue
		}
		took = true
		s.state, s.into = protocol.StatusSteered, t.id
		o.event(s, protocol.KindTurnFinished, "steered")
		o.event(t, protocol.KindSteered, s.id)
		o.ended(s)
	}
	return took
}

// answered is a model's answer: a text, or calls.
func (o *oracle) answered(t *oracleTurn, calls []oracleCall) {
	o.note("answer turn %d %+v", t.id, calls)
	t.rounds++
	o.event(t, protocol.KindMessage)
	o.event(t, protocol.KindUsage)
	if len(calls) == 0 && !o.absorb(t) {
		o.end(t, protocol.StatusCompleted, "")
		return
	}
	o.goOn(t, calls)
}

// goOn runs calls, then makes the next model call.
func (o *oracle) goOn(t *oracleTurn, calls []oracleCall) {
	for i := range calls {
		if o.runCall(t, &calls[i], calls[i+1:]) {
			return
		}
	}
	o.absorb(t)
	t.calls++
}

// runCall runs a call and reports whether the turn parked.
func (o *oracle) runCall(t *oracleTurn, c *oracleCall, rest []oracleCall) bool {
	if c.tool == "write" || c.bad { // not its tool; not its arguments
		o.event(t, protocol.KindToolCompleted)
		return false
	}
	o.event(t, protocol.KindToolStarted)
	own := slices.Contains(c.handles, protocol.TurnHandle(t.bot, t.id).String())
	if c.tool == "echo" || own || c.how == "poll" || o.met(c.handles, c.any) {
		o.event(t, protocol.KindToolCompleted)
		return false
	}
	o.park(t, protocol.StatusWaiting, protocol.KindTurnWaiting)
	t.wait, t.rest = c, rest
	if c.how == "brief" {
		o.wakes = append(o.wakes, t)
	} else {
		o.parked = append(o.parked, t)
	}
	return true
}

func (o *oracle) park(t *oracleTurn, state, kind string) {
	t.state, o.bots[t.bot].status = state, state
	o.event(t, kind)
}

func (o *oracle) paced(t *oracleTurn, long bool) {
	o.note("pace turn %d, long %v", t.id, long)
	o.park(t, protocol.StatusPaced, protocol.KindTurnPaced)
	if !long {
		o.wakes = append(o.wakes, t)
	}
}

func (o *oracle) resume(t *oracleTurn) {
	o.note("turn %d resumes", t.id)
	t.state, o.bots[t.bot].status = protocol.StatusRunning, protocol.StatusRunning
	o.event(t, protocol.KindTurnResumed)
}

// takeUp is what a turn does once it runs: the result of its wait and the calls
// behind it, if it was parked on one, then its next model call.
func (o *oracle) takeUp(t *oracleTurn) {
	rest := t.rest
	if t.wait != nil {
		t.wait, t.rest = nil, nil
		o.event(t, protocol.KindToolCompleted)
	}
	o.goOn(t, rest)
}

func (o *oracle) failed(t *oracleTurn, code protocol.Code) {
	o.note("turn %d fails", t.id)
	o.end(t, protocol.StatusFailed, code)
}

// end ends a current turn, tells who waits for it and moves the line on.
func (o *oracle) end(t *oracleTurn, state string, code protocol.Code) {
	b := o.bots[t.bot]
	if t.wait != nil { // the parked call and those behind it
		for range 1 + len(t.rest) {
			o.event(t, protocol.KindToolCompleted, "cancelled")
		}
		t.wait, t.rest = nil, nil
	}
	o.parked = slices.DeleteFunc(o.parked, func(p *oracleTurn) bool { return p == t })
	o.wakes = slices.DeleteFunc(o.wakes, func(p *oracleTurn) bool { return p == t })
	t.state, t.err = state, code
	b.current, b.status = 0, state
	o.event(t, protocol.KindTurnFinished, state, code)
	o.ended(t)
	o.promote(b)
}

// promote makes the head of an idle bot's line ready.
func (o *oracle) promote(b *oracleBot) {
	for _, id := range b.turns {
		t := o.turns[id]
		if t.state != protocol.StatusQueued {
			continue
		}
		if t.request.ExpectedTurn == 0 {
			t.state = protocol.StatusReady
			return
		}
		t.state, t.err = protocol.StatusFailed, protocol.StaleTurn
		o.event(t, protocol.KindTurnFinished, t.state, t.err)
		o.ended(t)
	}
}

// ended wakes the parked turns whose condition a turn's end meets.
func (o *oracle) ended(*oracleTurn) {
	for _, p := range slices.Clone(o.parked) {
		if o.met(p.wait.handles, p.wait.any) {
			o.parked = slices.DeleteFunc(o.parked, func(q *oracleTurn) bool { return p == q })
			o.wakes = append(o.wakes, p)
		}
	}
}

// resolved reports whether a handle has its value.
func (o *oracle) resolved(handle string) bool {
	h, err := protocol.ParseHandle(handle)
	if err != nil {
		panic(err)
	}
	t := o.turns[h.Turn]
	return t == nil || t.bot != h.Bot || protocol.Finished(t.state)
}

func (o *oracle) met(handles []string, any bool) bool {
	if any {
		return slices.ContainsFunc(handles, o.resolved)
	}
	return !slices.ContainsFunc(handles, func(h string) bool { return !o.resolved(h) })
}

// diffWaited compares a wait's answer. What was pending then may have resolved
// since.
func (o *oracle) diffWaited(handles []string, got *protocol.Waited) string {
	for _, handle := range handles {
		var v struct {
			Status, Error string
			Pending       bool
			Into          int64
		}
		if err := json.Unmarshal(got.Results[handle].Raw, &v); err != nil {
			return fmt.Sprintf("%s: %v", handle, err)
		}
		if v.Pending != slices.Contains(got.Pending, handle) {
			return fmt.Sprintf("%s: %+v", handle, got)
		}
		h, _ := protocol.ParseHandle(handle)
		t := o.turns[h.Turn]
		switch {
		case t == nil || t.bot != h.Bot:
			if v.Error != string(protocol.TurnNotFound) {
				return fmt.Sprintf("%s: %+v", handle, v)
			}
		case v.Pending:
		case v.Status != t.state || v.Error != string(t.err) || v.Into != t.into:
			return fmt.Sprintf("%s: %+v, want %+v", handle, v, t)
		}
	}
	return ""
}

func (o *oracle) interrupt(b *oracleBot, id int64) (protocol.Interrupted, protocol.Code) {
	o.note("interrupt %s %d", b.name, id)
	answer := protocol.Interrupted{InterruptRequested: true, Turn: id}
	t := o.turns[id]
	switch {
	case id == b.current:
		answer.Parked = t.state != protocol.StatusRunning
		o.end(t, protocol.StatusInterrupted, protocol.Cancelled)
	case t.bot == b.name && (t.state == protocol.StatusQueued || t.state == protocol.StatusReady):
		answer.Queued = true
		ready := t.state == protocol.StatusReady
		t.state, t.err = protocol.StatusInterrupted, protocol.Cancelled
		o.event(t, protocol.KindTurnFinished, t.state, t.err)
		o.ended(t)
		if ready {
			o.promote(b)
		}
	case b.current != 0:
		return answer, protocol.StaleTurn
	default:
		return answer, protocol.NoActiveTurn
	}
	return answer, ""
}

// restart is another daemon on the store: what ran is over, what was parked
// waits again, and whose condition was met comes first.
func (o *oracle) restart(code protocol.Code) {
	o.note("restart: %s", code)
	o.wakes, o.parked = nil, nil
	for _, id := range o.running() {
		o.end(o.turns[id], protocol.StatusInterrupted, code)
	}
	o.wakes = nil
	for _, id := range o.with(protocol.StatusWaiting) {
		t := o.turns[id]
		if t.wait.how == "brief" || o.met(t.wait.handles, t.wait.any) {
			o.wakes = append(o.wakes, t)
		} else {
			o.parked = append(o.parked, t)
		}
	}
	for _, t := range o.turns {
		t.calls = 0
	}
}

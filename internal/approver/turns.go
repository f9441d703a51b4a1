package approver

import (
	"slices"
	"sync"

	"agent/protocol"
)

// turnKey names a turn. Their numbers are the store's own and never come again.
type turnKey int64

// turn is what the approver knows of a turn that asked it something.
type turn struct {
	key       turnKey
	open      int        // rounds under way; guarded by the approver's mu
	answering sync.Mutex // verdicts of one turn go out one after another

	mu      sync.Mutex
	asked   map[request]bool // what is judged, or was
	denied  []bool           // the verdicts that the daemon took, in order
	stopped string           // why the breaker stopped it, or ""
}

// request names one announcement of a call or a step.
type request struct {
	call, step string
	number     int64
}

// mostTurns bounds the turns that are remembered. One that is forgotten starts
// with the counts of its next announcement, which the daemon keeps.
const mostTurns = 4096

// enter is the turn of a round, and how many of its verdicts the daemon had taken
// when the round came: what the announcement counts ends there. A request that was
// judged before leaves the round.
func (a *approver) enter(r *round) (t *turn, since int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := turnKey(r.turn)
	t = a.turns[key]
	if t == nil {
		a.forgetOldest()
		t = &turn{key: key, asked: map[request]bool{}}
		a.turns[key] = t
	}
	t.open++
	t.mu.Lock()
	defer t.mu.Unlock()
	r.calls = slices.DeleteFunc(r.calls, func(c protocol.Approval) bool {
		key := request{c.CallID, c.Step, c.Request}
		before := t.asked[key]
		t.asked[key] = true
		return before
	})
	return t, len(t.denied)
}

// forgetOldest makes room; a.mu is held.
func (a *approver) forgetOldest() {
	if len(a.turns) < mostTurns {
		return
	}
	var oldest *turn
	for _, t := range a.turns {
		if t.open == 0 && (oldest == nil || t.key < oldest.key) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(a.turns, oldest.key)
	}
}

func (a *approver) leave(t *turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.open--
}

// counts are where the turn stands for a round that was announced with these and
// came after so many verdicts.
func (t *turn) counts(announced protocol.Denials, since int) counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return countsAfter(announced, t.denied[since:])
}

// afterDenial is where it would stand with one more denial, and whether that is an
// outage: the denial that reaches the limit is none of a judge, or the counts came
// so far by deadlines that nobody met.
func (t *turn) afterDenial(announced protocol.Denials, since int, v verdict) (after counts, outage bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := countsAfter(announced, t.denied[since:])
	after = countsAfter(announced, append(t.denied[since:len(t.denied):len(t.denied)], true))
	return after, !v.reviewed || before.expired
}

func (t *turn) count(denied bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.denied = append(t.denied, denied)
}

// stopFor reports that the turn was not stopped before.
func (t *turn) stopFor(why string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.stopped == ""
	if first {
		t.stopped = why
	}
	return first
}

func (t *turn) stoppedFor() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

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

	// from is where the daemon stood after the first begun of the verdicts. sending is
	// set while a verdict is on its way, which the daemon may have counted or not.
	from    protocol.Denials
	begun   int
	sending bool
}

// request names one announcement of a call or a step.
type request struct {
	call, step string
	number     int64
}

// mostTurns bounds the turns that are remembered. One that is forgotten starts
// with the counts of its next announcement, which the daemon keeps.
const mostTurns = 4096

// mark is what is known, when a round comes, of the verdicts that its announcement
// counts.
type mark struct {
	announced protocol.Denials
	known     int // the verdicts whose answers had come
}

// enter is the turn of a round, and the mark of its announcement. A request that was
// judged before leaves the round.
func (a *approver) enter(r *round) (t *turn, m mark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := turnKey(r.turn)
	t = a.turns[key]
	if t == nil {
		a.forgetOldest()
		t = &turn{key: key, asked: map[request]bool{}, from: r.denials(a.o.Tag)}
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
	m = mark{announced: r.denials(a.o.Tag), known: len(t.denied)}
	if len(r.calls) > 0 && t.open == 1 { // no other round has a mark of before
		t.rebase(m)
	}
	return t, m
}

// rebase takes an announcement for the new beginning where it counts denials that were
// not given here, such as the person's, and no verdict is on its way.
func (t *turn) rebase(m mark) {
	if _, denials := t.after(m.known); !t.sending && m.announced.InTurn > denials {
		t.from, t.begun = m.announced, m.known
	}
}

// after is where the daemon stood after the first n verdicts, n >= begun, with the
// turn's denials until then, when nobody else gave one.
func (t *turn) after(n int) (c counts, denials int64) {
	since := t.denied[t.begun:n]
	denials = t.from.InTurn
	for _, denied := range since {
		if denied {
			denials++
		}
	}
	return countsAfter(t.from, since), denials
}

// counted is how many of the verdicts an announcement counts. An answer may come
// after the announcement of the round that followed on it, and an announcement may
// count less than the answers that had come: so the numbers of the announcement
// itself say it. Where they fit nowhere, because somebody else gave a verdict
// meanwhile, it is the answers that had come, and no more denials than were announced:
// then the breaker may be early, and is never late.
func (t *turn) counted(m mark) int {
	most := t.begun
	for n := len(t.denied); n >= t.begun; n-- {
		c, denials := t.after(n)
		if denials == m.announced.InTurn && c.inRow == m.announced.InRow {
			return n
		}
		if denials <= m.announced.InTurn {
			most = max(most, n)
		}
	}
	return min(m.known, most)
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

// counts are where the turn stands, by a round's announcement and the verdicts since.
// No verdict may be on its way.
func (t *turn) counts(m mark) counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return countsAfter(m.announced, t.denied[t.counted(m):])
}

// afterDenial is where it would stand with one more denial, and whether that is an
// outage: the denial that reaches the limit is none of a judge, or the counts came
// so far by deadlines that nobody met.
func (t *turn) afterDenial(m mark, v verdict) (after counts, outage bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.denied[t.counted(m):len(t.denied):len(t.denied)]
	before := countsAfter(m.announced, since)
	after = countsAfter(m.announced, append(since, true))
	return after, !v.reviewed || before.expired
}

// send gives a verdict by give, which reports that the daemon took it, and counts it.
func (t *turn) send(denied bool, give func() bool) bool {
	t.mu.Lock()
	t.sending = true
	t.mu.Unlock()
	taken := false
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.sending = false
		if taken {
			t.denied = append(t.denied, denied)
		}
	}()
	taken = give()
	return taken
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

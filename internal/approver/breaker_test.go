package approver

import (
	"testing"

	"agent/protocol"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	d := func(row, recent, expired int64) protocol.Denials {
		return protocol.Denials{InRow: row, Recent: recent, Expired: expired, Window: window}
	}
	const denied, allowed = true, false
	rows := []struct {
		name      string
		announced protocol.Denials
		since     []bool
		want      counts
		reached   bool
	}{
		{"nothing yet", d(0, 0, 0), nil, counts{}, false},
		{"two denials", d(0, 0, 0), []bool{denied, denied}, counts{2, 2, false}, false},
		{"three in a row", d(0, 0, 0), []bool{denied, denied, denied}, counts{3, 3, false}, true},
		{"two before and one since", d(2, 2, 0), []bool{denied}, counts{3, 3, false}, true},
		{"an allow between", d(2, 2, 0), []bool{allowed, denied, denied}, counts{2, 4, false}, false},
		{"the tenth recent one", d(0, 9, 0), []bool{denied}, counts{1, 10, false}, true},
		{"the ninth", d(0, 8, 0), []bool{denied}, counts{1, 9, false}, false},
		{"announced at the limit by expiry", d(3, 3, 1), nil, counts{3, 3, true}, true},
		{"a verdict since ends what expired", d(1, 1, 1), []bool{denied}, counts{2, 2, false}, false},
		{"old denials leave the window once it is full of newer verdicts", d(0, 9, 0), make([]bool, window), counts{0, 0, false}, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := countsAfter(row.announced, row.since); got != row.want || got.reached() != row.reached {
				t.Errorf("got %+v, reached %t", got, got.reached())
			}
		})
	}
}

func TestStopSentence(t *testing.T) {
	t.Parallel()
	rows := []struct {
		counts counts
		outage bool
		want   string
	}{
		{counts{inRow: 3, recent: 3}, false, "stopped: 3 denials in a row."},
		{counts{inRow: 3, recent: 10}, true, "stopped: judge unavailable, 3 denials in a row."},
		{counts{inRow: 1, recent: 10}, false, "stopped: 10 of the last 50 denied."},
		{counts{inRow: 1, recent: 10}, true, "stopped: judge unavailable, 10 of the last 50 denied."},
	}
	for _, row := range rows {
		if got := row.counts.stopSentence(row.outage); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	a := &approver{turns: map[turnKey]*turn{}}
	call := func(id string, request int64) protocol.Approval {
		return protocol.Approval{CallID: id, Request: request}
	}
	t.Run("a request is judged once, and the call announced again is another", func(t *testing.T) {
		first := &round{turn: 7, calls: []protocol.Approval{call("a", 1), call("b", 1)}}
		a.enter(first)
		again := &round{turn: 7, calls: []protocol.Approval{call("a", 1), call("b", 2)}}
		a.enter(again)
		if len(first.calls) != 2 || len(again.calls) != 1 || again.calls[0].CallID != "b" {
			t.Errorf("first %v, again %v", first.calls, again.calls)
		}
	})
	t.Run("the turns that are remembered are bounded, those at work stay", func(t *testing.T) {
		busy, _ := a.enter(&round{turn: 1, calls: []protocol.Approval{call("a", 1)}})
		for i := range int64(mostTurns + 10) {
			turn, _ := a.enter(&round{turn: 100 + i, calls: []protocol.Approval{call("a", 1)}})
			a.leave(turn)
		}
		if len(a.turns) > mostTurns || a.turns[1] != busy {
			t.Errorf("%d turns", len(a.turns))
		}
	})
}

// said is a round of a turn whose announcement counts so many denials.
func said(turn, request, inRow, inTurn int64) *round {
	return &round{turn: turn, calls: []protocol.Approval{{
		CallID: "a", Request: request,
		Denials: map[string]protocol.Denials{"auto": {InRow: inRow, InTurn: inTurn, Recent: inTurn, Window: window}},
	}}}
}

// Each verdict counts once, whichever of its answer and the next announcement is
// heard first (AP-52).
func TestVerdictsCountOnce(t *testing.T) {
	t.Parallel()
	yes := func() bool { return true }
	const denied, allowed = true, false
	fresh := func() *approver { return &approver{o: Options{Tag: "auto"}, turns: map[turnKey]*turn{}} }
	wants := func(t *testing.T, turn *turn, m mark, inRow, recent int64) {
		t.Helper()
		if c := turn.counts(m); c.inRow != inRow || c.recent != recent {
			t.Errorf("%+v, want %d in a row of %d", c, inRow, recent)
		}
	}
	t.Run("a verdict whose answer comes after the announcement that counts it", func(t *testing.T) {
		a := fresh()
		turn, _ := a.enter(said(1, 1, 0, 0))
		var next mark
		turn.send(denied, func() bool { _, next = a.enter(said(1, 2, 1, 1)); return true })
		wants(t, turn, next, 1, 1)
	})
	t.Run("an allow whose answer comes late", func(t *testing.T) {
		a := fresh()
		turn, _ := a.enter(said(1, 1, 0, 0))
		turn.send(denied, yes)
		var next mark
		turn.send(allowed, func() bool { _, next = a.enter(said(1, 2, 0, 1)); return true })
		turn.send(denied, yes)
		wants(t, turn, next, 1, 2)
	})
	t.Run("verdicts on another round count for one that was announced before them", func(t *testing.T) {
		a := fresh()
		turn, first := a.enter(said(1, 1, 0, 0))
		turn.send(denied, yes)
		turn.send(denied, yes)
		if after, outage := turn.afterDenial(first, verdict{reviewed: true}); !after.reached() || outage {
			t.Errorf("%+v %t", after, outage)
		}
		_, since := a.enter(said(1, 2, 2, 2))
		wants(t, turn, since, 2, 2)
	})
	t.Run("an announcement made before a verdict whose answer came first", func(t *testing.T) {
		a := fresh()
		turn, _ := a.enter(said(1, 1, 0, 0))
		turn.send(denied, yes)
		turn.send(denied, yes)
		_, older := a.enter(said(1, 2, 1, 1)) // of a step that was asked for between the two
		wants(t, turn, older, 2, 2)
	})
	t.Run("one that the daemon refused does not count", func(t *testing.T) {
		a := fresh()
		turn, m := a.enter(said(1, 1, 0, 0))
		turn.send(denied, func() bool { return false })
		wants(t, turn, m, 0, 0)
	})
	t.Run("a denial of the person's counts, and those since from there on", func(t *testing.T) {
		a := fresh()
		turn, _ := a.enter(said(1, 1, 0, 0))
		turn.send(denied, yes)
		a.leave(turn)
		_, m := a.enter(said(1, 2, 2, 2))
		wants(t, turn, m, 2, 2)
		var next mark
		turn.send(allowed, yes)
		turn.send(denied, func() bool { _, next = a.enter(said(1, 3, 1, 3)); return true })
		wants(t, turn, next, 1, 3)
	})
	t.Run("with one of the person's while a verdict is on its way the count is early, never late", func(t *testing.T) {
		a := fresh()
		turn, _ := a.enter(said(1, 1, 0, 0))
		var next mark
		turn.send(denied, func() bool { _, next = a.enter(said(1, 2, 2, 2)); return true })
		if c := turn.counts(next); c.inRow < 2 || c.recent < 2 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a round is not looked at while a verdict of its turn is on its way", func(t *testing.T) {
		a := fresh()
		turn, _ := a.enter(said(1, 1, 2, 2))
		turn.answering.Lock()
		stops := make(chan string)
		var next mark
		turn.send(denied, func() bool { _, next = a.enter(said(1, 2, 2, 2)); return true })
		go func() { stops <- turn.stopping(next) }()
		turn.stopFor("stopped: 3 denials in a row.")
		turn.answering.Unlock()
		if why := <-stops; why != "stopped: 3 denials in a row." {
			t.Errorf("%q", why)
		}
	})
}

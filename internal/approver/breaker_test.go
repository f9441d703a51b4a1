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
	t.Run("verdicts on another round of the turn count for one that was announced before them", func(t *testing.T) {
		turn, since := a.enter(&round{turn: 8, calls: []protocol.Approval{call("a", 1)}})
		turn.count(true)
		turn.count(true)
		if after, outage := turn.afterDenial(protocol.Denials{}, since, verdict{reviewed: true}); !after.reached() || outage {
			t.Errorf("%+v %t", after, outage)
		}
		if _, later := a.enter(&round{turn: 8, calls: []protocol.Approval{call("a", 2)}}); later != 2 {
			t.Errorf("a round announced since counts %d of them twice", 2-later)
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

package screen

import (
	"strings"
	"testing"
)

func TestHowManyTurnsAreKnown(t *testing.T) {
	t.Parallel()
	if got := turnWords(1, true); got != "1 turn" {
		t.Errorf("%q", got)
	}
	if got := turnWords(2, false); got != "at least 2 turns" {
		t.Errorf("%q", got)
	}
}

func TestTheKeyLineStopsNoTurnWhereNoneRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ask("q", "demo.lead")
	b.answers.yield(b.App)
	for turn, want := range map[int64]bool{0: false, 7: true} {
		b.world.Bot("demo.lead").Turn = turn
		if got := strings.Join(b.keyHints(), " "); strings.Contains(got, "stops the turn") != want || !strings.Contains(got, "moves to the question") {
			t.Errorf("turn %d: %s", turn, got)
		}
	}
}

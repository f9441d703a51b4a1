package screen

import (
	"strings"
	"testing"

	"agent/internal/sonny/screen/cells"
)

func TestTheTurnsOfABotAreItsOwn(t *testing.T) {
	t.Parallel()
	s := &session{whole: true, about: map[int64]cells.About{45: {}}} // the store counts those of all bots
	if got := s.turnWords(); got != "1 turn" {
		t.Errorf("%q", got)
	}
	s.about[46] = cells.About{}
	if s.whole = false; s.turnWords() != "at least 2 turns" {
		t.Errorf("%q", s.turnWords())
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

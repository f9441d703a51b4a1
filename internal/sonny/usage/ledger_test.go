package usage

import (
	"testing"
	"time"

	"agent/internal/sonny/config"
	"agent/protocol"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	prices := PricesOf(map[string]config.Price{"p/m": {Input: pointer(1), Output: pointer(2)}})
	day := func(d int) time.Time { return time.Date(2026, 3, d, 12, 0, 0, 0, time.Local) }
	turn := func(id int64, d int, model string, in int64, over bool) Turn {
		return Turn{ID: id, Model: model, Began: day(d), Over: over, Tokens: Tokens{Input: in, Output: 10}}
	}
	var l Ledger
	if l.After(1) != 0 {
		t.Error("something is after nothing")
	}
	l.Take(1, turn(3, 1, "p/m", 1_000_000, true))
	l.Take(1, turn(4, 2, "p/m", 100, false)) // it runs
	l.Take(1, Turn{ID: 5})                   // in line
	l.Take(1, Turn{ID: 6, Over: true})       // a steer that was taken in
	l.Take(2, turn(7, 2, "q/n", 50, true))
	if l.After(1) != 3 || l.After(2) != 7 {
		t.Errorf("after %d and %d", l.After(1), l.After(2))
	}
	if got := l.Total(prices, ""); got.Turns != 0 {
		t.Errorf("no bot used %+v", got)
	}
	l.Take(1, turn(3, 1, "p/m", 5, true)) // it was over, and is not told twice
	l.Take(1, turn(4, 2, "p/m", 300, true))
	l.Take(1, Turn{ID: 5})
	l.Take(1, Turn{ID: 6, Over: true})
	if got := l.Total(prices, "", 1); got.Turns != 2 || got.Sum.Input != 1_000_300 || got.Sum.CostWords() != "$1.00" {
		t.Errorf("the first bot used %+v", got)
	}
	if last, ok := l.Last(1); !ok || last.ID != 4 || last.Input != 300 {
		t.Errorf("the newest turn is %+v", last)
	}
	if _, ok := l.Last(9); ok {
		t.Error("an unknown bot has a newest turn")
	}
	if l.After(1) != 4 {
		t.Errorf("after %d", l.After(1))
	}
	if got := l.Total(prices, Day(day(2)), 1, 2); got.Turns != 2 || got.Sum.Input != 350 || !got.Sum.Unpriced {
		t.Errorf("the second day took %+v", got)
	}
	models := l.Models(prices, "", 1, 2)
	if len(models) != 2 || models[0].Name != "p/m" || models[1].Name != "q/n" || models[1].Sum.Input != 50 {
		t.Errorf("models: %+v", models)
	}
	l.Take(1, turn(5, 3, "q/n", 7, true))
	if got := l.Total(prices, Day(day(3)), 1); got.Turns != 1 || got.Sum.Input != 7 {
		t.Errorf("the third day took %+v", got)
	}
	began, ended := int64(1000), int64(2000)
	told := TurnOf(&protocol.Turn{Turn: 8, Model: "p/m", InputTokens: 3, CachedInputTokens: 2, OutputTokens: 1, ModelRounds: 4, StartedMS: &began, FinishedMS: &ended})
	if want := (Turn{ID: 8, Model: "p/m", Began: time.UnixMilli(1000), Over: true, Ended: time.UnixMilli(2000), Rounds: 4, Tokens: Tokens{Input: 3, Cached: 2, Output: 1}}); told != want {
		t.Errorf("%+v, wanted %+v", told, want)
	}
}

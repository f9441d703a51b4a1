package figures

import (
	"fmt"
	"strings"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/usage"
)

// levelRole is the meter's colour.
func levelRole(m usage.Meter) text.Role {
	switch m.Level() {
	case usage.Full:
		return text.Fail
	case usage.Filled:
		return text.Warn
	}
	return text.Dim
}

// meterWords are the share of the window, or the tokens where that is not known.
func meterWords(m usage.Meter) string {
	if share, ok := m.Percent(); ok {
		return fmt.Sprintf("%d%%", share)
	}
	return human.Tokens(m.Tokens)
}

// Turn is what a turn used in one line: its tokens, cost, rounds and time.
func Turn(prices usage.Prices, t usage.Turn, noCost bool) string {
	part := usage.PartOf(prices, t)
	words := []string{human.Tokens(t.Input) + " in, " + human.Tokens(t.Output) + " out"}
	if !noCost {
		words = append(words, part.Sum.CostBrief())
	}
	words = append(words, human.Count(int(t.Rounds), "round", "rounds"))
	if t.Over {
		words = append(words, cells.Span(t.Ended.Sub(t.Began)))
	}
	return strings.Join(words, " · ")
}

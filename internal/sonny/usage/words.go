package usage

import (
	"fmt"
	"strconv"
)

// CostWords say what a sum cost, for a table or a footer: "$0.42", "plan", or "cost ?"
// where a model has no price; a "+" says that something of it is not in the figure.
func (s *Sum) CostWords() string { return s.costWords(Money(s.USD)) }

// CostBrief is CostWords where room is short: in cents, and below one in hundredths.
func (s *Sum) CostBrief() string {
	if s.USD < 0.01 {
		return s.CostWords()
	}
	return s.costWords(fmt.Sprintf("$%.2f", s.USD))
}

func (s *Sum) costWords(money string) string {
	switch {
	case s.Unpriced && s.USD == 0:
		return "cost ?"
	case s.Unpriced:
		return money + " + cost ?"
	case s.Plan && s.USD == 0:
		return "plan"
	case s.Plan:
		return money + " + plan"
	}
	return money
}

// Money is an amount in USD, with cents and, below one dollar, hundredths of them.
func Money(usd float64) string {
	if usd != 0 && usd < 1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// Short is a count in three digits or so: 912, 12.3k, 4.5M.
func Short(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return trim(float64(n)/1e3) + "k"
	}
	return trim(float64(n)/1e6) + "M"
}

func trim(f float64) string {
	if f < 100 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}

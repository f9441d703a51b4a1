package usage

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"

	"agent/internal/sonny/config"
)

//go:embed prices.json
var pricesFile []byte

// Price is what a model's tokens cost, in USD a million.
type Price struct {
	Input      float64 `json:"input"`
	Cached     float64 `json:"cached"`
	CacheWrite float64 `json:"cache_write"`
	Output     float64 `json:"output"`
}

// Prices are the person's, and those that are built in. The zero value has the built-in
// ones alone. It is safe for concurrent use.
type Prices struct{ own map[string]Price }

// builtin are the prices that Sonny comes with.
var builtin = func() (table struct {
	AsOf   string           `json:"as_of"`
	Prices map[string]price `json:"prices"`
}) {
	if err := json.Unmarshal(pricesFile, &table); err != nil {
		panic("usage: " + err.Error()) // it is embedded
	}
	return table
}()

// price is one as it is written: what is not said costs as input.
type price struct {
	Input      float64  `json:"input"`
	Cached     *float64 `json:"cached"`
	CacheWrite *float64 `json:"cache_write"`
	Output     float64  `json:"output"`
}

func (p price) whole() Price {
	return Price{Input: p.Input, Cached: or(p.Cached, p.Input), CacheWrite: or(p.CacheWrite, p.Input), Output: p.Output}
}

func or(stated *float64, other float64) float64 {
	if stated == nil {
		return other
	}
	return *stated
}

// PricesAsOf is the day on which the built-in prices held, as YYYY-MM-DD.
func PricesAsOf() string { return builtin.AsOf }

// PricesOf are the prices with the settings' [pricing] before the built-in ones. A key
// that a setting leaves out is the built-in price's, else that of input; one without
// input and output, and without a built-in price, is none.
func PricesOf(stated map[string]config.Price) Prices {
	own := map[string]Price{}
	for model, s := range stated {
		base, known := Prices{}.Of(model)
		if !known && (s.Input == nil || s.Output == nil) {
			continue
		}
		p := price{Input: or(s.Input, base.Input), Cached: s.Cached, CacheWrite: s.CacheWrite, Output: or(s.Output, base.Output)}
		if known && s.Input == nil {
			p.Cached, p.CacheWrite = first(s.Cached, &base.Cached), first(s.CacheWrite, &base.CacheWrite)
		}
		own[model] = p.whole()
	}
	return Prices{own}
}

func first(of ...*float64) *float64 {
	for _, f := range of {
		if f != nil {
			return f
		}
	}
	return nil
}

// dated is the end of an id that names a version of the model of the id before it.
var dated = regexp.MustCompile(`-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$`)

// Of is the price of PROVIDER/MODEL; false where none is known.
func (p Prices) Of(model string) (Price, bool) {
	if own, ok := p.own[model]; ok {
		return own, true
	}
	for _, id := range []string{model, dated.ReplaceAllString(model, "")} {
		if b, ok := builtin.Prices[id]; ok {
			return b.whole(), true
		}
	}
	return Price{}, false
}

// planProvider is the provider whose models a plan pays for.
const planProvider = "chatgpt"

// OnPlan reports whether a plan pays for a model's calls, so that they have no price.
func OnPlan(model string) bool { return strings.HasPrefix(model, planProvider+"/") }

package usage

import (
	"math"
	"testing"
	"time"

	"agent/client/modelsfile"
	"agent/internal/sonny/config"
	"agent/protocol"
)

func pointer(f float64) *float64 { return &f }

func TestPrices(t *testing.T) {
	t.Parallel()
	if _, err := time.Parse(time.DateOnly, PricesAsOf()); err != nil {
		t.Errorf("the table's date: %v", err)
	}
	for model, p := range builtin.Prices {
		if w := p.whole(); w.Input <= 0 || w.Output < w.Input || w.Cached > w.Input || w.CacheWrite < w.Cached {
			t.Errorf("%s: %+v", model, w)
		}
		if _, _, ok := protocol.ParseModelRef(model); !ok {
			t.Errorf("%s is no model", model)
		}
	}
	prices := PricesOf(map[string]config.Price{
		"local/all":               {Input: pointer(1), Cached: pointer(0.5), CacheWrite: pointer(2), Output: pointer(4)},
		"local/some":              {Input: pointer(1), Output: pointer(4)},
		"local/half":              {Output: pointer(4)},
		"openai/gpt-5":            {Output: pointer(20)},
		"anthropic/claude-opus-4": {Input: pointer(1)},
	})
	for _, c := range []struct {
		name, model string
		want        Price
		known       bool
	}{
		{"a stated price holds", "local/all", Price{1, 0.5, 2, 4}, true},
		{"what it leaves out costs as input", "local/some", Price{1, 1, 1, 4}, true},
		{"one without input is none", "local/half", Price{}, false},
		{"a part of a known one is stated", "openai/gpt-5", Price{1.25, 0.125, 1.25, 20}, true},
		{"with its own input the parts of it are input's", "anthropic/claude-opus-4", Price{1, 1, 1, 75}, true},
		{"a dated id is its model's", "anthropic/claude-sonnet-4-5-20250929", Price{3, 0.3, 3.75, 15}, true},
		{"an unknown model has none", "local/none", Price{}, false},
	} {
		if got, known := prices.Of(c.model); got != c.want || known != c.known {
			t.Errorf("%s: %+v, %v", c.name, got, known)
		}
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	prices := PricesOf(map[string]config.Price{"p/m": {Input: pointer(10), Cached: pointer(1), CacheWrite: pointer(20), Output: pointer(100)}})
	var s Sum
	s.Call(prices, "p/m", &protocol.Usage{InputTokens: 1000, CachedInputTokens: 500, CacheWriteTokens: 100, OutputTokens: 10, ReasoningTokens: 5})
	// 400 fresh, 500 cached, 100 written, 10 out
	if want := (400*10 + 500*1 + 100*20 + 10*100) / 1e6; math.Abs(s.USD-want) > 1e-12 {
		t.Errorf("cost %v, wanted %v", s.USD, want)
	}
	if usd, ok := s.Priced(); !ok || s.CostWords() != "$0.0075" || usd != s.USD {
		t.Errorf("%v %v %s", usd, ok, s.CostWords())
	}
	s.Call(prices, "p/m", &protocol.Usage{InputTokens: 10, OutputTokens: 3, Models: []protocol.ModelUsage{
		{Model: "m", InputTokens: 4, OutputTokens: 1}, {Provider: "q", Model: "n", InputTokens: 6, OutputTokens: 2},
	}})
	if s.Tokens != (Tokens{1010, 500, 100, 13, 5}) || !s.Unpriced || s.CostWords() != "$0.0076 + cost ?" {
		t.Errorf("%+v %s", s, s.CostWords())
	}
	var plan, unknown, none Sum
	plan.Add(prices, "chatgpt/gpt-5", Tokens{Input: 1})
	unknown.Add(prices, "x/y", Tokens{Input: 1})
	none.Add(prices, "x/y", Tokens{})
	for want, sum := range map[string]*Sum{"plan": &plan, "cost ?": &unknown, "$0.00": &none} {
		if got := sum.CostWords(); got != want {
			t.Errorf("%q, wanted %q", got, want)
		}
	}
	for want, sum := range map[string]*Sum{
		"$0.42": {USD: 0.4249}, "$0.0042": {USD: 0.0042}, "$0.00": {}, "$12.35": {USD: 12.345678}, "$0.42 + plan": {USD: 0.42, Plan: true}, "cost ?": {Unpriced: true},
	} {
		if got := sum.CostBrief(); got != want {
			t.Errorf("in brief %q, wanted %q", got, want)
		}
	}
	plan.Join(unknown)
	if plan.CostWords() != "cost ?" || plan.Input != 2 {
		t.Errorf("%s %+v", plan.CostWords(), plan)
	}
}

func TestMeter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens, window int64
		percent        int
		known          bool
		level          Level
	}{
		{90_000, 100_000, 90, true, Full},
		{20_000, 100_000, 20, true, Ample},
		{70_000, 100_000, 70, true, Filled},
		{69_999, 100_000, 69, true, Ample},
		{200_000, 100_000, 100, true, Full},
		{90_000, 0, 0, false, Ample},
	} {
		m := Meter{Tokens: c.tokens, Window: c.window}
		if p, known := m.Percent(); p != c.percent || known != c.known || m.Level() != c.level {
			t.Errorf("%+v: %d, %v, %d", m, p, known, m.Level())
		}
	}
	m := Meter{Window: 100}
	m = m.After(&protocol.Usage{InputTokens: 90, CachedInputTokens: 80})
	m = m.After(&protocol.Usage{InputTokens: 5, Purpose: "compaction"})
	if m.Tokens != 90 {
		t.Errorf("the meter is %d", m.Tokens)
	}
	if m = m.After(&protocol.Usage{InputTokens: 20}); m.Tokens != 20 {
		t.Errorf("the meter adds up: %d", m.Tokens)
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	for note, want := range map[string]int64{
		"Opus, 200000 tokens of context": 200_000, "200k context": 200_000, "1M context, 64000 output": 1_000_000,
		"200,000 context": 200_000, "v2 128000 context": 128_000, "": 0, "context": 0, "1.5M context": 0, "long contexts": 0,
	} {
		got := Windows([]modelsfile.Model{{ID: "p/m", Note: note}})["p/m"]
		if got != want {
			t.Errorf("%q: %d, wanted %d", note, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0k", 12_345: "12.3k", 123_456: "123k", 999_949: "1000k", 999_950: "1.0M", 4_500_000: "4.5M"} {
		if got := Short(n); got != want {
			t.Errorf("%d: %s, wanted %s", n, got, want)
		}
	}
}

func FuzzWindow(f *testing.F) {
	f.Add("200000 tokens of context")
	f.Add("9999999999999999999M context")
	f.Fuzz(func(t *testing.T, note string) {
		if n := Window(note); n < 0 {
			t.Errorf("%q: %d", note, n)
		}
	})
}

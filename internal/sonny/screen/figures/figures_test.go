package figures

import (
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// used is what the header of sonny.md 17 tells.
func used() *Used {
	return &Used{
		Meter: usage.Meter{Tokens: 38_000, Window: 100_000}, Total: live.Tokens{Input: 412_000, Output: 18_000, Cached: 375_000},
		Session: &usage.Sum{USD: 0.42}, Today: &usage.Sum{USD: 3.10},
	}
}

func TestTheHeadersFields(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		w    int
		with func(*Used)
		want string
	}{
		{"all of them", 160, func(*Used) {}, "ctx 38%  412k in (91% cached)  18k out  $0.42  today $3.10"},
		{"a narrow header has the context alone", 59, func(*Used) {}, "ctx 38%"},
		{"a window that is not known", 80, func(u *Used) { u.Meter.Window = 0 }, "ctx 38k  412k in  18k out  $0.42"},
		{"without costs", 160, func(u *Used) { u.NoCost = true }, "ctx 38%  412k in (91% cached)  18k out"},
		{"before the turns were read", 160, func(u *Used) { u.Session, u.Today = nil, nil }, "ctx 38%  412k in (91% cached)  18k out"},
		{"of a bot that was never called", 160, func(u *Used) { *u = Used{} }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			u := used()
			row.with(u)
			if got := strings.TrimSpace(Line(u.Fields(row.w)).String()); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestWhichFieldGoesFirst(t *testing.T) {
	t.Parallel()
	fields := used().Fields(200)
	var order []string
	for len(fields) > 0 {
		left := withoutLast(fields)
		for i, f := range fields {
			if i == len(left) || left[i] != f {
				order = append(order, f.Span.Text)
				break
			}
		}
		fields = left
	}
	if got := strings.Join(order, ", "); got != "today $3.10, 18k out, 412k in (91% cached), $0.42, ctx 38%" {
		t.Errorf("they go in the order %s", got)
	}
	if line := Fit(text.Of(text.Plain, "name"), used().Fields(80), 24).String(); !strings.HasPrefix(line, "name ") || !strings.HasSuffix(line, "ctx 38%  $0.42 ") {
		t.Errorf("%q", line)
	}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	stats := &protocol.Stats{Providers: map[string]protocol.ProviderStats{
		"p": {}, "chatgpt": {Plan: protocol.Raw(`{"primary":{"used_percent":37.4,"window_minutes":300,"reset_at":0}}`)},
	}}
	lines := Plans(stats, now)
	if len(lines) != 1 || lines[0].String() != "chatgpt  37% used of 5 hours" {
		t.Errorf("%v", lines)
	}
	stats.Providers["chatgpt"] = protocol.ProviderStats{Plan: protocol.Raw(`{"primary":{"used_percent":99,"window_minutes":60,"reset_at":1767323045}}`)}
	if got := Plans(stats, time.Unix(1767323045, 0).Add(-time.Minute)); len(got) != 1 || !strings.Contains(got[0].String(), "99% used of 1 hour, anew ") {
		t.Errorf("%v", got)
	}
}

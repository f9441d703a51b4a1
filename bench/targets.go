package main

import (
	"fmt"
	"slices"
)

// target is a bound on a figure's median. Those of memory are the ones this
// product sets itself; section 32's are wider (docs/MEASURE.md has both).
type target struct {
	workload, kase, name string
	least, most          float64 // most 0: no upper bound
}

func (t target) met(v float64) bool { return v >= t.least && (t.most == 0 || v <= t.most) }

func (t target) String() string {
	switch {
	case t.least == t.most:
		return "= " + number(t.most)
	case t.least == 0:
		return "≤ " + number(t.most)
	case t.most == 0:
		return "≥ " + number(t.least)
	}
	return fmt.Sprintf("%s to %s", number(t.least), number(t.most))
}

var targets = slices.Concat([]target{
	{workload: "W1", kase: streamCase(32, 64), name: "peak", most: 25},
	{workload: "W1", kase: streamCase(32, 64), name: "streams", least: 32, most: 32},
	{workload: "W1", kase: streamCase(32, 64), name: "cpu", most: 1.5},
	{workload: "W1", kase: streamCase(32, 64), name: "turn p99", most: 700},
	{workload: "W1", kase: streamCase(32, 4), name: "peak", most: 36},
	{workload: "W1", kase: "1 → 32 × 64 KiB", name: "peak added", most: 8},
	{workload: "W4", kase: "100,000 ÷ 100 turns", name: "p50", most: 1.3},
	{workload: "W5", kase: "100,000 ÷ 1,000 items", name: "turn", most: 1.5},
	{workload: "W5", kase: "100,000 ÷ 1,000 items", name: "request body", least: 0.5, most: 1.5},
	{workload: "W6", kase: fleetWhole.String(), name: "peak", most: 80},
	{workload: "W6", kase: fleetWhole.String(), name: "turns a second", least: 1000},
	{workload: "W6", kase: fleetWhole.String(), name: "restart with 840 in flight", most: 300},
	{workload: "W6", kase: "live heap", name: "a parked turn", most: 1},
	{workload: "W6", kase: "live heap", name: "an idle bot", most: 0.01},
	{workload: "W7", kase: "nothing pruned", name: "store a turn", most: 4},
	{workload: "W7", kase: "nothing pruned", name: "RSS, last ÷ first third", most: 1.1},
	{workload: "W7", kase: "eight kept turns", name: "store a turn", most: 2.5},
	// Within 15 % of the reference: 9.5, 17.9, 45.7 and 48.5 MiB.
	{workload: "W8", kase: "varied output", name: "store after 64 turns", most: 10.9},
	{workload: "W8", kase: "varied output", name: "store after 256 turns", most: 20.6},
	{workload: "W8", kase: "varied output", name: "store after 1,024 turns", most: 52.6},
	{workload: "W8", kase: "incompressible output", name: "store after 256 turns", most: 55.8},
	{workload: "W9", kase: "32 completions", name: "last p99", most: 30},
	{workload: "W9", kase: "32 admissions", name: "last p99", most: 10},
	// Within 15 % of the reference: 304, 128 and, with admissions grouped, 131.
	{workload: "W10", kase: slowCase(slowDelays[0]), name: "turns a second", least: 258},
	{workload: "W10", kase: slowCase(slowDelays[1]), name: "turns a second", least: 109},
	{workload: "W10", kase: slowCase(slowDelays[2]), name: "turns a second", least: 111},
	{workload: "W11", kase: fmt.Sprintf("%d bots", soakBots), name: "RSS, last ÷ first third", most: 1.1},
	{workload: "W11", kase: fmt.Sprintf("%d bots", soakBots), name: "restart with 16 in flight", most: 1000},
	{workload: "W12", kase: "600 results", name: "record a result", most: 1.5},
	{workload: "W12", kase: "600 results", name: "window", most: 9.6},
	{workload: "W12", kase: "600 results", name: "move the floor", most: 3.3},
	{workload: "W12", kase: "600 results", name: "plan a cut", most: 10.8},
	{workload: "interrupts", kase: "1,000 mid-request", name: "all ended", most: 300},
	{workload: "interrupts", kase: "1,000 in a command", name: "all ended", most: 1000},
	{workload: "interrupts", kase: "1,000 paused mid-request", name: "all ended", most: 1000},
	{workload: "interrupts", kase: "1,000 paused in a command", name: "all ended", most: 1000},
	{workload: "small", kase: "provider refuses, --max-active 8", name: "the other's 8 turns", most: 100},
	{workload: "small", kase: "shell prints 1 MiB", name: "peak heap added", most: 4},
	{workload: "small", kase: "prune, nothing to drop beside 100,000 turns", name: "job", most: 1},
	{workload: "small", kase: "fork at a known checkpoint of 6 MB", name: "job", most: 2},
	{workload: "small", kase: longAnswerCase, name: "peak heap added", least: -4, most: 4},
	{workload: "start", kase: "agent --version", name: "wall", most: 10},
	{workload: "start", kase: "agent run, no daemon", name: "wall", most: 100},
	{workload: "start", kase: "agent stats, warm", name: "wall", most: 20},
	{workload: "start", kase: "one text turn", name: "syncs", most: 4},
	{workload: "sonny", kase: sonnyLong, name: "start to session p50", most: 60},
	{workload: "sonny", kase: sonnyLong, name: "RSS at rest", most: 40},
	{workload: "sonny", kase: sonnyLong, name: "RSS scrolled through", most: 40},
	{workload: "sonny", kase: sonnyLong, name: "idle", most: 0.2},
	{workload: "sonny", kase: sonnyLong, name: "idle, written", most: 0.5}, // nothing
	{workload: "sonny", kase: sonnyLong, name: "a silent turn", most: 1},
	{workload: "sonny", kase: sonnyLong, name: "a key writes", most: 512},
	{workload: "sonny", kase: sonnyLong, name: "key to echo p50", most: 8},
	{workload: "sonny", kase: sonnyLong, name: "key to echo p99", most: 16},
	{workload: "sonny", kase: sonnyLong, name: "1 stream", most: 10},
	{workload: "sonny", kase: sonnyLong, name: "a paste of 10,000 lines p50", most: 200},
	{workload: "sonny", kase: sonnyLong, name: "key to echo as 5 MiB come, most", most: 50},
	{workload: "sonny", kase: sonnyMany, name: "key to echo p50", most: 8},
	{workload: "sonny", kase: sonnyMany, name: "key to echo p95", most: 16},
	{workload: "sonny", kase: sonnyMany, name: "key to echo, most", most: 50},
	{workload: "sonny", kase: sonnyMany, name: "peak", most: 150},
}, lifeTargets("W2"), lifeTargets("W3"), secureTargets())

// lifeTargets are those of W2 and W3, the same for each mode.
func lifeTargets(id string) (all []target) {
	for _, mode := range []string{"text", "echo", "shell"} {
		kase := lifeCase{mode: mode, bots: lifeBots}.String()
		all = append(all,
			target{workload: id, kase: kase, name: "peak", most: 30},
			target{workload: id, kase: kase, name: "p99 less p50", most: 100},
			target{workload: id, kase: kase, name: "restart to ready", most: 500})
	}
	return all
}

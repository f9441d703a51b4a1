package main

import (
	"fmt"
	"slices"
)

// reference is what the runtime document's section 32 states for a figure, as
// it states it: a number, or the span of several runs. It is of another machine
// unless the document says otherwise, and bounds nothing.
type reference struct{ workload, kase, name, value string }

// refer puts the references beside the figures. One of a workload that ran, for
// which there is no figure, is an error, as with targets: its name is wrong.
func (r *report) refer(references []reference) error {
	for _, ref := range references {
		ran, found := false, false
		for _, f := range r.Figures {
			ran = ran || f.Workload == ref.workload
			if f.Workload == ref.workload && f.Case == ref.kase && f.Name == ref.name {
				f.Reference, found = ref.value, true
			}
		}
		if ran && !found {
			return fmt.Errorf("%s, %s: no %s was measured, which has a reference", ref.workload, ref.kase, ref.name)
		}
	}
	return nil
}

var references = slices.Concat(
	streamReferences(4, []string{"17.3", "17.6", "19.9"}, []string{"0.30", "0.37", "0.59"}),
	streamReferences(64, []string{"18.6", "21.0", "22.1"}, []string{"0.31", "0.38", "0.63"}),
	longHistoryReferences(),
	[]reference{
		{"W1", "1 → 32 × 64 KiB", "peak added", "3.5"},
		{"W1", streamCase(32, 64), "first text p50", "39"},
		{"W1", streamCase(32, 64), "turn p99", "616"},
		{"W2", lifeReference("text"), "tree, summed RSS", "21.0"},
		{"W2", lifeReference("echo"), "tree, summed RSS", "21.3"},
		{"W2", lifeReference("shell"), "tree, summed RSS", "134.3"},
		{"W2", lifeReference("text"), "cpu", "0.82"},
		{"W2", lifeReference("echo"), "cpu", "0.95"},
		{"W2", lifeReference("shell"), "cpu", "0.97"},
		{"W2", lifeReference("text"), "turn p50", "521"},
		{"W2", lifeReference("echo"), "turn p50", "576"},
		{"W2", lifeReference("shell"), "turn p50", "831"},
		{"W2", lifeReference("text"), "turn p99", "528"},
		{"W2", lifeReference("echo"), "turn p99", "585"},
		{"W2", lifeReference("shell"), "turn p99", "856"},
		{"W2", lifeReference("text"), "restart to ready", "210–255"},
		{"W2", lifeReference("text"), "checks of all", "133–170"},
		{"W3", lifeReference("shell"), "peak", "13.3"},
		{"W3", lifeReference("shell"), "tree, summed RSS", "168.6"},
		{"W4", "100 turns", "p50", "2.6"},
		{"W4", "100 turns", "p95", "3.2"},
		{"W4", "100 turns", "cpu a turn", "2.0"},
		{"W4", "100 turns", "peak", "12.1"},
		{"W4", "100,000 turns", "p50", "2.5"},
		{"W4", "100,000 turns", "p95", "3.2"},
		{"W4", "100,000 turns", "cpu a turn", "2.0"},
		{"W4", "100,000 turns", "peak", "14.0"},
		{"W6", fleetWhole.String(), "peak", "59"},
		{"W6", fleetWhole.String(), "bots made", "1.5"},
		{"W6", fleetWhole.String(), "turns a second", "1,470"},
		{"W6", fleetWhole.String(), "restart with 840 in flight", "154"},
		{"W6", "live heap", "a parked turn", "0.8"},
		{"W6", "live heap", "an idle bot", "nothing"},
		{"W7", "nothing pruned", "turns a second", "30"},
		{"W7", "nothing pruned", "peak", "23–27"},
		{"W7", "nothing pruned", "threads", "5"},
		{"W7", "nothing pruned", "open files", "56"},
		{"W7", "nothing pruned", "store a turn", "2.8"},
		{"W7", "eight kept turns", "store a turn", "1.4"},
		{"W8", "varied output", "store after 64 turns", "9.5"},
		{"W8", "varied output", "store after 256 turns", "17.9"},
		{"W8", "varied output", "store after 1,024 turns", "45.7"},
		{"W8", "incompressible output", "store after 256 turns", "48.5"},
		{"W9", "32 completions", "last p99", "15–18"},
		{"W9", "32 completions", "cpu a burst", "6.5"},
		{"W9", "32 admissions", "last p99", "5.3"},
		{"W10", slowCase(slowDelays[0]), "turns a second", "304"},
		{"W10", slowCase(slowDelays[1]), "turns a second", "128"},
		{"W10", slowCase(slowDelays[2]), "turns a second", "131"},
		{"W10", slowCase(slowDelays[0]), "jobs a commit", "2.3"},
		{"W10", slowCase(slowDelays[1]), "jobs a commit", "3.3"},
		{"W11", fmt.Sprintf("%d bots", soakBots), "turns a second", "62.8"},
		{"W11", fmt.Sprintf("%d bots", soakBots), "peak", "40.0"},
		{"W11", fmt.Sprintf("%d bots", soakBots), "most in the WAL", "< 8.8"},
		{"W11", fmt.Sprintf("%d bots", soakBots), "store, growth a minute", "21.7"},
		{"W11", fmt.Sprintf("%d bots", soakBots), "restart with 16 in flight", "920"},
		{"W12", "600 results", "record a result", "0.45–0.5"},
		{"W12", "600 results", "window", "3.2"},
		{"W12", "600 results", "move the floor", "0.8–1.1"},
		{"W12", "600 results", "plan a cut", "3.2–3.6"},
		{"interrupts", "1,000 mid-request", "all ended", "200"},
		{"interrupts", "1,000 in a command", "all ended", "800"},
		{"small", "provider refuses, --max-active 8", "the other's 8 turns", "2–8"},
		{"small", "shell prints 1 MiB", "peak heap added", "2.13"},
		{"small", "prune, nothing to drop beside 100,000 turns", "job", "0.08"},
		{"small", "fork at a known checkpoint of 6 MB", "job", "0.22"},
		{"start", "agent stats, warm", "wall", "8.7"},
		{"start", "one text turn", "syncs", "3.1"},
	})

func lifeReference(mode string) string { return lifeCase{mode: mode, bots: lifeBots}.String() }

// streamReferences are W1's peaks and processor times for 1, 8 and 32 agents.
func streamReferences(size int, peaks, cpus []string) (all []reference) {
	for i, agents := range streamAgents {
		kase := streamCase(agents, size)
		all = append(all, reference{"W1", kase, "peak", peaks[i]}, reference{"W1", kase, "cpu", cpus[i]})
	}
	return all
}

// longHistoryReferences are W5's, for 1,000, 10,000 and 100,000 items.
func longHistoryReferences() (all []reference) {
	for i, kase := range []string{"1,000 items", "10,000 items", "100,000 items"} {
		all = append(all,
			reference{"W5", kase, "start to ready", []string{"9.5", "11.3", "17.5"}[i]},
			reference{"W5", kase, "turn", []string{"2.2", "2.6", "3.1"}[i]},
			reference{"W5", kase, "request body", "64.3–64.5"},
			reference{"W5", kase, "peak", []string{"10.5", "12.3", "12.6"}[i]})
	}
	return all
}

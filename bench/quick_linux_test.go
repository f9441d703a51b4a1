package main

import (
	"slices"
	"testing"
)

// TestQuick runs the small form of every workload that the guard does not run:
// what they check of the daemon on the way must hold.
func TestQuick(t *testing.T) {
	b := guard(t)
	for _, w := range workloads {
		if slices.Contains([]string{"W1", "W4", "W5", "start"}, w.id) {
			continue // TestGuard has them
		}
		t.Run(w.id, func(t *testing.T) {
			b.quick, b.dir, b.log, b.report = true, t.TempDir(), t.Output(), &report{Runs: 1}
			if err := w.run(b, t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(b.report.Figures) == 0 {
				t.Error("it found no figure")
			}
		})
	}
}

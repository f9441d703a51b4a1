package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"one value is its own median", []float64{7}, 7},
		{"the middle of an odd number, in any order", []float64{9, 1, 4}, 4},
		{"the mean of the two in the middle of an even number", []float64{4, 1, 3, 100}, 3.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := median(c.values); got != c.want {
				t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for n := 100; n > 0; n-- {
		hundred = append(hundred, time.Duration(n)*time.Millisecond)
	}
	for _, c := range []struct {
		name string
		of   []time.Duration
		p    float64
		want float64
	}{
		{"the 50th of a hundred", hundred, 50, 50},
		{"the 99th of a hundred", hundred, 99, 99},
		{"the highest", hundred, 100, 100},
		{"the 95th of three is the highest", []time.Duration{3e6, 1e6, 2e6}, 95, 3},
		{"one", []time.Duration{5e6}, 50, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := percentile(c.of, c.p); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		target target
		met    []float64
		missed []float64
		text   string
	}{
		{"a bound from above", target{most: 25}, []float64{0, 25}, []float64{25.1}, "≤ 25"},
		{"an exact number", target{least: 32, most: 32}, []float64{32}, []float64{31, 33}, "= 32"},
		{"a bound from below", target{least: 3}, []float64{3, 1e9}, []float64{2.9}, "≥ 3"},
		{"a range", target{least: 0.5, most: 1.5}, []float64{0.5, 1.5}, []float64{0.4, 1.6}, "0.50 to 1.50"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range c.met {
				if !c.target.met(v) {
					t.Errorf("%v should meet it", v)
				}
			}
			for _, v := range c.missed {
				if c.target.met(v) {
					t.Errorf("%v should miss it", v)
				}
			}
			if got := c.target.String(); got != c.text {
				t.Errorf("it reads %q, want %q", got, c.text)
			}
		})
	}
}

// TestReport follows figures from the runs into the table and the file.
func TestReport(t *testing.T) {
	t.Parallel()
	r := &report{Runs: 3, Family: "responses"}
	for _, v := range []float64{24, 26, 27} {
		r.add("W1", "32 × 64 KiB", "peak", "MiB", v)
		r.add("W1", "32 × 64 KiB", "cpu", "s", v/100)
	}
	if err := r.compare([]target{
		{workload: "W1", kase: "32 × 64 KiB", name: "peak", most: 25},
		{workload: "W1", kase: "32 × 64 KiB", name: "cpu", most: 1.5},
	}); err != nil {
		t.Fatal(err)
	}
	b := &bench{report: r, log: t.Output(), quick: true} // compared already
	file := filepath.Join(t.TempDir(), "figures.json")
	var table bytes.Buffer
	if code := b.finish(&table, file, true); code != 1 {
		t.Errorf("status %d with a missed target and -check, want 1", code)
	}
	if code := b.finish(&bytes.Buffer{}, "", false); code != 0 {
		t.Errorf("status %d with a missed target and no -check, want 0", code)
	}
	lines := strings.Split(table.String(), "\n")
	want := []string{"W1 32 × 64 KiB peak 26 MiB 24 27 ≤ 25 MISS", "W1 32 × 64 KiB cpu 0.26 s 0.24 0.27 ≤ 1.50 OK", "", "1 missed"}
	var got []string
	for _, line := range lines[3:7] {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Figures, back.Figures); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
}

// TestTargetWithoutFigure: a target must not be met by silence.
func TestTargetWithoutFigure(t *testing.T) {
	t.Parallel()
	r := &report{}
	r.add("W1", "8 × 4 KiB", "peak", "MiB", 1)
	wanted := []target{{workload: "W1", kase: "8 × 4 KiB", name: "peak", most: 2}, {workload: "W4", name: "p50", most: 1}}
	if err := r.compare(wanted); err != nil || r.Figures[0].Verdict != "OK" {
		t.Errorf("%v, %+v: a workload that did not run owes no figure", err, r.Figures[0])
	}
	if err := r.compare(append(wanted, target{workload: "W1", kase: "8 × 4 KiB", name: "cpu", most: 1})); err == nil {
		t.Error("a target without a figure was passed over")
	}
}

func TestWrongLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
	}{
		{"an unknown workload", []string{"-w", "W99"}},
		{"no runs", []string{"-runs", "0"}},
		{"an unknown family", []string{"-family", "smoke"}},
		{"an argument too many", []string{"W1"}},
		{"an unknown flag", []string{"-fast"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			if code := run(context.Background(), c.args, &log, &log); code != 2 || log.Len() == 0 {
				t.Errorf("status %d and %q, want 2 and a reason", code, &log)
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4 * kib, 64 * kib, 256 * kib} {
		if got := len(promptOf(3, 1, size)); got != size {
			t.Errorf("a prompt of %d bytes has %d", size, got)
		}
	}
	if promptOf(1, 2, kib) == promptOf(2, 1, kib) {
		t.Error("two turns have the same prompt")
	}
	if got := comma(100_000) + " " + comma(999) + " " + comma(1_002_003); got != "100,000 999 1,002,003" {
		t.Error(got)
	}
}

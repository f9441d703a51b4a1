package main

import (
	"os"
	"testing"
)

func TestField(t *testing.T) {
	t.Parallel()
	text := []byte("Name:\tagent\nVmHWM:\t   16012 kB\nVmRSS:\t     100 kB\nThreads:\t8\n")
	for _, c := range []struct {
		name, field string
		want        int64
		fails       bool
	}{
		{"a size in kB is given in bytes", "VmRSS:", 100 << 10, false},
		{"another line", "VmHWM:", 16012 << 10, false},
		{"a line without a unit is no size", "Threads:", 0, true},
		{"a missing line is an error, not nothing", "VmSwap:", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := field(text, c.field)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestCPU(t *testing.T) {
	t.Parallel()
	stat := "7 (a (b) c) S 1 7 7 0 -1 4194560 500 0 3 0 120 30 5 5 20 0 8 0 99 1 2"
	if got, err := cpuOf([]byte(stat)); err != nil || got != 1.5 {
		t.Errorf("got %v, %v, want 1.5 seconds", got, err)
	}
	if _, err := cpuOf([]byte("7 (a) S 1 7")); err == nil {
		t.Error("a cut line was read")
	}
}

func TestSampleOfThisProcess(t *testing.T) {
	t.Parallel()
	u, err := sample(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.RSS < mib || u.Peak < u.RSS || u.PSS <= 0 || u.PSS > u.Peak || u.Own <= 0 || u.Own > u.RSS {
		t.Errorf("an unlikely sample: %+v", u)
	}
	if _, err := sample(1 << 30); err == nil {
		t.Error("a process that does not exist was sampled")
	}
}

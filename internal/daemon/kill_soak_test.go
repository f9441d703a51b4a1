//go:build long

package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// The soak: every role of W11 (runtime.md 32) twice, for ten minutes, with one
// kill -9 in the middle.
const (
	soakTime    = 10 * time.Minute
	soakWarm    = time.Minute
	soakClients = 2
	soakDelay   = 150 * time.Millisecond // of the model, so that the pace is the clients'
	soakSeed    = 11
)

// sample is what one look at the daemon gave.
type soakSample struct {
	at time.Duration
	report
}

func TestSoak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fmt.Sprint("seed ", soakSeed))
	w.bin = plainBinary(t)
	w.always = append(w.always, reportVar+"=1", "GOGC=35") // as agent serve sets it
	w.actor.delay = soakDelay
	began := time.Now()
	over := func() bool { return time.Since(began) > soakTime }
	var samples []soakSample
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() { samples = w.watch(began, stop) })
	all := clients(soakClients, soakSeed, over)
	w.live([]faultPlan{{Points: aroundCommits, After: soakTime / 2}}, all...)
	close(stop)
	watching.Wait()
	t.Run("RT-91 W11 roles at work for ten minutes over a kill -9 lose nothing", func(t *testing.T) {
		if w.kills != 1 {
			t.Errorf("%d daemons ended", w.kills)
		}
		t.Logf("%d submissions, %d events, %d samples", len(w.acked), len(w.record), len(samples))
	})
	t.Run("memory, goroutines and files do not grow", func(t *testing.T) {
		first := soakPart(samples, soakWarm, soakTime/3)
		last := soakPart(samples, soakTime*2/3, soakTime)
		t.Logf("first third %+v, last third %+v", first, last)
		if last.Memory > first.Memory*11/10 {
			t.Errorf("memory grew from %d to %d KiB", first.Memory>>10, last.Memory>>10)
		}
		if last.Goroutines > first.Goroutines*11/10+5 || last.Files > first.Files*11/10+5 {
			t.Errorf("goroutines and files grew from %+v to %+v", first, last)
		}
	})
}

// plainBinary builds this test program without the race detector, whose memory
// is not the daemon's.
func plainBinary(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "daemon.test")
	cmd := exec.Command("go", "test", "-c", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// watch looks at whatever daemon there is, once a second.
func (w *world) watch(began time.Time, stop chan struct{}) (samples []soakSample) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return samples
		case <-tick.C:
		}
		w.mu.Lock()
		p := w.p
		w.mu.Unlock()
		if p == nil {
			continue
		}
		s := soakSample{at: time.Since(began)}
		if _, err := fmt.Fprintln(p.stdin, "report"); err != nil {
			continue
		}
		raw, err := p.stdout.ReadBytes('\n')
		if err == nil && json.Unmarshal(raw, &s.report) == nil {
			samples = append(samples, s)
		}
	}
}

// soakPart is the median of each figure in a part of the time.
func soakPart(samples []soakSample, from, to time.Duration) (middle report) {
	var memory []int64
	var goroutines, files []int
	for _, s := range samples {
		if s.at >= from && s.at < to {
			memory, goroutines, files = append(memory, s.Memory), append(goroutines, s.Goroutines), append(files, s.Files)
		}
	}
	if len(memory) == 0 {
		return report{}
	}
	slices.Sort(memory)
	slices.Sort(goroutines)
	slices.Sort(files)
	n := len(memory) / 2
	return report{Memory: memory[n], Goroutines: goroutines[n], Files: files[n]}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	product "agent/internal/daemon"
	"agent/internal/store"
	"agent/protocol"
)

// probedWord, as the first argument, makes this program a daemon: the product's
// own, with what no release has. Its syncs can be made slow, and it can be
// asked how much is live on its heap and when its store did what. Its resident
// size is no figure, since the program is another one.
const probedWord = "probed-daemon"

// probedSpec is that daemon's second argument.
type probedSpec struct {
	Store    string
	Socket   string
	Provider string
	Limits   protocol.Limits
	Sync     time.Duration // added to every commit
	Points   []string      // of the store (store.Faults), whose times are wanted
	Peak     bool          // look at the heap every millisecond
}

// probe is what it answers to each line on its standard input: after a
// collection, what is left, and the times since the last answer.
type probe struct {
	Heap  int64 // bytes that are reachable
	Peak  int64 // most that was seen on the heap since the last answer, garbage included
	Times []pointTime
}

// pointTime is a moment at which the store reached a point.
type pointTime struct {
	Point string
	Nanos int64
}

// probedLimits are the product's defaults for what a workload does not state.
func probedLimits() protocol.Limits {
	return protocol.Limits{
		Active: 4096, Processes: int64(64 * runtime.NumCPU()), Detached: 16, Connections: 64, StallTimeoutSeconds: 120,
		ContextBytes: 8 * mib, ContextItems: 4096, NoteTurns: 48, CompactAt: 75, CompactKeep: 25,
		ApprovalHoldMS: 2000, CacheTTL: "5m",
	}
}

// probed is the daemon until a signal ends it.
func probed(args []string, in io.Reader, out, errs io.Writer) int {
	var spec probedSpec
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &spec) != nil {
		fmt.Fprintln(errs, "bench: the probed daemon has one argument, its settings in JSON")
		return 2
	}
	debug.SetGCPercent(35) // as serve does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var faults store.Faults
	if spec.Sync > 0 {
		faults.At("commit", func() error {
			time.Sleep(spec.Sync)
			return nil
		})
	}
	times := &times{}
	for _, point := range spec.Points {
		faults.At(point, func() error { return times.add(point) })
	}
	peak := &heapPeak{}
	if spec.Peak {
		go peak.watch(ctx)
	}
	go answerProbes(in, out, times, peak)
	set := product.Settings{
		Store: spec.Store, Socket: spec.Socket, Providers: []string{spec.Provider}, Limits: spec.Limits, Version: "bench",
	}
	if err := product.ServeFaulty(ctx, set, &faults, nil, out, os.Stderr); err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return 1
	}
	return 0
}

// times are what was reached since they were last taken.
type times struct {
	mu  sync.Mutex
	all []pointTime
}

func (t *times) add(point string) error {
	now := time.Now().UnixNano()
	t.mu.Lock()
	t.all = append(t.all, pointTime{point, now})
	t.mu.Unlock()
	return nil
}

func (t *times) take() []pointTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.all
	t.all = nil
	return all
}

// heapPeak is the most that was on the heap since it was last taken.
type heapPeak struct{ most atomic.Int64 }

func (h *heapPeak) watch(ctx context.Context) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		metrics.Read(sample)
		if n := int64(sample[0].Value.Uint64()); n > h.most.Load() {
			h.most.Store(n)
		}
		<-tick.C
	}
}

func answerProbes(in io.Reader, out io.Writer, t *times, peak *heapPeak) {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		p := probe{Times: t.take(), Peak: peak.most.Load()}
		runtime.GC() // once for what is unreachable, once for what a pool held
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.Heap = int64(m.HeapAlloc)
		peak.most.Store(0)
		answers.Encode(p)
	}
}

// command is the probed daemon in place of the product's, on these options.
func (spec probedSpec) command(self string, o serveOptions, socket string) (name string, args []string) {
	spec.Store, spec.Socket, spec.Provider = o.store, socket, o.provider
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return self, []string{probedWord, string(text)}
}

// probe asks a probed daemon.
func (s *stage) probe() (p probe, err error) {
	if _, err := io.WriteString(s.daemon.control.in, "probe\n"); err != nil {
		return p, err
	}
	return p, json.NewDecoder(s.daemon.control.out).Decode(&p)
}

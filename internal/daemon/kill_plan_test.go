package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent/internal/store"
)

// planVar holds the faults of a daemon that a test starts, as JSON.
const planVar = "AGENT_TEST_FAULTS"

// faultPlan says where a daemon's store kills the process or fails. Points are
// numbered as they are met, from 1, over the whole life of the process, those
// of its start included; only the points named count.
type faultPlan struct {
	Points []string      // of internal/store.Faults; one that ends in ":" names all operations
	Kill   int           // the number of the point that kills, 0 for none
	Fail   int           // the number of the first point that fails, 0 for none
	For    int           // how many fail in a row
	Error  string        // a key of faultErrors
	After  time.Duration // kills it from outside, so long after it was ready
	Full   string        // a file: while it is there, every point fails
	Count  string        // a file that gets, at an orderly end, how many points of each kind were met
}

var faultErrors = map[string]error{"full": store.FaultFull, "sync": store.FaultSync}

// aroundCommits are just before a commit, just after it, between its answers and
// its publication, and behind that.
var aroundCommits = []string{"commit", "after-commit", "after-answer", "published"}

func (p faultPlan) String() string {
	switch {
	case p.After > 0:
		return fmt.Sprintf("kill -9 after %v", p.After)
	case p.Kill > 0:
		return fmt.Sprintf("kill -9 at point %d of %s", p.Kill, strings.Join(p.Points, ", "))
	case p.Fail > 0:
		return fmt.Sprintf("%s at %d points of %s from %d", p.Error, p.For, strings.Join(p.Points, ", "), p.Fail)
	}
	return "no fault"
}

func (p faultPlan) counts(point string) bool {
	return slices.ContainsFunc(p.Points, func(name string) bool {
		return point == name || strings.HasSuffix(name, ":") && strings.HasPrefix(point, name)
	})
}

// faults is the plan at work, and what writes down the count.
func (p faultPlan) faults() (*store.Faults, func()) {
	var mu sync.Mutex
	met, all := 0, map[string]int{}
	f := &store.Faults{}
	f.Every(func(point string) error {
		mu.Lock()
		defer mu.Unlock()
		kind, _, _ := strings.Cut(point, ":")
		all[kind]++
		if !p.counts(point) {
			return nil
		}
		if p.Full != "" {
			if _, err := os.Stat(p.Full); err == nil {
				return store.FaultFull
			}
		}
		met++
		if met == p.Kill {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		if p.Fail > 0 && met >= p.Fail && met < p.Fail+p.For {
			return faultErrors[p.Error]
		}
		return nil
	})
	return f, func() {
		if p.Count != "" {
			mu.Lock()
			defer mu.Unlock()
			text, _ := json.Marshal(all)
			os.WriteFile(p.Count, text, 0o600)
		}
	}
}

// reportVar makes a daemon on a socket answer each line on its input with a
// report on its output.
const reportVar = "AGENT_TEST_REPORT"

// report is what a daemon takes of the machine.
type report struct {
	Memory     int64 // bytes resident; where the system does not say, what the runtime holds
	Goroutines int
	Files      int
}

func reportTo(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		r := report{Goroutines: runtime.NumGoroutine(), Memory: residentMemory()}
		if open, err := os.ReadDir("/dev/fd"); err == nil {
			r.Files = len(open)
		}
		text, _ := json.Marshal(r)
		out.Write(append(text, '\n'))
	}
}

func residentMemory() int64 {
	var size, resident int64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if n, _ := fmt.Sscan(string(text), &size, &resident); n == 2 {
			return resident * int64(os.Getpagesize())
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

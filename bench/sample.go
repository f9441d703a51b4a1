package main

import (
	"errors"
	"sync"
	"time"
)

// sampleEvery is how often a daemon is looked at (runtime.md 32, W1).
const sampleEvery = 100 * time.Millisecond

// looks says how a process is looked at.
type looks struct {
	every time.Duration // 0: sampleEvery
	tree  bool          // with what it started
}

// usage is what a process was seen to use, from outside. Sizes are bytes; what
// the system does not tell is 0.
type usage struct {
	RSS   int64   // most seen
	PSS   int64   // most seen; Linux
	Own   int64   // most seen of RSS that no file backs, so that is not the program itself; Linux
	Peak  int64   // the kernel's own high-water mark where it keeps one, else RSS
	CPU   float64 // seconds of user and system time since the process started
	Looks int     // samples taken

	Threads, Files   int64 // most seen; Linux
	TreeRSS, TreePSS int64 // most seen of the process and all below it, summed; with looks.tree
}

// add takes a sample into account.
func (u *usage) add(s usage) {
	u.RSS, u.PSS, u.Own, u.CPU = max(u.RSS, s.RSS), max(u.PSS, s.PSS), max(u.Own, s.Own), s.CPU
	u.Peak = max(u.Peak, s.Peak, s.RSS)
	u.Threads, u.Files = max(u.Threads, s.Threads), max(u.Files, s.Files)
	u.TreeRSS, u.TreePSS = max(u.TreeRSS, s.TreeRSS), max(u.TreePSS, s.TreePSS)
	u.Looks++
}

// sampler looks at a process until it is stopped.
type sampler struct {
	pid  int
	how  looks
	quit chan struct{}
	done chan struct{}
	mu   sync.Mutex
	seen usage
	all  []int64 // the resident size at each look, in order
	err  error
}

func startSampler(pid int, how looks) *sampler {
	if how.every == 0 {
		how.every = sampleEvery
	}
	s := &sampler{pid: pid, how: how, quit: make(chan struct{}), done: make(chan struct{})}
	go s.loop()
	return s
}

func (s *sampler) loop() {
	defer close(s.done)
	tick := time.NewTicker(s.how.every)
	defer tick.Stop()
	for {
		s.look()
		select {
		case <-tick.C:
		case <-s.quit:
			s.look()
			return
		}
	}
}

func (s *sampler) look() {
	now, err := sample(s.pid)
	if err == nil && s.how.tree {
		now.TreeRSS, now.TreePSS, err = sampleTree(s.pid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	s.seen.add(now)
	s.all = append(s.all, now.RSS)
}

// drift is how the resident size's median in the last third of the looks
// compares with that in the first: 1 for no change. The first tenth, before the
// pace is reached, does not count.
func (s *sampler) drift() (ratio, first, last float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	looks := s.all[len(s.all)/10:]
	third := max(len(looks)/3, 1)
	first, last = medianSize(looks[:third]), medianSize(looks[len(looks)-third:])
	return last / first, first, last
}

func medianSize(sizes []int64) float64 {
	values := make([]float64, len(sizes))
	for i, n := range sizes {
		values[i] = inMiB(n)
	}
	return median(values)
}

// stop takes a last sample and gives the whole. It may be called once.
func (s *sampler) stop() (usage, error) {
	close(s.quit)
	<-s.done
	return s.seen, s.err
}

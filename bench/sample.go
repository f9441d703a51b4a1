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

	TreeRSS, TreePSS int64 // most seen of the process and all below it, summed; with looks.tree
}

// add takes a sample into account.
func (u *usage) add(s usage) {
	u.RSS, u.PSS, u.Own, u.CPU = max(u.RSS, s.RSS), max(u.PSS, s.PSS), max(u.Own, s.Own), s.CPU
	u.Peak = max(u.Peak, s.Peak, s.RSS)
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
}

// stop takes a last sample and gives the whole. It may be called once.
func (s *sampler) stop() (usage, error) {
	close(s.quit)
	<-s.done
	return s.seen, s.err
}

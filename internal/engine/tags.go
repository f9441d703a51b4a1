package engine

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"agent/protocol"
)

// Server is a session that may serve tags. It is safe for concurrent use and
// comparable.
type Server interface {
	// Push queues a notification line, newline included, behind those pushed
	// before, and never blocks. stands is asked just before the line is sent;
	// when it says no, the line is dropped. It takes no lock.
	Push(line []byte, stands func() bool)
}

// tags are the tags that sessions serve, each under a lease (protocol.md 10,
// 11). A lease costs no timer: whether it has run out is asked when somebody
// else wants the tag, a call is due to its holder, or the holder renews. Its
// owner's lock guards it.
type tags struct {
	served, lost protocol.Code // the codes of a tag that is held, of a lease that is over
	lostKind     string        // the notification of the latter
	last         int64         // the newest lease number
	byTag        map[string]*lease
	// ended is told each lease that is over, under the owner's lock; nil: nobody is.
	ended func(lease int64)
}

// lease is a session's right to a tag.
type lease struct {
	tag    string
	n      int64
	server Server
	period time.Duration
	until  time.Time // zero: the answer that grants it is not queued yet
	busy   int       // answers in progress; the clock stands meanwhile
	since  time.Time // when the first of them began
	// What was announced up to here its holder finds listed; what comes later
	// is pushed.
	through int64
	over    atomic.Bool
}

// init makes lease numbers start at a random place, so that a lease of an
// earlier daemon can never pass for one of this.
func (s *tags) init() {
	s.byTag = map[string]*lease{}
	s.last = 1 + rand.Int64N(1<<52)
}

// stands reports whether pushes under the lease still count.
func (l *lease) stands() bool { return !l.over.Load() }

// left is what remains of the period, below 0 when it has run out.
func (l *lease) left(now time.Time) time.Duration {
	switch {
	case l.until.IsZero():
		return l.period
	case l.busy > 0:
		return l.until.Sub(l.since)
	}
	return l.until.Sub(now)
}

// lapsed reports whether the holder keeps the tag only until somebody asks.
func (l *lease) lapsed() bool { return l.busy == 0 && l.left(time.Now()) < 0 }

// extend begins a new period.
func (l *lease) extend() { l.until = time.Now().Add(l.period) }

// serve gives a tag that nobody holds, or whose holder's period is over, to a
// session. The lease's period begins with extend.
func (s *tags) serve(tag string, server Server, period time.Duration) (*lease, *protocol.Error) {
	if l := s.byTag[tag]; l != nil {
		if !l.lapsed() {
			err := protocol.Fail(s.served, "another session serves "+tag)
			if l.server == server {
				err = protocol.Fail(s.served, "this session serves "+tag+" already; renew its lease").With("lease", l.n)
			}
			return nil, err.With("tag", tag).With("lease_left_ms", max(l.left(time.Now()), 0).Milliseconds())
		}
		s.lose(l)
	}
	if s.servedBy(server) >= protocol.MaxTags {
		return nil, protocol.Fail(protocol.ServeLimit,
			fmt.Sprintf("this session serves %d tags; serve others from another session", protocol.MaxTags))
	}
	s.last++
	l := &lease{tag: tag, n: s.last, server: server, period: period}
	s.byTag[tag] = l
	return l, nil
}

// servedBy counts the tags of a session.
func (s *tags) servedBy(server Server) (n int) {
	for _, l := range s.byTag {
		if l.server == server {
			n++
		}
	}
	return n
}

// held finds the lease that a session names.
func (s *tags) held(tag string, server Server, n int64) (*lease, *protocol.Error) {
	l := s.byTag[tag]
	if l == nil || l.server != server || l.n != n {
		return nil, protocol.Fail(s.lost, fmt.Sprintf("lease %d of %s is over, or another session's", max(n, 0), tag))
	}
	return l, nil
}

// renew begins a new period of a lease that has not run out.
func (s *tags) renew(tag string, server Server, n int64) (*lease, *protocol.Error) {
	l, err := s.held(tag, server, n)
	if err != nil {
		return nil, err
	}
	if l.lapsed() {
		s.lose(l)
		return nil, protocol.Fail(s.lost, fmt.Sprintf("lease %d of %s ran out before it was renewed", n, tag))
	}
	l.extend()
	return l, nil
}

// enter stops a lease's clock for an answer in progress.
func (l *lease) enter() {
	if l.busy++; l.busy == 1 {
		l.since = time.Now()
	}
}

// leave lets it go on; an answer that counted begins a new period.
func (l *lease) leave(counted bool) {
	l.busy--
	now := time.Now()
	if l.busy == 0 && !l.until.IsZero() {
		l.until = l.until.Add(now.Sub(l.since))
	}
	if counted {
		l.until = now.Add(l.period)
		l.since = now
	}
}

// due is the lease under which something new is handed over, nil when nobody
// serves the tag.
func (s *tags) due(tag string) *lease {
	l := s.byTag[tag]
	if l != nil && l.lapsed() {
		s.lose(l)
		return nil
	}
	return l
}

// lose takes a tag from its holder and tells it.
func (s *tags) lose(l *lease) {
	s.free(l)
	line, _ := protocol.AppendLive(nil, s.lostKind, protocol.TagLost{Tag: l.tag, Lease: l.n})
	l.server.Push(line, func() bool { return true })
}

// free ends a lease without a word.
func (s *tags) free(l *lease) {
	l.over.Store(true)
	if s.byTag[l.tag] == l {
		delete(s.byTag, l.tag)
	}
	if s.ended != nil {
		s.ended(l.n)
	}
}

// drop frees every tag of a session that is closed.
func (s *tags) drop(server Server) {
	for _, l := range s.byTag {
		if l.server == server {
			s.free(l)
		}
	}
}

package store

import (
	"context"
	"sync"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// readerCount is how many reads run at once.
const readerCount = 4

// Reader is a query-only connection, lent to one function at a time.
type Reader struct {
	conn *sqlite.Conn
	work chan func(*Reader) error
	done chan reading
}

// reading is what came of one function.
type reading struct {
	err  error
	left bool // a statement open
}

// newReader makes a reader with a goroutine of its own, on whose stack SQLite
// runs. On those of a thousand turns, which then wait for their models, the
// room it took would stay.
func newReader(c *sqlite.Conn) *Reader {
	r := &Reader{conn: c, work: make(chan func(*Reader) error), done: make(chan reading)}
	go func() {
		for f := range r.work {
			err := f(r)
			r.done <- reading{err, r.end()}
		}
	}()
	return r
}

// run has f run on the reader's goroutine, and what it left open ended there.
func (r *Reader) run(f func(*Reader) error) reading {
	r.work <- f
	return <-r.done
}

// close ends a reader that nobody has.
func (r *Reader) close() error {
	close(r.work)
	return r.conn.Close()
}

// Conn is the connection. Whoever uses it leaves no statement open.
func (r *Reader) Conn() *sqlite.Conn { return r.conn }

// Snapshot makes everything read from here to the end of the function see the
// store as it is now. Without it each statement sees the newest commit. It
// holds the write-ahead log: nothing slow may follow.
func (r *Reader) Snapshot() error {
	if !r.conn.AutocommitEnabled() {
		return nil
	}
	if err := exec(r.conn, qSnapshot); err != nil {
		return err
	}
	_, err := one(r.conn, qLineage, nil) // a deferred transaction begins with its first read
	return err
}

var qSnapshot = stmt("BEGIN DEFERRED")

// Read lends one of the four readers to f, waiting in line for it until ctx
// ends. f reads and returns: a client or a provider must never be waited for
// inside, since an open read keeps the write-ahead log from restarting. It
// returns f's error; SQLite's is storage_error.
func (s *Store) Read(ctx context.Context, op string, f func(*Reader) error) error {
	r, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.give(r)
	if err = failed(s.faults.hitOp("read", op)); err == nil {
		did := r.run(f)
		if err = storageError(did.err); err == nil && did.left {
			err = protocol.Fail(protocol.StorageError, "the read "+op+" left a statement open")
		}
	}
	if protocol.CodeOf(err) == protocol.StorageError {
		s.stats.readFailed()
	}
	if isDamage(err) {
		s.fail(err)
	}
	return err
}

// end closes what f left open; only a snapshot may be.
func (r *Reader) end() (left bool) {
	left = resetAll(r.conn)
	if !r.conn.AutocommitEnabled() {
		exec(r.conn, qRollback)
	}
	return left
}

// pool lends readers, the one used last first: its statements are prepared and
// its pages cached, and the others stay small.
type pool struct {
	mu      sync.Mutex
	free    []*Reader
	lent    int
	waiting []chan *Reader
	closed  bool
	idle    sync.Cond // lent became 0
}

func (p *pool) take(ctx context.Context) (*Reader, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed()
	}
	if n := len(p.free); n > 0 {
		r := p.free[n-1]
		p.free = p.free[:n-1]
		p.lent++
		p.mu.Unlock()
		return r, nil
	}
	turn := make(chan *Reader, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case r := <-turn:
		return r, nil
	case <-ctx.Done():
	}
	p.leave(turn)
	return nil, context.Cause(ctx)
}

// leave takes someone out of the line, and gives back what came in the same
// instant.
func (p *pool) leave(turn chan *Reader) {
	p.mu.Lock()
	for i, w := range p.waiting {
		if w == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	p.give(<-turn)
}

// give lends the reader to the first in line, or keeps it.
func (p *pool) give(r *Reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		p.waiting[0] <- r
		p.waiting = p.waiting[1:]
		return
	}
	p.free = append(p.free, r)
	p.lent--
	if p.lent == 0 && p.closed {
		p.idle.Signal()
	}
}

// close refuses further reads, lets those under way and in line finish and
// gives up every reader.
func (p *pool) close() []*Reader {
	p.mu.Lock()
	p.closed = true
	p.idle.L = &p.mu
	for p.lent > 0 {
		p.idle.Wait()
	}
	all := p.free
	p.free = nil
	p.mu.Unlock()
	return all
}

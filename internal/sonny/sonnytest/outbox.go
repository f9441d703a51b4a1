package sonnytest

import (
	"io"
	"sync"
)

// outbox takes bytes at once and passes them on when they are wanted: a program that
// does not read its input must not hold up the reading of what it writes.
type outbox struct {
	to     io.Writer
	mu     sync.Mutex
	more   *sync.Cond
	bytes  []byte
	closed bool
}

func newOutbox(to io.Writer) *outbox {
	o := &outbox{to: to}
	o.more = sync.NewCond(&o.mu)
	return o
}

func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes = append(o.bytes, p...)
	o.more.Signal()
	return len(p), nil
}

func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
	return nil
}

// drain passes bytes on until the outbox is closed or the other side is.
func (o *outbox) drain() {
	for {
		o.mu.Lock()
		for len(o.bytes) == 0 && !o.closed {
			o.more.Wait()
		}
		next, closed := o.bytes, o.closed
		o.bytes = nil
		o.mu.Unlock()
		if closed {
			return
		}
		if _, err := o.to.Write(next); err != nil {
			return
		}
	}
}

package store

import "sync"

// publishLimit is how many batches may wait for the sink before the writer
// waits for it.
const publishLimit = 1024

// publisher hands batches to the sink in commit order, from a goroutine of its
// own, so that the writer waits for a slow sink only when the queue is full. It
// never calls the writer.
type publisher struct {
	queue  chan Batch
	faults *Faults
	ended  chan struct{}
	quit   chan struct{} // closed: what is queued is dropped
	once   sync.Once
}

func newPublisher(sink Sink, faults *Faults) *publisher {
	if sink == nil {
		sink = nobody{}
	}
	p := &publisher{
		queue:  make(chan Batch, publishLimit),
		faults: faults,
		ended:  make(chan struct{}),
		quit:   make(chan struct{}),
	}
	go p.run(sink)
	return p
}

func (p *publisher) run(sink Sink) {
	defer close(p.ended)
	for b := range p.queue {
		select {
		case <-p.quit:
			return
		default:
			sink.Publish(b)
			p.faults.Hit("published") // an error changes nothing any more
		}
	}
}

// publish queues a batch; an empty one makes nothing known.
func (p *publisher) publish(b Batch) {
	if len(b.Events) == 0 && len(b.After) == 0 {
		return
	}
	select {
	case p.queue <- b:
	case <-p.quit:
	}
}

// close waits until everything queued was handed on or abandon was called. The
// writer has ended.
func (p *publisher) close() {
	close(p.queue)
	select {
	case <-p.ended:
	case <-p.quit:
	}
}

// abandon stops waiting for the sink.
func (p *publisher) abandon() { p.once.Do(func() { close(p.quit) }) }

// nobody is the sink of a store without one.
type nobody struct{}

func (nobody) Publish(b Batch) {
	for _, f := range b.After {
		f()
	}
}

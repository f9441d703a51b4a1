package term

import (
	"io"
	"sync"
	"time"

	"agent/internal/sonny/screen/text"
)

// Bounds of what may wait for a terminal that takes nothing.
const (
	linesMost = 10_000  // finished lines; Print waits beyond it
	rawMost   = 1 << 20 // bytes of sequences; beyond it they are dropped
)

// FrameStats say what a frame cost.
type FrameStats struct {
	W, H  int
	Cells int // changed
	Bytes int // written
	Took  time.Duration
	Echo  time.Duration // since the oldest key that this frame is the first after, 0 for none
}

// painter writes to the terminal on a goroutine of its own, so that whoever draws never
// waits for it. Of frames that come faster than the terminal takes them only the newest
// is drawn; lines and sequences are all written, in their order.
type painter struct {
	out     io.Writer
	onFrame func(FrameStats)
	failed  func(error) // the terminal takes nothing any more

	mu       sync.Mutex
	changed  sync.Cond
	r        renderer // the painting goroutine's while busy
	raw      []byte
	lines    []text.Line
	frame    *Frame
	set      []func(*renderer) // changes of the looks
	busy     bool
	held     bool // suspended: frames and lines wait
	finished bool
	err      error
	keyAt    time.Time
	done     chan struct{}
}

func newPainter(out io.Writer, r renderer, onFrame func(FrameStats), failed func(error)) *painter {
	p := &painter{out: out, r: r, onFrame: onFrame, failed: failed, done: make(chan struct{})}
	p.changed.L = &p.mu
	go p.run()
	return p
}

// job is what one write holds.
type job struct {
	raw   []byte
	lines []text.Line
	frame *Frame
	keyAt time.Time
}

func (p *painter) run() {
	defer close(p.done)
	for {
		j, ok := p.next()
		if !ok {
			return
		}
		began := time.Now()
		bytes := p.compose(j)
		var err error
		if len(bytes) > 0 {
			_, err = p.out.Write(bytes)
		}
		if p.onFrame != nil && len(bytes) > len(j.raw) {
			p.onFrame(p.stats(j, len(bytes)-len(j.raw), began))
		}
		if p.wrote(err); err != nil {
			p.failed(err)
			return
		}
	}
}

func (p *painter) stats(j job, bytes int, began time.Time) FrameStats {
	now := time.Now()
	s := FrameStats{Cells: p.r.changed, Bytes: bytes, Took: now.Sub(began)}
	if f := p.r.shown; f != nil {
		s.W, s.H = f.w, f.h
	}
	if !j.keyAt.IsZero() {
		s.Echo = now.Sub(j.keyAt)
	}
	return s
}

// next waits for something to write and takes all of it.
func (p *painter) next() (job, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ready() {
		if p.finished || p.err != nil {
			return job{}, false
		}
		p.changed.Wait()
	}
	for _, set := range p.set {
		set(&p.r)
	}
	p.set = nil
	j := job{raw: p.raw}
	p.raw = nil
	if !p.held {
		j.lines, j.frame, j.keyAt = p.lines, p.frame, p.keyAt
		p.lines, p.frame, p.keyAt = nil, nil, time.Time{}
	}
	p.busy = true
	p.changed.Broadcast()
	return j, true
}

func (p *painter) ready() bool {
	return p.err == nil && (len(p.raw) > 0 || !p.held && (p.frame != nil || len(p.lines) > 0))
}

func (p *painter) compose(j job) []byte {
	p.r.out, p.r.changed = j.raw, 0
	switch {
	case p.r.inline && (j.frame != nil || len(j.lines) > 0):
		p.r.live(j.lines, j.frame)
	case j.frame != nil:
		p.r.full(j.frame)
	}
	out := p.r.out
	p.r.out = nil
	return out
}

func (p *painter) wrote(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
	if err != nil {
		p.err = err
	}
	p.changed.Broadcast()
}

func (p *painter) draw(f *Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frame = f
	p.changed.Broadcast()
}

func (p *painter) print(lines []text.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.lines) > linesMost && p.err == nil && !p.finished && !p.held {
		p.changed.Wait()
	}
	p.lines = append(p.lines, lines...)
	p.changed.Broadcast()
}

// write writes text among the sequences. It waits where too much waits already.
func (p *painter) write(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.raw) > rawMost && p.err == nil && !p.finished {
		p.changed.Wait()
	}
	if p.err == nil && !p.finished {
		p.raw = append(p.raw, s...)
	}
	p.changed.Broadcast()
}

// send writes sequences, before the next frame. It reports whether they will be written.
func (p *painter) send(seq string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.finished || len(p.raw)+len(seq) > rawMost {
		return false
	}
	p.raw = append(p.raw, seq...)
	p.changed.Broadcast()
	return true
}

// look changes how cells are written from the next frame on.
func (p *painter) look(set func(*renderer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set = append(p.set, set)
}

// key notes when a key came, for the time until its echo.
func (p *painter) key(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keyAt.IsZero() {
		p.keyAt = at
	}
}

// flush waits until all that was given is written, at most for a while: a terminal may
// have stopped taking anything. It reports whether it is.
func (p *painter) flush(most time.Duration) bool {
	written := false
	timer := time.AfterFunc(most, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		most = 0
		p.changed.Broadcast()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		written = !p.busy && !p.ready()
		if written || most == 0 || p.err != nil {
			return written
		}
		p.changed.Wait()
	}
}

// row is how far below the top of the live region the cursor stands.
func (p *painter) row() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || !p.r.inline {
		return 0
	}
	return p.r.y
}

// hold keeps frames and lines back, or lets them go on with a whole frame.
func (p *painter) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
	p.changed.Broadcast()
}

// finish ends the painting goroutine once everything is written.
func (p *painter) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
	p.changed.Broadcast()
}

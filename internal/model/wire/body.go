package wire

import (
	"bytes"
	"io"
	"sync"

	"agent/internal/model"
)

// body is a request body: a prefix, the stored items streamed, a suffix. It is
// never assembled. The transport may open it again for a repeat that it makes
// by itself, and may still read it after the response came.
type body struct {
	prefix, suffix []byte
	items          model.Items
	progress       func() // called as the transport takes bytes

	mu  sync.Mutex
	err error // the first failure of the items' reader
}

func (b *body) length() int64 {
	return int64(len(b.prefix)) + b.items.Bytes + int64(len(b.suffix))
}

// failure is what reading the items failed with; the transport only reports a
// broken request then.
func (b *body) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *body) fail(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	return err
}

// open starts a reading at the first byte. The items are opened when their
// first byte is wanted.
func (b *body) open() (io.ReadCloser, error) { return b.reader(), nil }

func (b *body) reader() *bodyReader {
	return &bodyReader{body: b, head: bytes.NewReader(b.prefix), tail: bytes.NewReader(b.suffix)}
}

// drop lets go of the prefix, instructions and tools that each stream would
// hold to its end. It is for when the response's headers are there: the
// transport opens the body no more. A reading that goes on has its own hold.
func (b *body) drop() { b.prefix = nil }

// bodyReader is one reading. Close may come from another goroutine than Read.
type bodyReader struct {
	*body
	mu         sync.Mutex
	head, tail *bytes.Reader
	stream     io.ReadCloser
	sent       int64 // bytes of the items
	done       bool  // with the items
	closed     bool
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress != nil {
		r.progress()
	}
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	if r.head.Len() > 0 {
		return r.head.Read(p)
	}
	if !r.done && len(p) > 0 {
		n, err := r.readItems(p)
		if n > 0 || err != nil {
			return n, err
		}
	}
	return r.tail.Read(p)
}

// ready has the items' first bytes made. The transport's writer holds 32 KiB of
// its own while it waits for them: many that begin at once would need much room.
func (r *bodyReader) ready() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && r.stream == nil && r.items.Bytes > 0 && r.openItems() == nil {
		r.stream.Read(nil) // a failure comes again when they are read
	}
}

// readItems gives the next bytes of the items; 0 without an error at their
// end. Their length must be what was promised in the header: it comes from
// sizes recorded with the items, so another one is a defect and no failure
// that a repeat could mend.
func (r *bodyReader) readItems(p []byte) (int, error) {
	if r.stream == nil {
		if err := r.openItems(); err != nil {
			return 0, err
		}
	}
	for range 100 {
		n, err := r.stream.Read(p)
		r.sent += int64(n)
		if r.sent > r.items.Bytes {
			return 0, r.fail(lengthDefect("more", r.items.Bytes))
		}
		if err == io.EOF {
			if r.sent != r.items.Bytes {
				return 0, r.fail(lengthDefect("fewer", r.items.Bytes))
			}
			r.done = true
			return n, nil
		}
		if err != nil {
			return 0, r.fail(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, r.fail(io.ErrNoProgress)
}

func (r *bodyReader) openItems() (err error) {
	if r.stream, err = r.items.Open(); err != nil {
		r.stream = nil
		return r.fail(err)
	}
	return nil
}

func lengthDefect(what string, want int64) error {
	return model.Errorf("store_row_invalid",
		"the conversation's items hold %s bytes than the %d that were recorded with them", what, want)
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed, r.head = true, nil
	if r.stream == nil {
		return nil
	}
	return r.stream.Close()
}

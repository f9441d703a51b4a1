package engine

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sync"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// A request's items are read from the store as the transport takes them, a
// batch at a time, and no read transaction outlives a batch: a slow provider
// never keeps the write-ahead log from starting again (runtime.md 2).
const (
	batchItems = 64
	batchBytes = 16 << 10
	// pictureChunk is how much of a picture is encoded at once: a multiple of
	// three, so that the pieces' base64 joins without padding.
	pictureChunk = 12 << 10
)

var batchBuffers = sync.Pool{New: func() any { b := make([]byte, 0, batchBytes+4<<10); return &b }}

// body streams a view. It is used by one goroutine at a time.
type body struct {
	ctx   context.Context
	e     *Engine
	codec model.Codec
	v     *view

	buf  *[]byte // nil while there is no batch: one that waits for a reader holds none
	off  int     // of what is in buf, given out
	next int     // pinned blocks, then nodes, then what is extra
	sent int64   // bytes made
	any  bool    // something was made: a comma comes next
	err  error
	done bool // closed

	// The item under way, when it did not fit its batch.
	at    int64  // bytes of the stored item made so far
	whole []byte // the item, when it is changed on its way
	pic   *pictureRun
}

// pictureRun is a picture being put in place of its placeholder.
type pictureRun struct {
	hash  [32]byte
	at    int64
	bytes int64
}

func openBody(ctx context.Context, e *Engine, codec model.Codec, v *view) *body {
	return &body{ctx: ctx, e: e, codec: codec, v: v}
}

// Read gives the next bytes; one of no bytes makes the batch that they come from.
// A store that fails is remembered: the transport would report it as a broken
// connection.
func (b *body) Read(p []byte) (int, error) {
	if b.done {
		return 0, io.ErrClosedPipe
	}
	for b.buf == nil || b.off == len(*b.buf) {
		if b.err != nil {
			return 0, b.err
		}
		if b.over() {
			b.free()
			if b.sent != b.v.bytes {
				b.err = fmt.Errorf("engine: a request of %d bytes came out at %d", b.v.bytes, b.sent)
				return 0, b.err
			}
			return 0, io.EOF
		}
		if b.err = b.fill(); b.err != nil {
			return 0, b.err
		}
		b.sent += int64(len(*b.buf))
	}
	n := copy(p, (*b.buf)[b.off:])
	b.off += n
	return n, nil
}

// Close gives the buffer back. It may be called while a failed transport still
// holds the body, but not during a Read.
func (b *body) Close() error {
	b.free()
	b.whole, b.done = nil, true
	return nil
}

// begin has an empty buffer for a batch.
func (b *body) begin() {
	if b.buf == nil {
		b.buf = batchBuffers.Get().(*[]byte)
	}
	*b.buf, b.off = (*b.buf)[:0], 0
}

func (b *body) free() {
	if b.buf != nil {
		batchBuffers.Put(b.buf)
		b.buf = nil
	}
}

func (b *body) over() bool { return b.next == b.v.parts() && b.whole == nil }

// fill makes the next batch.
func (b *body) fill() error {
	err := b.e.readAtOnce(b.ctx, "items", func(c *store.Conn) error {
		b.begin()
		for items := 0; items < batchItems && len(*b.buf) < batchBytes && !b.over(); items++ {
			if b.next < len(b.v.pinned) {
				b.comma()
				*b.buf = append(*b.buf, b.v.pinned[b.next]...)
				b.next++
				continue
			}
			if i := b.next - len(b.v.pinned); i < len(b.v.nodes) {
				if err := b.node(c, &b.v.nodes[i]); err != nil {
					return err
				}
				continue
			}
			b.comma()
			*b.buf = append(*b.buf, b.v.extra...)
			b.next++
		}
		return nil
	})
	if err != nil && b.ctx.Err() == nil {
		return asError(err)
	}
	return err
}

func (b *body) comma() {
	if b.any {
		*b.buf = append(*b.buf, ',')
	}
	b.any = true
}

// node makes an item, or as much of it as the batch takes.
func (b *body) node(c *store.Conn, n *viewNode) error {
	if n.thinking == n.bytes { // nothing but thinking, and that is left out
		b.next++
		return nil
	}
	if b.at == 0 && b.whole == nil {
		b.comma()
	}
	if n.stub() {
		return b.stub(c, n)
	}
	if n.thinking > 0 || n.pics != nil {
		return b.changed(c, n)
	}
	take := min(int64(n.bytes)-b.at, int64(max(batchBytes-len(*b.buf), 1<<10)))
	from := len(*b.buf)
	if b.at == 0 && take == int64(n.bytes) {
		var ok bool
		var err error
		if *b.buf, ok, err = store.ItemOf(c, *b.buf, n.id); err != nil || !ok || int64(len(*b.buf)-from) != take {
			return badItem(n.id, err)
		}
	} else {
		*b.buf = grow(*b.buf, int(take))
		if got, err := store.ItemAt(c, n.id, b.at, (*b.buf)[from:]); err != nil || int64(got) != take {
			return badItem(n.id, err)
		}
	}
	if b.at += take; b.at == int64(n.bytes) {
		b.at = 0
		b.next++
	}
	return nil
}

// stub makes what stands for an old result.
func (b *body) stub(c *store.Conn, n *viewNode) (err error) {
	from, ok := len(*b.buf), false
	if *b.buf, ok, err = store.StubOf(c, *b.buf, n.id); err != nil || !ok || len(*b.buf)-from != int(n.bytes) {
		return badItem(n.id, err)
	}
	b.next++
	return nil
}

// changed makes an item that is not sent as it is stored.
func (b *body) changed(c *store.Conn, n *viewNode) error {
	if b.whole == nil {
		item, ok, err := store.ItemOf(c, nil, n.id)
		if err != nil || !ok {
			return badItem(n.id, err)
		}
		if n.thinking > 0 {
			item = b.codec.WithoutThinking(make([]byte, 0, len(item)), item)
		}
		if n.pics != nil && n.pics.text {
			if item, err = n.pics.asText(b.codec, item); err != nil {
				return badItem(n.id, err)
			}
		}
		b.whole = item
	}
	for len(*b.buf) < batchBytes {
		if b.pic != nil {
			if err := b.picture(c); err != nil {
				return err
			}
			continue
		}
		if len(b.whole) == 0 {
			b.whole = nil
			b.next++
			return nil
		}
		if err := b.text(n); err != nil {
			return err
		}
	}
	return nil
}

// text makes the item's bytes up to its next picture.
func (b *body) text(n *viewNode) error {
	end := len(b.whole)
	if n.pics != nil && n.pics.shows() {
		if at, hash := model.FindPlaceholder(b.whole); at == 0 {
			bytes := n.pics.bytesOf(hash)
			if bytes < 0 {
				return badItem(n.id, nil)
			}
			b.whole = b.whole[model.PlaceholderLen:]
			b.pic = &pictureRun{hash: hash, bytes: bytes}
			return nil
		} else if at > 0 {
			end = at
		}
	}
	take := min(end, max(batchBytes-len(*b.buf), 1<<10))
	*b.buf = append(*b.buf, b.whole[:take]...)
	b.whole = b.whole[take:]
	return nil
}

// picture makes the next piece of a picture's base64.
func (b *body) picture(c *store.Conn) error {
	p := b.pic
	raw := make([]byte, min(pictureChunk, p.bytes-p.at))
	if _, err := store.PictureAt(c, p.hash, p.at, raw); err != nil {
		return badItem(0, err)
	}
	*b.buf = base64.StdEncoding.AppendEncode(*b.buf, raw)
	if p.at += int64(len(raw)); p.at == p.bytes {
		b.pic = nil
	}
	return nil
}

func grow(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(make([]byte, 0, len(b)+n), b...)
	}
	return b[:len(b)+n]
}

func badItem(node int64, err error) error {
	if err != nil {
		return err
	}
	return protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the item of node %d is not as long as recorded", node))
}

package store

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"sync"

	"zombiezen.com/go/sqlite"
)

// A retained stream of more than 64 KiB that shrinks is kept in blocks, each
// packed by itself, so that a page decodes only those it touches (runtime.md
// 12):
//
//	header     8 bytes: 0xff, then the codec's name, "deflate"
//	directory  4 bytes, big endian, for each block: where it ends, counted from
//	           the end of the directory
//	blocks     in order; one that is as long as what it holds is raw
//
// Every block holds blockSize bytes but the last. A packed stream is always
// shorter than the stream, and only that tells it from a raw one: what a raw one
// holds is up to whoever printed it.
const (
	blockSize   = 16 << 10
	packedFrom  = 64 << 10 // streams up to here are kept raw
	blockHeader = "\xffdeflate"
)

// saves reports whether packing so many bytes into so many is worth it: an
// eighth at least.
func saves(raw, packed int) bool { return packed <= raw-raw/8 }

// packer packs blocks. Its tables take more than a megabyte, so one stream is
// packed at a time, and the collector may have the packer in between.
type packer struct {
	out   bytes.Buffer
	flate *flate.Writer
}

var (
	packing sync.Mutex
	packers = sync.Pool{New: func() any {
		w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for unknown levels alone
		return &packer{flate: w}
	}}
)

// Pack gives a stream the form it is kept in: blocks where that saves an eighth,
// else data itself. It takes some milliseconds for a megabyte, and is for the
// task of the call, never for a job of the store.
func Pack(data []byte) []byte {
	if len(data) <= packedFrom {
		return data
	}
	packing.Lock()
	defer packing.Unlock()
	p := packers.Get().(*packer)
	defer packers.Put(p)
	blocks := (len(data) + blockSize - 1) / blockSize
	start := len(blockHeader) + 4*blocks
	var packed []byte
	for i := range blocks {
		raw := data[i*blockSize : min((i+1)*blockSize, len(data))]
		block := p.pack(raw)
		if i == 0 {
			if !saves(len(raw), len(block)) {
				return data
			}
			packed = append(make([]byte, 0, start+blocks*len(block)), blockHeader...)
			packed = packed[:start]
		}
		packed = append(packed, block...)
		binary.BigEndian.PutUint32(packed[len(blockHeader)+4*i:], uint32(len(packed)-start))
	}
	if !saves(len(data), len(packed)) {
		return data
	}
	return bytes.Clone(packed) // without spare capacity
}

// pack is the block that holds raw, valid until the next call.
func (p *packer) pack(raw []byte) []byte {
	p.out.Reset()
	p.flate.Reset(&p.out)
	_, err := p.flate.Write(raw)
	if err == nil {
		err = p.flate.Close()
	}
	if err != nil || p.out.Len() >= len(raw) {
		return raw
	}
	return p.out.Bytes()
}

// unpackers are readers of packed blocks.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// unpackBlock decodes a block into raw, which has the length of what it holds.
func unpackBlock(raw, block []byte) error {
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(block), nil); err != nil {
		return err
	}
	_, err := io.ReadFull(r, raw)
	return err
}

// Block is a decoded block of a retained stream, kept between reads so that
// small ones in a row decode it once. The zero value is empty.
type Block struct {
	of  int64 // 1 more than its number; 0: none
	raw []byte
}

// packedAt reads part of a stream that is kept in blocks: p, whole, must lie in
// the stream.
func packedAt(c *sqlite.Conn, a *ArtifactRef, cache *Block, at int64, p []byte) error {
	b, err := c.OpenBlob("main", "artifacts", "data", a.Row, false)
	if err != nil {
		return err
	}
	defer b.Close()
	header := make([]byte, len(blockHeader))
	if _, err := io.ReadFull(b, header); err != nil || string(header) != blockHeader {
		return rowInvalid("artifacts", a.Row, "data")
	}
	for len(p) > 0 {
		if err := cache.load(b, a, at/blockSize); err != nil {
			return err
		}
		n := copy(p, cache.raw[at%blockSize:])
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// load makes the block with a number the cached one.
func (k *Block) load(b *sqlite.Blob, a *ArtifactRef, number int64) error {
	if k.of == number+1 {
		return nil
	}
	k.of = 0
	from, to, err := blockPlace(b, a, number)
	if err != nil {
		return err
	}
	size := min(blockSize, a.Bytes-number*blockSize)
	if from < 0 || from > to || to-from > size || to > a.Kept {
		return rowInvalid("artifacts", a.Row, "data")
	}
	block := make([]byte, to-from)
	if _, err := b.Seek(from, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.ReadFull(b, block); err != nil {
		return err
	}
	if cap(k.raw) < blockSize {
		k.raw = make([]byte, blockSize)
	}
	k.raw = k.raw[:size]
	if to-from == size {
		copy(k.raw, block)
	} else if unpackBlock(k.raw, block) != nil {
		return rowInvalid("artifacts", a.Row, "data")
	}
	k.of = number + 1
	return nil
}

// blockPlace is where in the row a block lies.
func blockPlace(b *sqlite.Blob, a *ArtifactRef, number int64) (from, to int64, err error) {
	blocks := (a.Bytes + blockSize - 1) / blockSize
	start := int64(len(blockHeader)) + 4*blocks
	if number >= blocks || start > a.Kept {
		return 0, 0, rowInvalid("artifacts", a.Row, "data")
	}
	var ends [8]byte // of the block before, of this one
	at, want := int64(len(blockHeader))+4*(number-1), ends[:]
	if number == 0 {
		at, want = int64(len(blockHeader)), ends[4:]
	}
	if _, err := b.Seek(at, io.SeekStart); err != nil {
		return 0, 0, err
	}
	if _, err := io.ReadFull(b, want); err != nil {
		return 0, 0, err
	}
	return start + int64(binary.BigEndian.Uint32(ends[:4])), start + int64(binary.BigEndian.Uint32(ends[4:])), nil
}

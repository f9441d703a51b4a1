package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agent/protocol"
)

// noise is bytes that nothing shrinks.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// words is text as a build prints it: no two lines alike.
func words(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%05d ok   example.test/pkg%d/sub%d  0.%03ds\n", i, r.IntN(90), r.IntN(9000), r.IntN(1000))
	}
	return b.Bytes()[:n]
}

// keptRow records a stream as a call does and finds it again.
func keptRow(t *testing.T, s *Store, raw []byte) *ArtifactRef {
	t.Helper()
	var a ArtifactRef
	err := s.Do("keep", func(tx *Tx) error {
		if err := tx.AddArtifact(1, "c", ArtifactRow{Stream: "stdout", Data: Pack(raw), Bytes: int64(len(raw))}); err != nil {
			return err
		}
		var ok bool
		var err error
		if a, ok, err = Artifact(tx.Conn(), 1, "c", "stdout"); !ok && err == nil {
			return fmt.Errorf("it is not there")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

func (s *Store) readRow(t *testing.T, a *ArtifactRef, cache *Block, at int64, n int) ([]byte, error) {
	t.Helper()
	p := make([]byte, n)
	return p, s.Read(t.Context(), "page", func(r *Reader) error { return ArtifactAt(r.Conn(), a, cache, at, p) })
}

func TestKeptStreams(t *testing.T) {
	t.Parallel()
	mixed := append(words(5*blockSize), append(noise(blockSize), words(5*blockSize+77)...)...)
	for _, row := range []struct {
		name   string
		raw    []byte
		packed bool
	}{
		{"64 KiB are kept raw, however well they shrink", bytes.Repeat([]byte("a"), packedFrom), false},
		{"a byte more is packed", bytes.Repeat([]byte("a"), packedFrom+1), true},
		{"a whole number of blocks", words(8 * blockSize), true},
		{"a megabyte of varied lines", words(1 << 20), true},
		{"a block that does not shrink stays raw among others", mixed, true},
		{"W8 what does not shrink is kept as it came", noise(1 << 20), false},
		{"a first block that does not shrink decides for the whole", append(noise(blockSize), words(1<<20-blockSize)...), false},
		{"a first block alone does not decide for the whole", append(words(blockSize), noise(1<<20-blockSize)...), false},
		{"what begins like a packed stream and is none", append([]byte(blockHeader), noise(packedFrom)...), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, Options{Path: storePath(t)})
			a := keptRow(t, s, row.raw)
			size := int64(len(row.raw))
			if a.Bytes != size || row.packed != (a.Kept < size) || row.packed && a.Kept > size-size/8 || !row.packed && a.Kept != size {
				t.Fatalf("%d bytes are kept in %d", a.Bytes, a.Kept)
			}
			t.Run("RT-26 every part comes back as it was", func(t *testing.T) {
				r := rand.New(rand.NewPCG(5, 6))
				for range 60 {
					at := r.IntN(len(row.raw))
					n := min(1+r.IntN(65536), len(row.raw)-at)
					got, err := s.readRow(t, a, &Block{}, int64(at), n)
					if err != nil || !bytes.Equal(got, row.raw[at:at+n]) {
						t.Fatalf("%d bytes from %d: %v", n, at, err)
					}
				}
			})
			t.Run("pages in a row need not be whole blocks", func(t *testing.T) {
				var all []byte
				var cache Block
				for at := 0; at < len(row.raw); {
					n := min(10_007, len(row.raw)-at)
					got, err := s.readRow(t, a, &cache, int64(at), n)
					if err != nil {
						t.Fatal(err)
					}
					all, at = append(all, got...), at+n
				}
				if !bytes.Equal(all, row.raw) {
					t.Error("the pages are not the stream")
				}
				if cap(cache.raw) > blockSize {
					t.Errorf("a reader holds %d bytes", cap(cache.raw))
				}
			})
		})
	}
}

func TestPackNeedsNoRoomForWhatDoesNotShrink(t *testing.T) {
	raw := noise(1 << 20)
	if kept := Pack(raw); &kept[0] != &raw[0] || len(kept) != len(raw) {
		t.Error("a stream that does not shrink was copied")
	}
}

func TestDamagedBlocks(t *testing.T) {
	t.Parallel()
	raw := words(5 * blockSize)
	s := mustOpen(t, Options{Path: storePath(t)})
	a := keptRow(t, s, raw)
	directory := len(blockHeader) + 4*5
	for _, row := range []struct{ name, sql string }{
		{"another header", `UPDATE artifacts SET data = CAST('x' || substr(data, 2) AS BLOB)`},
		{"cut in its directory", `UPDATE artifacts SET data = substr(data, 1, 12)`},
		{"cut in its blocks", `UPDATE artifacts SET data = substr(data, 1, length(data) - 5)`},
		{"a block that is none", fmt.Sprintf(`UPDATE artifacts SET data = CAST(substr(data, 1, %d) || zeroblob(length(data) - %[1]d) AS BLOB)`, directory)},
		{"a directory that points back", fmt.Sprintf(`UPDATE artifacts SET data = CAST(substr(data, 1, 8) || zeroblob(20) || substr(data, %d) AS BLOB)`, directory+1)},
		{"a directory that points past the end", `UPDATE artifacts SET data = CAST(substr(data, 1, 8) || x'7fffffff' || substr(data, 13) AS BLOB)`},
		{"another size", `UPDATE artifacts SET raw_bytes = raw_bytes * 3`},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := s.Do("damage", func(tx *Tx) error { return exec(tx.Conn(), &query{strings.TrimSpace(row.sql)}) })
			if err != nil {
				t.Fatal(err)
			}
			damaged := *a
			err = s.Read(t.Context(), "look", func(r *Reader) (err error) {
				damaged, _, err = Artifact(r.Conn(), 1, "c", "stdout")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.readRow(t, &damaged, &Block{}, 0, len(raw))
			wantCode(t, err, protocol.StoreRowInvalid)
			undo := func(tx *Tx) error {
				return exec(tx.Conn(), &query{`UPDATE artifacts SET data = ?1, raw_bytes = ?2`}, Pack(raw), len(raw))
			}
			if err := s.Do("undo", undo); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func FuzzPack(f *testing.F) {
	s := mustOpen(f, Options{Path: storePath(f)})
	f.Add([]byte("abc"), 30_000, 70_000, 10)
	f.Add(noise(3000), 30, 65_000, 40_000)
	n := 0
	f.Fuzz(func(t *testing.T, piece []byte, times, at, size int) {
		if len(piece) == 0 || times < 1 || times > 1<<20/len(piece) {
			return
		}
		raw := bytes.Repeat(piece, times)
		if at < 0 || size < 0 || at > len(raw) || size > len(raw)-at {
			return
		}
		n++
		call := fmt.Sprint(n)
		err := s.Do("keep", func(tx *Tx) error {
			defer exec(tx.Conn(), &query{"DELETE FROM artifacts"})
			if err := tx.AddArtifact(1, call, ArtifactRow{Stream: "stdout", Data: Pack(raw), Bytes: int64(len(raw))}); err != nil {
				return err
			}
			a, _, err := Artifact(tx.Conn(), 1, call, "stdout")
			if err != nil {
				return err
			}
			p := make([]byte, size)
			if err := ArtifactAt(tx.Conn(), &a, &Block{}, int64(at), p); err != nil || !bytes.Equal(p, raw[at:at+size]) {
				return fmt.Errorf("%d bytes from %d of %d: %v", size, at, len(raw), err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	for name, raw := range map[string][]byte{"varied": words(1 << 20), "noise": noise(1 << 20)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			var kept []byte
			for b.Loop() {
				kept = Pack(raw)
			}
			b.ReportMetric(float64(len(kept))/float64(len(raw)), "kept/raw")
		})
	}
}

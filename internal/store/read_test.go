package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

func TestRead(t *testing.T) {
	ctx := context.Background()
	t.Run("a reader cannot write", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		err := s.Read(ctx, "x", func(r *Reader) error { return exec(r.Conn(), qTestPut, "a", 0, "") })
		wantCode(t, err, protocol.StorageError)
		if has(t, s, "a") {
			t.Error("it wrote")
		}
	})
	t.Run("a fifth read waits in line until its context ends", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		out := make(chan struct{})
		var busy, all sync.WaitGroup
		for range readerCount {
			busy.Add(1)
			all.Go(func() {
				s.Read(ctx, "x", func(*Reader) error { busy.Done(); <-out; return nil })
			})
		}
		busy.Wait()
		why := errors.New("the session closed")
		short, cancel := context.WithCancelCause(ctx)
		cancel(why)
		if err := s.Read(short, "x", func(*Reader) error { return nil }); !errors.Is(err, why) {
			t.Errorf("error is %v", err)
		}
		waiting, cancel := context.WithCancelCause(ctx)
		left := make(chan error, 1)
		go func() { left <- s.Read(waiting, "x", func(*Reader) error { return nil }) }()
		waitInLine(s, 1)
		cancel(why)
		if err := <-left; !errors.Is(err, why) {
			t.Errorf("error is %v", err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Read(ctx, "x", func(*Reader) error { return nil }) }()
		waitInLine(s, 1)
		close(out)
		if err := <-served; err != nil {
			t.Error(err)
		}
		all.Wait()
		if len(s.readers.free) != readerCount || s.readers.lent != 0 {
			t.Errorf("%d readers are free, %d lent", len(s.readers.free), s.readers.lent)
		}
	})
	t.Run("a snapshot does not see later commits, and ends with the read", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		count := func(r *Reader) int64 {
			n, err := integer(r.Conn(), qTestCount)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		err := s.Read(ctx, "x", func(r *Reader) error {
			if err := errors.Join(r.Snapshot(), r.Snapshot()); err != nil {
				return err
			}
			if err := s.Do("put", put("a", 1)); err != nil {
				return err
			}
			if n := count(r); n != 0 {
				t.Errorf("it sees %d rows", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Read(ctx, "x", func(r *Reader) error {
			if n := count(r); n != 1 {
				t.Errorf("the next read sees %d rows", n)
			}
			if err := s.Do("put", put("b", 1)); err != nil {
				t.Error(err)
			}
			if n := count(r); n != 2 {
				t.Errorf("without a snapshot the next statement sees %d rows", n)
			}
			return nil
		})
	})
	t.Run("RT-125 a read that leaves a statement open fails and does not hold the log", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
		err := s.Read(ctx, "leak", func(r *Reader) error {
			st, err := qTestCount.on(r.Conn())
			if err == nil {
				_, err = st.Step()
			}
			return err
		})
		wantCode(t, err, protocol.StorageError)
		for i := range 400 {
			if err := s.Do("put", put(fmt.Sprint(i), 100_000)); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Stats().WALBytes; n > 9<<20 {
			t.Errorf("the log has %d bytes", n)
		}
	})
	t.Run("a function's own error comes back as it is", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		own := errors.New("mine")
		if err := s.Read(ctx, "x", func(*Reader) error { return own }); err != own {
			t.Errorf("error is %v", err)
		}
		if n := s.Stats().StorageErrors; n != 0 {
			t.Errorf("%d storage errors", n)
		}
	})
	t.Run("closing waits for a read under way", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		in, out, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go s.Read(ctx, "x", func(r *Reader) error {
			close(in)
			<-out
			_, err := integer(r.Conn(), qTestCount)
			if err != nil {
				t.Error(err)
			}
			select {
			case <-closed:
				t.Error("closed under it")
			default:
			}
			return nil
		})
		<-in
		go func() { s.Close(); close(closed) }()
		close(out)
		<-closed
	})
}

// waitInLine waits until n reads wait for a connection.
func waitInLine(s *Store, n int) {
	for {
		s.readers.mu.Lock()
		got := len(s.readers.waiting)
		s.readers.mu.Unlock()
		if got >= n {
			return
		}
		runtime.Gosched()
	}
}

func TestHelpers(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	c := s.readers.free[0].conn
	id, text := int64(1)<<40, "text"
	t.Run("every kind of argument comes back as it was bound", func(t *testing.T) {
		q := &query{"SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, typeof(?4), typeof(?5), typeof(?6)"}
		found, err := one(c, q, func(r *sqlite.Stmt) error {
			if r.ColumnInt64(0) != id || r.ColumnInt64(1) != 7 || !r.ColumnBool(2) {
				t.Error("a number changed")
			}
			if string(colBytes(r, 3, []byte("x"))) != "x\x00b" || r.ColumnText(9) != "blob" {
				t.Error("bytes changed")
			}
			if string(colJSON(r, 4)) != `{"a": 1}` || r.ColumnText(10) != "text" {
				t.Error("JSON changed")
			}
			if colJSON(r, 5) != nil || r.ColumnText(11) != "null" {
				t.Error("an absent value is there")
			}
			if colOptInt(r, 5) != nil || *colOptInt(r, 6) != id || colOptText(r, 5) != nil || *colOptText(r, 7) != text {
				t.Error("an optional value changed")
			}
			if !r.ColumnIsNull(8) {
				t.Error("nil is not NULL")
			}
			return nil
		}, id, 7, true, []byte("\x00b"), json.RawMessage(`{"a": 1}`), (*int64)(nil), &id, &text, nil)
		if err != nil || !found {
			t.Fatal(found, err)
		}
	})
	t.Run("no row is told apart from a row", func(t *testing.T) {
		if found, err := one(c, qTestHas, nil, "nobody"); found || err != nil {
			t.Fatal(found, err)
		}
	})
	t.Run("an error of a row function ends the walk and leaves nothing open", func(t *testing.T) {
		own := errors.New("enough")
		err := each(c, &query{"SELECT 1 UNION ALL SELECT 2"}, func(*sqlite.Stmt) error { return own })
		if err != own || c.CheckReset() != "" {
			t.Fatal(err, c.CheckReset())
		}
	})
	t.Run("binding and stepping a cached statement allocate nothing", func(t *testing.T) {
		q := &query{"SELECT ?1 + length(?2)"}
		var sum int64
		n := testing.AllocsPerRun(200, func() {
			v, err := integer(c, q, id, text)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		})
		if n > 2 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestStoreFiles(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	if err := s.Do("put", put("a", 1)); err != nil {
		t.Fatal(err)
	}
	link := s.Path() + ".link"
	if err := os.Symlink(s.Path()+"-shm", link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		s.Path(): true, s.Path() + "-wal": true, s.Path() + "-shm": true, link: true, s.Path() + ".owner-lock": false,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.IsStoreFile(info) != want {
			t.Errorf("IsStoreFile(%s) = %v", path, !want)
		}
	}
}

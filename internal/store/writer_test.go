package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent/protocol"
)

// hold stops the writer inside a job of its own until release, so that what is
// queued meanwhile becomes one group.
func hold(s *Store) (release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	s.Go("hold", func(*Tx) error {
		select {
		case <-in: // the second run
		default:
			close(in)
		}
		<-out
		return nil
	}, nil)
	<-in
	return func() { close(out) }
}

// answers collects what jobs are told.
type answers struct {
	mu    sync.Mutex
	wg    sync.WaitGroup
	err   map[string]error
	order []string
}

func (a *answers) send(s *Store, name string, job func(*Tx) error) {
	a.wg.Add(1)
	s.Go("put", job, func(err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.err == nil {
			a.err = map[string]error{}
		}
		if _, twice := a.err[name]; twice {
			panic(name + " was answered twice")
		}
		a.err[name] = err
		a.order = append(a.order, name)
		a.wg.Done()
	})
}

func names32() (out []string) {
	for i := range groupLimit {
		out = append(out, fmt.Sprintf("job%02d", i))
	}
	return out
}

func TestGroups(t *testing.T) {
	t.Run("RT-10 jobs that wait share a commit, and each is answered after it, in order", func(t *testing.T) {
		faults := &Faults{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
		committed := 0
		faults.At("after-commit", func() error { committed++; return nil })
		release := hold(s)
		var a answers
		for _, name := range names32() {
			a.send(s, name, put(name, 10))
		}
		release()
		a.wg.Wait()
		if !slices.Equal(a.order, names32()) {
			t.Errorf("the order is %v", a.order)
		}
		for name, err := range a.err {
			if err != nil || !has(t, s, name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		st := s.Stats()
		if st.Groups.Count != 2 || st.Groups.Jobs != 33 || st.Groups.Sizes != [6]int64{1, 0, 0, 0, 0, 1} {
			t.Errorf("groups are %+v", st.Groups)
		}
		if committed != 2 {
			t.Errorf("%d commits", committed)
		}
	})
	t.Run("a job that fails rolls back alone and makes nothing known", func(t *testing.T) {
		sink := &recorder{}
		s := mustOpen(t, Options{Path: storePath(t), Sink: sink})
		if err := s.Do("bot", func(tx *Tx) error { return exec(tx.Conn(), qTestBot, 1, "Bob") }); err != nil {
			t.Fatal(err)
		}
		own := protocol.Fail(protocol.BotExists, "")
		release := hold(s)
		var a answers
		emit := func(name string, then error) func(*Tx) error {
			return func(tx *Tx) error {
				if err := exec(tx.Conn(), qTestPut, name, 0, ""); err != nil {
					return err
				}
				if err := exec(tx.Conn(), qTestEvent, "Bob", name); err != nil {
					return err
				}
				tx.Emit(Event{Cursor: tx.Conn().LastInsertRowID(), Kind: name})
				tx.AfterCommit(func() { sink.note("commit " + name) })
				tx.AfterPublish(func() { sink.note("publish " + name) })
				return then
			}
		}
		a.send(s, "a", emit("a", nil))
		a.send(s, "b", emit("b", own))
		a.send(s, "c", emit("c", nil))
		release()
		a.wg.Wait()
		if a.err["a"] != nil || !errors.Is(a.err["b"], protocol.BotExists) || a.err["c"] != nil {
			t.Fatalf("answers are %v", a.err)
		}
		if !has(t, s, "a") || has(t, s, "b") || !has(t, s, "c") {
			t.Error("the wrong rows are there")
		}
		mustClose(t, s)
		want := []string{"commit a", "commit c", "1", "2", "publish a", "publish c"}
		if !slices.Equal(sink.log, want) {
			t.Errorf("the log is %v, want %v", sink.log, want)
		}
	})
	t.Run("a job's later events and rows are seen by the jobs behind it in the group", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		release := hold(s)
		var a answers
		a.send(s, "a", put("a", 1))
		a.send(s, "b", func(tx *Tx) error {
			n, err := integer(tx.Conn(), qTestCount)
			if err == nil && n != 1 {
				err = fmt.Errorf("%d rows", n)
			}
			return err
		})
		release()
		a.wg.Wait()
		if a.err["b"] != nil {
			t.Fatal(a.err["b"])
		}
	})
	t.Run("memory changes before anyone is answered, and only then is anything published", func(t *testing.T) {
		sink := &recorder{}
		s := mustOpen(t, Options{Path: storePath(t), Sink: sink})
		release := hold(s)
		for i := range 3 {
			s.Go("put", func(tx *Tx) error {
				tx.AfterCommit(func() { sink.note(fmt.Sprint("commit ", i)) })
				tx.Emit(Event{Cursor: int64(i + 1)})
				return nil
			}, func(error) { sink.note(fmt.Sprint("done ", i)) })
		}
		release()
		mustClose(t, s)
		want := []string{"commit 0", "commit 1", "commit 2", "done 0", "done 1", "done 2", "1", "2", "3"}
		if !slices.Equal(sink.log, want) {
			t.Errorf("the log is %v, want %v", sink.log, want)
		}
	})
	t.Run("a read sees a job's writes once the job has been answered", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		for i := range 50 {
			name := fmt.Sprint(i)
			if err := s.Do("put", put(name, 1)); err != nil {
				t.Fatal(err)
			}
			if !has(t, s, name) {
				t.Fatalf("row %d is not there", i)
			}
		}
	})
	t.Run("a job that leaves a statement open fails and holds nothing", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		err := s.Do("leak", func(tx *Tx) error {
			st, err := qTestCount.on(tx.Conn())
			if err == nil {
				_, err = st.Step()
			}
			return err
		})
		wantCode(t, err, protocol.StorageError)
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a job queued before closing still runs; one after is refused", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		release := hold(s)
		var a answers
		for _, name := range names32() {
			a.send(s, name, put(name, 1))
		}
		go release()
		mustClose(t, s)
		a.wg.Wait()
		for name, err := range a.err {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantCode(t, s.Do("put", put("late", 1)), protocol.StorageError)
		wantCode(t, s.Read(context.Background(), "x", func(*Reader) error { return nil }), protocol.StorageError)
	})
}

// limitPages leaves a store room for n more pages: a real full disk as far as
// SQLite's code goes.
func limitPages(t testing.TB, s *Store, n int) {
	t.Helper()
	err := s.Do("limit", func(tx *Tx) error {
		used, err := pragmaInt(tx.Conn(), "page_count")
		if err != nil {
			return err
		}
		return script(tx.Conn(), fmt.Sprintf("PRAGMA max_page_count = %d", used+int64(n)))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	t.Run("RT-126 of a group of 32 the one that does not fit fails alone, the others are durable", func(t *testing.T) {
		path := storePath(t)
		s := mustOpen(t, Options{Path: path})
		limitPages(t, s, 20)
		release := hold(s)
		var a answers
		for i, name := range names32() {
			bytes := 10
			if i == 17 {
				bytes = 1 << 20
			}
			a.send(s, name, put(name, bytes))
		}
		release()
		a.wg.Wait()
		check := func(s *Store) {
			t.Helper()
			for i, name := range names32() {
				if i == 17 {
					e := wantCode(t, a.err[name], protocol.StorageError)
					if e.Detail != "sqlite_primary=13 sqlite_extended=13" {
						t.Errorf("the detail is %s", e.Detail)
					}
				} else if a.err[name] != nil {
					t.Errorf("%s: %v", name, a.err[name])
				}
				if has(t, s, name) != (i != 17) {
					t.Errorf("%s is on the wrong side", name)
				}
			}
		}
		check(s)
		if n := s.Stats().StorageErrors; n != 1 {
			t.Errorf("%d storage errors are counted", n)
		}
		mustClose(t, s)
		check(mustOpen(t, Options{Path: path}))
	})
	t.Run("RT-126 the same when the full disk takes the whole transaction", func(t *testing.T) {
		faults := &Faults{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
		release := hold(s)
		var a answers
		for i, name := range names32() {
			if i != 17 {
				a.send(s, name, put(name, 10))
				continue
			}
			a.wg.Add(1)
			s.Go("big", put(name, 10), func(err error) {
				a.mu.Lock()
				a.err[name] = err
				a.mu.Unlock()
				a.wg.Done()
			})
		}
		faults.At("wrote:big", func() error { return FaultFull })
		release()
		a.wg.Wait()
		for i, name := range names32() {
			if (a.err[name] == nil) != (i != 17) || has(t, s, name) != (i != 17) {
				t.Errorf("%s: %v", name, a.err[name])
			}
		}
		wantCode(t, a.err["job17"], protocol.StorageError)
	})
	t.Run("a job that goes on after its transaction is gone commits nothing of the group", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		release := hold(s)
		var a answers
		a.send(s, "a", put("a", 1))
		a.send(s, "b", func(tx *Tx) error {
			exec(tx.Conn(), qTestPut, "b", 0, "")
			return exec(tx.Conn(), qRollback)
		})
		a.send(s, "c", put("c", 1))
		release()
		a.wg.Wait()
		if a.err["a"] != nil || a.err["b"] == nil || a.err["c"] != nil {
			t.Fatalf("answers are %v", a.err)
		}
		if !has(t, s, "a") || has(t, s, "b") || !has(t, s, "c") {
			t.Error("the wrong rows are there")
		}
	})
	t.Run("RT-93 on a full disk a submission is storage_error and writes nothing", func(t *testing.T) {
		sink := &recorder{}
		s := mustOpen(t, Options{Path: storePath(t), Sink: sink})
		limitPages(t, s, 0)
		inMemory := false
		err := s.Do("submit", func(tx *Tx) error {
			tx.AfterCommit(func() { inMemory = true })
			tx.Emit(Event{Cursor: 1})
			return put("turn", 1<<20)(tx)
		})
		wantCode(t, err, protocol.StorageError)
		if has(t, s, "turn") || inMemory {
			t.Error("something of it stayed")
		}
		mustClose(t, s)
		if len(sink.log) != 0 {
			t.Errorf("published %v", sink.log)
		}
	})
	t.Run("RT-92 a completion refused for want of room goes in when room returns; reads go on meanwhile", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		if err := s.Do("put", put("before", 10)); err != nil {
			t.Fatal(err)
		}
		limitPages(t, s, 2)
		for range 3 {
			wantCode(t, s.Do("end", put("big", 1<<20)), protocol.StorageError)
			if !has(t, s, "before") {
				t.Fatal("reads stopped")
			}
		}
		st := s.Stats()
		if st.StorageErrors != 3 || st.Operations["end"].StorageErrors != 3 {
			t.Errorf("%d storage errors are counted", st.StorageErrors)
		}
		limitPages(t, s, 10_000)
		if err := s.Do("end", put("big", 1<<20)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-s.Fatal():
			t.Fatalf("a full disk was taken for damage: %v", err)
		default:
		}
	})
}

func TestFaultsOfTheDisk(t *testing.T) {
	t.Run("a group whose sync failed runs once more, job by job", func(t *testing.T) {
		faults := &Faults{}
		sink := &recorder{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults, Sink: sink})
		release := hold(s)
		var a answers
		runs := map[string]int{}
		for _, name := range names32()[:4] {
			a.send(s, name, func(tx *Tx) error {
				runs[name]++
				tx.Emit(Event{Cursor: int64(len(name))})
				return put(name, 1)(tx)
			})
		}
		commits := 0
		faults.At("commit", func() error {
			if commits++; commits == 2 { // hold's is the first
				return FaultSync
			}
			return nil
		})
		release()
		a.wg.Wait()
		for _, name := range names32()[:4] {
			if a.err[name] != nil || runs[name] != 2 || !has(t, s, name) {
				t.Errorf("%s: %v after %d runs", name, a.err[name], runs[name])
			}
		}
		if st := s.Stats(); st.Groups.Count != 5 || st.Groups.Sizes[0] != 5 {
			t.Errorf("groups are %+v", st.Groups)
		}
		mustClose(t, s)
		if len(sink.events) != 4 {
			t.Errorf("%d events were published", len(sink.events))
		}
	})
	t.Run("a disk that never syncs answers storage_error to each, and nothing is there", func(t *testing.T) {
		faults := &Faults{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
		release := hold(s)
		faults.At("commit", func() error { return FaultSync })
		var a answers
		for _, name := range names32()[:3] {
			a.send(s, name, put(name, 1))
		}
		release()
		a.wg.Wait()
		for name, err := range a.err {
			if e := wantCode(t, err, protocol.StorageError); !strings.HasPrefix(e.Detail, "sqlite_primary=10 ") {
				t.Errorf("the detail is %s", e.Detail)
			}
			if has(t, s, name) {
				t.Errorf("%s is there", name)
			}
		}
	})
	t.Run("a transaction that cannot begin is tried once more and then answered", func(t *testing.T) {
		faults := &Faults{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
		begun := 0
		faults.At("begin", func() error { begun++; return FaultSync })
		wantCode(t, s.Do("put", put("a", 1)), protocol.StorageError)
		if begun != 2 {
			t.Errorf("tried %d times", begun)
		}
		faults.At("begin", nil)
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an answer waits for a slow sync", func(t *testing.T) {
		faults := &Faults{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
		in, out := make(chan struct{}), make(chan struct{})
		faults.At("commit", func() error { close(in); <-out; return nil })
		answered := make(chan error, 1)
		s.Go("put", put("a", 1), func(err error) { answered <- err })
		<-in
		select {
		case <-answered:
			t.Error("answered before the sync")
		default:
		}
		if has(t, s, "a") {
			t.Error("seen before the commit")
		}
		faults.At("commit", nil)
		close(out)
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
	})
	t.Run("damage found by a job is fatal: the group gets storage_error and no job runs after", func(t *testing.T) {
		path := storePath(t)
		faults := &Faults{}
		s := mustOpen(t, Options{Path: path, Faults: faults})
		release := hold(s)
		faults.At("wrote:bad", func() error { return FaultDamage })
		var a answers
		a.send(s, "a", put("a", 1))
		a.wg.Add(1)
		s.Go("bad", put("b", 1), func(err error) {
			a.mu.Lock()
			a.err["b"] = err
			a.mu.Unlock()
			a.wg.Done()
		})
		release()
		a.wg.Wait()
		wantCode(t, a.err["a"], protocol.StorageError)
		wantCode(t, a.err["b"], protocol.StorageError)
		e := wantCode(t, <-s.Fatal(), protocol.StoreCorrupt)
		if !strings.Contains(e.Detail, path) {
			t.Errorf("the detail does not say where the store is: %s", e.Detail)
		}
		ran := false
		wantCode(t, s.Do("put", func(*Tx) error { ran = true; return nil }), protocol.StorageError)
		if ran {
			t.Error("a job ran")
		}
		if has(t, s, "a") {
			t.Error("the group was committed")
		}
	})
	t.Run("damage found by a read is fatal, too", func(t *testing.T) {
		faults := &Faults{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
		faults.At("read:x", func() error { return FaultDamage })
		wantCode(t, s.Read(context.Background(), "x", func(*Reader) error { return nil }), protocol.StorageError)
		wantCode(t, <-s.Fatal(), protocol.StoreCorrupt)
		wantCode(t, s.Do("put", put("a", 1)), protocol.StorageError)
	})
	t.Run("a storage error holds SQLite's codes and no SQL, path or data", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		for name, job := range map[string]func(*Tx) error{
			"a statement that does not read": func(tx *Tx) error { return exec(tx.Conn(), &query{"SELEC secret"}) },
			"a missing table":                func(tx *Tx) error { return exec(tx.Conn(), &query{"DELETE FROM secret"}) },
			"a broken rule": func(tx *Tx) error {
				return errors.Join(exec(tx.Conn(), qTestPut, "secret", 0, ""), exec(tx.Conn(), qTestPut, "secret", 0, ""))
			},
			"the driver used directly": func(tx *Tx) error {
				_, _, err := tx.Conn().PrepareTransient("SELECT secret FROM bots")
				return failed(err)
			},
		} {
			e := wantCode(t, s.Do("x", job), protocol.StorageError)
			if !strings.HasPrefix(e.Detail, "sqlite_primary=") || strings.Contains(e.Error(), "secret") {
				t.Errorf("%s: %v", name, e)
			}
		}
	})
}

func TestEveryPoint(t *testing.T) {
	t.Run("a job passes every fault point once, in order, and an error of one is the job's", func(t *testing.T) {
		faults := &Faults{}
		s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
		points := make(chan string, 16)
		faults.Every(func(point string) error { points <- point; return nil })
		job := func(tx *Tx) error { tx.Emit(Event{}); return nil }
		if err := s.Do("x", job); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"begin", "job:x", "wrote:x", "commit", "after-commit", "after-answer", "published"} {
			if got := <-points; got != want {
				t.Fatalf("%s came in the place of %s", got, want)
			}
		}
		faults.Every(func(point string) error {
			if point == "wrote:x" {
				return FaultFull
			}
			return nil
		})
		if err := s.Do("x", job); protocol.CodeOf(err) != protocol.StorageError {
			t.Errorf("the job gave %v", err)
		}
		faults.Every(nil)
		if err := s.Do("x", job); err != nil {
			t.Errorf("without faults: %v", err)
		}
	})
}

func TestPublisher(t *testing.T) {
	t.Run("events come in cursor order from many jobs at once, each once", func(t *testing.T) {
		sink := &recorder{}
		s := mustOpen(t, Options{Path: storePath(t), Sink: sink})
		if err := s.Do("bot", func(tx *Tx) error { return exec(tx.Conn(), qTestBot, 1, "Bob") }); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 20 {
					err := s.Do("event", func(tx *Tx) error {
						for range 2 {
							if err := exec(tx.Conn(), qTestEvent, "Bob", "x"); err != nil {
								return err
							}
							tx.Emit(Event{Cursor: tx.Conn().LastInsertRowID()})
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		mustClose(t, s)
		if len(sink.events) != 800 {
			t.Fatalf("%d events", len(sink.events))
		}
		for i, ev := range sink.events {
			if ev.Cursor != int64(i+1) {
				t.Fatalf("event %d has cursor %d", i, ev.Cursor)
			}
		}
	})
	t.Run("a sink that stalls stalls the writer only when the queue is full", func(t *testing.T) {
		gate := make(chan struct{})
		s := mustOpen(t, Options{Path: storePath(t), Sink: sinkFunc(func(Batch) { <-gate })})
		emit := func(tx *Tx) error { tx.Emit(Event{}); return nil }
		for range publishLimit + 1 { // one is in the sink's hands
			if err := s.Do("x", emit); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Do("x", emit); err != nil { // committed and answered, waiting for room
			t.Fatal(err)
		}
		var opened atomic.Bool
		stuck := make(chan bool, 1)
		s.Go("x", emit, func(error) { stuck <- opened.Load() })
		for range 100 { // reads go on, and a writer that does not wait has its chance
			if err := s.Read(context.Background(), "x", func(*Reader) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		opened.Store(true)
		close(gate)
		if !<-stuck {
			t.Fatal("the writer did not wait for the publisher")
		}
	})
	t.Run("closing does not wait for a dead sink for ever", func(t *testing.T) {
		p := newPublisher(sinkFunc(func(Batch) { select {} }), nil)
		for range publishLimit + 1 {
			p.publish(Batch{Events: []Event{{}}})
		}
		p.abandon()
		p.publish(Batch{Events: []Event{{}}})
		p.close()
	})
}

type sinkFunc func(Batch)

func (f sinkFunc) Publish(b Batch) { f(b) }

func TestStats(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	for i := range 300 {
		s.Do(fmt.Sprintf("op%d", i%200), func(tx *Tx) error {
			if i%3 == 0 {
				return protocol.Fail(protocol.BotBusy, "")
			}
			return put(fmt.Sprint(i), 1)(tx)
		})
	}
	st := s.Stats()
	if st.Jobs != 300 || st.StorageErrors != 0 || st.Bytes == 0 || st.WALBytes == 0 || len(st.BucketsUS) != 13 {
		t.Errorf("stats are %+v", st)
	}
	if len(st.Operations) != operationLimit {
		t.Errorf("%d operations are kept apart", len(st.Operations))
	}
	sum := func(h []int64) (n int64) {
		for _, v := range h {
			n += v
		}
		return n
	}
	var jobs int64
	for name, op := range st.Operations {
		jobs += op.Count
		for _, h := range []Histogram{op.Ran, op.Queued, op.Answered} {
			if sum(h[:]) != op.Count {
				t.Errorf("a histogram of %s has %d of %d", name, sum(h[:]), op.Count)
			}
		}
	}
	if jobs != st.Jobs {
		t.Errorf("the operations have %d of %d jobs", jobs, st.Jobs)
	}
	if g := st.Groups; sum(g.Sizes[:]) != g.Count || sum(g.Oldest[:]) != g.Count || g.Jobs != st.Jobs {
		t.Errorf("groups are %+v", g)
	}
}

// TestAfterAnswers has jobs that each queue the next while they run, so that each
// has a commit of its own and the queue is never empty before the last.
func TestAfterAnswers(t *testing.T) {
	for jobs, want := range map[int]string{
		1: "answer1 work1",
		3: "answer1 answer2 answer3 work1 work2 work3",
		6: "answer1 answer2 answer3 answer4 work1 work2 work3 work4 answer5 answer6 work5 work6",
	} {
		t.Run(fmt.Sprintf("%d jobs that come one by one", jobs), func(t *testing.T) {
			s := mustOpen(t, Options{Path: storePath(t)})
			var order []string // the writer's goroutine alone touches it before done is closed
			done := make(chan struct{})
			var next func(n int)
			next = func(n int) {
				s.Go("put", func(tx *Tx) error {
					if n < jobs {
						next(n + 1)
					}
					tx.AfterAnswers(func() {
						order = append(order, fmt.Sprint("work", n))
						if n == jobs {
							close(done)
						}
					})
					return nil
				}, func(error) { order = append(order, fmt.Sprint("answer", n)) })
			}
			next(1)
			<-done
			if got := strings.Join(order, " "); got != want {
				t.Errorf("the order is %s, want %s", got, want)
			}
		})
	}
}

// TestMuchAfterAnswers has one job leave as much to begin as there are
// processors, and more.
func TestMuchAfterAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		more int
		want string
	}{
		"what the processors can take begins with the answers":            {0, "answer work settled"},
		"more than that begins a moment behind, without a further commit": {1, "answer settled work"},
	} {
		t.Run(name, func(t *testing.T) {
			faults := &Faults{}
			s := mustOpen(t, Options{Path: storePath(t), Faults: faults})
			var order []string // the writer's goroutine alone touches it before done is closed
			done := make(chan struct{})
			said := func(what string) {
				if order = append(order, what); len(order) == 3 {
					close(done)
				}
			}
			faults.At("after-answer", func() error { said("settled"); return nil })
			var answered time.Time
			s.Go("put", func(tx *Tx) error {
				tx.AfterAnswers(func() { said("work") })
				for range runtime.GOMAXPROCS(0) - 1 + row.more {
					tx.AfterAnswers(func() {})
				}
				return nil
			}, func(error) { answered = time.Now(); said("answer") })
			<-done
			if got := strings.Join(order, " "); got != row.want {
				t.Errorf("the order is %s, want %s", got, row.want)
			}
			if took := time.Since(answered); row.more > 0 && took < answersLead {
				t.Errorf("it began %s behind the answer", took)
			}
		})
	}
}

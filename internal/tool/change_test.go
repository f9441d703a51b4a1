package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// others are bots that share a workspace, each with a memory of its own.
func others(t testing.TB, env *Env, n int) []*Env {
	out := make([]*Env, n)
	for i := range out {
		out[i], _ = newEnv(t)
		out[i].Workspace = env.Workspace
	}
	return out
}

func TestSeveralBotsChangeOneFile(t *testing.T) {
	t.Parallel()
	const bots, edits = 4, 40
	lines := func(word string) string {
		var b strings.Builder
		for i := range bots {
			for j := range edits {
				fmt.Fprintf(&b, "%s-%d-%d;\n", word, i, j)
			}
		}
		return b.String()
	}
	for _, row := range []struct{ name, second string }{
		{"edits of distinct lines all survive", "shared"},
		{"edits under two names of one file all survive", "other"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			path := file(t, env, "shared", lines("old"))
			if row.second != "shared" {
				if err := os.Link(path, filepath.Join(env.Workspace, row.second)); err != nil {
					t.Fatal(err)
				}
			}
			var all sync.WaitGroup
			for i, bot := range others(t, env, bots) {
				name := []string{"shared", row.second}[i%2]
				all.Go(func() {
					for j := range edits {
						r := edit(t, bot, name, fmt.Sprintf("old-%d-%d;", i, j), fmt.Sprintf("new-%d-%d;", i, j))
						if r.Failed {
							t.Error(r.Output)
						}
					}
				})
			}
			all.Wait()
			holds(t, path, lines("new"))
			noTemporary(t, env.Workspace)
		})
	}
	t.Run("of writers from one version exactly one is accepted", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		for round := range 30 {
			path := file(t, env, "f", "one")
			writers := others(t, env, 3)
			for _, w := range writers {
				ok(t, read(t, w, "f"))
			}
			var accepted atomic.Int32
			var winner atomic.Value
			var all sync.WaitGroup
			for i, w := range writers {
				all.Go(func() {
					mine := fmt.Sprintf("%d%d%d", i, i, i) // as long as the first
					r := write(t, w, "f", mine)
					if !r.Failed {
						accepted.Add(1)
						winner.Store(mine)
						return
					}
					failed(t, r, "file_changed", "read it again")
				})
			}
			all.Wait()
			if accepted.Load() != 1 {
				t.Fatalf("round %d: %d writers were told that they wrote", round, accepted.Load())
			}
			holds(t, path, winner.Load().(string))
		}
	})
	t.Run("of makers of one file exactly one is accepted", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		for round := range 20 {
			var accepted atomic.Int32
			var all sync.WaitGroup
			for i, w := range others(t, env, 3) {
				all.Go(func() {
					if r := write(t, w, fmt.Sprint("f", round), fmt.Sprint(i)); !r.Failed {
						accepted.Add(1)
					}
				})
			}
			all.Wait()
			if accepted.Load() != 1 {
				t.Fatalf("round %d: %d made it", round, accepted.Load())
			}
		}
	})
}

func TestOutsideChangesAreSeen(t *testing.T) {
	t.Parallel()
	t.Run("one that keeps size, time and inode", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "one")
		data, info, err := env.readWhole(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if env.current(target{path: path, info: info, was: data}) {
			t.Error("it was taken for the file that was read")
		}
		if env.holds(path, []byte("on")) || env.holds(path, []byte("one")) || !env.holds(path, []byte("two")) {
			t.Error("contents are not told apart")
		}
	})
	t.Run("an edit is made again, with the file as it is then", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "first\nlast\n")
		tries := 0
		r := env.change(t.Context(), "f", func(context.Context, *target) (Result, error) {
			if tries++; tries < maxTries {
				return Result{}, errMoved
			}
			return Result{Output: "done"}, nil
		})
		if ok(t, r); tries != maxTries {
			t.Errorf("%d tries", tries)
		}
		failed(t, env.change(t.Context(), "f", func(context.Context, *target) (Result, error) {
			return Result{}, errMoved
		}), "file_changed", "read it again")
		holds(t, path, "first\nlast\n")
	})
	t.Run("a call that has ended changes nothing any more", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "one")
		now, f := env.target("f")
		if f != nil {
			t.Fatal(f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := env.put(ctx, now, []byte("two")); err == nil {
			t.Error("it was written")
		}
		holds(t, path, "one")
		noTemporary(t, env.Workspace)
	})
}

func TestFileLocksHoldNoMemory(t *testing.T) {
	t.Parallel()
	l := locks{held: map[fileID]*lock{}}
	first, err := l.take(t.Context(), fileID{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.take(gone, fileID{1, 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	other, err := l.take(gone, fileID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan func())
	go func() {
		release, _ := l.take(context.Background(), fileID{1, 1})
		second <- release
	}()
	first()
	first() // twice is once
	(<-second)()
	other()
	if len(l.held) != 0 {
		t.Errorf("left: %v", l.held)
	}
}

// hang makes files of an Env block, as a mount does whose server is gone, once
// it has been looked at after times.
func hang(env *Env, after int32) (reached <-chan struct{}, let func()) {
	at, go_ := make(chan struct{}), make(chan struct{})
	var looks atomic.Int32
	env.IsStoreFile = func(os.FileInfo) bool {
		if looks.Add(1) == after {
			close(at)
			<-go_
		}
		return false
	}
	return at, sync.OnceFunc(func() { close(go_) })
}

func TestHungFilesDoNotHoldACall(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		after int32
		call  func(*testing.T, context.Context, *Env) Result
	}{
		{"read that hangs as it begins", 1, func(t *testing.T, ctx context.Context, env *Env) Result {
			return callContext(t, ctx, env, "read", map[string]any{"path": "f"})
		}},
		{"read that hangs once it is open", 2, func(t *testing.T, ctx context.Context, env *Env) Result {
			return callContext(t, ctx, env, "read", map[string]any{"path": "f"})
		}},
		{"write that hangs as it begins", 1, func(t *testing.T, ctx context.Context, env *Env) Result {
			return callContext(t, ctx, env, "write", map[string]any{"path": "f", "content": "two"})
		}},
		{"edit that hangs under its lock", 2, func(t *testing.T, ctx context.Context, env *Env) Result {
			return callContext(t, ctx, env, "edit", map[string]any{"path": "f", "old": "one", "new": "two"})
		}},
		{"edit that hangs at its last look", 5, func(t *testing.T, ctx context.Context, env *Env) Result {
			return callContext(t, ctx, env, "edit", map[string]any{"path": "f", "old": "one", "new": "two"})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			path := file(t, env, "f", "one")
			reached, let := hang(env, row.after)
			defer let()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-reached
				cancel()
			}()
			failed(t, row.call(t, ctx, env), "cancelled", "the turn ended")
			let()
			// What is left behind lets go of the file, and has not changed it.
			next := others(t, env, 1)[0]
			ok(t, edit(t, next, "f", "one", "three"))
			holds(t, path, "three")
		})
	}
}

func TestHungWorkIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(2)
		stuck := make(chan struct{})
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := beside(ctx, slots, func() int { <-stuck; return 1 })
			if cancel(); !errors.As(err, new(leftBehind)) || leftFailure("f", err).Code != "cancelled" {
				t.Fatalf("got %v", err)
			}
		}
		began := time.Now()
		_, err := beside(t.Context(), slots, func() int { t.Error("it was begun"); return 1 })
		if !errors.Is(err, errFileWork) || errors.As(err, new(leftBehind)) || leftFailure("f", err).Code != "capacity_exhausted" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != fileWorkWait {
			t.Errorf("refused after %v", took)
		}
		close(stuck)
		synctest.Wait()
		if got, err := beside(t.Context(), slots, func() int { return 7 }); got != 7 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if slots.Taken() != 0 {
			t.Errorf("%d places are taken", slots.Taken())
		}
	})
}

func TestAFileThatBringsNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	pipe := make([]int, 2)
	if err := unix.Pipe(pipe); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	if err := unix.SetNonblock(pipe[0], true); err != nil {
		t.Fatal(err)
	}
	f := &quietFile{File: os.NewFile(uintptr(pipe[0]), "pipe")}
	defer f.Close()
	if _, err := unix.Write(pipe[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if n, err := f.Read(b); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	began := time.Now()
	_, err := f.Read(b)
	var refused *Failure
	if !errors.As(err, &refused) || refused.Code != "file_unreadable" || time.Since(began) < quietTime {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
}

func TestSweeping(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Unix(1000, 0)
	s := sweeper{last: map[string]time.Time{}}
	left := filepath.Join(dir, temporaryPrefix+"0123456789abcdef")
	leave := func(name string) {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := []string{"0123456789abcdeg", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0", "notes-of-mine-00"}
	for _, name := range kept {
		leave(filepath.Join(dir, temporaryPrefix+name))
	}
	for _, row := range []struct {
		name  string
		after time.Duration
		gone  bool
	}{
		{"the first time", 0, true}, {"soon after", sweepEvery - 1, false}, {"a minute later", sweepEvery, true},
	} {
		leave(left)
		s.sweep(dir, now.Add(row.after))
		if _, err := os.Lstat(left); os.IsNotExist(err) != row.gone {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	for _, name := range kept {
		if _, err := os.Lstat(filepath.Join(dir, temporaryPrefix+name)); err != nil {
			t.Errorf("no name of ours: %v", err)
		}
	}
	for i := range 3 * maxSwept {
		s.due(fmt.Sprint(i), now)
		if len(s.last) > maxSwept {
			t.Fatalf("%d folders are remembered", len(s.last))
		}
	}
}

package daemon

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agent/internal/place"
	"agent/protocol"
)

// handClock is a clock that a test moves by hand: what is to happen later
// happens when the test says so.
type handClock struct {
	mu  sync.Mutex
	at  time.Time
	due chan *handTimer
}

type handTimer struct {
	wait    time.Duration
	f       func()
	stopped chan struct{}
	once    sync.Once
}

func (t *handTimer) Stop() bool {
	t.once.Do(func() { close(t.stopped) })
	return true
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *handClock) after(wait time.Duration, f func()) stopper {
	t := &handTimer{wait: wait, f: f, stopped: make(chan struct{})}
	c.due <- t
	return t
}

// byHand are companions on a clock of the test's, without a store.
func byHand(t *testing.T, commands map[string]string) (*companions, *handClock, string) {
	t.Helper()
	dir := t.TempDir()
	clock := &handClock{at: time.Unix(1_000_000, 0), due: make(chan *handTimer, 64)}
	cs := &companions{
		folder: filepath.Join(dir, "state.sqlite.companions"), home: dir, self: os.Args[0], env: []string{"PATH=" + os.Getenv("PATH")},
		log: slog.New(slog.NewTextHandler(io.Discard, nil)), now: clock.now, after: clock.after,
	}
	for name, script := range commands {
		cs.list = append(cs.list, cs.fresh(protocol.CompanionSpec{Name: name, Command: []string{"/bin/sh", "-c", script}}))
	}
	cs.ops.Lock()
	cs.start()
	t.Cleanup(cs.close)
	return cs, clock, dir
}

// running waits until the companion runs and gives its process.
func (cs *companions) running(t *testing.T) int {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r := cs.records()[0]; r.PID != nil {
			return int(*r.PID)
		}
	}
	t.Fatal("it does not run")
	return 0
}

func TestCompanionBackoff(t *testing.T) {
	cs, clock, dir := byHand(t, map[string]string{"x": "[ -e stay ] && exec sleep 600; echo out; exit 3"})
	t.Run("AP-61 one that exits at once is started after 1 s, 2 s, 4 s, up to 60 s", func(t *testing.T) {
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			next := <-clock.due
			if next.wait != want*time.Second {
				t.Fatalf("restart %d is due after %v, want %d s", i+1, next.wait, want)
			}
			if r := cs.records()[0]; r.PID != nil || r.Restarts != int64(i) || string(r.LastExit) != `{"exit_code":3}` || r.SinceMS != clock.now().UnixMilli() {
				t.Errorf("record %+v %s", r, r.LastExit)
			}
			clock.pass(next.wait)
			next.f()
		}
	})
	next := <-clock.due
	os.WriteFile(filepath.Join(dir, "stay"), nil, 0o600)
	next.f()
	for _, row := range []struct {
		ran, want time.Duration
	}{{60 * time.Second, time.Second}, {59 * time.Second, 2 * time.Second}, {2 * time.Second, 4 * time.Second}, {70 * time.Second, time.Second}} {
		t.Run(fmt.Sprintf("AP-61 after a run of %v it is started after %v", row.ran, row.want), func(t *testing.T) {
			pid := cs.running(t)
			clock.pass(row.ran)
			syscall.Kill(pid, syscall.SIGKILL)
			next := <-clock.due
			if next.wait != row.want {
				t.Errorf("it is due after %v", next.wait)
			}
			if r := cs.records()[0]; string(r.LastExit) != `{"exit_code":null,"signal":"SIGKILL"}` {
				t.Errorf("record %+v %s", r, r.LastExit)
			}
			next.f()
		})
	}
}

func TestCompanionStops(t *testing.T) {
	t.Run("one that ignores SIGTERM gets SIGKILL with its group 5 s later, and leaves nothing", func(t *testing.T) {
		cs, clock, dir := byHand(t, map[string]string{"x": "trap '' TERM; (sleep 600 & echo $! >child; wait) & echo $$ >up.tmp; mv up.tmp up; wait; sleep 600"})
		waitFor(t, filepath.Join(dir, "up"))
		waitFor(t, filepath.Join(dir, "child"))
		before := runtime.NumGoroutine()
		ended := make(chan struct{})
		go func() { cs.close(); close(ended) }()
		kill := <-clock.due
		select {
		case <-ended:
			t.Fatal("it ended by SIGTERM")
		default:
		}
		if kill.wait != stopWithin {
			t.Errorf("SIGKILL is due after %v", kill.wait)
		}
		kill.f()
		<-ended
		<-kill.stopped
		text, _ := os.ReadFile(filepath.Join(dir, "child"))
		var child int
		fmt.Sscan(string(text), &child)
		for end := time.Now().Add(10 * time.Second); syscall.Kill(child, 0) == nil && !isZombie(child); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("its child %d lives", child)
			}
		}
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() >= before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines, %d while it ran", runtime.NumGoroutine(), before)
			}
		}
		if notes, _ := filepath.Glob(filepath.Join(cs.folder, "*.pid")); len(notes) > 0 {
			t.Errorf("left %v", notes)
		}
	})
	t.Run("one that waits for its restart has no timer once it is stopped, and a late one starts nothing", func(t *testing.T) {
		cs, clock, _ := byHand(t, map[string]string{"x": "exit 0"})
		next := <-clock.due
		cs.close()
		select {
		case <-next.stopped:
		default:
			t.Error("its timer stands")
		}
		next.f()
		if r := cs.records()[0]; r.PID != nil || r.Restarts != 0 {
			t.Errorf("record %+v", r)
		}
	})
	t.Run("one that cannot start is reported and tried again, and comes up once it can", func(t *testing.T) {
		cs, clock, dir := byHand(t, nil)
		program := filepath.Join(dir, "late")
		cs.mu.Lock()
		cs.list = []*companion{cs.fresh(protocol.CompanionSpec{Name: "x", Command: []string{program}})}
		cs.begin(cs.list[0])
		cs.mu.Unlock()
		next := <-clock.due
		if r := cs.records()[0]; next.wait != firstRestart || r.PID != nil || !strings.Contains(string(r.LastExit), "no such file") {
			t.Errorf("after %v: %+v %s", next.wait, r, r.LastExit)
		}
		os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700)
		next.f()
		cs.running(t)
	})
}

func isZombie(pid int) bool {
	_, lives := place.BornAt(pid)
	return !lives
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s never came", path)
		}
	}
}

func TestCompanionLog(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	t.Run("a log of 4 MiB is set aside once, the newest output stands, both are 0600", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.log")
		os.WriteFile(path, []byte("old\n"), 0o644)
		os.WriteFile(path+".1", []byte("older\n"), 0o644)
		l, out, err := openCompanionLog(path, quiet)
		if err != nil {
			t.Fatal(err)
		}
		mode(t, path)
		mode(t, path+".1")
		line := func(n int) string { return fmt.Sprintf("%015d\n", n) }
		const lines = 9 << 20 / 16
		for n := range lines {
			if n%4096 == 0 {
				var b bytes.Buffer
				for k := n; k < n+4096 && k < lines; k++ {
					b.WriteString(line(k))
				}
				out.Write(b.Bytes())
			}
		}
		out.Close()
		l.finish()
		now, _ := os.ReadFile(path)
		before, _ := os.ReadFile(path + ".1")
		if len(now) > maxCompanionLog || len(before) > maxCompanionLog || len(now)+len(before) < maxCompanionLog {
			t.Errorf("%d and %d bytes", len(now), len(before))
		}
		if all := append(before, now...); !bytes.HasSuffix(all, []byte(line(lines-2)+line(lines-1))) || bytes.Count(all, []byte("\n")) < maxCompanionLog/16 {
			t.Error("the newest output is not there")
		}
		mode(t, path)
		mode(t, path+".1")
	})
	t.Run("a symlink and a FIFO in its place are refused", func(t *testing.T) {
		dir := t.TempDir()
		os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "a.log"))
		syscall.Mkfifo(filepath.Join(dir, "b.log"), 0o600)
		for _, name := range []string{"a.log", "b.log"} {
			if _, _, err := openCompanionLog(filepath.Join(dir, name), quiet); err == nil {
				t.Errorf("%s was opened", name)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
			t.Error("the symlink was followed")
		}
	})
	t.Run("one that cannot be set aside is emptied, so that its size holds", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.log")
		os.MkdirAll(path+".1/taken", 0o700)
		l, out, err := openCompanionLog(path, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			out.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
		out.Close()
		l.finish()
		if info, _ := os.Stat(path); info.Size() > maxCompanionLog || info.Size() == 0 {
			t.Errorf("%d bytes", info.Size())
		}
	})
}

func mode(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
}

func TestSurvivors(t *testing.T) {
	cs, _, _ := byHand(t, map[string]string{"x": "exec sleep 600"})
	pid := cs.running(t)
	note := filepath.Join(cs.folder, "x.pid")
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	mode(t, note)
	for name, wrong := range map[string]string{
		"a process that was born at another time": fmt.Sprintf("%d elsewhere/1\n", pid),
		"no number":                       "x y\n",
		"everybody":                       "-1 x\n",
		"half a note":                     fmt.Sprint(pid),
		"a process that leads no group":   fmt.Sprintf("%d %s\n", os.Getppid(), "x"),
		"a process that is there no more": "4194304 x\n",
	} {
		t.Run("a note that names "+name+" ends nobody", func(t *testing.T) {
			os.WriteFile(note, []byte(wrong), 0o600)
			if list := survivors(cs.folder); len(list) != 0 {
				t.Errorf("it names %+v", list)
			}
		})
	}
	t.Run("the companion that a note names is ended", func(t *testing.T) {
		os.WriteFile(note, text, 0o600)
		list := survivors(cs.folder)
		if len(list) != 1 || list[0].pid != pid {
			t.Fatalf("it names %+v", list)
		}
		endSurvivors(list, stopWithin, cs.log)
		if list[0].lives() {
			t.Error("it lives")
		}
	})
	t.Run("one that ignores SIGTERM is killed", func(t *testing.T) {
		cs, _, dir := byHand(t, map[string]string{"x": "trap '' TERM; echo up >up; while :; do sleep 600; done"})
		waitFor(t, filepath.Join(dir, "up"))
		list := survivors(cs.folder)
		endSurvivors(list, 50*time.Millisecond, cs.log)
		if len(list) != 1 || list[0].lives() {
			t.Errorf("%+v lives", list)
		}
	})
}

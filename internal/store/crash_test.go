package store

import (
	"bufio"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"zombiezen.com/go/sqlite"
)

// The tests of this file run the test binary again as a process that writes
// and kill it. It prints the name of each job once that has been answered.

const (
	crashStore = "STORE_CRASH_PATH"
	crashPoint = "STORE_CRASH_POINT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashStore); path != "" {
		if os.Getenv(crashPoint) == "read" {
			if err := readFromOutside(path); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		}
		writeUntilKilled(path, os.Getenv(crashPoint))
		os.Exit(3) // only reached when nothing killed it
	}
	os.Exit(m.Run())
}

// pair is a job of two rows, so that half a job could be told.
func pair(name string) func(*Tx) error {
	return func(tx *Tx) error {
		if err := put(name+"/1", 3000)(tx); err != nil {
			return err
		}
		return put(name+"/2", 3000)(tx)
	}
}

// writeUntilKilled writes from eight goroutines. With a point, the process
// kills itself when that is reached for the thirtieth time.
func writeUntilKilled(path, point string) {
	faults := &Faults{}
	if point == "migrate" {
		faults.At(point, kill)
	}
	s, err := Open(Options{Path: path, Faults: faults})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	if point != "" {
		reached := 0
		faults.At(point, func() error {
			if reached++; reached == 30 {
				return kill()
			}
			return nil
		})
	}
	var out sync.Mutex
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100_000 {
				name := fmt.Sprintf("%d-%d", g, i)
				if s.Do("put", pair(name)) != nil {
					return
				}
				out.Lock()
				fmt.Println(name)
				out.Unlock()
			}
		})
	}
	wg.Wait()
}

// kill ends this process as kill -9 does.
func kill() error {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// crash runs a writer until it kills itself at the point, or until it has
// answered some jobs and is killed from here, and gives the jobs it answered.
func crash(t *testing.T, path, point string) (answered []string) {
	t.Helper()
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashStore+"="+path, crashPoint+"="+point)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		line := lines.Text()
		if !strings.Contains(line, "-") || strings.HasPrefix(line, "open:") {
			t.Fatalf("the writer said %q", line)
		}
		answered = append(answered, line)
		if point == "" && len(answered) == 150 {
			cmd.Process.Kill()
		}
	}
	err = cmd.Wait()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("the writer ended with %v", err)
	}
	return answered
}

func TestCrash(t *testing.T) {
	for _, point := range []string{"", "begin", "job:put", "wrote:put", "commit", "after-commit", "after-answer"} {
		t.Run("a kill -9 in mid-load loses nothing answered and halves nothing, at point "+point, func(t *testing.T) {
			t.Parallel()
			path := storePath(t)
			before := map[string]bool{}
			for range 2 { // the second writer starts on what the first one left
				s := mustOpen(t, Options{Path: path})
				if err := s.Do("clear", func(tx *Tx) error { return script(tx.Conn(), "DELETE FROM companions") }); err != nil {
					t.Fatal(err)
				}
				mustClose(t, s)
				for _, name := range crash(t, path, point) {
					before[name] = true
				}
				s = mustOpen(t, Options{Path: path})
				rows := rowsOf(t, s)
				for name := range before {
					if rows[name] != 2 {
						t.Errorf("%s was answered and has %d of 2 rows", name, rows[name])
					}
				}
				for name, n := range rows {
					if n != 2 {
						t.Errorf("%s has %d of 2 rows", name, n)
					}
				}
				if got, err := pragma(s.readers.free[0].conn, "integrity_check"); err != nil || got != "ok" {
					t.Errorf("the store is %s, %v", got, err)
				}
				mustClose(t, s)
				clear(before)
			}
		})
	}
	t.Run("a kill -9 while the store is being made leaves one that opens", func(t *testing.T) {
		t.Parallel()
		path := storePath(t)
		cmd := osexec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashStore+"="+path, crashPoint+"=migrate")
		cmd.Run()
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
			t.Fatalf("the writer ended with %v", cmd.ProcessState)
		}
		s := mustOpen(t, Options{Path: path})
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
	})
}

// rowsOf counts the rows of each job.
func rowsOf(t *testing.T, s *Store) map[string]int {
	t.Helper()
	rows := map[string]int{}
	err := each(s.readers.free[0].conn, &query{"SELECT name FROM companions"}, func(r *sqlite.Stmt) error {
		name, _, _ := strings.Cut(r.ColumnText(0), "/")
		rows[name]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestOtherProgram(t *testing.T) {
	t.Run("RT-123 another program that opens, reads and closes the store leaves the log, and what follows survives a kill", func(t *testing.T) {
		path := storePath(t)
		s := mustOpen(t, Options{Path: path})
		if err := s.Do("put", put("before", 1)); err != nil {
			t.Fatal(err)
		}
		// What the daemon asks of its files while it runs: names only.
		s.Stats()
		if info, err := os.Lstat(path); err != nil || !s.IsStoreFile(info) {
			t.Fatal(err)
		}
		cmd := osexec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashStore+"="+path, crashPoint+"=read")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "1 rows\n" {
			t.Fatalf("the other program said %q, %v", out, err)
		}
		if _, err := os.Lstat(path + "-wal"); err != nil {
			t.Fatal("the log is gone")
		}
		if err := s.Do("put", put("after", 1)); err != nil {
			t.Fatal(err)
		}
		copied := storePath(t)
		for _, suffix := range []string{"", "-wal"} { // what a kill would leave
			b, err := os.ReadFile(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(copied+suffix, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !has(t, mustOpen(t, Options{Path: copied}), "after") {
			t.Error("what was written afterwards is gone")
		}
	})
}

// readFromOutside is the other program: it knows nothing of the store's lock.
func readFromOutside(path string) error {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	n, err := integer(c, qTestCount)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows\n", n)
	return c.Close()
}

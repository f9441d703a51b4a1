package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"
)

// Daemons and followers that are not as they usually are.

func TestOwnerOnStandardInput(t *testing.T) {
	t.Parallel()
	t.Run("CL-17 a stdio daemon owns the store and nobody answers", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		g.must("run", "--new", "--bot", "Bob", "--model", "t/echo", "hi") // makes the store
		g.must("shutdown")
		owner := g.command("serve", "--store", g.store(), "--provider", "t=scripted,"+modelsFile(t))
		in, err := owner.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		defer owner.Wait()
		defer in.Close() // its end ends the daemon
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"ready"`) {
			t.Fatalf("%q, %v", line, err)
		}
		begin := time.Now()
		r := g.run("run", "--bot", "Bob", "hi")
		if took := time.Since(begin); took < 9*time.Second || took > 14*time.Second {
			t.Errorf("it took %v", took)
		}
		if r.status != 1 || r.code() != "daemon_start_timeout" {
			t.Errorf("exit %d, %s", r.status, r.stderr)
		}
	})
}

// elder listens on the socket of its first argument as a daemon that speaks the
// protocol of its second, until it is ended.
func elder() {
	l, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(conn, `{"event":"ready","protocol":%s,"pid":%d,"version":"v0"}`+"\n", os.Args[2], os.Getpid())
	}
}

func TestShutdownOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		protocol int
		status   int
		code     string
		ended    bool
	}{
		{"CL-54 a process of an older protocol is ended", protocol.Version - 1, 0, "", true},
		{"CL-54 one of a newer protocol is left alone", protocol.Version + 1, 1, "daemon_protocol_mismatch", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			if err := os.MkdirAll(filepath.Dir(g.store()), 0o700); err != nil {
				t.Fatal(err)
			}
			program, err := exec.LookPath("elder")
			if err != nil {
				t.Fatal(err)
			}
			other := exec.Command(program, g.store()+".sock", fmt.Sprint(row.protocol))
			out, err := other.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatalf("%q, %v", line, err)
			}
			if r := g.run("shutdown"); r.status != row.status || r.code() != row.code {
				t.Errorf("exit %d, %s", r.status, r.stderr)
			}
			other.Process.Kill() // one that has ended keeps the signal that ended it
			other.Wait()
			if got := other.ProcessState.Sys().(syscall.WaitStatus).Signal(); (got == syscall.SIGTERM) != row.ended {
				t.Errorf("it was ended by %v", got)
			}
		})
	}
}

// TestStoppedReader stops a follower while more happens than its connection
// holds. The daemon closes it and goes on; where it left off nothing is missing.
func TestStoppedReader(t *testing.T) {
	t.Parallel()
	t.Run("CL-44 a burst that outruns a stopped reader", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		g.must("run", "--new", "--bot", "Bob", "--model", "t/echo", "hi")
		follower := g.command("follow", "--all")
		out, err := follower.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		follower.Stderr = &errs
		if err := follower.Start(); err != nil {
			t.Fatal(err)
		}
		defer follower.Process.Kill()
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 2*protocol.MaxLine)
		var seen []int64
		for lines.Scan() && !strings.Contains(lines.Text(), "follow_live") {
			seen = appendCursor(seen, lines.Text())
		}
		if err := follower.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c := g.client()
		stats, err := c.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		g.burst(4)
		g.fewerSessions(c, stats.Sessions)
		if err := follower.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			seen = appendCursor(seen, lines.Text())
		}
		follower.Wait()
		r := ran{stderr: errs.String(), status: follower.ProcessState.ExitCode()}
		var told struct{ Cursor int64 }
		if err := json.Unmarshal([]byte(r.stderr), &told); err != nil || r.status != 1 || r.code() != "daemon_disconnected" || told.Cursor == 0 {
			t.Fatalf("exit %d, %s", r.status, r.stderr)
		}
		rest := g.must("follow", "--bot", "Bob", "--after", fmt.Sprint(told.Cursor))
		if !strings.Contains(rest, `"turn_finished"`) {
			t.Errorf("the end is missing behind %d:\n%.2000s", told.Cursor, rest)
		}
		for line := range strings.Lines(rest) {
			seen = appendCursor(seen, line)
		}
		for i := 1; i < len(seen); i++ {
			if seen[i] <= seen[i-1] {
				t.Errorf("cursor %d came behind %d", seen[i], seen[i-1])
			}
		}
		var page protocol.EventPage
		if err := json.Unmarshal([]byte(g.must("events", "--bot", "Bob", "--limit", "256")), &page); err != nil || len(page.Events) != len(seen) {
			t.Errorf("%d events were seen of %d: %v", len(seen), len(page.Events), err)
		}
	})
}

// burst has Bob say long texts, one turn after the other.
func (g *ground) burst(turns int) {
	g.t.Helper()
	path := g.dir + "/long"
	if err := os.WriteFile(path, []byte(strings.Repeat("word ", 40_000)), 0o600); err != nil {
		g.t.Fatal(err)
	}
	for range turns {
		cmd := g.command("run", "--bot", "Bob", "-")
		in, err := os.Open(path)
		if err != nil {
			g.t.Fatal(err)
		}
		cmd.Stdin = in
		r := finish(g.t, cmd)
		in.Close()
		if r.status != 0 {
			g.t.Fatalf("exit %d, %s", r.status, r.stderr)
		}
	}
}

// fewerSessions comes back when the daemon has fewer sessions than it had. c is
// one of them.
func (g *ground) fewerSessions(c *client.Client, had int64) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		stats, err := c.Stats(ctx)
		if err != nil {
			g.t.Fatal(err)
		}
		if stats.Sessions < had {
			return
		}
	}
}

// appendCursor adds the cursor of a durable event's line.
func appendCursor(seen []int64, line string) []int64 {
	var e struct {
		Cursor int64
		Event  string
	}
	if json.Unmarshal([]byte(line), &e) == nil && e.Cursor > 0 && e.Event != protocol.KindFollowLive {
		seen = append(seen, e.Cursor)
	}
	return seen
}

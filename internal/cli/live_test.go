package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agent/client"
	"agent/internal/place"
	"agent/protocol"
)

// listener answers every connection to the ground's socket in its own way.
func (g *ground) listener(serve func(net.Conn)) {
	g.t.Helper()
	if err := os.MkdirAll(filepath.Dir(g.store()), 0o700); err != nil {
		g.t.Fatal(err)
	}
	l, err := net.Listen("unix", g.store()+".sock")
	if err != nil {
		g.t.Fatal(err)
	}
	var open sync.WaitGroup
	g.t.Cleanup(func() { l.Close(); open.Wait() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				defer open.Done()
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
}

// made reports what the command made beside the socket.
func (g *ground) made() []string {
	var found []string
	for _, name := range []string{g.store(), g.store() + ".log"} {
		if _, err := os.Stat(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

func TestListenersThatAreNoDaemon(t *testing.T) {
	t.Parallel()
	untilClosed := func(conn net.Conn) { conn.Read(make([]byte, 1)) }
	trickle := func(conn net.Conn) {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := conn.Write([]byte(" ")); err != nil {
				return
			}
		}
	}
	// They take their ten seconds at the same time, whatever -parallel says.
	var all sync.WaitGroup
	for name, serve := range map[string]func(net.Conn){"never writes": untilClosed, "trickles": trickle} {
		for _, args := range [][]string{{"ls"}, {"run", "--new", "--bot", "B", "--model", "t/echo", "hi"}} {
			g := newGround(t)
			g.listener(serve)
			cmd := g.command(args...)
			all.Go(func() {
				begin := time.Now()
				r := finish(t, cmd)
				took := time.Since(begin)
				t.Run("CL-14 a listener that "+name+" meets "+args[0], func(t *testing.T) {
					if took < 9*time.Second || took > 14*time.Second {
						t.Errorf("it took %v", took)
					}
					if r.status != 1 || r.code() != "daemon_start_timeout" || len(g.made()) > 0 {
						t.Errorf("exit %d, %s; made %v", r.status, r.stderr, g.made())
					}
				})
			})
		}
	}
	t.Run("CL-15 a listener of another protocol", func(t *testing.T) {
		g := newGround(t)
		g.listener(func(conn net.Conn) {
			fmt.Fprintln(conn, `{"event":"ready","protocol":99,"pid":1,"version":"v9","strange":[1, 2]}`)
			untilClosed(conn)
		})
		begin := time.Now()
		if r := g.run("ls"); r.status != 1 || r.code() != "daemon_protocol_mismatch" || r.stdout != "" || !strings.Contains(r.stderr, "v9") {
			t.Errorf("ls: exit %d, %s%s", r.status, r.stdout, r.stderr)
		}
		r := g.run("start")
		want := `{"event":"ready","protocol":99,"pid":1,"version":"v9","strange":[1, 2],"socket":"` + g.store() + `.sock","started":false}` + "\n"
		if r.status != 1 || r.code() != "daemon_protocol_mismatch" || r.stdout != want {
			t.Errorf("start: exit %d, %s%s", r.status, r.stdout, r.stderr)
		}
		if time.Since(begin) > 5*time.Second || len(g.made()) > 0 {
			t.Errorf("it took %v and made %v", time.Since(begin), g.made())
		}
	})
	all.Wait()
}

// TestTurnThatEndsWhileAttaching plays the daemon: what it sends cannot be
// timed with a real one.
func TestTurnThatEndsWhileAttaching(t *testing.T) {
	t.Parallel()
	for status, exit := range map[string]int{"completed": 0, "failed": 1} {
		t.Run("CL-42 a turn that ends between the look-up and the follow, "+status, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			g.listener(func(conn net.Conn) { playEnding(conn, status) })
			r := g.run("follow", "--bot", "Bob")
			want := `{"cursor":8,"bot":"Bob","turn":5,"event":"turn_finished","data":{"status":"` + status + `","checkpoint":null,"error":null,"detail":null}}` + "\n"
			if r.status != exit || r.stdout != want {
				t.Errorf("exit %d, stdout %q, stderr %q", r.status, r.stdout, r.stderr)
			}
		})
	}
}

func playEnding(conn net.Conn, status string) {
	ready, err := protocol.AppendReady(nil, &protocol.Ready{PID: 1})
	if err != nil {
		panic(err)
	}
	conn.Write(ready)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var r struct {
			ID json.RawMessage
			Op string
		}
		json.Unmarshal(lines.Bytes(), &r)
		switch r.Op {
		case protocol.OpInspect:
			fmt.Fprintf(conn, `{"id":%s,"result":{"name":"Bob","id":1,"running_turn":5}}`+"\n", r.ID)
		case protocol.OpFollow:
			fmt.Fprintf(conn, `{"id":%s,"result":{"following":"Bob","after":0}}`+"\n", r.ID)
			fmt.Fprintf(conn, `{"cursor":8,"bot":"Bob","turn":5,"event":"turn_finished","data":{"status":"%s","checkpoint":null,"error":null,"detail":null}}`+"\n", status)
		}
	}
}

func TestLostConnection(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.listener(func(conn net.Conn) {
		ready, _ := protocol.AppendReady(nil, &protocol.Ready{PID: 1})
		conn.Write(ready)
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if strings.Contains(lines.Text(), `"follow"`) {
				fmt.Fprintln(conn, `{"id":1,"result":{"following":"*","after":0}}`)
				fmt.Fprintln(conn, `{"cursor":8,"bot":"Bob","turn":null,"event":"configured","data":{"changed":[]}}`)
				return
			}
		}
	})
	r := g.run("follow", "--all")
	if r.status != 1 || r.code() != "daemon_disconnected" || !strings.Contains(r.stderr, `"cursor":8`) {
		t.Errorf("a broken stream does not say where to come back to: exit %d, %s", r.status, r.stderr)
	}
}

func TestManyStartTogether(t *testing.T) {
	t.Parallel()
	t.Run("CL-16 sixteen commands and one daemon", func(t *testing.T) {
		g := newGround(t)
		unfinishedTurns(g, 1023)
		results := make([]ran, 16)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				results[i] = g.run("run", "--detach", "--new", "--bot", fmt.Sprint("new-", i), "--model", "t/echo", "hi")
			})
		}
		all.Wait()
		for i, r := range results {
			if r.status != 0 {
				t.Errorf("command %d: exit %d, %s", i, r.status, r.stderr)
			}
		}
		var bots []struct{ Name string }
		if err := json.Unmarshal([]byte(g.must("ls")), &bots); err != nil || len(bots) != 17 {
			t.Errorf("%d bots, %v", len(bots), err)
		}
	})
}

// unfinishedTurns leaves a store with a turn that ran and many that waited, by
// killing its daemon.
func unfinishedTurns(g *ground, n int) {
	g.t.Helper()
	gate(g)
	g.must("run", "--detach", "--new", "--bot", "Old", "--model", "t/hold", "hold")
	c := g.client()
	for i := range n {
		if _, err := c.Submit(context.Background(), &protocol.Submit{Bot: "Old", Prompt: fmt.Sprint(i), Delivery: protocol.Queue}); err != nil {
			g.t.Fatal(err)
		}
	}
	ready, err := c.Ready(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	s, err := c.Session(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	if err := syscall.Kill(ready.PID, syscall.SIGKILL); err != nil {
		g.t.Fatal(err)
	}
	<-s.Done()
}

// gate is what a turn of the model t/hold waits at.
func gate(g *ground) {
	g.t.Helper()
	if err := syscall.Mkfifo(filepath.Join(g.dir, "gate"), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// held makes a bot whose turn waits for the gate.
func held(g *ground) (turn int64) {
	g.t.Helper()
	gate(g)
	var sub protocol.Submitted
	if err := json.Unmarshal([]byte(g.must("run", "--detach", "--new", "--bot", "Bob", "--model", "t/hold", "hold")), &sub); err != nil {
		g.t.Fatal(err)
	}
	return sub.Turn
}

// release opens the gate; it waits until the turn stands there.
func release(g *ground) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "gate"), []byte("go\n"), 0); err != nil {
		g.t.Fatal(err)
	}
}

// status is how a turn ended, once it has.
func ended(g *ground, turn int64) string {
	g.t.Helper()
	for e, err := range g.client().Follow(context.Background(), "Bob", client.FollowOptions{Turn: turn}) {
		if err != nil {
			g.t.Fatal(err)
		}
		if e.Kind == protocol.KindTurnFinished && e.Turn == turn {
			var f protocol.TurnFinished
			if err := e.Decode(&f); err != nil {
				g.t.Fatal(err)
			}
			return f.Status
		}
	}
	return ""
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		status int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		t.Run(fmt.Sprintf("CL-37 a blocking run that gets %v ends, its turn does not", c.signal), func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			gate(g)
			cmd := g.command("run", "--new", "--bot", "Bob", "--model", "t/hold", "hold")
			cmd.Stderr = &bytes.Buffer{}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() && !strings.Contains(lines.Text(), protocol.KindToolStarted) {
			}
			cmd.Process.Signal(c.signal)
			for lines.Scan() {
			}
			cmd.Wait()
			said := fmt.Sprint(cmd.Stderr)
			if cmd.ProcessState.ExitCode() != c.status || !strings.Contains(said, `"handle":"turn:Bob/1"`) ||
				!strings.Contains(said, `"cursor":`) || strings.Count(said, "\n") != 1 {
				t.Errorf("exit %v, stderr %s", cmd.ProcessState, said)
			}
			release(g)
			if got := ended(g, 1); got != "completed" {
				t.Errorf("the turn ended %s", got)
			}
		})
	}
	for _, row := range []struct {
		until string // the request that gets no answer
		line  []string
		want  []string
	}{
		{"create", []string{"--new", "--model", "t/echo"}, []string{`"bot":"bot-`, `"request_id":"run-`, "without --new"}},
		{"submit", []string{"--new", "--bot", "Bob", "--model", "t/echo"}, []string{`"bot":"Bob"`, `"request_id":"run-`, `"bot_id":3`, `"created":true`}},
		{"submit", []string{"--bot", "Bob", "--request-id", "r"}, []string{`"request_id":"r"`, "repeat this line and --request-id r"}},
	} {
		t.Run("CL-37 while "+row.until+" has no answer yet", func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			asked := make(chan struct{})
			g.listener(func(conn net.Conn) {
				ready, _ := protocol.AppendReady(nil, &protocol.Ready{PID: 1})
				conn.Write(ready)
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					var r struct {
						ID json.RawMessage `json:"id"`
						Op string          `json:"op"`
					}
					if json.Unmarshal(lines.Bytes(), &r) != nil {
						t.Errorf("was asked %s", lines.Text())
						return
					}
					if r.Op == row.until {
						close(asked)
						continue
					}
					bot, _ := protocol.Append(nil, &protocol.Bot{Name: "Bob", ID: 3})
					fmt.Fprintf(conn, `{"id":%s,"result":%s}`+"\n", r.ID, bot)
					if r.Op == protocol.OpFollow {
						live, _ := protocol.AppendLive(nil, protocol.KindFollowLive, protocol.FollowLive{Bot: "Bob"})
						conn.Write(live)
					}
				}
			})
			cmd := g.command(append(append([]string{"run"}, row.line...), "hi")...)
			said := &bytes.Buffer{}
			cmd.Stderr = said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			cmd.Process.Signal(syscall.SIGINT)
			cmd.Wait()
			for _, want := range append(row.want, `"error":"interrupted"`) {
				if cmd.ProcessState.ExitCode() != 130 || !strings.Contains(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
					t.Errorf("no %s: exit %v, stderr %s", want, cmd.ProcessState, said)
				}
			}
		})
	}
	t.Run("CL-37 while standard input is read", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		cmd := g.command("run", "--new", "--model", "t/echo", "-")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			fmt.Fprint(in, strings.Repeat("x", 1<<17)) // more than a pipe holds: it reads by now
			cmd.Process.Signal(syscall.SIGTERM)
		}()
		cmd.Wait()
		if cmd.ProcessState.ExitCode() != 143 || len(g.made()) > 0 {
			t.Errorf("%v, made %v", cmd.ProcessState, g.made())
		}
	})
}

func TestReconnect(t *testing.T) {
	t.Parallel()
	t.Run("CL-45 a follow goes on over a killed daemon, and no event comes twice", func(t *testing.T) {
		g := newGround(t)
		g.must("run", "--new", "--bot", "Bob", "--model", "t/echo", "one")
		cmd := g.command("follow", "--all", "--reconnect", "--no-deltas")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		seen := map[int64]bool{}
		finished := func() {
			for lines.Scan() {
				e, err := protocol.ParseEvent(lines.Bytes())
				if err != nil {
					t.Fatalf("%q: %v", lines.Text(), err)
				}
				if e.Durable && seen[e.Cursor] {
					t.Errorf("cursor %d came twice", e.Cursor)
				}
				seen[e.Cursor] = true
				if e.Kind == protocol.KindTurnFinished {
					return
				}
			}
			t.Fatal("the follow ended")
		}
		finished()
		ready, err := g.client().Ready(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(ready.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		g.must("run", "--detach", "--bot", "Bob", "two")
		finished()
		cmd.Process.Signal(syscall.SIGTERM)
		if cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
			t.Errorf("%v", cmd.ProcessState)
		}
	})
}

func TestClosedOutput(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"", "--pretty"} {
		t.Run("CL-38 a run whose reader went away "+view, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			gate(g)
			args := []string{"run", "--new", "--bot", "Bob", "--model", "t/hold", "hold"}
			if view != "" {
				args = append([]string{"run", view}, args[1:]...)
			}
			cmd := g.command(args...)
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			out.Close() // and nothing more is written: the turn stands at its gate
			cmd.Wait()
			if cmd.ProcessState.ExitCode() != 1 || view == "" && said.Len() > 0 {
				t.Errorf("%v, stderr %s", cmd.ProcessState, &said)
			}
			release(g)
			if got := ended(g, 1); got != "completed" {
				t.Errorf("the turn ended %s", got)
			}
		})
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	t.Run("CL-53 a held turn is interrupted and everything is let go", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		turn := held(g)
		g.must("shutdown")
		if _, err := os.Lstat(g.store() + ".sock"); !os.IsNotExist(err) {
			t.Errorf("the socket is there: %v", err)
		}
		lock, err := place.Lock(g.store()+".owner-lock", "held")
		if err != nil {
			t.Fatalf("the store is not free: %v", err)
		}
		lock.Close()
		r := g.run("result", "--bot", "Bob", "--turn", fmt.Sprint(turn))
		if r.status != 1 || !strings.Contains(r.stdout, `"status":"interrupted"`) {
			t.Errorf("exit %d, %s%s", r.status, r.stdout, r.stderr)
		}
	})
	t.Run("CL-53 with a grace it may end by itself", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		turn := held(g)
		done := make(chan ran)
		go func() { done <- g.run("shutdown", "--grace", "60") }()
		release(g)
		if r := <-done; r.status != 0 {
			t.Fatalf("exit %d, %s", r.status, r.stderr)
		}
		out := g.must("result", "--bot", "Bob", "--turn", fmt.Sprint(turn))
		if !strings.Contains(out, `"status":"completed"`) {
			t.Error(out)
		}
	})
}

func TestManyBots(t *testing.T) {
	t.Parallel()
	t.Run("CL-49 seventy bots with long instructions are one array", func(t *testing.T) {
		g := newGround(t)
		g.must("start")
		c := g.client()
		for i := range 70 {
			_, err := c.Create(context.Background(), &protocol.Create{
				Bot: fmt.Sprintf("bot%02d", i*37%70), Model: "t/echo",
				Instructions: strings.Repeat("i", protocol.MaxText), Workspace: g.dir,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		out := g.must("ls")
		var bots []struct {
			Name         string
			Instructions *string
		}
		if err := json.Unmarshal([]byte(out), &bots); err != nil || len(bots) != 70 || strings.Count(out, "\n") != 1 {
			t.Fatalf("%d bots, %v", len(bots), err)
		}
		for i, b := range bots {
			if b.Name != fmt.Sprintf("bot%02d", i) || b.Instructions != nil {
				t.Fatalf("bot %d is %s with instructions %v", i, b.Name, b.Instructions != nil)
			}
		}
		if table := g.must("ls", "--pretty"); strings.Count(table, "\n") != 71 {
			t.Errorf("the table has %d lines", strings.Count(table, "\n"))
		}
	})
}

func TestUnsafeFolder(t *testing.T) {
	dir := filepath.Join("/tmp", "agent-"+strconv.Itoa(os.Geteuid()))
	// The folder is shared by every program of this user, so it is not
	// loosened here: a store of another test may be served there. What the
	// command does with the refusal is shown; the check is package place's own
	// test.
	t.Run("CL-11 a refusal of the private folder is the command's error", func(t *testing.T) {
		var out, errs bytes.Buffer
		a := &app{stdout: &out, stderr: &errs}
		status := a.report(&place.Error{Code: "unsafe_socket_directory", Detail: dir + " is open to others"})
		if want := `{"error":"unsafe_socket_directory","detail":"` + dir + ` is open to others"}` + "\n"; status != 1 || errs.String() != want {
			t.Errorf("%d, %s", status, errs.String())
		}
	})
}

func TestKeysOfTheEnvFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, env, want string }{
		{"CL-20 a key of the file is used", "", "sk-of-the-file"},
		{"PV-68 the environment's value is used over the file's", "sk-of-the-environment", "sk-of-the-environment"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			keys := make(chan string, 16)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case keys <- r.Header.Get("x-api-key"):
				default:
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			t.Cleanup(server.Close)
			g := newGround(t, "AGENT_PROVIDER=a=anthropic,"+server.URL+",A_KEY")
			if c.env != "" {
				g.env = append(g.env, "A_KEY="+c.env)
			}
			if err := os.MkdirAll(filepath.Join(g.home, ".agent"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(g.home, ".agent", "env"), []byte("A_KEY=sk-of-the-file\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := g.run("run", "--new", "--bot", "Bob", "--model", "a/m", "hi")
			if r.status != 1 || strings.Contains(r.stdout+r.stderr, "sk-of-the") {
				t.Errorf("exit %d, %s%s", r.status, r.stdout, r.stderr)
			}
			select {
			case got := <-keys:
				if got != c.want {
					t.Errorf("the call carried %q", got)
				}
			default:
				t.Errorf("no call came: %s%s", r.stdout, r.stderr)
			}
		})
	}
}

func TestWireAlone(t *testing.T) {
	t.Parallel()
	t.Run("PO-2 any program can drive the daemon with lines of JSON on its socket", func(t *testing.T) {
		g := newGround(t)
		g.must("run", "--new", "--bot", "Bob", "--model", "t/echo", "hi")
		conn, err := net.Dial("unix", g.store()+".sock")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		lines := bufio.NewReader(conn)
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"event":"ready","protocol":3,`) {
			t.Fatalf("%s, %v", line, err)
		}
		fmt.Fprintln(conn, `{"id":"x","op":"inspect","bot":"Bob"}`)
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.TrimSpace(g.must("show", "--bot", "Bob"))
		if want := `{"id":"x","result":` + shown + "}\n"; line != want {
			t.Errorf("the wire says %s, show %s", line, shown)
		}
	})
}

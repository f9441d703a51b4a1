package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agent/protocol"
)

// place makes a home, a target in it and an environment with nothing of an
// agent's. Tests that use it change the environment and are not parallel.
func newHome(t *testing.T) (home string, target Target) {
	t.Helper()
	home = socketDir(t)
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AGENT_") || strings.HasSuffix(name, "_API_KEY") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", home)
	return home, Target{Store: filepath.Join(home, "s.sqlite"), Socket: filepath.Join(home, "s.sqlite.sock")}
}

func testBinary(t *testing.T) string {
	t.Helper()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// startedClient has a starter of the test binary, and ends what it started.
func startedClient(t *testing.T, target Target, s Starter) *Client {
	t.Helper()
	s.Bin = testBinary(t)
	c := &Client{Target: target, Starter: &s}
	t.Cleanup(func() {
		if _, err := os.Stat(target.Socket); err == nil {
			if err := c.Shutdown(t.Context(), 0); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}
		c.Close()
	})
	return c
}

// seen is what the started daemon wrote down of its start.
type seen struct{ Args, Env []string }

func readSeen(t *testing.T, target Target) (s seen) {
	t.Helper()
	text, err := os.ReadFile(target.Store)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func end(t *testing.T, c *Client) {
	t.Helper()
	if err := c.Shutdown(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

func TestStart(t *testing.T) {
	home, target := newHome(t)
	os.Mkdir(filepath.Join(home, ".agent"), 0o700)
	envFile := filepath.Join(home, ".agent", "env")
	if err := os.WriteFile(envFile, []byte("OPENAI_API_KEY=from-file\nANTHROPIC_API_KEY=from-file\nEMPTY=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANTHROPIC_API_KEY", "from-environment")
	t.Setenv("AGENT_TURN", "5")
	t.Setenv("AGENT_PARENT", "P")
	t.Setenv("AGENT_MODEL", "a/b")
	processes := int64(3)
	c := startedClient(t, target, Starter{Limits: Limits{MaxProcesses: &processes}, Walls: []string{"/wall"}})
	c.Starter.Limits = Limits{} // the stand-in announces no limits
	ready, started, err := c.Start(t.Context(), &Starter{Bin: c.Starter.Bin, Walls: []string{filepath.Join(home, "w")}})
	if err != nil || !started {
		t.Fatalf("%v %v", started, err)
	}
	t.Run("CL-22 a second start finds the first one's daemon", func(t *testing.T) {
		again, started, err := c.Start(t.Context(), nil)
		if err != nil || started || again.PID != ready.PID {
			t.Errorf("%+v %v %v", again, started, err)
		}
	})
	t.Run("CL-21 the run folder is walled and the rules are protected, always", func(t *testing.T) {
		if !slices.Equal(ready.Walls, []string{filepath.Join(home, ".agent", "run"), filepath.Join(home, "w")}) ||
			!slices.Equal(ready.Protected, []string{filepath.Join(home, ".agent", "rules")}) {
			t.Errorf("walls %v, protected %v", ready.Walls, ready.Protected)
		}
	})
	t.Run("CL-23 a wall that the daemon lacks is a mismatch", func(t *testing.T) {
		_, _, err := c.Start(t.Context(), &Starter{Walls: []string{"/other"}})
		if !errors.Is(err, protocol.DaemonConfigurationMismatch) || !strings.Contains(err.Error(), "--wall: requested /other but daemon has") {
			t.Errorf("got %v", err)
		}
	})
	got := readSeen(t, target)
	t.Run("CL-20 the environment wins over the file, which fills up the rest", func(t *testing.T) {
		for _, want := range []string{"OPENAI_API_KEY=from-file", "ANTHROPIC_API_KEY=from-environment", "AGENT_MODEL=a/b"} {
			if !slices.Contains(got.Env, want) {
				t.Errorf("no %s", want)
			}
		}
		for _, entry := range got.Env {
			for _, scrubbed := range []string{"AGENT_BOT", "AGENT_PARENT", "AGENT_TURN", "AGENT_SHELL_CONTEXT", "EMPTY="} {
				if strings.HasPrefix(entry, scrubbed) {
					t.Errorf("the daemon has %s", entry)
				}
			}
		}
	})
	t.Run("the keys imply the providers", func(t *testing.T) {
		if !slices.Contains(got.Args, "--provider=anthropic") || !slices.Contains(got.Args, "--provider=openai") || slices.Contains(got.Args, "--provider=openrouter") {
			t.Errorf("got %v", got.Args)
		}
	})
	t.Run("CL-8 the log is the person's alone", func(t *testing.T) {
		info, err := os.Stat(target.Store + ".log")
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	})
	t.Run("CL-95 the daemon leads a session of its own", func(t *testing.T) {
		sid, err := getsid(ready.PID)
		if err != nil || sid != ready.PID {
			t.Errorf("session %d of %d, %v", sid, ready.PID, err)
		}
	})
	t.Run("CL-53 shutdown returns when the process is gone", func(t *testing.T) {
		end(t, c)
		if !processGone(ready.PID) {
			t.Error("it is still there")
		}
	})
}

// getsid is the session a process belongs to.
func getsid(pid int) (int, error) {
	sid, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}

func TestStartRace(t *testing.T) {
	_, target := newHome(t)
	t.Run("CL-16 many that start together end with one daemon", func(t *testing.T) {
		pids := make(chan int, 8)
		var wg sync.WaitGroup
		var last *Client
		for range 8 {
			c := &Client{Target: target, Starter: &Starter{Bin: testBinary(t), Providers: nil, Env: append(os.Environ(), "AGENT_PROVIDER=scripted")}}
			last = c
			wg.Go(func() {
				ready, err := c.Ready(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				pids <- ready.PID
				c.Close()
			})
		}
		wg.Wait()
		close(pids)
		first := <-pids
		for pid := range pids {
			if pid != first {
				t.Errorf("daemons %d and %d", first, pid)
			}
		}
		end(t, last)
	})
}

// The store's owner may be leaving, its socket closed already.
func TestStartWhileADaemonLeaves(t *testing.T) {
	_, target := newHome(t)
	owned := filepath.Join(t.TempDir(), "owned")
	if err := os.WriteFile(owned, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SERVE_OWNED", owned)
	t.Setenv("AGENT_PROVIDER", "scripted")
	c := startedClient(t, target, Starter{})
	_, started, err := c.Start(t.Context(), c.Starter)
	if err != nil || !started {
		t.Fatalf("%v %v", started, err)
	}
	if _, err := os.Stat(owned); err == nil {
		t.Error("the first daemon lost no race")
	}
	end(t, c)
}

func TestFailureIsTheChildsOwn(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	text := "agent: loading\nagent: io_error: no space\n{\"event\":\"ready\",\"pid\":9}\nagent: store_already_owned: process 9\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		child child
		want  string
	}{
		{child{code: 1}, "agent: io_error: no space"},
		{child{code: 1, logFrom: int64(len(text))}, "agent serve exited with status 1"},
		{child{code: -1, ended: "signal: killed", logFrom: int64(len(text))}, "agent serve was ended: signal: killed"},
		{child{code: 0}, "agent serve exited with status 0: it was ended before it could be met"},
	} {
		if got := row.child.failure(log); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
	text += "agent: half a li"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	half := child{code: 1}
	if got := half.failure(log); got != "agent: half a li" {
		t.Errorf("got %q", got)
	}
}

func TestStartRefusals(t *testing.T) {
	home, target := newHome(t)
	t.Setenv("SERVE_EXIT", "1")
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T)
		starter Starter
		code    protocol.Code
		detail  string
	}{
		{"CL-18 the log's last line says why a daemon failed", nil, Starter{Providers: []string{"x=responses,not-a-url"}}, protocol.DaemonStartFailed, "invalid_provider_url"},
		{
			"another daemon owns the store and never answers", func(t *testing.T) { t.Setenv("SERVE_EXIT", "75") },
			Starter{Providers: []string{"scripted"}, Window: 400 * time.Millisecond},
			protocol.DaemonStartTimeout, "within 400ms: another daemon has the store",
		},
		{"no provider to start with", nil, Starter{}, protocol.NoProviders, "--provider scripted"},
		{"CL-12 looking at a store never makes one", nil, Starter{ExistingOnly: true, Providers: []string{"scripted"}}, protocol.StoreNotFound, "no store"},
		{"CL-13 no spawning", nil, Starter{NoSpawn: true, Providers: []string{"scripted"}}, protocol.DaemonUnavailable, ""},
		{"CL-67 inside a bot's shell nothing is started", func(t *testing.T) {
			t.Setenv("AGENT_SHELL_CONTEXT", "1")
			t.Setenv("AGENT_SOCKET", target.Socket)
		}, Starter{Providers: []string{"scripted"}}, protocol.DaemonUnavailable, ""},
		{"a program that is not there", nil, Starter{Bin: "/none/agent", Providers: []string{"scripted"}}, protocol.DaemonStartFailed, "/none/agent"},
		{"CL-20 an env file that others can read", func(t *testing.T) {
			os.Mkdir(filepath.Join(home, ".agent"), 0o700)
			if err := os.WriteFile(filepath.Join(home, ".agent", "env"), []byte("OPENAI_API_KEY=sk-secret"), 0o640); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(filepath.Join(home, ".agent", "env")) })
		}, Starter{}, protocol.EnvFilePermissions, "chmod 600"},
		{"a log that is a link", func(t *testing.T) {
			os.Remove(target.Store + ".log")
			if err := os.Symlink(filepath.Join(home, "elsewhere"), target.Store+".log"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(target.Store + ".log") })
		}, Starter{Providers: []string{"scripted"}}, protocol.DaemonStartFailed, "log"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.prepare != nil {
				row.prepare(t)
			}
			if row.starter.Bin == "" {
				row.starter.Bin = testBinary(t)
			}
			c := &Client{Target: target, Starter: &row.starter}
			defer c.Close()
			_, err := c.Ready(t.Context())
			if protocol.CodeOf(err) != row.code || !strings.Contains(err.Error(), row.detail) || strings.Contains(err.Error(), "sk-secret") {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(target.Store); !errors.Is(err, os.ErrNotExist) {
				t.Error("a store was made")
			}
			if _, err := os.Stat(filepath.Join(home, "elsewhere")); !errors.Is(err, os.ErrNotExist) {
				t.Error("the link was followed")
			}
		})
	}
}

func TestImpliedProviders(t *testing.T) {
	home, _ := newHome(t)
	for _, row := range []struct {
		name string
		env  []string
		want []string
	}{
		{"nothing implies nothing", nil, nil},
		{"a blank key is not set", []string{"OPENAI_API_KEY= "}, nil},
		{"keys in their fixed order", []string{"OPENROUTER_API_KEY=a", "OPENAI_API_KEY=b", "ANTHROPIC_API_KEY=c"}, []string{"anthropic", "openai", "openrouter"}},
		{"AGENT_PROVIDER goes before keys", []string{"OPENAI_API_KEY=b", "AGENT_PROVIDER= a=chat,http://h:1/v1,KEY \n ollama"}, []string{"a=chat,http://h:1/v1,KEY", "ollama"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := ImpliedProviders(row.env); !slices.Equal(got, row.want) {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Run("a sign-in implies chatgpt", func(t *testing.T) {
		os.Mkdir(filepath.Join(home, ".agent"), 0o700)
		if err := os.WriteFile(filepath.Join(home, ".agent", "chatgpt.json"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ImpliedProviders([]string{"OPENAI_API_KEY=b"}); !slices.Equal(got, []string{"openai", "chatgpt"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	dir := socketDir(t)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	ttl := "1h"
	ready := &protocol.Ready{
		Walls: []string{dir}, Protected: []string{"/p"},
		Limits: protocol.Limits{Processes: 64, StallTimeoutSeconds: 120, ContextBytes: 1024, ContextItems: 2, CacheTTL: "5m"},
		Providers: map[string]protocol.ProviderInfo{
			"openai":  {Family: "responses", URL: "https://api.openai.com/v1", Transport: "http", Auth: "key"},
			"mine":    {Family: "chat", URL: "http://127.0.0.1:9/v1", Transport: "http", Auth: "none"},
			"s":       {Family: "scripted", Transport: "local", Auth: "none", URL: "/abs/script"},
			"bedrock": {Family: "anthropic", URL: "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1", Transport: "http", Auth: "sigv4"},
		},
	}
	for _, row := range []struct {
		name string
		s    Starter
		want []string // each is in the detail; none: no error
	}{
		{"nothing stated", Starter{}, nil},
		{"the same values", Starter{
			Providers: []string{"openai", "mine=chat,http://127.0.0.1:9/v1/", "s=scripted,script"}, Walls: []string{link}, Protect: []string{"/p"},
			Limits: Limits{MaxProcesses: n(64), StallTimeout: n(120), ContextBytes: n(1), ContextItems: n(1), IdleExit: n(0)},
		}, nil},
		{"a region of the environment", Starter{Providers: []string{"bedrock"}, Env: []string{"AWS_REGION=eu-west-1"}}, nil},
		{"a region that is not known here", Starter{Providers: []string{"bedrock"}, Env: []string{"A=b"}}, nil},
		{"another URL", Starter{Providers: []string{"mine=chat,http://127.0.0.1:8/v1"}}, []string{"--provider mine: requested url http://127.0.0.1:8/v1 but daemon has http://127.0.0.1:9/v1"}},
		{"PV-3 another transport", Starter{Providers: []string{"openai=responses-ws"}}, []string{"requested transport websocket but daemon has http"}},
		{"another credential", Starter{Providers: []string{"mine=chat,http://127.0.0.1:9/v1,KEY"}}, []string{"requested auth key but daemon has none"}},
		{"an unregistered provider", Starter{Providers: []string{"ollama"}}, []string{"--provider ollama: not registered"}},
		{
			"several at once",
			Starter{Walls: []string{"/other"}, Limits: Limits{MaxProcesses: n(3), StallTimeout: n(9), IdleExit: n(7), RetainTurns: n(2), CacheTTL: &ttl}},
			[]string{
				"--max-processes: requested 3 but daemon has 64; --stall-timeout: requested 9 but daemon has 120; --idle-exit: requested 7 but daemon has 0",
				"--retain-turns: requested 2 but daemon has none", "--cache-ttl: requested 1h but daemon has 5m", "--wall: requested /other",
			},
		},
	} {
		t.Run("CL-23 "+row.name, func(t *testing.T) {
			t.Parallel()
			err := row.s.Check(ready)
			if len(row.want) == 0 {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, protocol.DaemonConfigurationMismatch) {
				t.Fatalf("got %v", err)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %v", want, err)
				}
			}
		})
	}
}

func TestShutdownFollowsTheProcess(t *testing.T) {
	t.Parallel()
	// sleeper starts a process that ends when told. It is not reaped before the
	// test's end.
	sleeper := func(t *testing.T) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	t.Run("a zombie counts as gone", func(t *testing.T) {
		t.Parallel()
		cmd := sleeper(t)
		grace := make(chan int64, 1)
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			grace <- r.Params.(*protocol.Shutdown).GraceMS
			s.result(r, protocol.ShuttingDown{ShuttingDown: true})
			cmd.Process.Kill()
			s.conn.Close()
		})
		f.announce(func(r *protocol.Ready) { r.PID = cmd.Process.Pid })
		if err := f.client(t).Shutdown(t.Context(), 1500*time.Millisecond); err != nil {
			t.Error(err)
		}
		if g := <-grace; g != 1500 {
			t.Errorf("grace %d", g)
		}
	})
	t.Run("a process that stays is waited for until the limit", func(t *testing.T) {
		t.Parallel()
		cmd := sleeper(t)
		ended := make(chan struct{})
		close(ended)
		if err := awaitExit(t.Context(), cmd.Process.Pid, ended, 50*time.Millisecond); !errors.Is(err, protocol.DaemonShutdownTimeout) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no process is signalled that is not the listener", func(t *testing.T) {
		t.Parallel()
		cmd := sleeper(t)
		for _, pid := range []int64{0, -1, 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, int64(cmd.Process.Pid), int64(os.Getpid())} {
			socket := filepath.Join(socketDir(t), "s")
			listener, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					fmt.Fprintf(conn, `{"event":"ready","protocol":%d,"pid":%d,"version":"1"}`+"\n", protocol.Version-1, pid)
					conn.Close()
				}
			}()
			c := &Client{Target: Target{Store: "/none", Socket: socket}}
			if got, err := c.ShutdownPID(t.Context(), 0); got != 0 || !errors.Is(err, protocol.DaemonProtocolMismatch) {
				t.Errorf("pid %d: %d, %v", pid, got, err)
			}
		}
		if processGone(cmd.Process.Pid) {
			t.Error("an unrelated process was ended")
		}
	})
	t.Run("a daemon of an older protocol is ended by SIGTERM", func(t *testing.T) {
		t.Parallel()
		cmd := sleeper(t)
		if err := endOld(t.Context(), cmd.Process.Pid); err != nil {
			t.Error(err)
		}
	})
	t.Run("without a daemon it is daemon_unavailable and none is started", func(t *testing.T) {
		t.Parallel()
		c := &Client{Target: Target{Store: "/none", Socket: filepath.Join(socketDir(t), "s")}, Starter: &Starter{Bin: "/none"}}
		if err := c.Shutdown(t.Context(), 0); !errors.Is(err, protocol.DaemonUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestStartNeedsAWholeTarget(t *testing.T) {
	home, target := newHome(t)
	t.Setenv("ANTHROPIC_API_KEY", "k")
	t.Chdir(home)
	for _, row := range []struct {
		name   string
		target Target
		code   protocol.Code
	}{
		{"a socket without a store", Target{Socket: target.Socket}, protocol.InvalidStorePath},
		{"a relative store", Target{Store: "s.sqlite", Socket: target.Socket}, protocol.InvalidStorePath},
		{"a relative socket", Target{Store: target.Store, Socket: "s.sqlite.sock"}, protocol.InvalidSocketPath},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := startedClient(t, row.target, Starter{})
			if _, err := c.Ready(t.Context()); !errors.Is(err, row.code) {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(home); err != nil || len(left) != 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}

func TestAChildThatLostIsEnded(t *testing.T) {
	home, target := newHome(t)
	t.Setenv("ANTHROPIC_API_KEY", "k")
	holder, err := net.Listen("unix", filepath.Join(home, "hold"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	t.Setenv("SERVE_HOLD", holder.Addr().String())
	c := &Client{Target: target}
	defer c.Close()
	type outcome struct {
		started bool
		err     error
	}
	got := make(chan outcome, 1)
	go func() {
		_, started, err := c.Start(context.Background(), &Starter{Bin: testBinary(t)})
		got <- outcome{started, err}
	}()
	child, err := holder.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close() // which lets it start
	winner := &fake{socket: target.Socket, sessions: map[*fakeSession]bool{}}
	winner.ready.PID = os.Getpid()
	winner.start(t)
	defer winner.stop()
	if o := <-got; o.err != nil || o.started {
		t.Errorf("started %v, %v", o.started, o.err)
	}
	child.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := child.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the child that lost lives: %d, %v", n, err)
	}
}

func TestAWrapperStartsADaemonToo(t *testing.T) {
	home, target := newHome(t)
	t.Setenv("ANTHROPIC_API_KEY", "k")
	wrapper := filepath.Join(home, "wrapper")
	script := "#!/bin/sh\ntrap 'kill $!' TERM\n'" + testBinary(t) + "' \"$@\" &\nwait\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Client{Target: target}
	defer c.Close()
	ready, started, err := c.Start(t.Context(), &Starter{Bin: wrapper})
	if err != nil || !started {
		t.Fatalf("started %v, %v", started, err)
	}
	again, started, err := c.Start(t.Context(), &Starter{Bin: wrapper})
	if err != nil || started || again.PID != ready.PID {
		t.Errorf("the second: %+v, %v, %v", again, started, err)
	}
	end(t, c)
}

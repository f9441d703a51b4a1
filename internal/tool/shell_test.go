package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

type shellResult struct {
	Stdout, Stderr   string
	ExitCode         *int   `json:"exit_code"`
	Success          bool   `json:"success"`
	TimedOut         bool   `json:"timed_out"`
	Signal           string `json:"signal"`
	LeftRunning      bool   `json:"left_running"`
	Error            string
	Artifacts, Files []string
	SandboxHint      string   `json:"sandbox_hint"`
	ProtectedChanged []string `json:"protected_changed"`
}

func shell(t testing.TB, env *Env, command string, more ...any) (shellResult, Result) {
	t.Helper()
	return shellContext(t, context.Background(), env, command, more...)
}

func shellContext(t testing.TB, ctx context.Context, env *Env, command string, more ...any) (shellResult, Result) {
	t.Helper()
	args := map[string]any{"command": command}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	r := callContext(t, ctx, env, "shell", args)
	var s shellResult
	d := json.NewDecoder(strings.NewReader(r.Output))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%v: %.300s", err, r.Output)
	}
	if r.Failed == s.Success {
		t.Errorf("failed is %v beside success %v", r.Failed, s.Success)
	}
	return s, r
}

// exited checks that the command ended by itself with a code.
func exited(t testing.TB, s shellResult, code int) {
	t.Helper()
	if s.ExitCode == nil || *s.ExitCode != code || s.TimedOut || s.Signal != "" {
		t.Errorf("got %+v, want exit code %d", s, code)
	}
}

// gone checks that a process, whose number a file holds, is no more.
func gone(t testing.TB, pidFile string) {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// It was sent SIGKILL, which takes effect when the kernel gets to it; an
	// orphan is a zombie until whoever adopted it reaps it.
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); runtime.Gosched() {
		if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) || zombie(pid) {
			return
		}
	}
	t.Errorf("process %d is alive", pid)
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

func TestShell(t *testing.T) {
	t.Parallel()
	t.Run("RT-23 both streams and the exit code are in the result", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, r := shell(t, env, "echo out; echo err >&2; exit 7")
		exited(t, s, 7)
		if s.Stdout != "out\n" || s.Stderr != "err\n" || s.Success || len(r.Artifacts) != 0 {
			t.Errorf("got %+v", s)
		}
		if want := `{"stdout":"out\n","stderr":"err\n","exit_code":7,"success":false}`; r.Output != want {
			t.Errorf("got %s, want %s", r.Output, want)
		}
	})
	t.Run("the command runs in the workspace with its environment and no stdin", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		env.Environ = append(env.Environ, "AGENT_BOT=Ada")
		s, _ := shell(t, env, "pwd; echo $AGENT_BOT; cat; [ -t 0 ] || echo no terminal")
		exited(t, s, 0)
		if want := env.Workspace + "\nAda\nno terminal\n"; s.Stdout != want {
			t.Errorf("got %q, want %q", s.Stdout, want)
		}
	})
	t.Run("a script that begins with a dash is a script", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, _ := shell(t, env, "-x 2>&1 || echo ran")
		if !strings.Contains(s.Stdout, "ran") {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("RT-24 a command past its timeout keeps what it printed and leaves no process", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, _ := shell(t, env, "echo printed; sleep 300 & echo $! >pid; sleep 300", "timeout_ms", 300)
		if s.Stdout != "printed\n" || !s.TimedOut || s.ExitCode != nil || s.Signal != "SIGTERM" {
			t.Errorf("got %+v", s)
		}
		gone(t, filepath.Join(env.Workspace, "pid"))
	})
	t.Run("a command that traps TERM has its moment, then is killed", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		start := time.Now()
		s, _ := shell(t, env, "trap 'echo asked' TERM; while :; do sleep 300 & wait; done", "timeout_ms", 100)
		if s.Stdout != "asked\n" || !s.TimedOut || s.ExitCode != nil || s.Signal != "SIGKILL" {
			t.Errorf("got %+v", s)
		}
		if took := time.Since(start); took < termGrace {
			t.Errorf("killed after %v", took)
		}
	})
	t.Run("what a command started has its moment, too", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, _ := shell(t, env, "(trap 'sleep 0.15; echo saved >saved; exit' TERM; while :; do sleep 0.01; done) >/dev/null 2>&1 & echo $! >pid; "+
			"trap 'exit 0' TERM; while :; do sleep 0.01; done", "timeout_ms", 300)
		if !s.TimedOut {
			t.Errorf("got %+v", s)
		}
		holds(t, filepath.Join(env.Workspace, "saved"), "saved\n")
		gone(t, filepath.Join(env.Workspace, "pid"))
	})
	t.Run("what a command started and heeds nothing is killed all the same", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		start := time.Now()
		s, _ := shell(t, env, "(trap '' TERM; while :; do sleep 0.01; done) >/dev/null 2>&1 & echo $! >pid; "+
			"trap 'exit 0' TERM; while :; do sleep 0.01; done", "timeout_ms", 100)
		if took := time.Since(start); !s.TimedOut || took < termGrace || took > termGrace+2*time.Second {
			t.Errorf("got %+v after %v", s, took)
		}
		gone(t, filepath.Join(env.Workspace, "pid"))
	})
	t.Run("a command killed by a signal of its own has no exit code", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, _ := shell(t, env, "kill -SEGV $$")
		if s.ExitCode != nil || s.Signal != "SIGSEGV" || s.Success {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("RT-25 a child started with & is gone when the call returns", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, _ := shell(t, env, "sleep 300 >/dev/null 2>&1 & echo $! >pid")
		exited(t, s, 0)
		gone(t, filepath.Join(env.Workspace, "pid"))
	})
	t.Run("RT-117 a child with the pipe does not hold up the answer", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		start := time.Now()
		s, _ := shell(t, env, "sleep 300 & echo hi")
		exited(t, s, 0)
		if s.Stdout != "hi\n" || s.LeftRunning {
			t.Errorf("got %+v", s)
		}
		s, _ = shell(t, env, "setsid sleep 300 >&1 & echo hi; while ! pgrep -x -s 0 sleep >/dev/null && ! ps -o args= -p $! | grep -q '^sleep'; do :; done; echo $! >pid")
		exited(t, s, 0)
		if s.Stdout != "hi\n" || !s.LeftRunning {
			t.Errorf("got %+v", s)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("answered after %v", took)
		}
		text, _ := os.ReadFile(filepath.Join(env.Workspace, "pid"))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			unix.Kill(pid, unix.SIGKILL)
		}
	})
	t.Run("RT-122 bash writes work and its start files do not", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		for _, name := range []string{"BASH_ENV", "ENV"} {
			env.Environ = append(env.Environ, name+"="+file(t, env, name, "echo start file"))
		}
		env.Environ = append(env.Environ, "PROMPT_COMMAND=echo prompt")
		file(t, env, "x", "")
		s, _ := shell(t, env, "[[ -f x ]] && a=(1 2); echo ${a[0]}; env | grep -c '^BASH_ENV\\|^ENV=\\|^PROMPT_COMMAND'")
		if s.Stdout != "1\n0\n" || s.Stderr != "" {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("a workspace that is gone", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		env.Workspace += "/gone"
		failed(t, call(t, env, "shell", map[string]any{"command": "true"}), "workspace_unavailable", env.Workspace)
	})
	t.Run("a shell that cannot be started", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		env.Shell = "/nowhere/bash"
		failed(t, call(t, env, "shell", map[string]any{"command": "true"}), "shell_spawn_failed", "/nowhere/bash")
	})
	t.Run("invalid output is shown as replacement characters", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, _ := shell(t, env, `printf 'caf\351 \xe2\x82\xac \xe2\x82'`)
		if want := "caf\uFFFD € \uFFFD\uFFFD"; s.Stdout != want {
			t.Errorf("got %q, want %q", s.Stdout, want)
		}
	})
	t.Run("what a sandboxed bot may ask changes nothing here", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, _ := shell(t, env, "echo hi", "sandbox_permissions", "require_escalated", "justification", "to greet")
		exited(t, s, 0)
	})
	t.Run("the description names the shell", func(t *testing.T) {
		t.Parallel()
		if text := shellTool.Def().Description; !strings.Contains(text, FindShell()) || strings.Contains(text, "{{") {
			t.Errorf("got %s", text)
		}
	})
}

func TestShellEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		cause StopCause
		says  string
	}{
		{"an interrupt lets the command clean up", StopInterrupt, "cleaned\n"},
		{"a shutdown does not wait", StopShutdown, ""},
		{"a pause does not wait", StopPause, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			env.Cause = func() StopCause { return row.cause }
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ready := filepath.Join(env.Workspace, "ready")
			if err := unix.Mkfifo(ready, 0o600); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = os.ReadFile(ready) // returns when the command has opened and closed it
				cancel()
			}()
			s, _ := shellContext(t, ctx, env, "trap 'echo cleaned; exit 0' TERM; sleep 300 & echo $! >pid; : >ready; wait")
			if s.Stdout != row.says || s.ExitCode != nil || s.Success || s.TimedOut {
				t.Errorf("got %+v", s)
			}
			gone(t, filepath.Join(env.Workspace, "pid"))
		})
	}
}

func TestShellWaitsForASlot(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	env.Processes = NewSlots(1)
	if err := env.Processes.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	failed(t, callContext(t, ctx, env, "shell", map[string]any{"command": "echo >ran"}), "cancelled", "before")
	if _, err := os.Stat(filepath.Join(env.Workspace, "ran")); err == nil {
		t.Error("it ran")
	}
	env.Processes.Release()
	s, _ := shell(t, env, "echo hi")
	exited(t, s, 0)
	if n := env.Processes.Taken(); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}

func TestShellOutput(t *testing.T) {
	t.Parallel()
	t.Run("RT-26 a long stream is shown as head and tail and kept whole", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, r := shell(t, env, "for ((i=0;i<20000;i++)); do printf '%09d\\n' $i; done")
		exited(t, s, 0)
		if len(r.Artifacts) != 1 || len(r.Artifacts[0].Data) != 200_000 || r.Artifacts[0].Bytes != 200_000 || r.Artifacts[0].Stream != "stdout" {
			t.Fatalf("kept %d artifacts", len(r.Artifacts))
		}
		whole := string(r.Artifacts[0].Data)
		head, rest, _ := strings.Cut(s.Stdout, "\n[")
		notice, tail, _ := strings.Cut(rest, "]\n")
		if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(head) > halfShown || len(tail) > halfShown {
			t.Errorf("head of %d and tail of %d bytes", len(head), len(tail))
		}
		if want := fmt.Sprintf("%d bytes omitted", 200_000-2*halfShown); !strings.Contains(notice, want) || !strings.Contains(notice, "7/call_1/stdout") {
			t.Errorf("the notice is %q, want %q and the reference", notice, want)
		}
		if len(s.Artifacts) != 1 || s.Artifacts[0] != "7/call_1/stdout" || s.Files != nil {
			t.Errorf("got %v, %v", s.Artifacts, s.Files)
		}
	})
	t.Run("a stream of 64 KiB is shown whole, one byte more is not", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, r := shell(t, env, "head -c 65536 /dev/zero | tr '\\0' a; head -c 65537 /dev/zero | tr '\\0' b >&2")
		if len(s.Stdout) != 65536 || len(r.Artifacts) != 1 || r.Artifacts[0].Stream != "stderr" {
			t.Errorf("%d bytes and %d artifacts", len(s.Stdout), len(r.Artifacts))
		}
	})
	t.Run("RT-27 PO-102 a very long stream becomes a private file", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t, "sk-known-value")
		s, r := shell(t, env, "yes 'a line with sk-known-value in it' | head -c 5242880")
		exited(t, s, 0)
		if len(r.Artifacts) != 1 || len(s.Files) != 1 || r.Artifacts[0].File != s.Files[0] || filepath.Dir(s.Files[0]) != env.FilesDir {
			t.Fatalf("got %v, %v", s.Files, r.Artifacts)
		}
		info, err := os.Stat(s.Files[0])
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		for _, dir := range []string{env.FilesDir, filepath.Dir(env.FilesDir)} {
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", dir, info.Mode(), err)
			}
		}
		raw := strings.Repeat("a line with sk-known-value in it\n", 5242880/33+1)[:5242880]
		holds(t, s.Files[0], strings.ReplaceAll(raw, "sk-known-value", "[REDACTED]"))
		if left := takeAll(env.Captures); left != 16<<20 {
			t.Errorf("the budget has %d bytes", left)
		}
	})
	t.Run("more than 64 MiB ends the command", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s, r := shell(t, env, "echo $$ >pid; yes")
		if s.Error != "shell_output_limit" || s.ExitCode != nil || s.Success || len(s.Files) != 1 || r.Artifacts[0].Bytes != maxStream {
			t.Fatalf("got %v %v %v", s.Error, s.ExitCode, s.Files)
		}
		if info, err := os.Stat(s.Files[0]); err != nil || info.Size() != maxStream {
			t.Errorf("%v, %v", info, err)
		}
		gone(t, filepath.Join(env.Workspace, "pid"))
	})
	t.Run("RT-28 a key split between two writes is masked", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t, "sk-0123456789")
		s, _ := shell(t, env, "printf 'key sk-0123'; sleep 0.05; printf '456789 end'")
		if s.Stdout != "key [REDACTED] end" {
			t.Errorf("got %q", s.Stdout)
		}
	})
	t.Run("without room in memory a stream goes to its file and comes back as a row", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		env.Captures = NewBudget(0)
		s, r := shell(t, env, "echo small >&2; head -c 100000 /dev/zero | tr '\\0' a")
		if s.Stderr != "small\n" || len(r.Artifacts) != 1 || len(r.Artifacts[0].Data) != 100000 || r.Artifacts[0].File != "" {
			t.Errorf("got %q, %d artifacts", s.Stderr, len(r.Artifacts))
		}
		if left, err := os.ReadDir(env.FilesDir); err != nil || len(left) != 0 {
			t.Errorf("files left: %v, %v", left, err)
		}
	})
	t.Run("a disk that takes no file cuts the stream, ends the command and says so", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		env.FilesDir = filepath.Join(file(t, env, "plain", ""), "files", "3") // below a file
		s, r := shell(t, env, "echo $$ >pid; head -c 3000000 /dev/zero | tr '\\0' a; echo over >&2; sleep 300")
		gone(t, filepath.Join(env.Workspace, "pid"))
		if s.ExitCode != nil || s.Success || s.Stderr != "" {
			t.Errorf("the command went on: %v %v %q", s.ExitCode, s.Success, s.Stderr)
		}
		if len(r.Artifacts) != 1 || !r.Artifacts[0].Truncated || len(r.Artifacts[0].Data) > maxRow || !strings.Contains(s.Stdout, "disk is full") {
			t.Errorf("got %d artifacts, %.100q", len(r.Artifacts), s.Stdout)
		}
	})
}

// takeAll empties a budget and says what it had.
func takeAll(b *Budget) (n int64) {
	for step := int64(16 << 20); step > 0; step /= 2 {
		for b.Take(step) {
			n += step
		}
	}
	return n
}

func TestShellManyAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the scenario is Linux's
	}
	t.Run("RT-124 200 commands at once block no threads", func(t *testing.T) {
		env, _ := newEnv(t)
		env.Cause = func() StopCause { return StopShutdown }
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := threads(t)
		var started, done sync.WaitGroup
		started.Add(200)
		pids := make([]int, 200)
		starts := make(chan struct{}, 4) // a start takes a thread for a moment, which then stays
		for i := range pids {
			done.Go(func() {
				starts <- struct{}{}
				c, f := startCommand(t.Context(), env, "sleep 300 & sleep 300")
				<-starts
				started.Done()
				if f != nil {
					t.Error(f)
					return
				}
				pids[i] = c.process.pid
				c.supervise(ctx, time.Minute)
				if c.leftRunning || !c.status.Signaled() {
					t.Errorf("ended with %v, left running %v", c.status, c.leftRunning)
				}
			})
		}
		started.Wait()
		if grown := threads(t) - before; grown >= 20 {
			t.Errorf("%d more threads", grown)
		}
		cancel()
		done.Wait()
		for _, pid := range pids {
			until := time.Now().Add(5 * time.Second)
			for unix.Kill(-pid, 0) == nil && !onlyZombies(pid) {
				if time.Now().After(until) {
					t.Fatalf("group %d is alive", pid)
				}
			}
		}
	})
}

// onlyZombies reports whether nothing of a process group runs any more.
func onlyZombies(group int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" && f[0] != "X" {
			return false
		}
	}
	return true
}

// threads is how many this process has.
func threads(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestOutputThatWasTakenEndsNoLaterCollection(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	r, f := startRunning(t.Context(), env, "echo one; read line; sleep 0.6; echo two; read line", true)
	if f != nil {
		t.Fatal(f)
	}
	go r.Supervise(t.Context(), time.Minute)
	defer r.CloseInput()
	// The first output is there, and taken without a look at what told of it.
	for {
		r.tails[0].mu.Lock()
		n := len(r.tails[0].buf)
		r.tails[0].mu.Unlock()
		if n > 0 {
			break
		}
		runtime.Gosched()
	}
	r.tails[0].take()
	if _, f := r.Write(t.Context(), "\n", time.Second); f != nil {
		t.Fatal(f)
	}
	if got := r.Collect(t.Context(), "proc:1", 30*time.Second).Output; !strings.Contains(got, `"stdout":"two\n"`) {
		t.Errorf("the next output was not waited for: %s", got)
	}
}

func TestCollectedOutputIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	out := newTail()
	var got string
	for i := range len("aé日b") {
		out.add([]byte{"aé日b"[i]})
		text, _ := out.take()
		got += text
	}
	if got != "aé日b" {
		t.Errorf("got %q", got)
	}
}

func TestShellSignals(t *testing.T) {
	t.Parallel()
	t.Run("RT-127 a pipeline's writer ends with its reader though the daemon catches SIGPIPE", func(t *testing.T) {
		t.Parallel()
		out := child(t, "sigpipe", "")
		if out != "y\n141\n" {
			t.Errorf("got %q", out)
		}
	})
}

func init() {
	children["sigpipe"] = func() {
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE, unix.SIGHUP)
		c, f := startCommand(context.Background(), childEnv(), "yes | head -1; echo ${PIPESTATUS[0]}")
		if f != nil {
			fmt.Println(f)
			return
		}
		c.supervise(context.Background(), time.Minute)
		fmt.Print(c.streams[0].capture.finish().preview)
	}
	children["flood"] = func() {
		env := childEnv()
		env.FilesDir = os.Getenv("TOOL_TEST_DIR") + "/files/3"
		run := func(script string) {
			c, f := startCommand(context.Background(), env, script)
			if f != nil {
				fmt.Println(f)
				os.Exit(1)
			}
			c.supervise(context.Background(), time.Minute)
			c.result()
		}
		run("yes | head -c 4194304") // what every later command needs, too
		before := highWater()
		run("head -c 2147483648 /dev/zero")
		fmt.Print(highWater() - before)
	}
}

// highWater is the most memory this process ever had, in KiB.
func highWater() int {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kib
}

func TestShellFloodTakesNoMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // memory is read from /proc
	}
	t.Parallel()
	t.Run("RT-118 2 GiB of output grows memory by less than 4 MiB", func(t *testing.T) {
		t.Parallel()
		grown, err := strconv.Atoi(child(t, "flood", t.TempDir()))
		limit := 4 << 10
		if raceEnabled {
			limit *= 4 // the detector keeps shadow memory
		}
		if err != nil || grown >= limit {
			t.Errorf("grew by %d KiB, %v", grown, err)
		}
	})
}

// childEnv is the Env of a re-run of this program.
func childEnv() *Env {
	var none noSecrets
	return &Env{
		Turn: 1, CallID: "c", Workspace: "/", Environ: []string{"PATH=" + os.Getenv("PATH")}, Shell: FindShell(),
		Redact: none, Captures: NewBudget(16 << 20), Processes: NewSlots(0),
	}
}

// child runs a role of this program and gives its output.
func child(t testing.TB, role, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "TOOL_TEST_CHILD="+role, "TOOL_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

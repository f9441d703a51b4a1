package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v2 "github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"agent/internal/daemon"
	"agent/internal/sandbox"
	"agent/internal/tool"
	"agent/protocol"
)

// The tests of this package drive real daemons: the test program plays
// `agent serve` in a process of its own, so that it can be killed.

const playVar = "AGENT_TEST_SERVE"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == sandbox.HelperVerb {
		os.Exit(sandbox.RunHelper(os.Args[2], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "internal-") {
		os.Exit(tool.HelperMain(os.Args[1:]))
	}
	if len(os.Args) > 2 && os.Args[1] == insideVerb {
		os.Exit(inside(os.Args[2:]))
	}
	if len(os.Args) == 4 && os.Args[1] == companionWord {
		playCompanion(os.Args[2], os.Args[3])
		os.Exit(0)
	}
	if text := os.Getenv(playVar); text != "" {
		os.Unsetenv(playVar)
		var set daemon.Settings
		if err := json.Unmarshal([]byte(text), &set); err != nil {
			panic(err)
		}
		err := serve(set)
		if err != nil {
			fmt.Fprintf(os.Stderr, "agent: %v\n", err)
		}
		os.Exit(daemon.ExitCode(err))
	}
	moreAtOnce()
	// A daemon bounds its process's memory, and here there are many in one: together
	// they would collect without end.
	if os.Getenv("GOMEMLIMIT") == "" {
		os.Setenv("GOMEMLIMIT", "off")
	}
	os.Exit(m.Run())
}

// serve is the daemon, on a store that is to fail when there is a plan for it.
func serve(set daemon.Settings) error {
	ctx := context.Background()
	if os.Getenv(reportVar) != "" {
		os.Unsetenv(reportVar)
		go reportTo(os.Stdin, os.Stdout)
	}
	text := os.Getenv(planVar)
	if text == "" {
		return daemon.Serve(ctx, set, os.Stdin, os.Stdout, os.Stderr)
	}
	os.Unsetenv(planVar)
	var plan faultPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return err
	}
	faults, count := plan.faults()
	defer count()
	return daemon.ServeFaulty(ctx, set, faults, os.Stdin, os.Stdout, os.Stderr)
}

// moreAtOnce runs twice as many tests beside each other as there are
// processors, unless the command line says how many: most of them wait for
// another process most of the time.
func moreAtOnce() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

// host is a place for a daemon: a home, a store, a socket and a workspace.
type host struct {
	t         testing.TB
	dir       string
	set       daemon.Settings
	env       []string
	workspace string
	bin       string // what plays the daemon: this test program
}

// newHost makes a place. script, when not "", is the model "s" of scripts.
func newHost(t testing.TB, script string) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endStrays(filepath.Join(dir, "state.sqlite"))
		os.RemoveAll(dir)
	})
	h := &host{t: t, dir: dir, workspace: filepath.Join(dir, "w"), bin: os.Args[0]}
	for _, dir := range []string{h.workspace, filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if real, err := filepath.EvalSymlinks(h.workspace); err == nil {
		h.workspace = real
	}
	h.set = daemon.Settings{
		Store: filepath.Join(dir, "state.sqlite"), Socket: filepath.Join(dir, "sock"),
		Providers: []string{"scripted"}, Limits: testLimits(), Version: "test",
	}
	if script != "" {
		h.script(script)
	}
	return h
}

func testLimits() protocol.Limits {
	return protocol.Limits{
		Active: 4096, Processes: 64, Detached: 16, Connections: 64, StallTimeoutSeconds: 120, KeepWarmSeconds: 240,
		ContextBytes: 8 << 20, ContextItems: 4096, NoteTurns: 48, CompactAt: 75, CompactKeep: 25,
		ApprovalHoldMS: 2000, CacheTTL: "5m",
	}
}

// script makes the provider "s", whose model "m" has these scripts (the value
// of "scripts" in a script file).
func (h *host) script(scripts string) {
	path := filepath.Join(h.dir, "script.json")
	text := `{"version":1,"models":{"m":{"scripts":` + scripts + `}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.set.Providers = []string{"scripted", "s=scripted," + path}
}

// process is a running daemon.
type process struct {
	t      testing.TB
	h      *host
	cmd    *exec.Cmd
	ready  protocol.Ready
	stderr *lockedBuffer
	stdin  io.WriteCloser
	stdout *bufio.Reader
	exited chan struct{}
}

type lockedBuffer struct {
	mu  chan struct{}
	buf bytes.Buffer
}

func newLockedBuffer() *lockedBuffer {
	b := &lockedBuffer{mu: make(chan struct{}, 1)}
	return b
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu <- struct{}{}
	defer func() { <-b.mu }()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu <- struct{}{}
	defer func() { <-b.mu }()
	return b.buf.String()
}

// launch starts a daemon without waiting for it to be ready.
func (h *host) launch() *process { return h.launchWith(nil) }

// launchWith is launch with its standard output given, nil for a pipe.
func (h *host) launchWith(stdout *os.File) *process {
	h.t.Helper()
	text, err := json.Marshal(h.set)
	if err != nil {
		h.t.Fatal(err)
	}
	p := &process{t: h.t, h: h, cmd: exec.Command(h.bin), stderr: newLockedBuffer(), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append([]string{"HOME=" + h.dir, "TMPDIR=" + filepath.Join(h.dir, "tmp"), playVar + "=" + string(text)}, h.env...)...)
	p.cmd.Stderr = p.stderr
	if stdout != nil {
		p.cmd.Stdout = stdout
	} else {
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			h.t.Fatal(err)
		}
		p.stdout = bufio.NewReaderSize(out, 64<<10)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		p.cmd.Process.Kill()
		if h.set.Socket != "" {
			<-p.exited
		}
		if h.t.Failed() && p.stderr.String() != "" {
			h.t.Logf("the daemon said:\n%s", p.stderr.String())
		}
	})
	if h.set.Socket == "" {
		close(p.exited)
	}
	return p
}

// start launches a daemon and waits for its ready line.
func (h *host) start() *process {
	h.t.Helper()
	p := h.launch()
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		p.cmd.Wait()
		if h.set.Socket != "" {
			close(p.exited)
		}
		h.t.Fatalf("no ready line: %v; stderr: %s", err, p.stderr.String())
	}
	if err := json.Unmarshal(line, &p.ready); err != nil {
		h.t.Fatalf("ready line %s: %v", line, err)
	}
	if h.set.Socket != "" {
		go func() {
			p.cmd.Wait()
			close(p.exited)
		}()
	}
	return p
}

// kill ends the daemon as a crash would and waits until it is gone.
func (p *process) kill() {
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// wait gives the exit status.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		p.t.Fatal("the daemon did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// conn is a client connection that speaks lines.
type conn struct {
	t     testing.TB
	c     net.Conn
	r     *bufio.Reader
	ready json.RawMessage
	next  int
	// notes are notifications met while waiting for an answer.
	notes []line
}

// line is a received line.
type line struct {
	raw    []byte
	fields map[string]json.RawMessage
}

func (l line) str(key string) string {
	var s string
	json.Unmarshal(l.fields[key], &s)
	return s
}

func (l line) num(key string) int64 {
	var n int64
	json.Unmarshal(l.fields[key], &n)
	return n
}

// data decodes an event's data.
func (l line) data(v any) {
	if err := json.Unmarshal(l.fields["data"], v); err != nil {
		panic(fmt.Sprintf("%s: %v", l.raw, err))
	}
}

func (p *process) dial() *conn {
	p.t.Helper()
	c, err := net.Dial("unix", p.h.set.Socket)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	k := &conn{t: p.t, c: c, r: bufio.NewReaderSize(c, 64<<10)}
	k.ready = k.read().raw
	return k
}

// read gives the next line.
func (k *conn) read() line {
	k.t.Helper()
	l, err := k.tryRead()
	if err != nil {
		k.t.Fatalf("the session ended: %v", err)
	}
	return l
}

func (k *conn) tryRead() (line, error) {
	k.c.SetReadDeadline(time.Now().Add(30 * time.Second))
	raw, err := k.r.ReadBytes('\n')
	if err != nil {
		return line{}, err
	}
	l := line{raw: raw}
	if err := json.Unmarshal(raw, &l.fields); err != nil {
		return l, fmt.Errorf("%s: %w", raw, err)
	}
	return l, nil
}

// hungUp returns when the daemon has closed the connection. It takes nothing of
// what was sent.
func (k *conn) hungUp() {
	k.t.Helper()
	raw, err := k.c.(*net.UnixConn).SyscallConn()
	if err != nil {
		k.t.Fatal(err)
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}}
		for end := time.Now().Add(20 * time.Second); !gone && time.Now().Before(end); {
			unix.Poll(poll, 1000)
			gone = poll[0].Revents&unix.POLLHUP != 0
		}
	})
	if err != nil || !gone {
		k.t.Fatalf("the session was not closed: %v", err)
	}
}

// write sends raw text.
func (k *conn) write(text string) {
	k.t.Helper()
	if _, err := io.WriteString(k.c, text); err != nil {
		k.t.Fatal(err)
	}
}

// request sends an op with fields given as JSON members, without the braces.
func (k *conn) request(op, members string) int {
	k.t.Helper()
	k.next++
	if members != "" {
		members = "," + members
	}
	k.write(fmt.Sprintf(`{"id":%d,"op":%q%s}`+"\n", k.next, op, members))
	return k.next
}

// answer reads up to the answer of a request and keeps what else comes.
func (k *conn) answer(id int) line {
	k.t.Helper()
	for {
		l := k.read()
		if raw, ok := l.fields["id"]; ok && string(raw) == fmt.Sprint(id) {
			return l
		}
		k.notes = append(k.notes, l)
	}
}

// ask makes a request that must succeed and decodes its result.
func (k *conn) ask(result any, op, members string) line {
	k.t.Helper()
	l := k.answer(k.request(op, members))
	if l.fields["error"] != nil {
		k.t.Fatalf("%s %s: %s", op, members, l.raw)
	}
	if result != nil {
		if err := v2.Unmarshal(l.fields["result"], result); err != nil {
			k.t.Fatalf("%s: %v", l.raw, err)
		}
	}
	return l
}

// refused makes a request that must fail with a code.
func (k *conn) refused(code protocol.Code, op, members string) line {
	k.t.Helper()
	l := k.answer(k.request(op, members))
	if got := l.str("error"); got != string(code) {
		k.t.Fatalf("%s %s: got %s, want the error %s", op, members, l.raw, code)
	}
	return l
}

// note gives the next notification, from those kept or from the wire.
func (k *conn) note() line {
	k.t.Helper()
	if len(k.notes) > 0 {
		l := k.notes[0]
		k.notes = k.notes[1:]
		return l
	}
	return k.read()
}

// until reads notifications up to one of a kind for a turn, 0 for any.
func (k *conn) until(kind string, turn int64) (seen []line) {
	k.t.Helper()
	for {
		l := k.note()
		seen = append(seen, l)
		if l.str("event") == kind && (turn == 0 || l.num("turn") == turn) {
			return seen
		}
	}
}

// last is the newest of some lines.
func last(lines []line) line { return lines[len(lines)-1] }

// kinds are the durable events of some lines, as "kind turn".
func kinds(lines []line) (out []string) {
	for _, l := range lines {
		if l.fields["cursor"] != nil && l.fields["data"] != nil {
			out = append(out, fmt.Sprintf("%s %d", l.str("event"), l.num("turn")))
		}
	}
	return out
}

// bot makes a bot on the script model with the tools named, separated by
// blanks.
func (k *conn) bot(name, workspace, tools string) protocol.Bot {
	k.t.Helper()
	list, _ := json.Marshal(strings.Fields(tools))
	var b protocol.Bot
	k.ask(&b, "create", fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":%s,"workspace":%q`, name, list, workspace))
	return b
}

// submit submits a prompt; more are further members.
func (k *conn) submit(bot, request, prompt, more string) protocol.Submitted {
	k.t.Helper()
	var s protocol.Submitted
	k.ask(&s, "submit", submission(bot, request, prompt, more))
	return s
}

func submission(bot, request, prompt, more string) string {
	text, _ := json.Marshal(prompt)
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`"bot":%q,"request_id":%q,"prompt":%s%s`, bot, request, text, more)
}

// run submits and waits for the end.
func (k *conn) run(bot, request, prompt string) protocol.Outcome {
	k.t.Helper()
	k.follow(bot, 0)
	s := k.submit(bot, request, prompt, "")
	k.until("turn_finished", s.Turn)
	return k.result(bot, s.Turn)
}

// follow follows a bot and waits until that is live. What is replayed before is
// passed over; a test that waits for what may have happened already asks for
// the follow alone.
func (k *conn) follow(bot string, after int64) {
	k.t.Helper()
	k.ask(nil, "follow", fmt.Sprintf(`"bot":%q,"after":%d`, bot, after))
	k.until("follow_live", 0)
}

func (k *conn) result(bot string, turn int64) (o protocol.Outcome) {
	k.t.Helper()
	k.ask(&o, "result", fmt.Sprintf(`"bot":%q,"turn":%d`, bot, turn))
	return o
}

// item is a stored item as text.
func (k *conn) item(bot string, node int64) string {
	k.t.Helper()
	return string(k.ask(nil, "item", fmt.Sprintf(`"bot":%q,"node":%d`, bot, node)).fields["result"])
}

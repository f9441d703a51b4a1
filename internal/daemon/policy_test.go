package daemon_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()

	t.Run("PO-1 one daemon runs many durable bots", func(t *testing.T) {
		for i := range 200 {
			name := fmt.Sprint("many", i)
			k.bot(name, h.workspace, "")
			k.submit(name, "r", "hello "+name, "")
		}
		c := p.dial()
		c.ask(nil, "follow", `"bot":"*","after":0`)
		for ended := 0; ended < 200; {
			if c.note().str("event") == "turn_finished" {
				ended++
			}
		}
		p.kill()
		p = h.start()
		k = p.dial()
		for _, i := range []int{0, 99, 199} {
			if o := k.result(fmt.Sprint("many", i), int64(i+1)); o.Text != fmt.Sprint("hello many", i) {
				t.Errorf("outcome %+v", o)
			}
		}
	})
	t.Run("PO-2 any program drives it over the socket with lines of JSON", func(t *testing.T) {
		c, err := net.Dial("unix", h.set.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r := bufio.NewReader(c)
		r.ReadBytes('\n')
		fmt.Fprintln(c, `{"id":"mine","op":"bots","limit":1}`)
		if l, _ := r.ReadString('\n'); !strings.HasPrefix(l, `{"id":"mine","result":{"bots":[{"name":"many0"`) {
			t.Errorf("got %.100s", l)
		}
	})
	t.Run("PO-10 the daemon listens on Unix sockets alone", func(t *testing.T) {
		if n := tcpListeners(t, p.cmd.Process.Pid); n != 0 {
			t.Errorf("%d TCP listeners", n)
		}
	})
	t.Run("PO-11 whoever can connect has full control, with no token and no question", func(t *testing.T) {
		k.submit("many0", "again", "x", "")
		k.ask(nil, "stats", "")
	})
}

// tcpListeners counts the listening TCP sockets of a process, on Linux.
func tcpListeners(t *testing.T, pid int) (n int) {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Logf("no /proc: %v", err)
		return 0
	}
	own := map[string]bool{}
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, _ := os.ReadFile("/proc/net/" + name)
		for _, l := range strings.Split(string(b), "\n") {
			f := strings.Fields(l)
			if len(f) > 9 && own[f[9]] && (f[3] == "0A" || strings.HasPrefix(name, "udp")) {
				n++
			}
		}
	}
	return n
}

func TestOnlyToItsProviders(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	s := h.fake("anthropic", fakemodel.Options{})
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer trap.Close()
	h.env = append(h.env, "HTTPS_PROXY=http://"+trap.Addr().String(), "HTTP_PROXY=http://"+trap.Addr().String())
	p := h.start()
	k := p.dial()
	t.Run("PO-3 PO-19 the daemon keeps the history, calls the provider its bot names and nobody else", func(t *testing.T) {
		s.Queue(fakemodel.Say("hello"))
		k.fbot("Ada", h.workspace, "")
		if o := k.run("Ada", "r", "x"); o.Text != "hello" {
			t.Errorf("outcome %+v", o)
		}
		var peers []string
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", p.cmd.Process.Pid))
		own, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
		inodes := map[string]bool{}
		for _, fd := range own {
			to, _ := os.Readlink(fd)
			inodes[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
		for _, l := range strings.Split(string(b), "\n") {
			if f := strings.Fields(l); len(f) > 9 && inodes[f[9]] {
				peers = append(peers, f[2])
			}
		}
		var port int
		fmt.Sscanf(s.URL, "http://127.0.0.1:%d/", &port)
		want := strings.ToUpper(hex.EncodeToString([]byte{byte(port >> 8), byte(port)}))
		for _, peer := range peers {
			if !strings.HasSuffix(peer, ":"+want) {
				t.Errorf("a connection to %s", peer)
			}
		}
	})
	t.Run("PO-100 the store holds the history in the clear, for its owner alone", func(t *testing.T) {
		p.kill()
		found := false
		for _, name := range []string{"state.sqlite", "state.sqlite-wal"} {
			path := filepath.Join(h.dir, name)
			info, err := os.Stat(path)
			if err != nil {
				continue
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
			b, _ := os.ReadFile(path)
			found = found || strings.Contains(string(b), `"text":"hello"`)
		}
		if !found {
			t.Error("the answer is not in the store's files")
		}
	})
	s.Verify(t)
}

func TestWALStaysSmall(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	slow, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	done := make(chan struct{})
	go func() { // a provider that takes the beginning of a request and no more
		c, err := slow.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		io.ReadFull(c, make([]byte, 1000))
		<-done
	}()
	defer close(done)
	h.set.Providers = append(h.set.Providers, "slow=responses,http://"+slow.Addr().String())
	p := h.start()
	k := p.dial()
	// A small window: what grows here is the store, not what a call is shown.
	k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"s/m","instructions":"","tools":[],"workspace":%q,"settings":{"context_bytes":262144}`, h.workspace))
	k.ask(nil, "create", fmt.Sprintf(`"bot":"Slow","model":"slow/m","instructions":"","tools":[],"workspace":%q`, h.workspace))
	t.Run("RT-125 a provider that takes its request slowly does not keep the write-ahead log from starting again", func(t *testing.T) {
		held := k.submit("Slow", "r", strings.Repeat("s", 250<<10), "")
		k.follow("Ada", 0)
		for i := range 120 {
			s := k.submit("Ada", fmt.Sprint("r", i), strings.Repeat("z", 60<<10), "")
			k.until("turn_finished", s.Turn)
			k.notes = nil
		}
		if o := k.result("Slow", held.Turn); o.Status != "running" {
			t.Errorf("the slow turn is %s", o.Status)
		}
		var st protocol.Stats
		k.ask(&st, "stats", "")
		if st.Store.WALBytes > 16<<20 || st.Store.Bytes < 12<<20 {
			t.Errorf("the log takes %d bytes, the store %d", st.Store.WALBytes, st.Store.Bytes)
		}
	})
}

// threads is how many threads a daemon has, on Linux.
func threads(t *testing.T, p *process) (n int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Logf("no /proc: %v", err)
	}
	for _, l := range strings.Split(string(b), "\n") {
		fmt.Sscanf(l, "Threads: %d", &n)
	}
	return n
}

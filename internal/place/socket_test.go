package place

import (
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shortFolder is a folder whose paths fit a socket's address.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agent-place-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// useTmp puts /tmp/agent-UID somewhere else for a test.
func useTmp(t *testing.T) string {
	t.Helper()
	old := tmpRoot
	tmpRoot = shortFolder(t)
	t.Cleanup(func() { tmpRoot = old })
	return tmpDir()
}

// fnv128a is the hash by its definition, as a check on the path that clients in
// other languages compute.
func fnv128a(s string) string {
	h, _ := new(big.Int).SetString("6c62272e07bb014262b821756295c58d", 16)
	prime, _ := new(big.Int).SetString("0000000001000000000000000000013b", 16)
	mod := new(big.Int).Lsh(big.NewInt(1), 128)
	for i := range len(s) {
		h.Xor(h, big.NewInt(int64(s[i])))
		h.Mul(h, prime).Mod(h, mod)
	}
	return fmt.Sprintf("%032x", h)
}

func TestSocketFor(t *testing.T) {
	tmp := useTmp(t)
	fits := "/" + strings.Repeat("s", maxSocketPath-len("/.sock"))
	for _, row := range []struct{ name, store, want string }{
		{"a short path has its socket beside it", "/home/a/state.sqlite", "/home/a/state.sqlite.sock"},
		{"the longest path that fits stays beside the store", fits, fits + ".sock"},
		{"PO-14 PR-14 one byte more goes to /tmp", fits + "s", tmp + "/v1-" + fnv128a(fits+"s") + ".sock"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := SocketFor(row.store)
			if err != nil || got != row.want {
				t.Fatalf("SocketFor = %q, %v; want %q", got, err, row.want)
			}
		})
	}
	t.Run("a relative store is refused", func(t *testing.T) {
		if _, err := SocketFor("state.sqlite"); codeOf(err) != codeInvalidStorePath {
			t.Fatalf("error is %v", err)
		}
	})
	t.Run("PR-14 client and daemon meet before and after the store exists, through aliases too", func(t *testing.T) {
		dir := folder(t)
		long := filepath.Join(dir, strings.Repeat("long", 25))
		os.Mkdir(long, 0o700)
		os.Symlink(long, dir+"/alias")
		socket := func(store string) string {
			canonical, err := Canonical(store)
			if err != nil {
				t.Fatal(err)
			}
			path, err := SocketFor(canonical)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
		before := socket(long + "/state.sqlite")
		if filepath.Dir(before) != tmp || socket(dir+"/alias/state.sqlite") != before {
			t.Fatalf("before: %s and %s", before, socket(dir+"/alias/state.sqlite"))
		}
		write(t, long+"/state.sqlite", "")
		if socket(long+"/state.sqlite") != before || socket(dir+"/alias/state.sqlite") != before {
			t.Fatal("another path once the store exists")
		}
		if socket(long+"/other.sqlite") == before {
			t.Fatal("a sibling store has the same socket")
		}
	})
}

func TestBotSocketDir(t *testing.T) {
	tmp := useTmp(t)
	store := "/s/state.sqlite"
	fits := "/" + strings.Repeat("s", maxSocketPath-len("/.d/")-19)
	if got := BotSocketDir(fits, store); got != fits+".d" {
		t.Fatalf("BotSocketDir = %q", got)
	}
	if got, want := BotSocketDir(fits+"s", store), tmp+"/v1-"+fnv128a(store)+".sock.d"; got != want {
		t.Fatalf("BotSocketDir = %q, want %q", got, want)
	}
}

func TestCheckSocketDir(t *testing.T) {
	tmp := useTmp(t)
	socket := tmp + "/v1-x.sock"
	t.Run("a folder not yet made passes", func(t *testing.T) {
		if err := CheckSocketDir(socket); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("sockets elsewhere pass", func(t *testing.T) {
		if err := CheckSocketDir("/tmp/x.sock"); err != nil {
			t.Fatal(err)
		}
	})
	os.Mkdir(tmp, 0o700)
	t.Run("PO-14 the caller's own 0700 folder passes", func(t *testing.T) {
		if err := CheckSocketDir(socket); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("PR-15 a folder of another user is refused", func(t *testing.T) {
		if err := checkOwnDir(tmp, os.Geteuid()+1); codeOf(err) != codeUnsafeSocketFolder {
			t.Fatalf("error is %v", err)
		}
	})
	t.Run("PR-15 a folder with mode 0755 is refused, by listening too, and stays", func(t *testing.T) {
		os.Chmod(tmp, 0o755)
		if err := CheckSocketDir(socket); codeOf(err) != codeUnsafeSocketFolder {
			t.Fatalf("error is %v", err)
		}
		if _, err := Listen(socket); codeOf(err) != codeUnsafeSocketFolder {
			t.Fatalf("error is %v", err)
		}
		mustBe(t, tmp, 0o755)
	})
	t.Run("PR-15 a symlink is refused", func(t *testing.T) {
		os.Remove(tmp)
		os.Symlink(shortFolder(t), tmp)
		if err := CheckSocketDir(socket); codeOf(err) != codeUnsafeSocketFolder {
			t.Fatalf("error is %v", err)
		}
		if _, err := Listen(socket); codeOf(err) != codeUnsafeSocketFolder {
			t.Fatalf("error is %v", err)
		}
	})
}

// watchModes looks at a name without pause until stop, which gives every bit it
// ever saw.
func watchModes(path string) (stop func() os.FileMode) {
	var ended atomic.Bool
	out := make(chan os.FileMode)
	begun := make(chan struct{})
	go func() {
		close(begun)
		var seen os.FileMode
		for !ended.Load() {
			if info, err := os.Lstat(path); err == nil {
				seen |= info.Mode().Perm()
			}
		}
		out <- seen
	}()
	<-begun
	return func() os.FileMode { ended.Store(true); return <-out }
}

func TestListenModes(t *testing.T) {
	t.Run("PO-12 PR-16 RT-85 with umask 000 the socket has no instant of a looser mode", func(t *testing.T) {
		old := unix.Umask(0)
		defer unix.Umask(old)
		dir := shortFolder(t)
		for range 200 {
			stop := watchModes(dir + "/s.sock")
			l, err := Listen(dir + "/s.sock")
			if err != nil {
				t.Fatal(err)
			}
			mustBe(t, dir+"/s.sock", 0o600)
			mustBe(t, dir+"/s.sock.owner-lock", 0o600)
			if loosest := stop(); loosest&^0o600 != 0 {
				t.Fatalf("the socket was seen with mode %#o", loosest)
			}
			l.Close()
		}
		if now := unix.Umask(0); now != 0 {
			t.Fatalf("the umask was left at %#o", now)
		}
	})
	t.Run("PR-16 the folder of bot sockets is 0700 and a bot's socket 0600, the umask untouched", func(t *testing.T) {
		old := unix.Umask(0)
		defer unix.Umask(old)
		dir := shortFolder(t) + "/s.sock.d"
		if err := MakeBotSocketDir(dir); err != nil {
			t.Fatal(err)
		}
		mustBe(t, dir, 0o700)
		for i := range 50 {
			path := fmt.Sprintf("%s/%d", dir, i)
			stop := watchModes(path)
			l, err := ListenBot(path)
			if err != nil {
				t.Fatal(err)
			}
			mustBe(t, path, 0o600)
			if loosest := stop(); loosest&^0o600 != 0 && maxSocketPath == 107 { // macOS: the folder covers it
				t.Fatalf("the socket was seen with mode %#o", loosest)
			}
			l.Close()
			if _, err := os.Lstat(path); err == nil {
				t.Fatal("a closed bot socket stays")
			}
		}
	})
	t.Run("PO-14 the folder under /tmp is made 0700", func(t *testing.T) {
		tmp := useTmp(t)
		l, err := underUmask(0, func() (*Listener, error) { return Listen(tmp + "/v1-x.sock") })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		mustBe(t, tmp, 0o700)
	})
}

func TestBotSocketFolder(t *testing.T) {
	dir := shortFolder(t) + "/d"
	if err := MakeBotSocketDir(dir); err != nil {
		t.Fatal(err)
	}
	t.Run("leftover sockets are removed", func(t *testing.T) {
		leaveStale(t, dir+"/7")
		if err := MakeBotSocketDir(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(dir + "/7"); err == nil {
			t.Fatal("it stays")
		}
	})
	t.Run("anything else stops the start and stays", func(t *testing.T) {
		write(t, dir+"/8", "mine")
		if err := MakeBotSocketDir(dir); codeOf(err) != codeSocketNotSocket {
			t.Fatalf("error is %v", err)
		}
		mustBe(t, dir+"/8", 0o600)
	})
}

// leaveStale leaves a socket as a killed process does: bound, nobody there.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestListenOwnership(t *testing.T) {
	t.Run("PR-11 a regular file at the path is refused and unchanged", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		write(t, path, "mine")
		if _, err := Listen(path); codeOf(err) != codeSocketNotSocket {
			t.Fatalf("error is %v", err)
		}
		if got, _ := os.ReadFile(path); string(got) != "mine" {
			t.Fatalf("content is %q", got)
		}
	})
	t.Run("PR-11 a symlink at the path is refused, even one to a stale socket", func(t *testing.T) {
		dir := shortFolder(t)
		leaveStale(t, dir+"/stale")
		os.Symlink(dir+"/stale", dir+"/s.sock")
		if _, err := Listen(dir + "/s.sock"); codeOf(err) != codeSocketNotSocket {
			t.Fatalf("error is %v", err)
		}
		for _, name := range []string{"/stale", "/s.sock"} {
			if _, err := os.Lstat(dir + name); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("PR-12 a stale socket is replaced and the path is gone at the end", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		leaveStale(t, path)
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Fatal("the path stays")
		}
		if _, err := os.Lstat(path + ".owner-lock"); err != nil {
			t.Fatal("the lock file is gone")
		}
	})
	t.Run("PR-9 a second listener in this or another process is refused", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if _, err := Listen(path); codeOf(err) != codeSocketOwned {
			t.Fatalf("error is %v", err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestChildListens$")
		cmd.Env = append(os.Environ(), "PLACE_LISTEN="+path)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), codeSocketOwned) {
			t.Fatalf("the child said %q, %v", out, err)
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal("the first no longer answers")
		}
		c.Close()
	})
	t.Run("a listener that does not take the lock is never removed", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		other, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := Listen(path); codeOf(err) != codeSocketOwned {
			t.Fatalf("error is %v", err)
		}
	})
	t.Run("a socket that gives no answer in time is never removed", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		fillBacklog(t, path)
		start := time.Now()
		if _, err := Listen(path); codeOf(err) != codeSocketOwned {
			t.Fatalf("error is %v", err)
		}
		if time.Since(start) > 5*time.Second {
			t.Fatal("it waited too long")
		}
	})
	t.Run("PR-13 another's socket at the path remains", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		os.Rename(path, path+".moved")
		other, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		l.Close()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	t.Run("PR-13 the same when the file system gave it our inode's number", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 { // most file systems hand a freed number out at once
			os.Remove(path)
			other, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if info, _ := os.Lstat(path); os.SameFile(info, l.bound) {
				break
			}
		}
		l.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Fatal("the other's path is gone")
		}
	})
	t.Run("closing twice is closing once", func(t *testing.T) {
		path := shortFolder(t) + "/s.sock"
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second has nothing to do
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		again, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Fatal("the second closing removed the next one's socket")
		}
		again.Close()
	})
	t.Run("the longest path that fits works", func(t *testing.T) {
		dir := shortFolder(t)
		path := dir + "/" + strings.Repeat("x", maxSocketPath-len(dir)-1)
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	t.Run("a path too long for an address is refused", func(t *testing.T) {
		if _, err := Listen("/tmp/" + strings.Repeat("x", maxSocketPath)); codeOf(err) != codeInvalidSocketPath {
			t.Fatalf("error is %v", err)
		}
	})
	t.Run("a missing folder is socket_bind_failed", func(t *testing.T) {
		if _, err := Listen(shortFolder(t) + "/gone/s.sock"); codeOf(err) != codeSocketBindFailed {
			t.Fatalf("error is %v", err)
		}
	})
}

// fillBacklog makes a listener that accepts nobody and whose line is full.
func fillBacklog(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		c, err := net.DialTimeout("unix", path, 10*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { c.Close() })
	}
}

// TestChildListens is run by another test in a process of its own.
func TestChildListens(t *testing.T) {
	path := os.Getenv("PLACE_LISTEN")
	if path == "" {
		return
	}
	_, err := Listen(path)
	fmt.Println(err)
}

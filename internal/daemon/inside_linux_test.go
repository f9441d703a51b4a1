package daemon_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// insideVerb has the test program be what a confined command runs: it attacks
// what it can reach and prints what came of it.
const insideVerb = "inside"

func inside(args []string) int {
	acts := map[string]func([]string){"ask": insideAsk, "dial": insideDial, "take": insideTake, "inherited": insideInherited, "flood": insideFlood, "garbage": insideGarbage}
	act := acts[args[0]]
	if act == nil {
		fmt.Fprintf(os.Stderr, "no act %q\n", args[0])
		return 2
	}
	act(args[1:])
	return 0
}

// outcome is "ok", or the system's word for an error.
func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// insideAsk makes requests at a socket, one after another, and prints the lines
// that come, the long ones cut.
func insideAsk(args []string) {
	c, err := net.Dial("unix", args[0])
	if err != nil {
		fmt.Println(outcome(err))
		return
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for i := 0; ; i++ {
		line, err := r.ReadString('\n')
		if err != nil {
			fmt.Println(err)
			return
		}
		if i > 0 {
			fmt.Println(strings.TrimSpace(line[:min(len(line), 300)]))
		}
		if i == len(args)-1 {
			return
		}
		fmt.Fprintln(c, args[i+1])
	}
}

// insideDial tries to connect to sockets, with each kind that reaches a path.
func insideDial(paths []string) {
	for _, path := range paths {
		for name, kind := range map[string]int{"stream": unix.SOCK_STREAM, "dgram": unix.SOCK_DGRAM, "seqpacket": unix.SOCK_SEQPACKET} {
			fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
			if err != nil {
				fmt.Println(name, filepath.Base(path), "socket", outcome(err))
				continue
			}
			fmt.Println(name, filepath.Base(path), "connect", outcome(unix.Connect(fd, &unix.SockaddrUnix{Name: path})))
			unix.Close(fd)
		}
	}
}

// insideTake tries to put something in the place of sockets in a folder.
func insideTake(args []string) {
	dir, own := args[0], args[1]
	listen := func(name string) error {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err == nil {
			l.Close()
		}
		return err
	}
	other := filepath.Join(dir, "81")
	for _, try := range []struct {
		name string
		err  error
	}{
		{"listen", listen("77")},
		{"listen over", listen(filepath.Base(own))},
		{"remove", os.Remove(own)},
		{"rename", os.Rename(own, own+"x")},
		{"rename folder", os.Rename(dir, dir+"x")},
		{"rename parent", os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"x")},
		{"link", os.Link(own, filepath.Join(dir, "78"))},
		{"symlink", os.Symlink(own, filepath.Join(dir, "79"))},
		{"create", os.WriteFile(other, nil, 0o600)},
		{"mkdir", os.Mkdir(filepath.Join(dir, "80"), 0o700)},
		{"chmod folder", os.Chmod(dir, 0o777)},
		{"chmod", os.Chmod(own, 0o777)},
		{"unmount", unix.Unmount(dir, unix.MNT_DETACH)},
		{"mount", unix.Mount("none", dir, "tmpfs", 0, "")},
		{"remount", unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_BIND, "")},
	} {
		fmt.Println(try.name+":", outcome(try.err))
	}
	list, err := os.ReadDir(dir)
	fmt.Println("listed:", len(list), outcome(err))
}

// insideInherited prints the sockets among the descriptors that the command was
// given.
func insideInherited([]string) {
	for fd := 0; fd < 1024; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
			continue
		}
		at, _ := unix.Getsockname(fd)
		peer, _ := unix.Getpeername(fd)
		domain, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		fmt.Printf("socket %d: domain %d, %+v to %+v\n", fd, domain, at, peer)
	}
	fmt.Println("looked")
}

// insideFlood opens many sessions and holds those that are answered until its
// input ends: it then says how many there were.
func insideFlood(args []string) {
	n, _ := strconv.Atoi(args[1])
	var open, answered int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		c, err := net.Dial("unix", args[0])
		if err != nil {
			fmt.Println(outcome(err))
			break
		}
		defer c.Close()
		open++
		all.Go(func() {
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				mu.Lock()
				answered++
				mu.Unlock()
			}
		})
	}
	os.WriteFile(args[2], nil, 0o600) // all are open
	all.Wait()
	fmt.Printf("opened %d, answered %d\n", open, answered)
}

// insideGarbage sends what is no request, each on a session of its own, and
// prints how each ends.
func insideGarbage(args []string) {
	for name, text := range map[string]string{
		"giant":     strings.Repeat("x", 2<<20) + "\n",
		"endless":   strings.Repeat("x", 8<<20),
		"deep":      strings.Repeat("[", 100_000) + "\n",
		"cut":       `{"id":1,"op":"stats"`,
		"zeros":     strings.Repeat("\x00", 4096) + "\n",
		"not UTF-8": "{\"id\":1,\"op\":\"stats\xff\"}\n",
		"twice":     `{"id":1,"op":"stats","op":"shutdown"}` + "\n",
		"unknown":   `{"id":1,"op":"become_root"}` + "\n",
	} {
		c, err := net.Dial("unix", args[0])
		if err != nil {
			fmt.Println(name, outcome(err))
			continue
		}
		go func() {
			io.WriteString(c, text)
			c.(*net.UnixConn).CloseWrite()
		}()
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		got, _ := io.ReadAll(c)
		c.Close()
		lines := strings.Split(strings.TrimSpace(string(got)), "\n")
		fmt.Println(name+":", lines[len(lines)-1])
	}
}

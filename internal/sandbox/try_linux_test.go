package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tryVerb is the first argument of this program where it plays a command that
// tries one act; the act's name and arguments follow. It says nothing and ends
// with 0 when the act went through, and else prints the error's name.
const tryVerb = "__try"

// tries are the acts that a shell has no word for.
var tries = map[string]func(args []string) error{
	"connect":  func(a []string) error { return dial("unix", a[0]) },
	"abstract": func(a []string) error { return dial("unix", "@"+a[0]) },
	"tcp":      func(a []string) error { return dial("tcp", a[0]) },
	"udp":      tryUDP,
	"resolve": func(a []string) error {
		r := net.Resolver{PreferGo: true}
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		_, err := r.LookupHost(ctx, a[0])
		return err
	},
	"echo":       tryEcho,
	"socket":     trySocket,
	"listen":     func(a []string) error { l, err := net.Listen("unix", a[0]); closeAll(l, err); return err },
	"pair-dgram": tryDatagramPair,
	"pair":       tryStreamPair,
	"exchange": func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	},
	"io_uring": func([]string) error {
		var params [120]byte
		return callErrno(unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0))
	},
	"x32":      func([]string) error { return callErrno(unix.RawSyscall(0x40000000|unix.SYS_GETPID, 0, 0, 0)) },
	"sti":      trySTI,
	"keys":     tryKeys,
	"sysv":     trySysV,
	"openall":  tryOpenAll,
	"loopback": tryLoopback,
	"umount": func(a []string) error {
		return unix.Unmount(a[0], unix.MNT_DETACH)
	},
	"remount": func(a []string) error {
		return unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
	},
	"bind":   func(a []string) error { return unix.Mount(a[0], a[1], "", unix.MS_BIND, "") },
	"rbind":  func(a []string) error { return unix.Mount(a[0], a[1], "", unix.MS_BIND|unix.MS_REC, "") },
	"mount":  func(a []string) error { return unix.Mount("none", a[1], a[0], 0, "") },
	"chroot": func(a []string) error { return unix.Chroot(a[0]) },
	"pivot":  func(a []string) error { return unix.PivotRoot(a[0], a[0]) },
	"mknod": func(a []string) error {
		return unix.Mknod(a[0], unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))
	},
	"setns":   trySetns,
	"ptrace":  func(a []string) error { return unix.PtraceAttach(number(a[0])) },
	"vmwrite": tryVMWrite,
	"kill":    func(a []string) error { return unix.Kill(number(a[0]), unix.SIGKILL) },
	"trace":   tryTrace,
	"cgroups": func([]string) error { return unix.Unshare(unix.CLONE_NEWCGROUP) },
	"clone3": func([]string) error {
		var args [88]byte
		binary.NativeEndian.PutUint64(args[:], unix.CLONE_NEWCGROUP)
		return callErrno(unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), uintptr(len(args)), 0))
	},
	"euid": func(a []string) error {
		if os.Geteuid() != number(a[0]) {
			return fmt.Errorf("the user is %d", os.Geteuid())
		}
		return nil
	},
	"open":    func(a []string) error { f, err := os.OpenFile(a[0], os.O_WRONLY, 0); closeAll(f, err); return err },
	"inotify": tryInotify,
	"fds":     tryDescriptors,
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func callErrno(_, _ uintptr, e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func closeAll(c interface{ Close() error }, err error) {
	if err == nil {
		c.Close()
	}
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

func tryUDP(a []string) error {
	c, err := net.DialTimeout("udp", a[0], time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	return err
}

// tryEcho asks the host's loopback as ping does.
func tryEcho(a []string) error {
	fd, err := unix.Socket(unix.AF_INET, number(a[0]), unix.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}, 0, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}})
}

func trySocket(a []string) error {
	fd, err := unix.Socket(number(a[0]), number(a[1]), 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// tryDatagramPair sends through one end of a pair to a path.
func tryDatagramPair(a []string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: a[0]})
}

func tryStreamPair([]string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	here, there := os.NewFile(uintptr(pair[0]), "here"), os.NewFile(uintptr(pair[1]), "there")
	cmd := exec.Command("/bin/cat")
	cmd.Stdin, cmd.Stdout = there, there
	if err := cmd.Start(); err != nil {
		return err
	}
	there.Close()
	if _, err := here.WriteString("word"); err != nil {
		return err
	}
	if err := unix.Shutdown(pair[0], unix.SHUT_WR); err != nil {
		return err
	}
	b := make([]byte, 8)
	if n, err := here.Read(b); err != nil || string(b[:n]) != "word" {
		return fmt.Errorf("got %q, %w", b[:n], err)
	}
	return cmd.Wait()
}

func trySTI(a []string) error {
	var high uintptr
	if a[0] == "high" {
		high = 0xdead << 32
	}
	c := [1]byte{'x'}
	return callErrno(unix.Syscall(unix.SYS_IOCTL, 0, high|unix.TIOCSTI, uintptr(unsafe.Pointer(&c))))
}

func tryKeys(a []string) error {
	switch a[0] {
	case "add":
		_, err := unix.AddKey("user", "agent-sandbox-test", []byte("x"), unix.KEY_SPEC_SESSION_KEYRING)
		return err
	case "request":
		_, err := unix.RequestKey("user", "agent-sandbox-test", "", unix.KEY_SPEC_SESSION_KEYRING)
		return err
	}
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	return err
}

// trySysV attaches to the shared memory, or opens the queue, that has a key.
func trySysV(a []string) error {
	if a[0] == "shm" {
		_, err := unix.SysvShmGet(number(a[1]), 0, 0)
		return err
	}
	return callErrno(unix.Syscall(unix.SYS_MSGGET, uintptr(number(a[1])), 0, 0))
}

func trySetns(a []string) error {
	runtime.LockOSThread()
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Setns(fd, 0)
}

func tryVMWrite(a []string) error {
	b := [1]byte{0}
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err := unix.ProcessVMWritev(number(a[0]), local, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
	return err
}

// tryTrace does what a debugger and a leak checker do.
func tryTrace([]string) error {
	runtime.LockOSThread()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("it did not stop: %v, %w", status, err)
	}
	if err := unix.PtraceDetach(cmd.Process.Pid); err != nil {
		return err
	}
	return cmd.Wait()
}

// tryInotify waits for a change of a file, once it has said that it does.
func tryInotify(a []string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.InotifyAddWatch(fd, a[0], unix.IN_MODIFY); err != nil {
		return err
	}
	fmt.Println("watching")
	_, err = unix.Read(fd, make([]byte, 4096))
	return err
}

func init() { parts[tryVerb] = runTry }

func runTry(args []string) int {
	err := tries[args[0]](args[1:])
	if err == nil {
		return 0
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		fmt.Println(unix.ErrnoName(errno))
	} else {
		fmt.Println(err)
	}
	return 1
}

// tryOpenAll opens every file below a folder for writing, except those of its
// processes and of the load, which all may, and fails with those that it could.
func tryOpenAll(a []string) error {
	var opened []string
	filepath.WalkDir(a[0], func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() && filepath.Dir(path) == "/proc" && (d.Name() == "pressure" || strings.Trim(d.Name(), "0123456789") == "") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && !(os.Geteuid() != 0 && ownSetting.MatchString(path)) {
			if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
				unix.Close(fd)
				opened = append(opened, path)
			}
		}
		return nil
	})
	if len(opened) > 0 {
		return fmt.Errorf("%d files opened: %s", len(opened), strings.Join(opened[:min(len(opened), 20)], " "))
	}
	return nil
}

// ownSetting are the settings of the sandbox's own namespaces, which an ordinary
// user may have.
var ownSetting = regexp.MustCompile(`^/proc/sys/(net/|fs/mqueue/|kernel/(msg|sem|shm|auto_msgmni|ns_last_pid|pid_max))`)

// tryLoopback is a server and its client.
func tryLoopback([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	return dial("tcp", l.Addr().String())
}

// tryDescriptors fails with the descriptors that it was given, beside three
// pipes and files.
func tryDescriptors([]string) error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, d := range open {
		to, err := os.Readlink("/proc/self/fd/" + d.Name())
		if strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/fs/cgroup/") {
			continue // the language's own
		}
		if err == nil && (number(d.Name()) > 2 || strings.HasPrefix(to, "socket:")) {
			return fmt.Errorf("%s is %s", d.Name(), to)
		}
	}
	return nil
}

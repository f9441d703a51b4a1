package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// answer runs a filter over one system call.
func answer(t *testing.T, class Class, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(filterProgram(class))
	if err != nil {
		t.Fatal(err)
	}
	// The interpreter loads words with the high byte first; each is laid out so.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgument(uint32(i)):], uint32(a))
		binary.BigEndian.PutUint32(data[offArgument(uint32(i))+4:], uint32(a>>32))
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

func TestFilter(t *testing.T) {
	t.Parallel()
	const high = 0xdead << 32 // the kernel ignores the high half of an int
	all := []Class{Closed, Unix, Open}
	for _, row := range []struct {
		name   string
		number uint32
		args   []uint64
		want   [3]uint32 // closed, unix, open
	}{
		{"SB-50 io_uring_setup", unix.SYS_IO_URING_SETUP, nil, [3]uint32{refused, refused, refused}},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, nil, [3]uint32{refused, refused, refused}},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, nil, [3]uint32{refused, refused, refused}},
		{"SB-53 TIOCSTI", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, [3]uint32{refused, refused, refused}},
		{"SB-53 TIOCSTI with high bits", unix.SYS_IOCTL, []uint64{0, high | unix.TIOCSTI}, [3]uint32{refused, refused, refused}},
		{"TIOCLINUX", unix.SYS_IOCTL, []uint64{0, tioclinux}, [3]uint32{refused, refused, refused}},
		{"another ioctl", unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"SB-55 keyctl", unix.SYS_KEYCTL, nil, [3]uint32{refused, refused, refused}},
		{"add_key", unix.SYS_ADD_KEY, nil, [3]uint32{refused, refused, refused}},
		{"request_key", unix.SYS_REQUEST_KEY, nil, [3]uint32{refused, refused, refused}},
		{"SB-99 unshare of the cgroups", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWCGROUP | unix.CLONE_NEWUSER}, [3]uint32{refused, refused, refused}},
		{"unshare of users", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER}, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"clone with a cgroup namespace", unix.SYS_CLONE, []uint64{high | unix.CLONE_NEWCGROUP}, [3]uint32{refused, refused, refused}},
		{"fork", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"SB-99 clone3", unix.SYS_CLONE3, nil, [3]uint32{unsupported, unsupported, unsupported}},
		{"a TCP socket", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"a UDP socket", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM}, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"a raw socket", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW}, [3]uint32{refused, refused, seccompAllow}},
		{"SB-39 a Unix socket", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, [3]uint32{refused, seccompAllow, seccompAllow}},
		{"SB-39 a Unix socket with high bits", unix.SYS_SOCKET, []uint64{high | unix.AF_UNIX, unix.SOCK_STREAM}, [3]uint32{refused, seccompAllow, seccompAllow}},
		{"SB-48 netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, [3]uint32{refused, refused, seccompAllow}},
		{"SB-48 packet", unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW}, [3]uint32{refused, refused, seccompAllow}},
		{"SB-48 AF_ALG", unix.SYS_SOCKET, []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, [3]uint32{refused, refused, seccompAllow}},
		{"SB-49 vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, [3]uint32{refused, refused, refused}},
		{"SB-44 a datagram pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, [3]uint32{refused, seccompAllow, seccompAllow}},
		{"SB-45 a stream pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"a packet stream pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"a pair of another family", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM}, [3]uint32{refused, refused, seccompAllow}},
		{"a vsock pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, [3]uint32{refused, refused, refused}},
		{"SB-101 ptrace", unix.SYS_PTRACE, nil, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
		{"write", unix.SYS_WRITE, nil, [3]uint32{seccompAllow, seccompAllow, seccompAllow}},
	} {
		for _, class := range all {
			if got := answer(t, class, nativeArch, row.number, row.args...); got != row.want[class] {
				t.Errorf("%s, class %d: got %#x, want %#x", row.name, class, got, row.want[class])
			}
		}
	}
	for _, class := range all {
		for _, arch := range []uint32{0x40000003, 0x40000028, 0xc00000b7, 0xc000003e, 0} {
			if arch == nativeArch {
				continue
			}
			if got := answer(t, class, arch, unix.SYS_WRITE); got != seccompKill {
				t.Errorf("SB-51 architecture %#x: got %#x", arch, got)
			}
		}
		if x32Bit != 0 {
			for _, number := range []uint32{x32Bit, x32Bit | 1, 0xffffffff} {
				if got := answer(t, class, nativeArch, number); got != unsupported {
					t.Errorf("SB-52 number %#x: got %#x", number, got)
				}
			}
		}
		b, err := filter(class)
		if err != nil || len(b)%8 != 0 || len(b)/8 != len(filterProgram(class)) {
			t.Errorf("class %d: %d bytes, %v", class, len(b), err)
		}
	}
}

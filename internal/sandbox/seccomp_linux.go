package sandbox

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What a filter answers. A system call that is refused fails with an errno and
// changes nothing.
const (
	seccompAllow = 0x7fff0000
	seccompKill  = 0x80000000
	seccompErrno = 0x00050000
)

const (
	refused     = seccompErrno | uint32(unix.EPERM)
	unsupported = seccompErrno | uint32(unix.ENOSYS)
)

// Offsets in the kernel's seccomp_data, on machines that put the low half of a
// 64-bit argument first, as amd64 and arm64 do.
const (
	offNumber = 0
	offArch   = 4
)

func offArgument(n uint32) uint32 { return 16 + 8*n }

const typeMask = 0xf // of socket's type: the rest are flags

// filter is the program of a class, one instruction of eight bytes after the
// other (sandbox.md 4.6).
func filter(class Class) ([]byte, error) {
	raw, err := bpf.Assemble(filterProgram(class))
	if err != nil {
		return nil, fmt.Errorf("the system call filter cannot be assembled: %w", err)
	}
	out := make([]byte, 0, 8*len(raw))
	for _, in := range raw {
		out = binary.NativeEndian.AppendUint16(out, in.Op)
		out = append(out, in.Jt, in.Jf)
		out = binary.NativeEndian.AppendUint32(out, in.K)
	}
	return out, nil
}

// filterProgram is the filter as instructions. The foreign architecture comes
// first: its numbers mean other calls, so nothing below would hold for it.
func filterProgram(class Class) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: seccompKill},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	if x32Bit != 0 {
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1},
			bpf.RetConstant{Val: unsupported})
	}
	// A ring carries out calls that no filter sees.
	p = append(p, when(unix.SYS_IO_URING_SETUP, ret(refused))...)
	p = append(p, when(unix.SYS_IO_URING_ENTER, ret(refused))...)
	p = append(p, when(unix.SYS_IO_URING_REGISTER, ret(refused))...)
	// These put characters into a terminal's input.
	p = append(p, when(unix.SYS_IOCTL, oneOf(1, 0, refused, seccompAllow, unix.TIOCSTI, tioclinux))...)
	// The session's keys are shared with the person.
	p = append(p, when(unix.SYS_ADD_KEY, ret(refused))...)
	p = append(p, when(unix.SYS_REQUEST_KEY, ret(refused))...)
	p = append(p, when(unix.SYS_KEYCTL, ret(refused))...)
	// In a cgroup namespace of its own a command may mount and use the groups
	// that a desktop session gave to the person.
	p = append(p, when(unix.SYS_UNSHARE, anyBit(0, unix.CLONE_NEWCGROUP, refused))...)
	p = append(p, when(unix.SYS_CLONE, anyBit(0, unix.CLONE_NEWCGROUP, refused))...)
	p = append(p, when(unix.SYS_CLONE3, ret(unsupported))...) // its flags cannot be read; libraries fall back
	p = append(p, when(unix.SYS_SOCKET, socketRule(class))...)
	p = append(p, when(unix.SYS_SOCKETPAIR, pairRule(class))...)
	return append(p, bpf.RetConstant{Val: seccompAllow})
}

const tioclinux = 0x541c

// when runs then, which must end in an answer, for one system call. The number
// is in the accumulator, and still is behind it for every other call.
func when(number uint32, then []bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(then))},
	}, then...)
}

func ret(answer uint32) []bpf.Instruction { return []bpf.Instruction{bpf.RetConstant{Val: answer}} }

// oneOf answers yes when the low half of argument n, under mask unless that is 0,
// is one of values, and no otherwise.
func oneOf(n, mask uint32, yes, no uint32, values ...uint32) []bpf.Instruction {
	p := []bpf.Instruction{bpf.LoadAbsolute{Off: offArgument(n), Size: 4}}
	if mask != 0 {
		p = append(p, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask})
	}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, bpf.RetConstant{Val: no}, bpf.RetConstant{Val: yes})
}

// anyBit answers yes when the low half of argument n has any of bits.
func anyBit(n, bits, yes uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArgument(n), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipFalse: 1},
		bpf.RetConstant{Val: yes},
		bpf.RetConstant{Val: seccompAllow},
	}
}

// socketRule is what socket() answers.
func socketRule(class Class) []bpf.Instruction {
	types := oneOf(1, typeMask, seccompAllow, refused, unix.SOCK_STREAM, unix.SOCK_DGRAM)
	switch class {
	case Open:
		return oneOf(0, 0, refused, seccompAllow, unix.AF_VSOCK)
	case Unix:
		return append([]bpf.Instruction{
			bpf.LoadAbsolute{Off: offArgument(0), Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipFalse: 1},
			bpf.RetConstant{Val: seccompAllow},
		}, internet(types)...)
	}
	return internet(types)
}

// internet refuses every address family but IPv4 and IPv6, and leaves these to
// then.
func internet(then []bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offArgument(0), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
		bpf.RetConstant{Val: refused},
	}, then...)
}

// pairRule is what socketpair() answers. One end of a datagram pair can send to
// any socket's path, and what it sends to cannot be inspected; a stream's or a
// packet stream's ends are connected for good.
func pairRule(class Class) []bpf.Instruction {
	switch class {
	case Open:
		return oneOf(0, 0, refused, seccompAllow, unix.AF_VSOCK)
	case Unix:
		return oneOf(0, 0, seccompAllow, refused, unix.AF_UNIX)
	}
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offArgument(0), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		bpf.RetConstant{Val: refused},
	}, oneOf(1, typeMask, seccompAllow, refused, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)...)
}

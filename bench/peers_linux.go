package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate gives a command a network namespace of its own, in which there is a
// loopback and nothing else.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN}, // to bring the loopback up; kept by nobody but who needs it
	}
}

// alone makes sure that there is no way to another machine, and brings the
// loopback up.
func alone() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	if len(all) != 1 || all[0].Flags&net.FlagLoopback == 0 {
		return fmt.Errorf("it has %d network interfaces, not the loopback alone", len(all))
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq(all[0].Name)
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bringing the loopback up: %w", err)
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// adoptOrphans keeps what loses its parent below this process: a daemon counts.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// allBelow are the processes below this one.
func allBelow() (pids []int) {
	parents, top := parentsOf(), os.Getpid()
	for pid := range parents {
		if pid != top && below(parents, pid, top) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sizeBelow sums what is below this process.
func sizeBelow() (rss, pss int64) {
	for _, pid := range allBelow() {
		if u, err := sample(pid); err == nil { // else it ended meanwhile
			rss, pss = rss+u.RSS, pss+u.PSS
		}
	}
	return rss, pss
}

// cpuBelow is the time in seconds that everything below this process has used:
// what was waited for, and what is there still with what it has waited for.
func cpuBelow() float64 {
	var ended unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &ended) != nil {
		return 0
	}
	sum := float64(ended.Utime.Nano()+ended.Stime.Nano()) / 1e9
	for _, pid := range allBelow() {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			sum += cpuWithChildren(stat)
		}
	}
	return sum
}

// cpuWithChildren reads the times of a process and of what it waited for.
func cpuWithChildren(stat []byte) (sum float64) {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 15 {
		return 0
	}
	for _, field := range f[11:15] {
		n, _ := strconv.ParseInt(string(field), 10, 64)
		sum += float64(n) / ticks
	}
	return sum
}

// killBelow ends everything below this process, also what it starts meanwhile,
// and what becomes its own by the death of its parent.
func killBelow() {
	for {
		for _, pid := range allBelow() {
			unix.Kill(pid, unix.SIGKILL)
		}
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return // nothing is left
		}
	}
}

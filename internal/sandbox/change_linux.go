package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openAt opens a path, and fails with ELOOP where a link stands anywhere in it.
func openAt(dir int, path string, flags int) (int, error) {
	if flags&unix.O_DIRECTORY == 0 {
		flags |= unix.O_NOFOLLOW // with the other a link would be ENOTDIR
	}
	how := &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(dir, path, how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// renameNew renames unless the new name is taken. Where a file system cannot tell
// in one step it is asked before.
func renameNew(fromDir int, from string, toDir int, to string) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL && err != unix.ENOSYS && err != unix.ENOTSUP {
		return err
	}
	var st unix.Stat_t
	switch err := unix.Fstatat(toDir, to, &st, unix.AT_SYMLINK_NOFOLLOW); err {
	case nil:
		return unix.EEXIST
	case unix.ENOENT:
		return unix.Renameat(fromDir, from, toDir, to)
	default:
		return err
	}
}

func links(info fs.FileInfo) uint64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(s.Nlink)
}

// takeFacts tries what a sandbox must refuse. It runs inside one.
func takeFacts() facts {
	f := facts{Pid: os.Getpid()}
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		number, _ := strconv.Atoi(value)
		switch name {
		case "CapEff":
			f.Effective = value
		case "CapPrm":
			f.Permitted = value
		case "CapBnd":
			f.Bounding = value
		case "NoNewPrivs":
			f.NoNewPrivs = number
		case "Seccomp":
			f.Seccomp = number
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	self, err := os.Readlink("/proc/self")
	f.ForeignProcesses = err != nil || self != strconv.Itoa(f.Pid) || len(processes) > 2
	name := "/.agent-probe-" + strconv.Itoa(f.Pid)
	if fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600); err == nil {
		unix.Close(fd)
		os.Remove(name)
		f.WroteRoot = true
	}
	if fd, err := unix.Open("/proc/sys/kernel/core_pattern", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		unix.Close(fd)
		f.OpenedCorePattern = true
	}
	f.LeftCgroups = unix.Unshare(unix.CLONE_NEWCGROUP) == nil
	return f
}

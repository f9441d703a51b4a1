package sandbox

import (
	"strconv"
	"strings"
)

// launch is what bubblewrap's argument list is made of. Descriptors are numbers
// as the launcher has them.
type launch struct {
	plan   *Plan
	env    []string // NAME=VALUE
	filter int
	status int // 0: none
	helper string
	// helperFD and sources, by path, are what is bound by descriptor, so that
	// nothing can be swapped for a link before it is mounted.
	helperFD int
	sources  map[string]int
	sshFiles map[string]int // the content of files that ssh refuses otherwise
	root     bool           // the daemon runs as uid 0
}

// helperPath is where a sandbox shows the program that makes file changes.
const helperPath = "/dev/.agent-helper"

// args is the argument list up to the command, in the order of sandbox.md 4.4:
// a later mount covers an earlier one.
func (l *launch) args() []string {
	a := argList{}
	// Own users, processes and message queues: nothing outside is seen,
	// signalled or traced. The user namespace is stated, since uid 0 would get
	// none.
	a.add("--unshare-user", "--unshare-pid", "--unshare-ipc")
	if l.plan.Class != Open {
		a.add("--unshare-net") // also keeps abstract Unix sockets apart
	}
	// The command dies with the daemon and has no terminal to put words into.
	a.add("--die-with-parent", "--new-session")
	// Started by uid 0, the launcher would leave the command all capabilities of
	// the new namespace, and it could unmount the protections.
	a.add("--cap-drop", "ALL")
	a.add("--ro-bind", "/", "/")
	a.add("--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm")
	a.add("--proc", "/proc")
	if l.root {
		// Root owns these files and needs no capability to write them; one of
		// them names a program that the kernel runs outside.
		a.add("--ro-bind", "/proc/sys", "/proc/sys")
	}
	l.ssh(&a)
	for _, e := range l.plan.Entries {
		l.entry(&a, e)
	}
	for _, h := range l.plan.Hidden {
		l.hidden(&a, h)
	}
	switch {
	case l.helper == "":
	case l.helperFD != 0:
		a.add("--ro-bind-fd", strconv.Itoa(l.helperFD), helperPath)
	default:
		a.add("--ro-bind", l.helper, helperPath)
	}
	a.add("--remount-ro", "/dev") // its own mounts below stay writable
	a.add("--chdir", l.plan.Cwd, "--clearenv")
	for _, v := range l.env {
		name, value, _ := strings.Cut(v, "=")
		a.add("--setenv", name, value)
	}
	a.add("--seccomp", strconv.Itoa(l.filter))
	if l.status != 0 {
		a.add("--json-status-fd", strconv.Itoa(l.status))
	}
	return a.list
}

type argList struct{ list []string }

func (a *argList) add(words ...string) { a.list = append(a.list, words...) }

// bind mounts a path onto itself.
func (l *launch) bind(a *argList, path string, readOnly bool) {
	flag := "--bind"
	if readOnly {
		flag = "--ro-bind"
	}
	if fd, ok := l.sources[path]; ok {
		a.add(flag+"-fd", strconv.Itoa(fd), path)
		return
	}
	a.add(flag, path, path)
}

func (l *launch) entry(a *argList, e Entry) {
	switch e.Kind {
	case Writable, Pinned:
		l.bind(a, e.Path, false)
	case ReadOnly, AbsentFile:
		l.bind(a, e.Path, true)
	case AbsentFolder:
		a.add("--perms", "555", "--tmpfs", e.Path, "--remount-ro", e.Path)
	case Walled: // hidden later, as every wall is
	}
}

func (l *launch) hidden(a *argList, h Hidden) {
	switch h.Kind {
	case HiddenSocket:
		// A socket on a read-only mount still takes connections.
		a.add("--ro-bind", "/dev/null", h.Path)
	case HiddenSockets:
		a.add("--perms", "700", "--tmpfs", h.Path)
		if own := l.plan.BotSocket; below(own, h.Path) {
			a.add("--ro-bind", own, own)
		}
		a.add("--remount-ro", h.Path)
	case HiddenWall:
		a.add("--perms", "000", "--tmpfs", h.Path, "--remount-ro", h.Path)
	}
}

// ssh shows the files that ssh includes as files of the user: inside, root's seem
// to belong to nobody, and ssh refuses those.
func (l *launch) ssh(a *argList) {
	if len(l.sshFiles) == 0 {
		return
	}
	a.add("--perms", "755", "--tmpfs", sshFolder)
	for _, path := range sortedKeys(l.sshFiles) {
		a.add("--perms", "644", "--ro-bind-data", strconv.Itoa(l.sshFiles[path]), path)
	}
	a.add("--remount-ro", sshFolder)
}

const sshFolder = "/etc/ssh/ssh_config.d"

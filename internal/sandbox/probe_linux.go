package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

const probeTime = 5 * time.Second

// facts are what the helper finds out about the sandbox that it runs in.
type facts struct {
	Effective  string `json:"effective"` // capability sets, in hex
	Permitted  string `json:"permitted"`
	Bounding   string `json:"bounding"`
	NoNewPrivs int    `json:"no_new_privs"`
	Seccomp    int    `json:"seccomp"`
	Pid        int    `json:"pid"`
	// What was tried and went through, though it must not.
	WroteRoot, OpenedCorePattern, LeftCgroups, ForeignProcesses bool
}

// fault is what is wrong with the sandbox, or "".
func (f *facts) fault() string {
	switch {
	case strings.Trim(f.Effective+f.Permitted+f.Bounding, "0") != "":
		return "it leaves commands capabilities"
	case f.NoNewPrivs != 1:
		return "it lets commands gain privileges"
	case f.Seccomp != 2:
		return "its system call filter is not in force"
	case f.Pid > 2 || f.Pid < 1 || f.ForeignProcesses:
		return "it shows commands the processes outside"
	case f.WroteRoot:
		return "it lets commands write to /"
	case f.OpenedCorePattern:
		return "it lets commands write /proc/sys/kernel/core_pattern"
	case f.LeftCgroups:
		return "it lets commands make a cgroup namespace"
	}
	return ""
}

func probe(ctx context.Context, helper, owner string) (*bubblewrap, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("there is no sandbox for %s", runtime.GOARCH)
	}
	keepDescriptors()
	b, err := findBubblewrap(ctx)
	if err != nil {
		return nil, err
	}
	b.owner = owner
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p := &Plan{World: &World{}, Mode: protocol.SandboxReadOnly, Class: Closed, Cwd: "/"}
	out, said, err := b.helper(ctx, p, helper, "probe", nil)
	if err != nil {
		return nil, fmt.Errorf("%s cannot confine commands here%s: %s", b.path, hint(said), cutText(said, err))
	}
	var f facts
	if err := json.Unmarshal(out, &f); err != nil {
		return nil, fmt.Errorf("%s was started, and its probe said nothing that can be read: %w", b.path, err)
	}
	if fault := f.fault(); fault != "" {
		return nil, fmt.Errorf("%s confines too little on this machine: %s", b.path, fault)
	}
	return b, nil
}

// keepDescriptors keeps commands from what the daemon was started with: the
// launcher passes on whatever it gets. What the daemon opens itself is closed in
// its children anyway.
func keepDescriptors() {
	open, _ := os.ReadDir("/proc/self/fd")
	for _, d := range open {
		if fd, err := strconv.Atoi(d.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// hint says what to do about a failure that is known.
func hint(stderr string) string {
	for _, h := range []struct{ sign, hint string }{
		{"No permissions to create a new namespace", userNamespaces},
		{"setting up uid map: Permission denied", userNamespaces},
		{"loopback: Failed RTM_NEWADDR", " (network namespaces are held back, most likely by AppArmor: load a profile for bwrap that allows userns, or sysctl kernel.apparmor_restrict_unprivileged_userns=0)"},
		{"Can't mount proc", " (the container forbids a new /proc: start it with its masked paths off, such as docker's --security-opt systempaths=unconfined)"},
	} {
		if strings.Contains(stderr, h.sign) {
			return h.hint
		}
	}
	return ""
}

const userNamespaces = " (user namespaces are off, or held back by AppArmor: load a profile for bwrap that allows userns, " +
	"or sysctl kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0)"

// helper runs the daemon's own program inside the sandbox, as a child that is
// told what to do on its input, and gives what it prints.
func (b *bubblewrap) helper(ctx context.Context, p *Plan, program, mode string, input []byte) (out []byte, said string, err error) {
	c, err := b.prepare(p, []string{helperPath, HelperVerb, mode}, nil, program)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	// The launcher asks for that signal itself, which is late if the daemon dies
	// as it starts.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	// With the launcher alone, what it has begun would not end, nor hold back.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	c.Started()
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end in time")
	}
	return stdout.Bytes(), stderr.String(), err
}

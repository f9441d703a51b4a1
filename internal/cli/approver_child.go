package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"agent/client"
	"agent/internal/place"
)

// maxApproverLog is where the approver's log is set aside before another starts, in
// bytes, as the daemon does with its companions' logs.
const maxApproverLog = 4 << 20

// approverChild is an approver that this command started. It outlives the command.
type approverChild struct {
	cmd    *exec.Cmd
	log    string
	from   int64 // where in the log it begins
	exited chan struct{}
}

// startApprover starts agent approver on a daemon, in a session of its own, with
// nothing of the caller's terminal.
func startApprover(target client.Target) (*approverChild, error) {
	bin, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := &approverChild{exited: make(chan struct{})}
	out, err := child.openLog(target.Store + ".companions")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	child.cmd = exec.Command(bin, "approver", "--tag="+approvalAuto, "--store="+target.Store, "--socket="+target.Socket)
	child.cmd.Stdout, child.cmd.Stderr = out, out
	child.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if home, err := place.Home(); err == nil {
		child.cmd.Dir = home // the caller's folder may be unmounted
	}
	if err := child.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		child.cmd.Wait()
		close(child.exited)
	}()
	return child, nil
}

// openLog opens the log that the companion of that name has, too.
func (c *approverChild) openLog(folder string) (*os.File, error) {
	if err := place.MakePrivateDir(folder); err != nil {
		return nil, err
	}
	c.log = filepath.Join(folder, "approver.log")
	if info, err := os.Lstat(c.log); err == nil && info.Mode().IsRegular() && info.Size() > maxApproverLog {
		if err := os.Rename(c.log, c.log+".1"); err != nil {
			return nil, err
		}
	}
	out, err := place.OpenPrivate(c.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err != nil {
		out.Close()
		return nil, err
	}
	c.from = info.Size()
	return out, nil
}

// end stops an approver that did not come up in time. There may be none.
func (c *approverChild) end() {
	if c != nil {
		c.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// lastLine is what it said last, or "".
func (c *approverChild) lastLine() string {
	if c == nil {
		return ""
	}
	f, err := place.OpenPrivate(c.log, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, c.from, 64<<10))
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}

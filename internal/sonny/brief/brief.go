// Package brief runs programs of the person's that have little time: what does not end in
// it is ended with all that it started.
package brief

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// afterEnd is how long the output of a program is read that has ended, while something that
// it started holds it open.
const afterEnd = time.Second

// Command is a program with its arguments, in a process group of its own: where ctx ends
// before the program does, the group is killed. What the program leaves behind as it ends by
// itself goes on, as a clipboard's owner has to.
func Command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterEnd
	return cmd
}

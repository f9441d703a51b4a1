package tool

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// Becomes the role "clean" with one signal blocked and others ignored.
	children["unclean"] = func() {
		runtime.LockOSThread()
		signal.Ignore(unix.SIGHUP, unix.SIGTTOU)
		var set unix.Sigset_t
		set.Val[0] = 1 << (unix.SIGUSR1 - 1)
		if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
			fmt.Print(err)
			return
		}
		_ = os.Setenv("TOOL_TEST_CHILD", os.Getenv("TOOL_TEST_DIR"))
		fmt.Print(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
	}
	show := func() {
		c, f := startCommand(context.Background(), childEnv(), "grep -E 'SigBlk|SigIgn' /proc/self/status")
		if f != nil {
			fmt.Print(f)
			return
		}
		c.supervise(context.Background(), time.Minute)
		fmt.Print(c.streams[0].capture.finish().preview)
	}
	children["as started"] = show
	children["clean"] = func() {
		if err := StartClean(); err != nil {
			fmt.Print(err)
			return
		}
		show()
	}
}

func TestStartClean(t *testing.T) {
	t.Parallel()
	const none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
	t.Run("commands start with an empty mask and default handlers", func(t *testing.T) {
		t.Parallel()
		if got := child(t, "unclean", "clean"); got != none {
			t.Errorf("got %q", got)
		}
	})
	t.Run("without it they would not", func(t *testing.T) {
		t.Parallel()
		if got := child(t, "unclean", "as started"); got == none {
			t.Error("the test's child starts clean by itself")
		}
	})
}

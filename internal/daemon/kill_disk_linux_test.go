package daemon_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/internal/fakemodel"
)

// tinyVar marks the copy of a test that runs in a namespace of its own.
const tinyVar = "AGENT_TEST_TINY"

// noMount is that copy's exit status where mounting is not allowed.
const noMount = 42

// tinyDisk is a file system of 12 MiB. A store needs that: its write-ahead log
// alone grows to 4 MiB before SQLite brings it into the file.
type tinyDisk struct {
	t   *testing.T
	dir string
}

func newTinyDisk(t *testing.T) *tinyDisk {
	d := &tinyDisk{t: t, dir: t.TempDir()}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Log("mount: ", err)
		os.Exit(noMount)
	}
	t.Cleanup(func() { syscall.Unmount(d.dir, syscall.MNT_DETACH) })
	return d
}

func (d *tinyDisk) folder() string { return d.dir }

// fill writes until not another byte fits.
func (d *tinyDisk) fill() {
	f, err := os.OpenFile(filepath.Join(d.dir, "filler"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Error(err)
		return
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			d.t.Error(err)
			return
		}
	}
}

func (d *tinyDisk) free() { os.Remove(filepath.Join(d.dir, "filler")) }

func TestTinyDisk(t *testing.T) {
	if os.Getenv(tinyVar) == "" {
		t.Parallel()
		inNamespace(t)
		return
	}
	t.Run("RT-92 RT-93 a daemon on a full file system goes on when there is room, and loses nothing", func(t *testing.T) {
		fullDisk(t, newTinyDisk(t))
	})
	t.Run("a command that would fill the file system is ended, and its result is stored", func(t *testing.T) {
		h := newHost(t, "")
		h.set.Store = filepath.Join(newTinyDisk(t).folder(), "state.sqlite")
		s := h.fake("responses", fakemodel.Options{})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "shell wait")
		flood := "head -c 30000000 /dev/zero | tr '\\0' a; touch over"
		got := k.steps(s, "Ada", "r1", shellCall(flood, ""), shellCall(flood, `,"background":true`), [2]string{"wait", `{"handles":["proc:1"]}`})
		for _, result := range []string{got[0], got[2]} {
			if !strings.Contains(result, "the disk is full: only the first") || !strings.Contains(result, `"exit_code":null,"success":false`) {
				t.Errorf("got %.100s ... %s", result, result[max(0, len(result)-300):])
			}
		}
		if _, err := os.Stat(filepath.Join(h.workspace, "over")); err == nil {
			t.Error("the command was not ended")
		}
		s.Verify(t)
	})
	t.Run("RT-93 a start on a full file system says so and leaves no store", func(t *testing.T) {
		refusedStart(t, newTinyDisk(t))
	})
}

// inNamespace runs the test again where it may mount; where no such place can
// be made, the disk is full by faults alone.
func inNamespace(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), tinyVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == noMount {
		t.Logf("no file system can be mounted here: %v %s", err, out)
		fullDisk(t, newFaultyDisk(t))
		return
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestSurvivorsNote(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	note := filepath.Join(dir, "one.pid")
	if err := noteCompanion(note, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Run("RT-105 a daemon killed while it ends survivors leaves their notes to the next one", func(t *testing.T) {
		for range 2 {
			if list := survivors(dir); len(list) != 1 || len(living(list)) != 1 {
				t.Fatalf("survivors %+v", list)
			}
		}
		list := survivors(dir)
		cmd.Process.Kill()
		cmd.Wait()
		if left := living(list); len(left) != 0 {
			t.Errorf("left %+v", left)
		}
		if _, err := os.Lstat(note); !os.IsNotExist(err) {
			t.Errorf("the note: %v", err)
		}
	})
}

package daemon_test

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// endStrays ends the commands of a store's daemons that outlived them: detached
// ones, and all that a kill -9 left behind.
func endStrays(store string) {
	names, _ := os.ReadDir("/proc")
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + name.Name() + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00AGENT_STORE="+store+"\x00")) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

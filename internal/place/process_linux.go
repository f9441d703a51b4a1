package place

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// bootID tells processes of one boot from those of another.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// BornAt tells a process from every other that has or had its number. It is not
// there when the process has ended, reaped or not.
func BornAt(pid int) (born string, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The name, in parentheses, may hold anything; the state and 18 further
	// fields stand between it and the time of the start.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return "", false
	}
	return bootID() + "/" + string(fields[19]), true
}

// thisBoot reports whether a process of that birth ran since the system was started.
func thisBoot(born string) bool { return strings.HasPrefix(born, bootID()+"/") }

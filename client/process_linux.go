package client

import (
	"bytes"
	"fmt"
	"os"
)

// zombie reports that a process has ended and only waits for its parent. The
// state follows the command's name, which is in parentheses and may itself
// hold some.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err) && hasProc()
	}
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && len(stat) > i+2 && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}

// hasProc tells a process that vanished from a system without /proc.
func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

package sonnytest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// processes are those whose environment names the home at dir, with their command
// lines: no other test has that home. A process that has ended has no environment.
func processes(dir string) map[int]string {
	found := map[int]string{}
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range entries {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+dir+"\x00")) {
			continue
		}
		proc := filepath.Dir(path)
		pid, _ := strconv.Atoi(filepath.Base(proc))
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		found[pid] = string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))
	}
	return found
}

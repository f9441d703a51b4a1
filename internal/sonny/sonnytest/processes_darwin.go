package sonnytest

import (
	"os/exec"
	"strconv"
	"strings"
)

// processes are those whose environment names the home at dir, with what ps prints of
// them: no other test has that home.
func processes(dir string) map[int]string {
	out, _ := exec.Command("ps", "-E", "-axww", "-o", "pid=,command=").Output()
	found := map[int]string{}
	for line := range strings.SplitSeq(string(out), "\n") {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pid, err := strconv.Atoi(number); err == nil && strings.Contains(rest+" ", " HOME="+dir+" ") {
			found[pid] = rest
		}
	}
	return found
}

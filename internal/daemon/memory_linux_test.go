package daemon

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

func TestReleaseProgram(t *testing.T) {
	before := residentFile(t)
	releaseProgram()
	if after := residentFile(t); after > before*3/4 {
		t.Fatalf("%d KiB of files stayed resident of %d", after, before)
	}
}

func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("what of a process is pages of files is not said: %s", status)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

func TestProgramPages(t *testing.T) {
	for line, ok := range map[string]bool{
		"00400000-00b65000 r-xp 00000000 fe:00 1234                       /usr/bin/agent":   true,
		"00b65000-0128c000 r--p 00765000 fe:00 1234                       /usr/bin/agent":   true,
		"0128c000-013a6000 rw-p 00e8c000 fe:00 1234                       /usr/bin/agent":   false, // written to
		"00400000-00b65000 r-xp 00000000 fe:00 1234                       /usr/bin/agent-2": false,
		"013a6000-033f1000 rw-p 00000000 00:00 0":                                           false,
		"Anonymous:             0 kB":                                                       false,
		"zz400000-00b65000 r-xp 00000000 fe:00 1234                       /usr/bin/agent":   false,
		"00b65000-00400000 r-xp 00000000 fe:00 1234                       /usr/bin/agent":   false,
	} {
		if _, _, got := programPages([]byte(line), "/usr/bin/agent"); got != ok {
			t.Errorf("%s: %v", line, got)
		}
	}
}

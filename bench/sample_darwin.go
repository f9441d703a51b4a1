package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sample looks at a process once, by ps: resident size and processor time.
func sample(pid int) (usage, error) {
	out, err := exec.Command("ps", "-o", "rss=,time=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return usage{}, fmt.Errorf("ps: %w", err)
	}
	f := strings.Fields(string(bytes.TrimSpace(out)))
	if len(f) != 2 {
		return usage{}, fmt.Errorf("ps printed %q", out)
	}
	rss, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return usage{}, err
	}
	cpu, err := clock(f[1])
	return usage{RSS: rss << 10, CPU: cpu}, err
}

// clock reads ps's [[HH:]MM:]SS.CC in seconds.
func clock(text string) (float64, error) {
	total := 0.0
	for part := range strings.SplitSeq(text, ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, err
		}
		total = total*60 + n
	}
	return total, nil
}

// machine names the processor and the memory.
func machine() (cpu string, memory int64) {
	cpu, _ = unix.Sysctl("machdep.cpu.brand_string")
	bytes, _ := unix.SysctlUint64("hw.memsize")
	return cpu, int64(bytes)
}

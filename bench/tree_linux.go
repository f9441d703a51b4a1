package main

import (
	"bytes"
	"os"
	"strconv"
)

// sampleTree sums a process and everything below it. What ends while it is
// looked at does not count.
func sampleTree(pid int) (rss, pss int64, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, 0, err
	}
	parents := map[int]int{}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + e.Name() + "/stat"); err == nil {
			parents[child] = parentOf(stat)
		}
	}
	for child := range parents {
		if !below(parents, child, pid) {
			continue
		}
		if u, err := sample(child); err == nil {
			rss, pss = rss+u.RSS, pss+u.PSS
		}
	}
	return rss, pss, nil
}

// parentOf reads the parent from the text of /proc/PID/stat, 0 when it is cut.
func parentOf(stat []byte) int {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(f[1]))
	return parent
}

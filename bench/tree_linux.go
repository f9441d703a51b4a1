package main

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// sampleTree sums a process and everything below it. What ends while it is
// looked at does not count.
func sampleTree(pid int) (rss, pss int64, err error) {
	parents := parentsOf()
	if len(parents) == 0 {
		return 0, 0, errors.New("/proc shows no process")
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

// parentsOf gives every process's parent.
func parentsOf() map[int]int {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + e.Name() + "/stat"); err == nil {
			parents[child] = parentOf(stat)
		}
	}
	return parents
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

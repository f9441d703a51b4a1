package main

import (
	"bytes"
	"fmt"
	"os/exec"
)

// sampleTree sums a process and everything below it, by ps.
func sampleTree(pid int) (rss, pss int64, err error) {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=,rss=").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("ps: %w", err)
	}
	parents, sizes := map[int]int{}, map[int]int64{}
	for line := range bytes.Lines(out) {
		var child, parent int
		var size int64
		if _, err := fmt.Sscan(string(line), &child, &parent, &size); err == nil {
			parents[child], sizes[child] = parent, size<<10
		}
	}
	for child, size := range sizes {
		if below(parents, child, pid) {
			rss += size
		}
	}
	return rss, 0, nil
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ticks is the unit of the times in /proc/PID/stat: USER_HZ, which is 100 on
// every system that Go runs on.
const ticks = 100

// sample looks at a process once.
func sample(pid int) (usage, error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return usage{}, err
	}
	rollup, err := os.ReadFile(dir + "smaps_rollup")
	if err != nil {
		return usage{}, err
	}
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return usage{}, err
	}
	var u usage
	if u.RSS, err = field(status, "VmRSS:"); err != nil {
		return u, err
	}
	if u.Peak, err = field(status, "VmHWM:"); err != nil {
		return u, err
	}
	if u.Own, err = field(status, "RssAnon:"); err != nil {
		return u, err
	}
	if u.PSS, err = field(rollup, "Pss:"); err != nil {
		return u, err
	}
	if files, err := os.ReadDir(dir + "fd"); err == nil { // another user's may not be read
		u.Files = int64(len(files))
	}
	if threads, err := os.ReadDir(dir + "task"); err == nil {
		u.Threads = int64(len(threads))
	}
	u.CPU, err = cpuOf(stat)
	return u, err
}

// field reads a line "NAME 123 kB" of a file of /proc, in bytes.
func field(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) == 3 && string(f[0]) == name && string(f[2]) == "kB" {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("/proc gives no %s", name)
}

// cpuOf reads user and system time from the text of /proc/PID/stat. The second
// field may hold blanks and parentheses, so that counting starts after it.
func cpuOf(stat []byte) (float64, error) {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat is cut short")
	}
	user, err := strconv.ParseInt(string(f[11]), 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(string(f[12]), 10, 64)
	return float64(user+system) / ticks, err
}

// machine names the processor and the memory.
func machine() (cpu string, memory int64) {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range bytes.Lines(text) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			cpu = string(bytes.TrimSpace(value))
			break
		}
	}
	text, _ = os.ReadFile("/proc/meminfo")
	memory, _ = field(text, "MemTotal:")
	return cpu, memory
}

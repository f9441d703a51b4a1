package main

import (
	"errors"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// isolate does nothing: there are no network namespaces, which alone reports.
func isolate(*exec.Cmd) {}

func alone() error { return errors.New("this system has no network namespaces") }

func adoptOrphans() error { return nil }

// sizeBelow is what is below this process, less itself.
func sizeBelow() (rss, pss int64) {
	rss, _, err := sampleTree(os.Getpid())
	own, err2 := sample(os.Getpid())
	if err != nil || err2 != nil {
		return 0, 0
	}
	return max(rss-own.RSS, 0), 0
}

// cpuBelow is the time of what was waited for; a daemon is not in it.
func cpuBelow() float64 {
	var ended unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &ended) != nil {
		return 0
	}
	return float64(ended.Utime.Nano()+ended.Stime.Nano()) / 1e9
}

// killBelow does nothing: of peers, which may leave something, none is run.
func killBelow() {}

package main

import (
	"math"
	"slices"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// median is the middle of some values, the mean of the two middle ones where
// there are two. There is at least one.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// percentile is the value that p percent of the durations do not exceed, in
// milliseconds: the nearest rank. There is at least one.
func percentile(d []time.Duration, p float64) float64 {
	s := slices.Sorted(slices.Values(d))
	rank := int(math.Ceil(p / 100 * float64(len(s))))
	return millis(s[max(rank, 1)-1])
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func inMiB(n int64) float64 { return float64(n) / mib }

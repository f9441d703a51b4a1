//go:build !linux

package daemon_test

const insideVerb = "inside"

// inside is for the attacks that are carried out on Linux.
func inside([]string) int { return 2 }

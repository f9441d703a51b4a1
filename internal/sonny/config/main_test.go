package config

import (
	"fmt"
	"os"
	"testing"
)

// No test sees the home of whoever runs it.
func TestMain(m *testing.M) { os.Exit(withHome(m.Run)) }

func withHome(run func() int) int {
	home, err := os.MkdirTemp("", "sonny-config-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(home)
	os.Setenv("HOME", home)
	return run()
}

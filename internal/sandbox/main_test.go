package sandbox

import (
	"os"
	"testing"
)

// TestMain plays the helper where a test starts this program as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == HelperVerb {
		os.Exit(RunHelper(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

package sandbox

import (
	"encoding/json"
	"os"
	"testing"
)

// trialsVerb makes this program print what came of the trials, on any system.
const trialsVerb = "__trials"

// parts are what this program plays where a test starts it as something else, by
// its first argument; each gives the exit status.
var parts = map[string]func(args []string) int{}

// TestMain plays the helper, or another part, where a test starts this program
// as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == HelperVerb {
		os.Exit(RunHelper(os.Args[2], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 {
		if play, ok := parts[os.Args[1]]; ok {
			os.Exit(play(os.Args[2:]))
		}
	}
	if len(os.Args) > 1 && os.Args[1] == trialsVerb {
		if json.NewEncoder(os.Stdout).Encode(tryAll()) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Package sonnytest drives Sonny from outside, for tests alone (sonny.md 34): the built
// programs in a home of their own, with a model that speaks from a file, at a terminal
// that is tmux (Tmux) or an emulator inside the test (Screen).
//
//	h := sonnytest.Fresh(t)
//	m := h.In(h.Repo("demo", nil)).Tmux(80, 24, "sonny", "--no-motion", "--theme", "none")
//	m.WaitFor("new lead")
//	m.Type("say: hello there")
//	m.Keys("Enter")
//
// A package that uses it has a TestMain that calls Main. What is waited for is a
// condition, never a time; what does not come within a minute fails the test, which
// shows the screen.
package sonnytest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for something that is sure to come.
const patience = time.Minute

// BinVariable names the folder of programs that somebody else has built, agent and
// sonny with the tag testhooks. Without it they are built once for each test process.
const BinVariable = "SONNY_TEST_BIN"

// built is the folder of this process's own programs, "" before they are there.
var built struct {
	sync.Mutex
	dir  string
	main bool
}

// Main runs a package's tests and takes away afterwards what was built for them.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a package whose TestMain does more: it returns the status.
func Run(m *testing.M) int {
	built.main = true
	waitTogether()
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	return code
}

// waitTogether has twice as many tests of the package run at a time, where the command
// line does not say how many: they mostly wait for a terminal or a model.
func waitTogether() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

// Programs is the folder that holds agent and sonny.
func Programs(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(BinVariable); dir != "" {
		return dir
	}
	built.Lock()
	defer built.Unlock()
	if !built.main {
		t.Fatal("the package has no TestMain that calls sonnytest.Main")
	}
	if built.dir == "" {
		dir, err := build()
		if err != nil {
			t.Fatal(err)
		}
		built.dir = dir
	}
	return built.dir
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "sonny-bin-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", "testhooks", "-o", dir+string(filepath.Separator), "agent/cmd/agent", "agent/cmd/sonny")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("building agent and sonny: %w\n%s", err, out)
	}
	return dir, nil
}

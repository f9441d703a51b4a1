package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDemo plays the whole demo with the tree's own program. The demo checks
// each of its claims and fails where one does not hold.
func TestDemo(t *testing.T) {
	t.Parallel()
	agent := filepath.Join(t.TempDir(), "agent")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", agent, "../cmd/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	var out strings.Builder
	if err := play(t.Context(), agent, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"== 1.", "== 2.", "== 3.", "== 4.", "== 5.", "== 6.", "escaped.txt is not there", "With a real model"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
}

// TestDemoFailsLoudly plays it with a program that does nothing.
func TestDemoFailsLoudly(t *testing.T) {
	t.Parallel()
	idle := filepath.Join(t.TempDir(), "agent")
	// Nothing may start meanwhile: a child that inherits the file while it is
	// written makes running it fail as busy.
	syscall.ForkLock.RLock()
	err := os.WriteFile(idle, []byte("#!/bin/sh\nexit 0\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = play(t.Context(), idle, &out)
	if err == nil {
		t.Fatalf("the demo was content with a program that does nothing:\n%s", out.String())
	}
	if strings.Contains(out.String(), "With a real model") {
		t.Error("the demo went on to its end")
	}
}

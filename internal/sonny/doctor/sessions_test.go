package doctor_test

import (
	"os"
	"testing"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/sonnytest"
)

func TestSessionsWithoutAFolder(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	h.Write(".agents/AGENTS.md", "Be brief.\n")
	demo, other := h.Repo("demo", nil), h.Repo("other", nil)
	for _, dir := range []string{demo, other} {
		if r := h.In(dir).Sonny("exec", "say: hi"); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
	}
	e := examine(t, h, "--offline")
	e.wants(t, "sessions", doctor.OK, "2 agents, each with its folder")
	if err := os.Rename(demo, h.Path("moved")); err != nil {
		t.Fatal(err)
	}
	e = examine(t, h, "--offline")
	e.wants(t, "sessions", doctor.Warn, "1 agent whose folder is not there any more", "demo.exec-", "(~/demo)", "put the folder back")
}

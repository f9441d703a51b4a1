package screen_test

import (
	"strings"
	"testing"
)

// The person's runs without a screen are no tasks of a lead: none is counted, listed or
// stopped as one (sonny.md 5.3).
func TestRunsWithoutAScreenAreNoTasksOfTheLead(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, settings("row = \"full\"\n"))
	for range 2 {
		if ran := h.In(dir).Sonny("exec", "say: alone"); ran.Exit != 0 {
			t.Fatalf("%d: %s", ran.Exit, ran.Stderr)
		}
	}
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, "task: build | say: built")
	settled(h, "demo.build")
	s.WaitFor("tasks 1")
	send(s, "/tasks")
	s.WaitFor("tasks of demo.lead")
	if screen := s.Capture(); !strings.Contains(screen, "build") || strings.Contains(screen, "exec-") {
		t.Errorf("the tasks are\n%s", screen)
	}
	if ran := h.In(dir).Sonny("tasks"); ran.Exit != 0 || !strings.Contains(ran.Stdout, "demo.build") || strings.Contains(ran.Stdout, "exec-") {
		t.Errorf("%d: %s%s", ran.Exit, ran.Stdout, ran.Stderr)
	}
	if ran := h.In(dir).Sonny("sessions"); strings.Count(ran.Stdout, "demo.exec-") != 2 {
		t.Errorf("sessions: %s", ran.Stdout)
	}
}

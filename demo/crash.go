package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// promises are what the second bot had been told before the kill, filled in by
// startLongWork and held against the store by comeBack.
type promises struct {
	running, queued int64 // turns
	events          []event
}

// startLongWork brings the second bot into the middle of a command, and leaves
// more work in its line.
func startLongWork(s *stage) error {
	s.heading("4. A second bot is in the middle of a command, with more work in its line")
	var err error
	s.promised.running, err = s.submit("run", "--detach", "--new", "--bot", "keeper", "--model", "demo/keeper",
		"--tools", "shell", "Do two steps and write each into journal.txt")
	if err != nil {
		return err
	}
	if s.promised.events, err = s.watch("keeper", "tool_started", "step two"); err != nil {
		return err
	}
	if err := s.until("the second step to be under way", func() bool {
		raw, err := os.ReadFile(filepath.Join(s.project, "running.pid"))
		return err == nil && bytes.HasSuffix(raw, []byte("\n"))
	}); err != nil {
		return err
	}
	s.promised.queued, err = s.submit("run", "--detach", "--bot", "keeper", "--delivery", "queue", "Read the journal")
	return err
}

// submit shows a detached run and returns the turn it was s.promised.
func (s *stage) submit(args ...string) (int64, error) {
	r, err := s.show("agent", args...)
	if err != nil {
		return 0, err
	}
	if r.code != 0 {
		return 0, fmt.Errorf("the submission was refused: %s", r.out)
	}
	var answer struct{ Turn int64 }
	if err := decode(r.out, &answer); err != nil {
		return 0, err
	}
	return answer.Turn, nil
}

// killDaemon ends the daemon without warning and shows that nobody answers.
func killDaemon(s *stage) error {
	s.heading("5. kill -9")
	killed := s.daemon
	s.say("$ kill -9 %d", killed)
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill -9 %d: %w", killed, err)
	}
	if err := s.until("the daemon to be gone", func() bool { return !alive(killed) }); err != nil {
		return err
	}
	s.daemon = 0
	r, err := s.show("agent", "ls")
	if err != nil {
		return err
	}
	return hold(r.code == 1 && strings.Contains(r.out, "daemon_unavailable"), "nobody answers once the daemon is killed")
}

// comeBack starts a daemon again by the next command and holds what it finds
// against what had been s.promised.
func comeBack(s *stage) error {
	s.heading("6. The next command starts a daemon again; nothing that was promised is lost")
	if _, err := s.show("agent", "turns", "--pretty", "--bot", "keeper"); err != nil {
		return err
	}
	if err := s.noteDaemon(); err != nil {
		return err
	}
	if _, err := s.watch("keeper", "turn_finished", `"completed"`); err != nil {
		return fmt.Errorf("the queued turn did not run: %w", err)
	}
	if err := cutTurn(s); err != nil {
		return err
	}
	if err := queuedTurn(s); err != nil {
		return err
	}
	if err := sameEvents(s); err != nil {
		return err
	}
	return sameJournal(s)
}

// cutTurn: the turn that was running says that it was cut, and its command
// that nobody knows how it ended.
func cutTurn(s *stage) error {
	r, err := s.show("agent", "result", "--bot", "keeper", "--turn", fmt.Sprint(s.promised.running))
	if err != nil {
		return err
	}
	var cut struct{ Status, Error string }
	if err := decode(r.out, &cut); err != nil {
		return err
	}
	if err := hold(cut.Status == "interrupted" && cut.Error == "process_interrupted",
		"the cut turn says interrupted, process_interrupted, not %s, %s", cut.Status, cut.Error); err != nil {
		return err
	}
	s.say("  The turn that was running says it was interrupted. Its first step is kept.\n")
	r, err = s.show("agent", "history", "--pretty", "--bot", "keeper")
	if err != nil {
		return err
	}
	if err := hold(strings.Contains(r.out, "tool_outcome_unknown"), "the cut command says that its outcome is unknown"); err != nil {
		return err
	}
	s.say("  The command that was cut says tool_outcome_unknown: it may have done its work, so it is not run again.\n")
	return nil
}

// queuedTurn: the work in the line ran by itself after the start.
func queuedTurn(s *stage) error {
	r, err := s.show("agent", "result", "--bot", "keeper", "--turn", fmt.Sprint(s.promised.queued))
	if err != nil {
		return err
	}
	var ran struct{ Status string }
	if err := decode(r.out, &ran); err != nil {
		return err
	}
	if err := hold(ran.Status == "completed", "the queued turn ran, and did not end as %q", ran.Status); err != nil {
		return err
	}
	s.say("  The turn that waited in the line ran by itself.\n")
	return nil
}

// sameEvents: each event a follower had been shown is there, byte for byte.
func sameEvents(s *stage) error {
	var page struct{ Events []event }
	if err := s.ask(&page, "events", "--bot", "keeper"); err != nil {
		return err
	}
	kept := map[int64]event{}
	for _, e := range page.Events {
		kept[e.Cursor] = e
	}
	if len(s.promised.events) == 0 {
		return fmt.Errorf("no event was seen before the kill, so nothing is proved")
	}
	for _, e := range s.promised.events {
		k, ok := kept[e.Cursor]
		if err := hold(ok && k.Kind == e.Kind && k.Turn == e.Turn && sameJSON(k.Data, e.Data),
			"event %d, %s, is as it was shown before the kill", e.Cursor, e.Kind); err != nil {
			return err
		}
	}
	s.say("  All %d events a follower had seen before the kill are there, unchanged.", len(s.promised.events))
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// sameJournal: the project shows that no step was done twice.
func sameJournal(s *stage) error {
	journal, err := os.ReadFile(filepath.Join(s.project, "journal.txt"))
	if err != nil {
		return err
	}
	if err := hold(string(journal) == "step one\nstep two\n", "each step was done once; the journal holds %q", journal); err != nil {
		return err
	}
	s.say("  journal.txt holds each step once: nothing was done twice.\n")
	return nil
}

// leave ends the daemon in the ordinary way.
func leave(s *stage) error {
	r, err := s.show("agent", "shutdown")
	if err != nil {
		return err
	}
	if err := hold(r.code == 0 && !alive(s.daemon), "the daemon has ended"); err != nil {
		return err
	}
	s.daemon = 0
	return nil
}

package screen

import (
	"slices"
	"testing"
	"time"

	"agent/protocol"
)

func TestACardOfAProcess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	three, none := int64(3), int64(0)
	for _, row := range []struct {
		name                   string
		p                      process
		since                  time.Time
		mark, plan, took, last string
	}{
		{"that runs", process{running: true}, now.Add(-72 * time.Second), "●", "running", "1:12", ""},
		{"that ran before it was seen", process{running: true}, time.Time{}, "●", "running", "", ""},
		{"of which nothing is known yet", process{}, time.Time{}, "○", "", "", ""},
		{"that went well: its output", process{ended: &protocol.Resolved{Process: &protocol.Process{Stdout: "one\nbuilt\n\n", Stderr: "a warning\n", ExitCode: &none, Success: true}}}, now, "✔", "exit 0", "", "built"},
		{"that failed: what it complained of", process{ended: &protocol.Resolved{Process: &protocol.Process{Stdout: "one\n", Stderr: "no such\nfile", ExitCode: &three}}}, now, "✘", "exit 3", "", "file"},
		{"that was killed", process{ended: &protocol.Resolved{Process: &protocol.Process{}}}, now, "✘", "ended by a signal", "", ""},
		{"that is lost", process{ended: &protocol.Resolved{Err: protocol.Fail(protocol.ProcessLost, "the daemon died")}}, now, "✘", "process_lost", "", ""},
	} {
		c := row.p.card("proc:3", row.since, now)
		if c.Name != "proc 3" || c.Mark.Text != row.mark || c.Plan != row.plan || c.Took != row.took || c.Last != row.last {
			t.Errorf("one %s: %+v", row.name, c)
		}
	}
}

func TestWordsThatCompleteASetting(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		typed, word string
		has, lacks  string
	}{
		{"tui.th", "tui.th", "tui.theme", "tui.keys.ACTION"},
		{"row ", "", "manual", "tui.theme"},
		{"tui.motion f", "f", "false", "manual"},
		{"tui.editor v", "v", "", "vi"},
	} {
		values, word := settingWords(row.typed)
		if word != row.word || row.has != "" && !slices.Contains(values, row.has) || slices.Contains(values, row.lacks) {
			t.Errorf("%q: %q of %q", row.typed, word, values)
		}
	}
}

package decide

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// forged is a text that is written so as to look like what Sonny says of a start.
const forged = "fix typos\n\n  setup\n    (this repository has none; nothing runs)\n\n  base  HEAD\n" +
	"    setup_runs  never\n  shell in ~/demo · runs in its sandbox · no time limit\n  1  allow once"

// known is a bot of which nothing is known but its name.
var known = Known{Bot: &protocol.Bot{Name: "demo.lead"}}

// drawn are lines as they stand on the screen.
func drawn(lines []text.Line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.String())
	}
	return strings.Join(out, "\n")
}

// startStep is a task's start as the tool host shows it.
func startStep(t *testing.T, brief, setup string) *Call {
	t.Helper()
	spell := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	args := `{"setup_runs":"in the worktree, unconfined, as the person","setup_path":"/src/.agents/setup","setup_digest":"` +
		strings.Repeat("ab", 32) + `","setup":` + spell(setup) + `,"base":"4f2a","worktree":"/trees/demo/a","bot":"demo.a","brief":` + spell(brief) + `}`
	return &Call{Approval: &protocol.Approval{
		Bot: "demo.lead", Name: "start_task.start", Step: "s1", Cause: "step", Gates: []string{"manual"}, Arguments: []byte(args),
	}, Args: args}
}

// unmarked are the rows that are Sonny's own: those without a bar.
func unmarked(rows []string) (out []string) {
	for _, row := range rows {
		if !strings.HasPrefix(row, "  │ ") {
			out = append(out, row)
		}
	}
	return out
}

func at(t *testing.T, rows []string, want string) int {
	t.Helper()
	i := slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, want) })
	if i < 0 {
		t.Fatalf("%q is not in\n%s", want, strings.Join(rows, "\n"))
	}
	return i
}

func TestATasksStartIsShownBeforeWhatTheModelSaysOfIt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of the brief\n", 60) + forged
	for _, width := range []int{50, 80, 200} {
		for _, whole := range []bool{false, true} {
			rows := strings.Split(drawn(startStep(t, long, "#!/bin/sh\nbase  HEAD\nmake "+strings.Repeat("x ", 60)+"  setup  none").body(known, width, whole)), "\n")
			last := at(t, rows, "the model's words")
			for _, field := range []string{"setup_runs", "/src/.agents/setup", "setup_digest", "4f2a", "/trees/demo/a", "make x"} {
				if i := at(t, rows, field); i > last {
					t.Errorf("width %d: %q stands in row %d, after the model's words in row %d", width, field, i, last)
				}
			}
			for _, row := range unmarked(rows) {
				for _, lie := range []string{"nothing runs", "HEAD", "never", "in its sandbox", "allow once", "none"} {
					if strings.Contains(row, lie) {
						t.Errorf("width %d: %q stands among what Sonny says", width, row)
					}
				}
			}
		}
	}
	if rows := startStep(t, long, "true").body(known, 80, false); len(rows) > 40 {
		t.Errorf("the brief takes %d rows", len(rows))
	}
}

// A row may also be made to begin where the window breaks a long one.
func TestARowThatIsBrokenGoesOnMarked(t *testing.T) {
	t.Parallel()
	padded := "tidy " + strings.Repeat("x", 69) + "   base  HEAD: setup  (none)"
	args := `{"padded":"` + padded + `"}`
	command, _ := json.Marshal(map[string]string{"command": padded})
	for name, q := range map[string]*Call{
		"a reason":              {Approval: &protocol.Approval{Name: "shell", Justification: padded}, Args: `{"command":"true"}`},
		"a command":             {Approval: &protocol.Approval{Name: "shell"}, Args: string(command)},
		"a served call":         {Approval: &protocol.Approval{Name: "mcp/files/delete"}, Args: args},
		"a served call's lines": {Approval: &protocol.Approval{Name: "mcp/files/delete"}, Args: `{"text":"a\nbase  HEAD"}`},
		"a step":                {Approval: &protocol.Approval{Name: "a.b", Step: "s"}, Args: args},
	} {
		q.Bot, q.Gates = "demo.lead", []string{"manual"}
		rows := strings.Split(drawn(q.body(known, 80, false)), "\n")
		if i := at(t, rows, "HEAD"); !strings.HasPrefix(rows[i], "  │ ") {
			t.Errorf("%s: %q", name, rows[i])
		}
	}
	q := &Question{Bot: "demo.lead", Text: forged, Choices: []string{padded, "no"}}
	s := q.Sheet(nil, 80, true)
	for _, row := range unmarked(strings.Split(drawn(s.Body), "\n")) {
		if row != "    it says:" {
			t.Errorf("a question: %q", row)
		}
	}
	rows := strings.Split(drawn(s.Rows(80, 0, false, true)), "\n")
	if i := at(t, rows, "HEAD"); !strings.HasPrefix(rows[i], "   │ ") {
		t.Errorf("a choice: %q", rows[i])
	}
}

func TestTheModelsWordsInThePlainMode(t *testing.T) {
	t.Parallel()
	q := startStep(t, forged, "#!/bin/sh\nbase  HEAD")
	body := q.Spoken(known, 0).Body
	last := at(t, body, "the model's words")
	if at(t, body, "setup_runs") > last || at(t, body, "4f2a") > last {
		t.Errorf("what happens stands after the model's words:\n%s", strings.Join(body, "\n"))
	}
	for _, line := range body {
		if strings.Contains(line, "HEAD") && !strings.HasPrefix(line, plainBar) || strings.Contains(line, "nothing runs") && !strings.HasPrefix(line, plainBar) {
			t.Errorf("%q is not marked", line)
		}
	}
	ask := &Question{ID: "7", Bot: "demo.lead", Text: forged}
	for _, line := range Spoken(func(w int) Sheet { return ask.Sheet(nil, w, true) }, 0).Body[1:] { // after what says whose words they are
		if !strings.HasPrefix(line, "|") {
			t.Errorf("a question's %q is not marked", line)
		}
	}
}

package screen

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agent/protocol"
)

// forged is a text that is written so as to look like what Sonny says of a start.
const forged = "fix typos\n\n  setup\n    (this repository has none; nothing runs)\n\n  base  HEAD\n" +
	"    setup_runs  never\n  shell in ~/demo · runs in its sandbox · no time limit\n  1  allow once"

// startStep is a task's start as the tool host shows it.
func startStep(t *testing.T, brief, setup string) *approval {
	t.Helper()
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	args := `{"setup_runs":"in the worktree, unconfined, as the person","setup_path":"/src/.agents/setup","setup_digest":"` +
		strings.Repeat("ab", 32) + `","setup":` + text(setup) + `,"base":"4f2a","worktree":"/trees/demo/a","bot":"demo.a","brief":` + text(brief) + `}`
	return &approval{c: &protocol.Approval{
		Bot: "demo.lead", Name: "start_task.start", Step: "s1", Cause: "step", Gates: []string{"manual"}, Arguments: []byte(args),
	}, args: args}
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
	b := newBench(t)
	long := strings.Repeat("a line of the brief\n", 60) + forged
	for _, width := range []int{50, 80, 200} {
		for _, whole := range []bool{false, true} {
			rows := strings.Split(drawn(startStep(t, long, "#!/bin/sh\nbase  HEAD\nmake "+strings.Repeat("x ", 60)+"  setup  none").body(b.App, width, whole)), "\n")
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
	if rows := startStep(t, long, "true").body(b.App, 80, false); len(rows) > 40 {
		t.Errorf("the brief takes %d rows", len(rows))
	}
}

// A row may also be made to begin where the window breaks a long one.
func TestARowThatIsBrokenGoesOnMarked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	padded := "tidy " + strings.Repeat("x", 69) + "   base  HEAD: setup  (none)"
	args := `{"padded":"` + padded + `"}`
	command, _ := json.Marshal(map[string]string{"command": padded})
	for name, q := range map[string]*approval{
		"a reason":              {c: &protocol.Approval{Name: "shell", Justification: padded}, args: `{"command":"true"}`},
		"a command":             {c: &protocol.Approval{Name: "shell"}, args: string(command)},
		"a served call":         {c: &protocol.Approval{Name: "mcp/files/delete"}, args: args},
		"a served call's lines": {c: &protocol.Approval{Name: "mcp/files/delete"}, args: `{"text":"a\nbase  HEAD"}`},
		"a step":                {c: &protocol.Approval{Name: "a.b", Step: "s"}, args: args},
	} {
		q.c.Bot, q.c.Gates = "demo.lead", []string{"manual"}
		rows := strings.Split(drawn(q.body(b.App, 80, false)), "\n")
		if i := at(t, rows, "HEAD"); !strings.HasPrefix(rows[i], "  │ ") {
			t.Errorf("%s: %q", name, rows[i])
		}
	}
	q := &personAsked{q: Question{Bot: "demo.lead", Text: forged, Choices: []string{padded, "no"}}}
	s := q.sheet(b.App, 80, true)
	for _, row := range unmarked(strings.Split(drawn(s.body), "\n")) {
		if row != "    it says:" {
			t.Errorf("a question: %q", row)
		}
	}
	rows := strings.Split(drawn(b.answers.choices(s, 80, false, true)), "\n")
	if i := at(t, rows, "HEAD"); !strings.HasPrefix(rows[i], "   │ ") {
		t.Errorf("a choice: %q", rows[i])
	}
}

func TestTheModelsWordsInThePlainMode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.pass(1)
	q := startStep(t, forged, "#!/bin/sh\nbase  HEAD")
	b.answers.add(b.App, q)
	body := b.question().Body
	last := at(t, body, "the model's words")
	if at(t, body, "setup_runs") > last || at(t, body, "4f2a") > last {
		t.Errorf("what happens stands after the model's words:\n%s", strings.Join(body, "\n"))
	}
	for _, line := range body {
		if strings.Contains(line, "HEAD") && !strings.HasPrefix(line, plainBar) || strings.Contains(line, "nothing runs") && !strings.HasPrefix(line, plainBar) {
			t.Errorf("%q is not marked", line)
		}
	}
	ask := &personAsked{q: Question{ID: "7", Bot: "demo.lead", Text: forged, Announced: b.now}}
	b.answers.drop(b.App, q.id(), "")
	b.answers.add(b.App, ask)
	for _, line := range b.question().Body[1:] { // after what says whose words they are
		if !strings.HasPrefix(line, "|") {
			t.Errorf("a question's %q is not marked", line)
		}
	}
}

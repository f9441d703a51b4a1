package ahead

import (
	"context"
	"slices"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// checked is what the sandbox's check came to; it is made beside the screen.
type checked struct {
	under bool // under way
	list  []doctor.Check
}

// checkSandbox begins the check, unless it is under way.
func (f *FirstRun) checkSandbox(ctx context.Context) {
	if f.Sandbox == nil || f.sandbox.under {
		return
	}
	f.sandbox = checked{under: true}
	f.beside(ctx, func(ctx context.Context) func() {
		list := f.Sandbox(ctx)
		return func() { f.sandbox = checked{list: list} }
	})
}

// words are the check in a line.
func (c checked) words() text.Line {
	if c.under {
		return text.Of(text.Dim, "checking…")
	}
	worst := doctor.Check{Status: doctor.OK, Summary: "commands are confined, and the network where it is off"}
	for _, check := range c.list {
		if check.Status == doctor.Fail || check.Status == doctor.Warn && worst.Status == doctor.OK {
			worst = check
		}
		if worst.Status == doctor.Fail {
			break
		}
	}
	mark := map[doctor.Status]string{doctor.OK: "✔ ", doctor.Warn: "! ", doctor.Fail: "✘ "}[worst.Status]
	role := map[doctor.Status]text.Role{doctor.OK: text.Plain, doctor.Warn: text.Warn, doctor.Fail: text.Fail}[worst.Status]
	return text.Of(role, mark+cells.OneLine(worst.Summary))
}

// sandboxPage shows the checks, and for one that failed the command that would mend it.
func (f *FirstRun) sandboxPage(ctx context.Context) *page {
	p := &page{
		title: "sandbox", empty: "checking: a sandbox is made and tried, which may take a minute", hint: "↑↓  y copy the command  r check again  Esc back",
		asked: "sandbox: type y to copy the command, r to check again, down and up for the other checks. an empty line goes back.",
	}
	if at := slices.IndexFunc(f.sandbox.list, func(c doctor.Check) bool { return c.Status == doctor.Fail }); at >= 0 {
		p.At = f.sandbox.list[at].ID // what is to be mended
	}
	p.rows = func() (rows []lists.Row) {
		for _, c := range f.sandbox.list {
			rows = append(rows, lists.Row{ID: c.ID, Line: text.Join(
				text.Span{Text: text.Pad(string(c.Status), 5) + " ", Role: statusRoles[c.Status]},
				text.Span{Text: text.Pad(c.ID, 17) + " "}, text.Span{Text: cells.OneLine(c.Summary)})})
		}
		return rows
	}
	p.detail = func(r lists.Row, w int) []text.Line { return aboutCheck(f.check(r.ID), f.Mend, w) }
	p.keys = map[string]func(string) bool{
		"y": func(id string) bool {
			if c := f.check(id); c.Status == doctor.Fail || c.Status == doctor.Warn {
				f.copy(toCopy(c, f.Mend))
			}
			return false
		},
		"r": func(string) bool { f.checkSandbox(ctx); return false },
	}
	return p
}

var statusRoles = map[doctor.Status]text.Role{doctor.OK: text.Run, doctor.Warn: text.Warn, doctor.Fail: text.Fail, doctor.Skip: text.Dim}

// check is one of them by its id.
func (f *FirstRun) check(id string) doctor.Check {
	for _, c := range f.sandbox.list {
		if c.ID == id {
			return c
		}
	}
	return doctor.Check{}
}

// aboutCheck is what a check found in full, what to do, and the command for it.
func aboutCheck(c doctor.Check, mend func(doctor.Check) string, w int) (lines []text.Line) {
	say := func(role text.Role, words string) {
		if words != "" {
			lines = append(lines, text.Wrap([]text.Span{{Text: cells.OneLine(words), Role: role}}, text.Frame{Width: w})...)
		}
	}
	say(text.Plain, c.Summary)
	say(text.Dim, c.Detail)
	if c.Status == doctor.Fail || c.Status == doctor.Warn {
		say(text.Plain, c.Remedy)
		say(text.Accent, mend(c))
	}
	return lines
}

// toCopy is the command that mends what a check found; its remedy in words where none is
// known.
func toCopy(c doctor.Check, mend func(doctor.Check) string) string {
	if command := mend(c); command != "" {
		return command
	}
	return c.Remedy
}

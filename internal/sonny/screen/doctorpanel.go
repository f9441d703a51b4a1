package screen

import (
	"context"
	"strings"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// doctorCommands make the checks (sonny.md 19.3).
var doctorCommands = feature{
	commands: []slashCommand{{"doctor", "", "check that all is as it should be", func(a *App, _ string) error { return a.openDoctor() }}},
}

// doctorPanel lists the checks, with what to do about the one at hand.
type doctorPanel struct {
	listPanel
	report *doctor.Report // nil: under way
}

// openDoctor makes all checks beside the loop and lists them when they are made.
func (a *App) openDoctor() error {
	if a.o.Doctor == nil {
		return protocol.Fail("failed", "the checks cannot be made from here; sonny doctor makes them")
	}
	p := &doctorPanel{}
	p.title, p.hint = "doctor", []string{"r check again"}
	p.right = p.overall
	p.rows = func(*App) []lists.Row { return p.checks() }
	p.detail = func(_ *App, r lists.Row, w int) []text.Line { return p.about(r, w) }
	p.free = map[string]func(*App){"r": func(a *App) {
		if p.waits == "" {
			p.run(a)
		}
	}}
	a.panel = p
	p.run(a)
	return nil
}

func (p *doctorPanel) run(a *App) {
	p.report, p.waits = nil, "checking: the sandbox is tried, and providers are asked; this may take a minute"
	do(a, func(ctx context.Context) (*doctor.Report, error) { return a.o.Doctor(ctx) }, func(r *doctor.Report, err error) {
		p.report, p.waits = r, ""
		if err != nil {
			p.empty = fault.Screen.Words(err)
			a.notes.fail(err)
		}
	})
}

func (p *doctorPanel) overall() string {
	if p.report == nil {
		return ""
	}
	return string(p.report.Overall)
}

// checkRoles are the looks of the statuses.
var checkRoles = map[doctor.Status]text.Role{doctor.OK: text.Run, doctor.Warn: text.Warn, doctor.Fail: text.Fail, doctor.Skip: text.Dim}

func (p *doctorPanel) checks() (rows []lists.Row) {
	if p.report == nil {
		return nil
	}
	for _, c := range p.report.Checks {
		rows = append(rows, lists.InColumns(c.ID,
			lists.Column{Text: string(c.Status), Width: 5, Role: checkRoles[c.Status]},
			lists.Column{Text: c.ID, Width: 17},
			lists.Column{Text: cells.OneLine(c.Summary)},
			lists.Column{Text: remedyOf(c), Role: text.Accent},
		))
	}
	return rows
}

// about is what a check found, in full, and what to do.
func (p *doctorPanel) about(r lists.Row, w int) (lines []text.Line) {
	if p.report == nil {
		return nil
	}
	say := func(role text.Role, words string) {
		if words != "" {
			lines = append(lines, text.Wrap([]text.Span{{Text: cells.OneLine(words), Role: role}}, text.Frame{Width: w})...)
		}
	}
	for _, c := range p.report.Checks {
		if c.ID != r.ID {
			continue
		}
		say(text.Plain, c.Summary)
		say(text.Dim, c.Detail)
		say(text.Accent, strings.TrimSpace(remedyOf(c)))
	}
	return lines
}

// remedyOf is what to do about a check, as it stands behind what that found.
func remedyOf(c doctor.Check) string {
	if c.Status == doctor.OK || c.Remedy == "" {
		return ""
	}
	return "  → " + cells.OneLine(c.Remedy)
}

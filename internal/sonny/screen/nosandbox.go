package screen

import (
	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// noSandbox offers the two ways on where no bot can be confined (sonny.md 3.3). Sonny
// never takes the second by itself.
func (a *App) noSandbox(err error) {
	a.panel = &listPanel{
		title: "sandbox_unavailable", hint: []string{"Enter take it"},
		rows: func(*App) []lists.Row {
			return []lists.Row{
				{ID: "again", Line: text.Of(text.Plain, "check again")},
				{ID: "ask", Line: text.Of(text.Plain, "ask me for every call, no sandbox")},
			}
		},
		detail: func(_ *App, _ lists.Row, w int) []text.Line {
			return text.Wrap([]text.Span{{Text: fault.Screen.Words(err), Role: text.Fail}}, text.Frame{Width: w})
		},
		keys: map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
			if r.ID == "again" {
				a.panel = nil
				a.send(delivery{})
				return true
			}
			a.confirm("Nothing confines its commands then; you are asked for each. Type "+lead.OpenWord+" to take it.", func(a *App) {
				a.panel = nil
				a.forNewLead(func(s *lead.Settings) { s.Row, s.Sandbox = lead.Manual, protocol.SandboxFull })
				a.send(delivery{})
			})
			return false
		}},
	}
}

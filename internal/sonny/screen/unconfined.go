package screen

import (
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// noSandbox shows why no lead could be confined, and the ways on: to look once more, or
// to be asked about every call. Sonny takes neither by itself (sonny.md 3.3).
func (st *startScreen) noSandbox(a *App, err error) {
	detail := err.Error()
	a.panel = &listPanel{
		title: "this system has no sandbox for commands", at: "check",
		hint: []string{"Enter take it"},
		rows: func(*App) []listRow {
			return []listRow{
				{id: "check", line: text.Of(text.Plain, "check again")},
				{id: "ask", line: text.Of(text.Plain, "ask me for every call, no sandbox")},
			}
		},
		detail: func(_ *App, _ listRow, w int) []text.Line {
			return text.Wrap([]text.Span{{Text: cells.OneLine(detail), Role: text.Fail}}, text.Frame{Width: w})
		},
		keys: map[string]func(*App, listRow) bool{"enter": func(a *App, r listRow) bool {
			a.panel = nil
			if r.id == "check" {
				st.send(a)
				return true
			}
			a.confirmOpen("Nothing confines the commands; you are asked about each.", func(a *App) {
				a.o.Settings.Row, a.o.Settings.Sandbox = lead.Manual, protocol.SandboxFull
				st.send(a)
			})
			return true
		}},
	}
}

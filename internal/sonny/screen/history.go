package screen

import (
	"fmt"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// historyKeys walk through what was sent, and search it (sonny.md 10.1).
var historyKeys = feature{
	actions: map[string]func(*App){
		"history_older":  func(a *App) { a.composing().Editor().Older(a.out.NthSent) },
		"history_newer":  func(a *App) { a.composing().Editor().Newer(a.out.NthSent) },
		"history_search": (*App).searchHistory,
	},
	sent: func(a *App, text string) { a.out.Remember(a.writingIn(), text) },
}

// writingIn is the project of what is being written.
func (a *App) writingIn() string {
	if s := a.at(); s != nil {
		return lead.ProjectOf(s.bot)
	}
	return a.start.project
}

// isCommand reports whether a text begins as a command of Sonny's.
func (a *App) isCommand(text string) bool {
	line, is := slash(text)
	name, _, _ := strings.Cut(strings.SplitN(line, "\n", 2)[0], " ")
	return is && a.builtIn(name) != nil
}

// searchHistory lists what was sent, to be found by typing; Enter puts one into the
// composer, unsent.
func (a *App) searchHistory() {
	a.panel = &listPanel{
		title: "sent before", List: lists.List{Filter: &edit.Field{}, Typing: true}, empty: "nothing that was sent holds this",
		right: func() string { return fmt.Sprint(len(a.out.Sent())) },
		hint:  []string{"Enter take it"},
		rows: func(a *App) []lists.Row {
			sent := a.out.Sent()
			rows := make([]lists.Row, 0, len(sent))
			for i, s := range sent {
				line, _, _ := strings.Cut(s, "\n")
				rows = append(rows, lists.Row{ID: fmt.Sprint(i), Line: text.Of(text.Plain, cells.OneLine(line)), Match: s})
			}
			return rows
		},
		keys: map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
			var n int
			if _, err := fmt.Sscan(r.ID, &n); err == nil {
				if sent, is := a.out.NthSent(n); is {
					a.composing().Editor().SetText(sent)
				}
			}
			return true
		}},
	}
}

package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// sentHistory is what was sent in the project on screen, the newest first.
type sentHistory struct {
	project string
	list    []string
}

// historyKeys walk through what was sent, and search it (sonny.md 10.1).
var historyKeys = feature{
	actions: map[string]func(*App){
		"history_older":  func(a *App) { a.composing().Editor().Older(a.nthSent) },
		"history_newer":  func(a *App) { a.composing().Editor().Newer(a.nthSent) },
		"history_search": (*App).searchHistory,
	},
	sent: (*App).remember,
}

func (a *App) nthSent(n int) (string, bool) {
	if n < 0 || n >= len(a.history.list) {
		return "", false
	}
	return a.history.list[n], true
}

// writingIn is the project of what is being written.
func (a *App) writingIn() string {
	if s := a.at(); s != nil {
		return lead.ProjectOf(s.bot)
	}
	return a.start.project
}

// readHistory reads the history of the project that is written in, where it is another
// than before.
func (a *App) readHistory() {
	project := a.writingIn()
	if project == "" || project == a.history.project {
		return
	}
	a.history = sentHistory{project: project}
	do(a, func(context.Context) ([]string, error) { return a.pen.history.Sent(project) },
		func(list []string, err error) { a.tookHistory(project, list, err) })
}

func (a *App) tookHistory(project string, list []string, err error) {
	switch {
	case err != nil:
		a.cannotKeep("what was sent", err)
	case project == a.history.project:
		a.history.list = slices.DeleteFunc(list, a.isCommand)
	}
}

// isCommand reports whether a text begins as a command of Sonny's. One that is recalled
// does not act, and must not reach the model either; so none is kept among messages.
func (a *App) isCommand(text string) bool {
	line, is := slash(text)
	name, _, _ := strings.Cut(strings.SplitN(line, "\n", 2)[0], " ")
	return is && a.builtIn(name) != nil
}

// remember keeps a message as the newest.
func (a *App) remember(text string) {
	if !pen.Keeps(text) || a.isCommand(text) {
		return
	}
	h := &a.history
	project, at := a.writingIn(), a.o.Now()
	h.list = append([]string{text}, slices.DeleteFunc(h.list, func(s string) bool { return s == text })...)
	a.addSent(unsent{project, text, at})
}

// searchHistory lists what was sent, to be found by typing; Enter puts one into the
// composer, unsent.
func (a *App) searchHistory() {
	a.panel = &listPanel{
		title: "sent before", List: lists.List{Filter: &edit.Field{}, Typing: true}, empty: "nothing that was sent holds this",
		right: func() string { return fmt.Sprint(len(a.history.list)) },
		hint:  []string{"Enter take it"},
		rows: func(a *App) []lists.Row {
			rows := make([]lists.Row, 0, len(a.history.list))
			for i, s := range a.history.list {
				line, _, _ := strings.Cut(s, "\n")
				rows = append(rows, lists.Row{ID: fmt.Sprint(i), Line: text.Of(text.Plain, cells.OneLine(line)), Match: s})
			}
			return rows
		},
		keys: map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
			var n int
			if _, err := fmt.Sscan(r.ID, &n); err == nil && n < len(a.history.list) {
				a.composing().Editor().SetText(a.history.list[n])
			}
			return true
		}},
	}
}

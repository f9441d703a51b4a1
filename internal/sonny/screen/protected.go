package screen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agent/internal/sonny/notify"
	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/text"
)

// exposed tells that protected paths were replaced from outside while a call ran: the
// call could write them until its end (sonny.md 8.5). It asks nothing.
type exposed struct {
	name, call, subject string
	paths               []string
	at                  time.Time
	shown               []string // what v found out of each path
}

// exposes puts the panel up for a call whose result tells of such paths.
func (a *App) exposes(s *session, c *cells.ToolCall) {
	paths := c.Exposed()
	if len(paths) == 0 {
		return
	}
	q := &exposed{name: s.bot, call: c.ID, subject: c.Name + "  " + c.Subject(), paths: paths, at: a.o.Now()}
	a.answers.add(a, q)
	a.tell(notify.Note{Event: "question", Bot: s.bot, Body: s.bot + ": protected files were replaced while a call ran"})
}

func (q *exposed) id() string       { return "exposed " + q.name + " " + q.call }
func (q *exposed) bot() string      { return q.name }
func (q *exposed) since() time.Time { return q.at }

func (q *exposed) sheet(a *App, w int, whole bool) sheet {
	s := sheet{title: "protected files were replaced while a call ran", hints: []string{"Enter close", "v what they hold now"}}
	s.body = append(s.body, quoted("", q.subject, text.Plain, w)...)
	s.body = append(s.body, text.Line{})
	for _, path := range q.paths {
		s.body = append(s.body, quoted("", path, text.Warn, w)...)
	}
	s.body = append(s.body, text.Line{})
	s.body = append(s.body, wrapped("Somebody outside the sandbox replaced them meanwhile, so the call could write them until its end.", text.Warn, w)...)
	if whole {
		for _, line := range q.shown {
			s.body = append(s.body, part{rows: []string{"", strings.ReplaceAll(line, "\t", "    ")}}.lines(w, true)[1:]...)
		}
	}
	return s
}

func (q *exposed) pick(*App, int, string) {}
func (q *exposed) leave(*App) bool        { return true }

func (q *exposed) own(a *App, action string) {
	switch action {
	case "approve_take":
		a.answers.drop(a, q.id(), "")
	case "approve_whole":
		checkout := a.o.Folder.Repo
		do(a, func(ctx context.Context) ([]string, error) { return nowAt(ctx, checkout, q.paths), nil },
			func(lines []string, _ error) { q.shown = lines })
	}
}

// nowAt shows each path as it is now: what git says has changed of a tracked file, else
// what the folder's listing says.
func nowAt(ctx context.Context, checkout repo.Repo, paths []string) (lines []string) {
	for _, path := range paths {
		if diff := changedAt(ctx, checkout, path); diff != "" {
			lines = append(lines, strings.Split(strings.TrimRight(diff, "\n"), "\n")...)
			continue
		}
		lines = append(lines, listing(path))
	}
	return lines
}

// changedAt is git's diff of a path of the checkout; "" where there is none.
func changedAt(ctx context.Context, checkout repo.Repo, path string) string {
	if !checkout.There() {
		return ""
	}
	below, err := filepath.Rel(checkout.Top, path)
	if err != nil || below == ".git" || strings.HasPrefix(below, "..") || strings.HasPrefix(below, ".git"+string(filepath.Separator)) {
		return ""
	}
	diff, _, err := checkout.Diff(ctx, "HEAD", "", below)
	if err != nil {
		return ""
	}
	return diff
}

// listing is a path as ls -l lists it.
func listing(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	line := fmt.Sprintf("%s %8d %s %s", info.Mode(), info.Size(), info.ModTime().Format("2006-01-02 15:04:05"), path)
	if to, err := os.Readlink(path); err == nil {
		line += " -> " + to
	}
	return line
}

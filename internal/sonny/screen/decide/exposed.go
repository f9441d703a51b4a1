package decide

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/text"
)

// Exposed tells that protected paths were replaced from outside while a call ran: the
// call could write them until its end (sonny.md 8.5). It asks nothing.
type Exposed struct {
	Subject string // the call's
	Paths   []string
	Shown   []string // what NowAt found out of each path
}

// Sheet is the notice for a width in cells; whole, with what was found out of the paths.
func (q *Exposed) Sheet(w int, whole bool) Sheet {
	s := Sheet{Title: "protected files were replaced while a call ran", Hints: []string{"Enter close", "v what they hold now"}}
	s.Body = append(s.Body, quoted("", q.Subject, text.Plain, w)...)
	s.Body = append(s.Body, text.Line{})
	for _, path := range q.Paths {
		s.Body = append(s.Body, quoted("", path, text.Warn, w)...)
	}
	s.Body = append(s.Body, text.Line{})
	s.Body = append(s.Body, Said("Somebody outside the sandbox replaced them meanwhile, so the call could write them until its end.", text.Warn, w)...)
	if whole {
		for _, line := range q.Shown {
			s.Body = append(s.Body, part{rows: []string{"", strings.ReplaceAll(line, "\t", "    ")}}.lines(w, true)[1:]...)
		}
	}
	return s
}

// NowAt shows each path as it is now: what git says has changed of a tracked file, else
// what the folder's listing says. It runs git.
func NowAt(ctx context.Context, checkout repo.Repo, paths []string) (lines []string) {
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

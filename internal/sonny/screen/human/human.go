// Package human has numbers, times, paths and errors in the words in which people read
// them on the screen.
package human

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Tokens is a count as people read it: 412, 18k, 1.2M.
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_500:
		return fmt.Sprintf("%dk", (n+500)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// Count is a number with its noun: 1 task, 2 tasks.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// When is a time that is over, as people say it: 14:02, yesterday 18:04, 3 Nov 18:04.
func When(now, at time.Time) string {
	now, at = now.Local(), at.Local()
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	switch {
	case day(at) == day(now):
		return at.Format("15:04")
	case day(at) == day(now.AddDate(0, 0, -1)):
		return "yesterday " + at.Format("15:04")
	case at.Year() == now.Year():
		return at.Format("2 Jan 15:04")
	}
	return at.Format("2 Jan 2006 15:04")
}

// Path is a path below the home folder as people write it.
func Path(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return path
	}
	if path == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(path, home+"/"); ok {
		return "~/" + rest
	}
	return path
}

// Clock is a duration as a clock counts it: 0:42, 1:02:03.
func Clock(d time.Duration) string {
	s := int(max(0, d).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Ago is how long a time is over, as a list says it; of a day before yesterday, its date.
func Ago(now, at time.Time) string {
	d := now.Sub(at)
	switch {
	case at.IsZero():
		return "-"
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	case d < 48*time.Hour:
		return "yesterday"
	}
	return strings.TrimSpace(at.Format("2 Jan"))
}

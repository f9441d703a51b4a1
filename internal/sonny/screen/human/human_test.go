package human

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	now := time.Date(2026, 11, 30, 9, 5, 0, 0, time.Local)
	for _, row := range []struct{ got, want string }{
		{Tokens(999), "999"},
		{Tokens(1500), "2k"},
		{Tokens(999_499), "999k"},
		{Tokens(999_500), "1.0M"},
		{Count(1, "task", "tasks"), "1 task"},
		{Count(0, "task", "tasks"), "0 tasks"},
		{Clock(-time.Second), "0:00"},
		{Clock(42 * time.Second), "0:42"},
		{Clock(time.Hour + 2*time.Minute + 3*time.Second), "1:02:03"},
		{When(now, now.Add(-5*time.Minute)), "09:00"},
		{When(now, now.AddDate(0, 0, -1)), "yesterday 09:05"},
		{When(now, now.AddDate(0, -1, 0)), "30 Oct 09:05"},
		{When(now, now.AddDate(-1, 0, 0)), "30 Nov 2025 09:05"},
		{Path("/home/me"), "~"},
		{Path("/home/me/src"), "~/src"},
		{Path("/home/men"), "/home/men"},
	} {
		if row.got != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
}

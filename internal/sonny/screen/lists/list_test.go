package lists

import (
	"fmt"
	"strings"
	"testing"

	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// rows are a heading and so many rows.
func rows(n int) []Row {
	out := []Row{{Line: text.Of(text.Dim, "heading")}}
	for i := range n {
		name := fmt.Sprintf("row %02d", i)
		out = append(out, Row{ID: name, Line: text.Of(text.Plain, name)})
	}
	return out
}

func drawn(l *List, list []Row, about About) string {
	f := term.NewFrame(40, 10)
	l.Draw(f.All(), list, &about)
	var out []string
	for y := range 10 {
		out = append(out, f.Row(y))
	}
	return strings.Join(out, "\n")
}

func TestMovingInAList(t *testing.T) {
	t.Parallel()
	all := rows(30)
	for _, row := range []struct{ name, keys, want string }{
		{"the first row is at hand, not the heading", "", "row 00"},
		{"no key goes above it", "up pgup home", "row 00"},
		{"down, and back", "down down up", "row 01"},
		{"a page", "pgdown", "row 10"},
		{"the end, and not past it", "end down pgdown", "row 29"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var l List
			for key := range strings.FieldsSeq(row.keys) {
				if !l.Move(key, all) {
					t.Errorf("%s moves nothing", key)
				}
			}
			if got := all[l.Hand(all)].ID; got != row.want {
				t.Errorf("%q is at hand", got)
			}
			if l.Move("enter", all) {
				t.Error("Enter moves")
			}
		})
	}
}

func TestTheRowAtHandIsInView(t *testing.T) {
	t.Parallel()
	var l List
	all := rows(30)
	l.Move("end", all)
	screen := drawn(&l, all, About{Title: "rows", Right: "30"})
	if !strings.Contains(screen, "▎ row 29") || strings.Contains(screen, "row 00") || !strings.Contains(screen, "── rows ─") || !strings.Contains(screen, " 30 ─") {
		t.Errorf("\n%s", screen)
	}
	detail := func(r Row, _ int) []text.Line { return []text.Line{text.Of(text.Plain, "about "+r.ID)} }
	screen = drawn(&l, all, About{Detail: detail})
	if !strings.Contains(screen, "▎ row 29") || !strings.Contains(screen, "about row 29") {
		t.Errorf("with its detail:\n%s", screen)
	}
}

func TestAFilter(t *testing.T) {
	t.Parallel()
	var l List
	all := append(rows(30), Row{ID: "x", Line: text.Of(text.Plain, "hidden"), Match: "Other words"})
	l.At = "row 07"
	l.Search()
	m := keys.Default()
	for _, r := range "words oth" {
		l.Write(m, term.Key{Name: string(r), Text: string(r)})
	}
	some := l.Through(all)
	if len(some) != 1 || some[0].ID != "x" || l.Hand(some) != 0 {
		t.Errorf("%d rows, %d at hand", len(some), l.Hand(some))
	}
	l.Filter.Set("nothing")
	if screen := drawn(&l, l.Through(all), About{Without: "no such row"}); !strings.Contains(screen, "/ nothing") || !strings.Contains(screen, "no such row") {
		t.Errorf("\n%s", screen)
	}
	if l.Leave(); l.Typing || l.Filter == nil {
		t.Error("a filter with words is gone when it is left")
	}
	l.Filter.Clear()
	if l.Leave(); l.Filter != nil {
		t.Error("a filter without words stays")
	}
}

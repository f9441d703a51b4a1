package decide

import (
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/screen/text"
)

// body is a question's body of so many rows.
func body(rows int) (out []text.Line) {
	for range rows {
		out = append(out, text.Of(text.Plain, "row"))
	}
	return out
}

func TestHowMuchHasBeenInView(t *testing.T) {
	t.Parallel()
	t.Run("with six rows in view the rest need not have been", func(t *testing.T) {
		t.Parallel()
		var v Window
		rows := v.Rows("q", body(40), 7)
		if v.TooLittle("q") || len(rows) != 7 || !strings.Contains(rows[6].String(), "+36 lines") {
			t.Errorf("too little %v of\n%s", v.TooLittle("q"), drawn(rows))
		}
	})
	t.Run("with fewer all of it has to have been, a part after the other", func(t *testing.T) {
		t.Parallel()
		var v Window
		for _, top := range []int{0, 2, 4} {
			v.Top = top
			v.Rows("q", body(9), 3)
			if !v.TooLittle("q") {
				t.Errorf("from row %d it was enough", top)
			}
		}
		v.Top = 99
		if v.Rows("q", body(9), 3); v.TooLittle("q") || v.Top != 6 {
			t.Errorf("at the end, row %d, it was not enough", v.Top)
		}
		if v.Rows("other", body(9), 3); !v.TooLittle("other") {
			t.Error("what was seen of one question counted for another")
		}
	})
	t.Run("a part that was skipped was not", func(t *testing.T) {
		t.Parallel()
		var v Window
		v.Rows("q", body(9), 3)
		v.Top = 6
		if v.Rows("q", body(9), 3); !v.TooLittle("q") {
			t.Error("rows that were never in view counted")
		}
	})
	t.Run("a screen without the question shows too little, one that printed it does not", func(t *testing.T) {
		t.Parallel()
		var v Window
		if v.Hidden("q"); !v.TooLittle("q") {
			t.Error("nothing of it was enough")
		}
		if v.Elsewhere(); v.TooLittle("q") {
			t.Error("all of it was too little")
		}
	})
}

func TestTheGuard(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var g Guard
	if g.Swallows(now) {
		t.Error("the zero value swallows")
	}
	g.Restart(now)
	late := now.Add(Swallowed - time.Millisecond)
	if !g.Swallows(late) || !g.Swallows(late.Add(Swallowed-time.Millisecond)) {
		t.Error("a key that is lost does not begin the period anew")
	}
	if later := late.Add(2 * Swallowed); g.Swallows(later) || g.Deaf(later) {
		t.Error("a key after the period is lost")
	}
}

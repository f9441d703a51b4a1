package decide

import (
	"fmt"
	"slices"

	"agent/internal/sonny/screen/text"
)

// LeastBody is how many rows of what is asked are enough to decide on it. With fewer in
// view, all of it has to have been in view, a part after the other.
const LeastBody = 6

// Window is the part of a question's body that is in view, and what of it has been. The
// zero value stands at the top. It belongs to one goroutine.
type Window struct {
	Top int // the first row of the body that is in view

	of   string // the question's id
	to   int    // all rows before this one have been in view
	page int    // how many are in view
	rest int    // how many are below those
	hard bool   // too few are in view, and not all have been
}

// Page is how many rows were in view when it was drawn last.
func (v *Window) Page() int { return v.page }

// Below is how many rows were below those in view when it was drawn last.
func (v *Window) Below() int { return v.rest }

// TooLittle reports whether too little of a question has been in view to decide on it.
func (v *Window) TooLittle(id string) bool { return v.of == id && v.hard }

// Hidden is of a screen on which nothing of a question is.
func (v *Window) Hidden(id string) { v.of, v.to, v.page, v.hard = id, 0, 0, true }

// Elsewhere is of a screen on which a question was printed whole.
func (v *Window) Elsewhere() { v.of, v.to, v.page, v.hard = "", 0, 0, false }

// Rows is the part of a question's body that at most room rows have in view.
func (v *Window) Rows(id string, body []text.Line, room int) []text.Line {
	if room >= LeastBody {
		body = append(append([]text.Line{{}}, body...), text.Line{})
	}
	if len(body) <= room {
		v.Top = 0
		v.saw(id, 0, len(body), len(body))
		return body
	}
	v.Top = min(v.Top, len(body)-room)
	out := slices.Clone(body[v.Top : v.Top+room])
	seen := v.Top + room
	if rest := len(body) - seen; rest > 0 && room > 1 {
		out[len(out)-1] = text.Of(text.Dim, fmt.Sprintf("    +%d lines · PgUp PgDn", rest+1))
		seen--
	}
	v.saw(id, v.Top, seen, len(body))
	return out
}

// saw notes the rows of a body that are in view.
func (v *Window) saw(id string, from, to, all int) {
	if v.of != id {
		v.of, v.to = id, 0
	}
	if from <= v.to {
		v.to = max(v.to, to)
	}
	v.page, v.rest = to-from, all-to
	v.hard = v.page < min(LeastBody, all) && v.to < all
}

package edit

// ringMost is how many cuts are kept.
const ringMost = 32

// ring is what was cut. Cuts in a row make one.
type ring struct {
	texts   []string
	cutting bool // the newest change was a cut
	yanked  int  // which text was put back last, counted from the newest
	from    Pos  // where
	yanking bool // the newest change was putting back
}

// still ends a row of cuts or of putting back.
func (r *ring) still() { r.cutting, r.yanking = false, false }

func (r *ring) cut(s string, backward bool) {
	switch n := len(r.texts); {
	case r.cutting && n > 0 && backward:
		r.texts[n-1] = s + r.texts[n-1]
	case r.cutting && n > 0:
		r.texts[n-1] += s
	default:
		r.texts = append(r.texts, s)
		if n == ringMost {
			r.texts = r.texts[1:]
		}
	}
}

// kill cuts between the caret and a place.
func (e *Editor) kill(to Pos) {
	from, end, backward := e.caret, to, false
	if to.before(from) {
		from, end, backward = to, from, true
	}
	s := e.slice(from, end)
	if s == "" {
		return
	}
	e.kills.cut(s, backward)
	e.change(other, from, end, "")
	e.kills.cutting, e.kills.yanking = true, false
}

// KillToEnd cuts to the end of the line, and at the end the newline.
func (e *Editor) KillToEnd() {
	end := Pos{e.caret.Line, len(e.lines[e.caret.Line].text)}
	if e.caret == end {
		end = e.right(end)
	}
	e.kill(end)
}

// KillToStart cuts to the start of the line, and at the start the newline before.
func (e *Editor) KillToStart() {
	start := Pos{e.caret.Line, 0}
	if e.caret == start {
		start = e.left(start)
	}
	e.kill(start)
}

// KillWordBack cuts back to a blank.
func (e *Editor) KillWordBack() { e.kill(e.wordLeft(inBlack)) }

// KillWordLeft cuts back to the start of a word.
func (e *Editor) KillWordLeft() { e.kill(e.wordLeft(inWord)) }

// KillWordRight cuts to the end of a word.
func (e *Editor) KillWordRight() { e.kill(e.wordRight()) }

// Yank puts back what was cut last.
func (e *Editor) Yank() { e.yank(0, e.caret) }

// YankPop, right after Yank, puts back what was cut before that instead.
func (e *Editor) YankPop() {
	if e.kills.yanking {
		e.yank((e.kills.yanked+1)%len(e.kills.texts), e.kills.from)
	}
}

func (e *Editor) yank(nth int, from Pos) {
	n := len(e.kills.texts)
	if n == 0 {
		return
	}
	e.change(other, from, e.caret, e.kills.texts[n-1-nth])
	e.kills.yanking, e.kills.cutting = true, false
	e.kills.yanked, e.kills.from = nth, from
}

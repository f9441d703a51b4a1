package ahead

import (
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// page is a list that the first run opens from one of its rows. Esc goes back, with what is
// done. Its keys act on the row at hand, and a row's number is its Enter, so that it can be
// read out and answered in lines.
type page struct {
	title, right string
	empty, hint  string
	asked        string // what a line can be, where it is read out
	rows         func() []lists.Row
	detail       func(r lists.Row, w int) []text.Line
	keys         map[string]func(id string) (back bool) // by key; id is "" where no row is at hand
	lists.List
}

// key takes a key. It reports whether the page closes.
func (p *page) key(f *FirstRun, k term.Key) (back bool) {
	rows := p.Through(p.rows())
	if p.Move(k.Name, rows) {
		return false
	}
	id := ""
	if at := p.Hand(rows); at >= 0 {
		id = rows[at].ID
	}
	letter := k.Text != "" && p.Typing
	switch do := p.keys[k.Name]; {
	case do != nil && !letter:
		return do(id)
	case k.Name == "esc":
		return true
	case p.Typing:
		p.Write(f.Keys, k)
	default:
		return p.number(k.Name)
	}
	return false
}

// number takes the number of a row for its Enter.
func (p *page) number(name string) (back bool) {
	rows := p.rows()
	if n := int(name[0] - '0'); len(name) == 1 && n >= 1 && n <= len(rows) && p.keys["enter"] != nil {
		p.At = rows[n-1].ID
		return p.keys["enter"](p.At)
	}
	return false
}

func (p *page) view(c term.Canvas) {
	p.Draw(c, p.Through(p.rows()), &lists.About{Title: p.title, Right: p.right, Without: p.empty, Detail: p.detail})
}

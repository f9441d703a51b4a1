package screen

import (
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// listPanel is a list that covers the body (sonny.md 11). Letters act on the row at
// hand; / starts a filter, which takes the letters until Esc or Enter gives them back.
type listPanel struct {
	name  string // of its own keys in the key map; "" for none
	title string
	right func() string // at the right of the title; nil for none
	empty string        // what stands there when no row does
	head  text.Line     // above the rows; without spans: none
	waits string        // stands there while the rows are on their way; "": they are here
	news  int           // how often other rows came that lines are to tell of

	// rows are all rows, computed anew for each frame, so that the list is never old.
	rows func(a *App) []lists.Row
	// keys act on the row at hand. One that returns true closes the panel.
	keys map[string]func(a *App, row lists.Row) bool
	// free are keys that act on no row, and so in an empty list too.
	free map[string]func(a *App)
	// detail is shown below the rows; nil for none.
	detail func(a *App, row lists.Row, w int) []text.Line
	hint   []string

	lists.List
	asks *question // asked before something is done; nil
}

// question asks before something is done. With want set the person types that word, and
// with take a text of theirs, which may be refused: the reason stands below it then.
type question struct {
	text  string
	want  string
	take  func(a *App, typed string) error
	bad   string // why the text was refused
	typed edit.Field
	yes   func(a *App)
	no    func(a *App)            // nil: the list stays
	more  map[string]func(a *App) // other answers, by their keys
	tells []string                // the hints of those
}

func (p *listPanel) hints() []string {
	switch {
	case p.asks != nil && p.asks.want != "":
		return []string{"type " + p.asks.want + " and Enter", "Esc no"}
	case p.asks != nil && p.asks.take != nil:
		return []string{"Enter take it", "Esc leave it"}
	case p.asks != nil:
		return append(append([]string{"y yes"}, p.asks.tells...), "Esc no")
	case p.Typing:
		return []string{"type to filter", "↑↓ Enter", "Esc back to the list"}
	}
	return append(p.hint, "/ filter", "Esc close")
}

// shown are the rows that the filter lets through.
func (p *listPanel) shown(a *App) []lists.Row { return p.Through(p.rows(a)) }

func (p *listPanel) view(a *App, c term.Canvas) {
	rows := p.shown(a)
	about := &lists.About{Title: p.title, Head: p.head, Without: p.without()}
	if p.right != nil {
		about.Right = p.right()
	}
	if p.asks != nil {
		about.Asks = p.asks.view
	}
	if p.detail != nil {
		about.Detail = func(r lists.Row, w int) []text.Line { return p.detail(a, r, w) }
	}
	p.Draw(c, rows, about)
}

// without is what stands in a list that has no rows.
func (p *listPanel) without() string {
	if p.waits != "" {
		return p.waits
	}
	return p.empty
}

func (p *listPanel) key(a *App, k term.Key) (closed bool) {
	if p.asks != nil {
		return p.answer(a, k)
	}
	rows := p.shown(a)
	at := p.Hand(rows)
	if p.Move(k.Name, rows) {
		return false
	}
	if p.Typing {
		return p.typed(a, k, rows, at)
	}
	if k.Name == "/" {
		p.Search()
		return false
	}
	if k.Name == "esc" && p.Filter != nil {
		p.Filter = nil
		return false
	}
	for _, name := range p.names(a, k) {
		if do := p.free[name]; do != nil {
			do(a)
			return false
		}
		if do := p.keys[name]; do != nil && at >= 0 {
			return do(a, rows[at])
		}
	}
	return k.Name == "esc"
}

// names are what a key may be called in this list: the actions that the key map has for
// it here, and its own name.
func (p *listPanel) names(a *App, k term.Key) []string {
	return append(a.o.Keys.Find(k.Name, keys.State{Panel: p.name}, keys.Panel, keys.Picker), k.Name)
}

// typed takes a key while the filter has the keyboard: letters are the filter's, Enter
// is the row's, Esc goes back to the list.
func (p *listPanel) typed(a *App, k term.Key, rows []lists.Row, at int) bool {
	switch k.Name {
	case "esc":
		p.Leave()
	case "enter":
		if do := p.keys["enter"]; do != nil && at >= 0 {
			return do(a, rows[at])
		}
	default:
		if do := p.keys[k.Name]; do != nil && k.Text == "" && k.Name != "backspace" && at >= 0 {
			return do(a, rows[at])
		}
		p.Write(a.o.Keys, k)
	}
	return false
}

// types reports whether the answer is a text.
func (q *question) types() bool { return q.want != "" || q.take != nil }

// ask puts a question before something is done.
func (p *listPanel) ask(q *question) { p.asks = q }

func (q *question) view(c term.Canvas, y, w int) int {
	for _, line := range text.Wrap([]text.Span{{Text: cells.OneLine(q.text), Role: text.Warn}}, text.Frame{Width: w - 4}) {
		c.Put(2, y, line, w-2)
		y++
	}
	if q.types() {
		line, x := q.typed.Line("› ", w-4)
		c.Put(2, y, line, w-2)
		c.SetCursor(2+x, y)
		y++
	}
	if q.bad != "" {
		for _, line := range text.Wrap([]text.Span{{Text: cells.OneLine(q.bad), Role: text.Fail}}, text.Frame{Width: w - 4}) {
			c.Put(2, y, line, w-2)
			y++
		}
	}
	return y + 1
}

func (p *listPanel) answer(a *App, k term.Key) bool {
	q := p.asks
	switch {
	case k.Name == "esc" || !q.types() && k.Name == "n":
		p.asks = nil
		if q.no != nil {
			q.no(a)
		}
	case !q.types() && q.more[k.Name] != nil:
		p.asks = nil
		q.more[k.Name](a)
	case !q.types() && k.Name == "y":
		p.asks = nil
		q.yes(a)
	case q.take != nil && k.Name == "enter":
		p.asks, q.bad = nil, ""
		if err := q.take(a, strings.TrimSpace(q.typed.Text())); err != nil {
			p.asks, q.bad = q, fault.Screen.Told(err).Detail
		}
	case q.want != "" && k.Name == "enter":
		if q.typed.Text() == q.want {
			p.asks = nil
			q.yes(a)
		}
	case q.types():
		q.typed.Key(a.o.Keys, k.Name, k.Text)
	}
	return false
}

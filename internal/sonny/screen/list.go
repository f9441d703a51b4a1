package screen

import (
	"strings"

	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
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

	// rows are all rows, computed anew for each frame, so that the list is never old.
	rows func(a *App) []listRow
	// keys act on the row at hand. One that returns true closes the panel.
	keys map[string]func(a *App, row listRow) bool
	// free are keys that act on no row, and so in an empty list too.
	free map[string]func(a *App)
	// detail is shown below the rows; nil for none.
	detail func(a *App, row listRow, w int) []text.Line
	hint   []string

	at     string // the id of the row at hand
	filter *edit.Field
	typing bool // the filter has the keyboard
	top    int
	asks   *question // asked before something is done; nil
}

// listRow is one row. A row without an id is a heading and is never at hand.
type listRow struct {
	id    string
	line  text.Line
	match string // what the filter looks in; "": the line's text
}

// question asks before something is done. With want set the person types that word.
type question struct {
	text  string
	want  string
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
	case p.asks != nil:
		return append(append([]string{"y yes"}, p.asks.tells...), "Esc no")
	case p.typing:
		return []string{"type to filter", "↑↓ Enter", "Esc back to the list"}
	}
	return append(p.hint, "/ filter", "Esc close")
}

// shown are the rows that the filter lets through.
func (p *listPanel) shown(a *App) []listRow {
	all := p.rows(a)
	if p.filter == nil || p.filter.Empty() {
		return all
	}
	words := strings.Fields(strings.ToLower(p.filter.Text()))
	var out []listRow
	for _, r := range all {
		in := r.match
		if in == "" {
			in = r.line.String()
		}
		if r.id != "" && containsAll(strings.ToLower(in), words) {
			out = append(out, r)
		}
	}
	return out
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// hand is the index of the row at hand; -1 for none.
func (p *listPanel) hand(rows []listRow) int {
	first := -1
	for i, r := range rows {
		if r.id == "" {
			continue
		}
		if r.id == p.at {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

func (p *listPanel) view(a *App, c term.Canvas) {
	w, h := c.Size()
	rows := p.shown(a)
	right := ""
	if p.right != nil {
		right = p.right()
	}
	c.Put(0, 0, text.Titled(p.title, right, w), w)
	y := 2
	if p.asks != nil {
		y = p.asks.view(c, y, w)
	} else if p.filter != nil {
		line, x := p.filter.Line("/ ", w-4)
		c.Put(2, y, line, w-2)
		if p.typing {
			c.SetCursor(2+x, y)
		}
		y += 2
	}
	if len(p.head.Spans) > 0 {
		c.Put(2, y, p.head, w-2)
		y++
	}
	at := p.hand(rows)
	if at >= 0 {
		p.at = rows[at].id
	}
	var detail []text.Line
	if p.detail != nil && at >= 0 {
		detail = p.detail(a, rows[at], w-4)
	}
	room := max(1, h-y-1)
	if n := len(detail); n > 0 {
		room = max(min(len(rows), room), room-n-1)
		room = min(room, max(1, h-y-n-1))
	}
	p.scroll(at, room, len(rows))
	for i := p.top; i < len(rows) && i < p.top+room; i++ {
		p.row(c, y, w, rows[i], i == at)
		y++
	}
	if len(rows) == 0 {
		c.Put(2, y, text.Of(text.Dim, p.without()), w-2)
		y++
	}
	for i, line := range detail {
		if y+1+i < h {
			c.Put(2, y+1+i, line.Cut(w-4), w-2)
		}
	}
}

// without is what stands in a list that has no rows.
func (p *listPanel) without() string {
	if p.waits != "" {
		return p.waits
	}
	return p.empty
}

// scroll keeps the row at hand in view.
func (p *listPanel) scroll(at, room, n int) {
	p.top = min(p.top, max(0, n-room))
	if at >= 0 && at < p.top {
		p.top = at
	}
	if at >= p.top+room {
		p.top = at - room + 1
	}
}

func (p *listPanel) row(c term.Canvas, y, w int, r listRow, hand bool) {
	if hand {
		c.Fill(0, y, w, 1, text.Select)
		c.Put(0, y, text.Of(text.Accent, "▎"), 1)
	}
	c.Put(2, y, r.line.Cut(w-3), w-2)
}

func (p *listPanel) key(a *App, k term.Key) (closed bool) {
	if p.asks != nil {
		return p.answer(a, k)
	}
	rows := p.shown(a)
	at := p.hand(rows)
	switch k.Name {
	case "up", "ctrl+p":
		p.step(rows, at, -1)
		return false
	case "down", "ctrl+n":
		p.step(rows, at, 1)
		return false
	case "pgup":
		p.step(rows, at, -10)
		return false
	case "pgdown":
		p.step(rows, at, 10)
		return false
	case "home":
		p.step(rows, at, -len(rows))
		return false
	case "end":
		p.step(rows, at, len(rows))
		return false
	}
	if p.typing {
		return p.typed(a, k, rows, at)
	}
	if k.Name == "/" {
		p.filter, p.typing = &edit.Field{}, true
		return false
	}
	if k.Name == "esc" && p.filter != nil {
		p.filter = nil
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
func (p *listPanel) typed(a *App, k term.Key, rows []listRow, at int) bool {
	switch k.Name {
	case "esc":
		p.typing = false
		if p.filter.Empty() {
			p.filter = nil
		}
	case "enter":
		if do := p.keys["enter"]; do != nil && at >= 0 {
			return do(a, rows[at])
		}
	default:
		if do := p.keys[k.Name]; do != nil && k.Text == "" && k.Name != "backspace" && at >= 0 {
			return do(a, rows[at])
		}
		p.filter.Key(a.o.Keys, k.Name, k.Text)
		p.at = ""
	}
	return false
}

// step moves the row at hand over headings.
func (p *listPanel) step(rows []listRow, at, by int) {
	last := at
	for i := at + sign(by); i >= 0 && i < len(rows) && by != 0; i += sign(by) {
		if rows[i].id == "" {
			continue
		}
		last = i
		by -= sign(by)
	}
	if last >= 0 && last < len(rows) {
		p.at = rows[last].id
	}
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// ask puts a question before something is done.
func (p *listPanel) ask(q *question) { p.asks = q }

func (q *question) view(c term.Canvas, y, w int) int {
	for _, line := range text.Wrap([]text.Span{{Text: q.text, Role: text.Warn}}, text.Frame{Width: w - 4}) {
		c.Put(2, y, line, w-2)
		y++
	}
	if q.want != "" {
		line, x := q.typed.Line("› ", w-4)
		c.Put(2, y, line, w-2)
		c.SetCursor(2+x, y)
		y++
	}
	return y + 1
}

func (p *listPanel) answer(a *App, k term.Key) bool {
	q := p.asks
	switch {
	case k.Name == "esc" || q.want == "" && k.Name == "n":
		p.asks = nil
		if q.no != nil {
			q.no(a)
		}
	case q.want == "" && q.more[k.Name] != nil:
		p.asks = nil
		q.more[k.Name](a)
	case q.want == "" && k.Name == "y":
		p.asks = nil
		q.yes(a)
	case q.want != "" && k.Name == "enter":
		if q.typed.Text() == q.want {
			p.asks = nil
			q.yes(a)
		}
	case q.want != "":
		q.typed.Key(a.o.Keys, k.Name, k.Text)
	}
	return false
}

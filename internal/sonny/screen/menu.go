package screen

import (
	"strings"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// menuRows is how many rows the menu shows at most.
const menuRows = 6

// menu completes what is being typed, above the composer: commands after a slash, and
// after @ what can be referred to. It is open while there is something to complete.
type menu struct {
	word   string // what it completes
	shut   string // what the person closed it on
	picks  []pick
	at     int
	moved  bool // the person chose a row
	finder bool // of @: Enter takes the row at hand
}

// pick is a row: what it puts in the place of the word, and what it is.
type pick struct {
	name, does string
	insert     string
}

func (m *menu) close() { *m = menu{shut: m.word} }

// complete finds out, after a key, whether there is something to complete.
func (a *App) complete() {
	m := &a.menu
	e := a.composing().Editor()
	word := e.Word()
	if a.panel != nil || a.answers.focused || !e.AtEnd() && !strings.HasPrefix(word, "@") {
		*m = menu{}
		return
	}
	if word == m.word && len(m.picks) > 0 || word == m.shut && word != "" {
		return
	}
	var picks []pick
	finder := false
	switch {
	case e.Mode() == '/':
		picks = a.commandPicks(a.composing().Text())
	case strings.HasPrefix(word, "@"):
		picks, finder = a.find(word[1:]), true
	}
	*m = menu{word: word, picks: picks, finder: finder}
	if len(picks) == 1 && picks[0].insert == word {
		m.picks = nil
	}
}

// key takes a key while the menu is open. It reports whether it was the menu's.
func (m *menu) key(a *App, k term.Key) bool {
	if len(m.picks) == 0 {
		return false
	}
	if k.Name == "esc" {
		m.close()
		return true
	}
	for _, name := range a.o.Keys.Find(k.Name, a.keyState(), keys.Picker) {
		switch name {
		case "pick_up":
			m.at, m.moved = (m.at+len(m.picks)-1)%len(m.picks), true
			return true
		case "pick_down":
			m.at, m.moved = (m.at+1)%len(m.picks), true
			return true
		case "pick_complete":
			m.take(a)
			return true
		case "pick_open":
			if m.moved || m.finder && m.picks[m.at].insert != m.word {
				m.take(a)
				return true
			}
		}
	}
	return false
}

// take puts the row at hand in the place of the word.
func (m *menu) take(a *App) {
	p := m.picks[m.at]
	*m = menu{}
	e := a.composing().Editor()
	e.Complete(p.insert)
	m.shut = e.Word()
}

// view is the menu's rows; none while it is closed.
func (m *menu) view(a *App, w int) (rows []text.Line) {
	if a.panel != nil {
		return nil
	}
	first := max(0, min(m.at-menuRows/2, len(m.picks)-menuRows))
	for i := first; i < len(m.picks) && i < first+menuRows; i++ {
		p := m.picks[i]
		mark := text.Span{Text: "   ", Chrome: true}
		if i == m.at {
			mark = text.Span{Text: " ▎ ", Role: text.Accent, Chrome: true}
		}
		name := text.Pad(cells.OneLine(p.name), min(30, max(10, w/2)))
		rows = append(rows, text.Join(mark, text.Span{Text: name + "  "}, text.Span{Text: cells.OneLine(p.does), Role: text.Dim}).Cut(w))
	}
	return rows
}

package screen

import (
	"fmt"
	"strconv"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/term"
)

// spokenPanel is the panel that is open, as lines: a list is numbered and answered by
// typing a number.
type spokenPanel struct {
	of    panel
	asks  *question
	waits string // what it waited for then
	news  int    // of its rows
	moved bool   // a line was taken since it was printed
	text  string // what was printed of it
}

// lister is a panel that is a list, or built on one.
type lister interface{ asList() *listPanel }

func (p *listPanel) asList() *listPanel { return p }

// say prints the panel where it is another one, or has changed by the person's hand.
func (p *spokenPanel) say(a *App, con *plain.Console) {
	if a.panel == nil {
		*p = spokenPanel{}
		return
	}
	var asks *question
	waits, news := "", 0
	if l, ok := a.panel.(lister); ok {
		asks, waits, news = l.asList().asks, l.asList().waits, l.asList().news
	}
	if a.panel == p.of && asks == p.asks && waits == p.waits && news == p.news && !p.moved {
		return
	}
	p.of, p.asks, p.waits, p.news, p.moved = a.panel, asks, waits, news, false
	lines := panelLines(a)
	if text := strings.Join(lines, "\n"); text != p.text {
		p.text = text
		con.Print(lines...)
	}
}

// panelLines are the open panel as lines.
func panelLines(a *App) []string {
	switch p := a.panel.(type) {
	case *inputPanel:
		out := []string{plain.Needs + ": " + termsafe.OneLine(p.title) + ". type it, then Enter. an empty line leaves it as it is."}
		if text := p.field.Text(); text != "" {
			out = append(out, "  now: "+termsafe.OneLine(text))
		}
		return out
	case lister:
		return listLines(a, p.asList())
	}
	frame := term.NewFrame(plain.Wide, 60)
	a.panel.view(a, frame.All())
	out := plain.Labelled("panel", strings.Join(plain.Rows(frame), "\n"))
	return append(out, "  keys: "+strings.Join(a.panel.hints(), ", ")+". type a key's name, then Enter. an empty line closes.")
}

// listLines are a list with its rows numbered, and what can be done with them.
func listLines(a *App, p *listPanel) []string {
	if q := p.asks; q != nil {
		out := plain.Labelled(plain.Needs, termsafe.Prose.Text(q.text))
		if q.want != "" {
			return append(out, "  type "+q.want+", then Enter. an empty line means no.")
		}
		if q.take != nil {
			return append(out, q.lines()...)
		}
		return append(out, "  type y for yes, then Enter. an empty line means no.")
	}
	out := []string{"list: " + termsafe.OneLine(p.title)}
	if p.Filter != nil && !p.Filter.Empty() {
		out[0] += ", those with " + termsafe.OneLine(p.Filter.Text())
	}
	n := 0
	for _, r := range p.shown(a) {
		if r.ID == "" {
			out = append(out, "  "+plain.Row(r.Line.String()))
			continue
		}
		n++
		out = append(out, fmt.Sprintf("  %d %s", n, plain.Row(r.Line.String())))
	}
	if n == 0 {
		return append(out, "  "+p.without(), "an empty line closes.")
	}
	return append(out, "type "+strings.Join(p.numbered(), ", ")+`, "/ TEXT" filters. an empty line closes.`)
}

// lines are what stands below a question for a text.
func (q *question) lines() (out []string) {
	if q.bad != "" {
		out = append(out, "  refused: "+termsafe.OneLine(q.bad))
	}
	if now := q.typed.Text(); now != "" {
		out = append(out, "  now: "+termsafe.OneLine(now))
	}
	return append(out, "  type it, then Enter. an empty line leaves it as it is.")
}

// numbered are a list's hints with the number that each takes: Enter's is the number
// alone, and what acts on no row takes none.
func (p *listPanel) numbered() []string {
	out := make([]string, 0, len(p.hint)+1)
	for _, h := range p.hint {
		key, does, _ := strings.Cut(h, " ")
		switch {
		case key == "Enter":
			out = append(out, "a number: "+does)
		case p.free[key] != nil:
			out = append(out, key+": "+does)
		default:
			out = append(out, fmt.Sprintf("%s NUMBER: %s", key, does))
		}
	}
	return out
}

// line takes a line for the open panel.
func (p *spokenPanel) line(a *App, line string) {
	p.moved, p.text = true, ""
	line = strings.TrimSpace(line)
	if _, command := slash(line); command && !strings.HasPrefix(line, "/ ") {
		a.panel = nil
		a.command(line[1:])
		return
	}
	switch at := a.panel.(type) {
	case *inputPanel:
		at.field.Set(line)
		p.press(a, term.Key{Name: name("enter", line == "")})
	case lister:
		p.listLine(a, at.asList(), line)
	default:
		p.press(a, term.Key{Name: name(line, line == "")})
	}
}

// name is a key's, or Esc's where a line was empty.
func name(key string, empty bool) string {
	if empty {
		return "esc"
	}
	return key
}

// press gives the panel a key.
func (p *spokenPanel) press(a *App, k term.Key) {
	if at := a.panel; at.key(a, k) && a.panel == at {
		a.panel = nil
	}
}

func (p *spokenPanel) listLine(a *App, l *listPanel, line string) {
	if q := l.asks; q != nil {
		switch {
		case line == "":
			p.press(a, term.Key{Name: "esc"})
		case q.types():
			q.typed.Set(line)
			p.press(a, term.Key{Name: "enter"})
		default:
			p.press(a, term.Key{Name: strings.ToLower(line[:1])})
		}
		return
	}
	if filter, ok := strings.CutPrefix(line, "/"); ok {
		l.Filter, l.Typing = &edit.Field{}, false
		l.Filter.Set(strings.TrimSpace(filter))
		return
	}
	l.Typing = false
	key, number := "enter", line
	if first, rest, two := strings.Cut(line, " "); two {
		key, number = first, strings.TrimSpace(rest)
	} else if _, err := strconv.Atoi(line); err != nil && line != "" {
		key, number = line, ""
	}
	switch row, ok := numberedRow(l.shown(a), number); {
	case line == "":
		l.Filter = nil
		p.press(a, term.Key{Name: "esc"})
	case ok:
		l.At = row.ID
		p.press(a, term.Key{Name: key})
	case number == "":
		p.press(a, term.Key{Name: key})
	default:
		a.notes.say("no row " + number + " is in the list")
	}
}

// numberedRow is the row that a number stands before.
func numberedRow(rows []lists.Row, number string) (lists.Row, bool) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return lists.Row{}, false
	}
	for _, r := range rows {
		if r.ID == "" {
			continue
		}
		if n--; n == 0 {
			return r, true
		}
	}
	return lists.Row{}, false
}

package screen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"agent/client/termsafe"
	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/term"
)

// spokenPanel is the panel that is open, as lines: a list is numbered and answered by
// typing a number.
type spokenPanel struct {
	of    panel
	asks  *question
	waits string   // what it waited for then
	news  int      // of its rows
	moved bool     // a line was taken since it was printed
	text  string   // what was printed of it
	more  []string // what is to be printed of one of its rows
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
	if p.more != nil {
		con.Print(p.more...)
		p.more = nil
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
		out := plain.Labelled(plain.Needs, strings.TrimLeft(termsafe.Prose.Text(q.text), "‖ "))
		if q.want != "" {
			return append(out, "  type "+q.want+", then Enter. an empty line means no.")
		}
		if q.take != nil {
			return append(out, q.lines()...)
		}
		others := ""
		for _, t := range q.tells {
			pressed, does := hinted(t)
			others += ", " + pressed[0] + " for " + does
		}
		return append(out, "  type y for yes"+others+", then Enter. an empty line means no.")
	}
	out := []string{"list: " + termsafe.OneLine(p.title)}
	if p.Filter != nil && !p.Filter.Empty() {
		out[0] += ", those with " + termsafe.OneLine(p.Filter.Text())
	}
	if head := plain.Row(p.head.String()); head != "" {
		out = append(out, "  "+head)
	}
	n := 0
	for _, r := range p.shown(a) {
		if r.ID == "" {
			out = append(out, "  "+plain.Row(r.Line.String()))
			continue
		}
		n++
		row := r.Line.String()
		if r.Whole != nil {
			row = strings.Join(r.Whole, "  ")
		}
		out = append(out, fmt.Sprintf("  %d %s", n, plain.Row(row)))
	}
	if n == 0 {
		return append(out, "  "+p.without(), "an empty line closes.")
	}
	does := p.numbered(a)
	if p.detail != nil && !p.acts(a, "enter") {
		does = append([]string{"a number: what is known of it"}, does...)
	}
	return append(out, "type "+strings.Join(append(does, "/ TEXT: filter"), ", ")+". an empty line closes.")
}

// numbered are a list's hints with the number that a key takes where it acts on a row:
// Enter's is the number alone. What every place has, Esc and the chords after Ctrl+X, is
// left out.
func (p *listPanel) numbered(a *App) []string {
	out := make([]string, 0, len(p.hint)+1)
	for _, h := range p.hint {
		pressed, does := hinted(h)
		switch {
		case pressed[0] == "Enter":
			out = append(out, "a number: "+does)
		case pressed[0] == "Esc" || strings.HasPrefix(pressed[0], "Ctrl+X"):
		case p.acts(a, keyNamed(pressed[0])):
			out = append(out, fmt.Sprintf("%s NUMBER: %s", strings.Join(pressed, " or "), does))
		default:
			out = append(out, pressed[0]+": "+does)
		}
	}
	return out
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

// hinted parts a hint into its keys, such as K and J, and what they do.
func hinted(hint string) (pressed []string, does string) {
	words := strings.Fields(hint)
	n := 1
	for n < len(words)-1 && utf8.RuneCountInString(words[n]) == 1 && !unicode.IsLower([]rune(words[n])[0]) {
		n++
	}
	return words[:n], strings.Join(words[n:], " ")
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
		p.panelLine(a, line)
	}
}

// panelLine takes a key's name for a panel that is no list. One that the panel does not
// name and that changes nothing is said to do nothing.
func (p *spokenPanel) panelLine(a *App, line string) {
	at, before, told := a.panel, panelLines(a), a.notes.told
	known := line == "" || hintedAt(at.hints(), keyNamed(line))
	p.press(a, term.Key{Name: name(keyNamed(line), line == "")})
	if !known && a.panel == at && a.notes.told == told && slices.Equal(panelLines(a), before) {
		p.unknown(a, line, "no key that does something here")
	}
}

// unknown says of a line that it is nothing that was asked for. What was printed is not
// printed again.
func (p *spokenPanel) unknown(a *App, line, what string) {
	a.notes.say(termsafe.OneLine(line) + " is " + what)
	p.moved, p.text = false, strings.Join(panelLines(a), "\n")
}

// keyNamed is a key as panels know it, by a name that was typed: tab for Tab. A letter is
// itself, small or not.
func keyNamed(word string) string {
	if utf8.RuneCountInString(word) < 2 {
		return word
	}
	if chord, err := keys.Parse(word); err == nil {
		return chord
	}
	return word
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
	if l.asks != nil {
		p.askedLine(a, l.asks, line)
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
		key, number = keyNamed(first), strings.TrimSpace(rest)
	} else if _, err := strconv.Atoi(line); err != nil && line != "" {
		key, number = keyNamed(line), ""
	}
	row, ok := numberedRow(l.shown(a), number)
	switch acts := l.acts(a, key); {
	case line == "":
		l.Filter = nil
		p.press(a, term.Key{Name: "esc"})
	case ok && key == "enter" && !acts:
		p.whole(a, l, row)
	case !acts && !l.alone(a, key):
		p.unknown(a, line, "no number of the list and no key of it")
	case ok:
		l.At = row.ID
		p.press(a, term.Key{Name: key})
	case number == "" && acts && len(l.shown(a)) > 0:
		p.unknown(a, line, "done with a row: "+line+" NUMBER")
	case number == "":
		p.press(a, term.Key{Name: key})
	default:
		p.unknown(a, number, "no number of the list")
	}
}

// acts reports whether a key acts on a row of the list.
func (p *listPanel) acts(a *App, key string) bool {
	return slices.ContainsFunc(p.names(a, term.Key{Name: key}), func(name string) bool { return p.keys[name] != nil })
}

// alone reports whether a key does something without a row, or is hinted at: a panel that
// is built on a list has keys of its own.
func (p *listPanel) alone(a *App, key string) bool {
	return slices.ContainsFunc(p.names(a, term.Key{Name: key}), func(name string) bool { return p.free[name] != nil }) || hintedAt(a.panel.hints(), key)
}

// hintedAt reports whether hints name a key.
func hintedAt(hints []string, key string) bool {
	return slices.ContainsFunc(hints, func(hint string) bool {
		pressed, _ := hinted(hint)
		return slices.ContainsFunc(pressed, func(k string) bool { return keyNamed(k) == key })
	})
}

// whole says what is told of a row of a list in which a number does nothing else.
func (p *spokenPanel) whole(a *App, l *listPanel, row lists.Row) {
	p.more = nil
	if l.detail != nil {
		for _, line := range l.detail(a, row, plain.Wide) {
			p.more = append(p.more, "  "+strings.TrimRight(line.String(), " "))
		}
	}
	if len(p.more) == 0 {
		p.more = []string{plain.Notice + ": that row says all there is."}
	}
	p.moved, p.text = false, strings.Join(panelLines(a), "\n")
}

// askedLine takes a line for the answer of a list's question.
func (p *spokenPanel) askedLine(a *App, q *question, line string) {
	answer := strings.ToLower(line)
	switch {
	case line == "":
		p.press(a, term.Key{Name: "esc"})
	case q.take != nil, q.want != "" && line == q.want:
		q.typed.Set(line)
		p.press(a, term.Key{Name: "enter"})
	case q.want != "":
		p.unknown(a, line, "not "+q.want+"; nothing was done. "+q.want+" does it, an empty line leaves it")
	case answer == "y" || answer == "yes":
		p.press(a, term.Key{Name: "y"})
	case answer == "n" || answer == "no":
		p.press(a, term.Key{Name: "n"})
	case q.more[line] != nil:
		p.press(a, term.Key{Name: line})
	default:
		p.unknown(a, line, "no answer; nothing was done. y means yes, an empty line no")
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

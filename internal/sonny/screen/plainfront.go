package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agent/client/termsafe"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

const (
	stateEvery = 10 * time.Second // changes of state are printed that often at most
	spokenPast = 12               // entries of an older history that are printed as it opens
	moreOfPast = 40               // and those that are asked for, at a time
)

// plainFront says what happens in lines (sonny.md 14). Everything that a panel shows is
// a list here, answered by its numbers.
type plainFront struct {
	con *plain.Console
	why string // what the mode was chosen by, until it was said

	start   *startScreen
	summary map[string]bool // rows of it that were printed
	session *session        // whose transcript is printed
	past    [][]string
	said    int      // notices that were printed
	sent    []string // messages that were typed here and stand on the screen
	was     string   // what the composer held when it was looked at last
	asked   string   // the question that was printed
	down    bool     // that there is no connection was printed
	list    spokenPanel
	state   string
	stateAt time.Time
}

func newPlainFront(o *Options) *plainFront {
	write := o.Term.Write
	if o.Markdown.ASCII {
		write = func(s string) { o.Term.Write(asciiOf(s)) }
	}
	return &plainFront{why: o.Why, con: &plain.Console{Write: write}}
}

// asciiOf is a text for a terminal that may be sent ASCII alone.
func asciiOf(s string) string {
	var b strings.Builder
	for cluster, width := range text.Clusters(s) {
		if strings.ContainsFunc(cluster, func(r rune) bool { return r >= utf8.RuneSelf }) {
			cluster = term.ASCII(cluster, width)
		}
		b.WriteString(cluster)
	}
	return b.String()
}

func (f *plainFront) close(*App) { f.con.Newline() }

func (f *plainFront) due(a *App) time.Time {
	at := f.con.Due()
	if f.stateWords(a) != f.state {
		if next := f.stateAt.Add(stateEvery); at.IsZero() || next.Before(at) {
			at = next
		}
	}
	if at.IsZero() {
		return at
	}
	return a.o.Now().Add(max(0, time.Until(at)))
}

// draw prints what there is to say since it was called last.
func (f *plainFront) draw(a *App) {
	if f.why != "" {
		f.con.Print(plain.Because + f.why)
		f.why = ""
	}
	f.sayLink(a)
	f.saySession(a)
	f.sayPieces(a)
	f.sayNotices(a)
	f.list.say(a, f.con)
	f.sayQuestion(a)
	f.sayState(a)
	f.takeBack(a)
	f.con.Late()
}

// sayLink says that the daemon is gone, and that it is back.
func (f *plainFront) sayLink(a *App) {
	switch down := a.lost != nil; {
	case down == f.down:
		return
	case down && a.lost.Stopped:
		f.con.Print(plain.Notice + ": the daemon was stopped. Enter on an empty line starts it.")
	case down && a.lost.Spent:
		f.con.Print(plain.Notice + ": the daemon died again and again, and is not started unasked any more. Enter on an empty line starts it.")
	case down:
		f.con.Print(plain.Labelled(plain.Error, "disconnected: "+termsafe.OneLine(fault.Screen.Words(a.lost.Err))+". trying again.")...)
	default:
		f.con.Print(plain.Notice + ": connected again.")
	}
	f.down = a.lost != nil
}

// saySession says which session is open, once it is loaded, or what a first message
// would make.
func (f *plainFront) saySession(a *App) {
	s := a.session
	if s == nil {
		f.session = nil
		f.sayStart(a)
		return
	}
	b := a.bot()
	if s == f.session || !s.story.IsLoaded() || b == nil || b.Record.Model == "" {
		return
	}
	name := a.called(s)
	if s.kept.BotID == 0 || a.firsts.reading { // it may get another name
		return
	}
	f.session, f.start, f.past = s, nil, nil
	f.state, f.stateAt = f.stateWords(a), time.Now()
	f.con.Print(fmt.Sprintf("session: %s, %s. %s. %s.", termsafe.OneLine(fully(name, s.bot)), a.lookOf(s).Word,
		s.turnWords(), confinedWords(a.confinement())))
	f.sayPast(a, s)
}

// fully is a session's name with its bot's.
func fully(name, bot string) string {
	if name == bot {
		return bot
	}
	return name + " (" + bot + ")"
}

// confinedWords say what the footer says, with a name for each.
func confinedWords(c lead.Confinement) string {
	words, warn := c.Words()
	if warn || len(words) < 3 {
		return "row " + strings.Join(words, ", ")
	}
	return "row " + words[0] + ", sandbox " + words[1] + ", " + strings.Replace(words[2], "net ", "network ", 1)
}

// sayPast prints the end of a history that was there before.
func (f *plainFront) sayPast(a *App, s *session) {
	for _, p := range s.tr.Take(s.over(a)) {
		if !f.echoed(p.Cell) {
			f.past = append(f.past, plain.Piece(s.bot, p))
		}
	}
	f.earlier(spokenPast, false)
}

// earlier prints the newest of the entries that were not printed yet.
func (f *plainFront) earlier(most int, asked bool) {
	n := len(f.past)
	from := max(0, n-most)
	switch {
	case from > 0:
		f.con.Print(fmt.Sprintf(`%s: %s before these are not printed. type "show earlier" for some of them.`, plain.Notice, human.Count(from, "entry", "entries")))
	case asked && n == 0:
		f.con.Print(plain.Notice + ": all that is loaded was printed. /export writes the whole of it to a file.")
	}
	for _, lines := range f.past[from:] {
		f.con.Print(lines...)
	}
	f.past = f.past[:from]
}

// sayStart says what the start screen shows, once it is filled in, and why it cannot go
// on where it cannot.
func (f *plainFront) sayStart(a *App) {
	if a.start != f.start {
		f.start, f.summary = a.start, map[string]bool{}
	}
	if a.start == nil {
		return
	}
	for _, row := range a.start.news(a, plain.Wide, f.summary) {
		f.con.Print(plain.Notice + ": " + plain.Row(row.String()))
	}
}

// sayPieces prints what has become final of the transcript.
func (f *plainFront) sayPieces(a *App) {
	s := f.session
	if s == nil || s != a.session {
		return
	}
	for _, p := range s.tr.Take(s.over(a)) {
		if f.echoed(p.Cell) {
			continue
		}
		f.con.Print(plain.Piece(s.bot, p)...)
	}
	s.story.Printed(s.look)
}

// echoed reports whether a message stands on the screen already, as it was typed.
func (f *plainFront) echoed(c *cells.Cell) bool {
	if c.Kind != cells.User || c.From != "" || c.Origin != "" {
		return false
	}
	i := slices.Index(f.sent, c.Text)
	if i < 0 {
		return false
	}
	f.sent = slices.Delete(f.sent, i, i+1)
	if c.Steer {
		f.con.Print(plain.Notice + ": steered in.")
	}
	return true
}

func (f *plainFront) sayNotices(a *App) {
	for ; f.said < a.notes.told; f.said++ {
		i := len(a.notes.list) - (a.notes.told - f.said)
		if i < 0 {
			continue // more came at once than are kept
		}
		label := plain.Notice
		if a.notes.list[i].fail {
			label = plain.Error
		}
		f.con.Print(label + ": " + termsafe.OneLine(a.notes.list[i].line))
	}
}

// stateWords say what the bot on screen and its tasks do.
func (f *plainFront) stateWords(a *App) string {
	if a.session == nil || a.session != f.session {
		return f.state
	}
	words := termsafe.OneLine(a.session.bot) + " " + doing(a.state())
	if a.session.gone {
		words = termsafe.OneLine(goneError(a.session).Error())
	}
	if b := a.bot(); b != nil && !b.Until.IsZero() {
		words += a.heldWords(b)
	}
	if a.world.Paused != nil {
		words = strings.Trim(a.pausedWords(), "‖ ")
	}
	for _, t := range a.tasks() {
		if t.Turn != 0 || len(t.Waits) > 0 {
			words += "; " + termsafe.OneLine(t.Record.Name) + " " + doing(t.State(false))
		}
	}
	return words
}

// doing is a state as the rest of a sentence.
func doing(s live.State) string {
	if s == live.NeedsYou {
		return "needs you"
	}
	return "is " + roster.Looks[s].Word
}

func (f *plainFront) sayState(a *App) {
	now := f.stateWords(a)
	if now == f.state || time.Since(f.stateAt) < stateEvery {
		return
	}
	f.state, f.stateAt = now, time.Now()
	f.con.Print(plain.Notice + ": " + now + ".")
}

// takeBack puts a text into the line that came into the composer otherwise: a message
// that was refused, a draft.
func (f *plainFront) takeBack(a *App) {
	if a.panel != nil || a.start != nil && a.start.making {
		return
	}
	if now := a.composing().Text(); now != "" && now != f.was && now != f.con.Text() {
		f.con.Drop()
		f.con.Restore(now, a.composing().Editor().Mode() != 0)
		if i := slices.Index(f.sent, now); i >= 0 {
			f.sent = slices.Delete(f.sent, i, i+1) // it was not sent
		}
	}
	f.keep(a)
}

// keep has the composer hold what the line holds, so that it is kept as a draft is.
func (f *plainFront) keep(a *App) {
	f.was = f.con.Text()
	if c := a.composing(); c.Text() != f.was {
		c.Set(f.was)
	}
}

func (f *plainFront) input(a *App, e term.Event) bool {
	switch e := e.(type) {
	case term.Closed:
		return false
	case term.Paste:
		f.con.Paste(edit.Pasted(e.Text))
		f.typed(a)
	case term.Key:
		f.key(a, e)
	}
	return !a.quit
}

// typed notes that the person is at work.
func (f *plainFront) typed(a *App) {
	a.lastKey = a.o.Now()
	if a.panel == nil {
		f.keep(a)
	}
}

func (f *plainFront) key(a *App, k term.Key) {
	leaving := a.leaving
	a.leaving = time.Time{}
	switch {
	case k.Name == "ctrl+c":
		if dropped := f.con.Text(); f.con.Drop() {
			for _, keep := range a.sent {
				keep(a, dropped)
			}
			f.keep(a)
			return
		}
		a.composing().Clear()
		a.ctrlC(leaving)
	case k.Name == "ctrl+z":
		f.con.Newline()
		a.suspend()
		f.con.Again()
	case k.Text == "" && !f.con.Begun() && f.chord(a, k):
	default:
		if done, ok := f.con.Key(k.Name, k.Text); ok {
			a.lastKey = a.o.Now()
			f.line(a, done)
			return
		}
		f.typed(a)
	}
}

// chord takes a key of the key map that types nothing, where no line is begun.
func (f *plainFront) chord(a *App, k term.Key) bool {
	if slices.Contains([]string{"enter", "tab", "backspace", "ctrl+u", "ctrl+j", "ctrl+h"}, k.Name) {
		return false
	}
	if a.panel != nil {
		if k.Name == "esc" {
			f.list.press(a, k)
		}
		return true
	}
	chord := a.leader.Press(k.Name, a.o.Now())
	if chord == "" {
		return true
	}
	for _, name := range a.o.Keys.Find(chord, a.keyState(), keys.Composer, keys.Global) {
		if name != "close_or_interrupt" && a.act(name) {
			break
		}
	}
	return true
}

// line does what a line says that Enter has finished.
func (f *plainFront) line(a *App, done plain.Typed) {
	a.composing().Clear()
	f.was = ""
	switch {
	case a.panel != nil:
		f.list.line(a, done.Text)
	case f.answered(a, done):
	case done.Text == "show", done.Text == "show earlier":
		f.show(a, done.Text)
	case slices.Contains(helpWords, strings.TrimSpace(done.Text)):
		f.con.Print(f.help(a)...)
	default:
		f.send(a, done)
	}
}

// show prints what a call came to, or more of the history.
func (f *plainFront) show(a *App, what string) {
	switch {
	case what == "show earlier":
		f.earlier(moreOfPast, true)
	case a.session == nil || a.session.tr.LastCall() == nil:
		f.con.Print(plain.Notice + ": no tool has run yet.")
	default:
		f.con.Print(plain.Shown(a.session.tr.LastCall())...)
	}
}

// send sends a message, or runs a command. What is refused comes back into the line.
func (f *plainFront) send(a *App, done plain.Typed) {
	var d delivery
	line := done.Text
	command, isCommand := slash(line)
	if rest, ok := strings.CutPrefix(line, "/queue "); ok && strings.TrimSpace(rest) != "" {
		line, d.queue, isCommand = strings.TrimSpace(rest), true, false
	}
	if isCommand && a.at() == nil {
		a.command(command)
		return
	}
	isCommand = isCommand || done.Hand && len(line) > 1 && strings.Contains("!#&", line[:1])
	e := a.composing().Editor()
	if isCommand && !strings.Contains(line, "\n") {
		e.Type(line[:1]) // typed first, it is a command
		e.Type(line[1:])
	} else {
		e.SetText(line)
	}
	switch mode := e.Mode(); {
	case mode == '!' && a.o.Bang:
		f.askBang(a, line)
		return
	case mode == 0 || mode == '!':
		f.echoes(line)
	}
	if d.queue {
		a.send(d)
	} else {
		a.perform("send", "enter")
	}
}

// askBang asks before a command of the person's runs: without the brackets around a paste
// that other screens have, nobody can tell a line that was typed from one that was pasted.
func (f *plainFront) askBang(a *App, line string) {
	e := a.composing().Editor()
	e.SetText("")
	a.ask(&question{text: "Run " + cells.OneLine(line[1:]) + " as you, outside any bot?", yes: func(a *App) {
		e.Type(line[:1])
		e.Type(line[1:])
		a.perform("send", "enter")
	}})
}

// echoes notes that a message stands on the screen already.
func (f *plainFront) echoes(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	f.sent = append(f.sent, strings.TrimRight(strings.TrimPrefix(line, "/"), "\n"))
	if len(f.sent) > maxNotices {
		f.sent = f.sent[1:]
	}
}

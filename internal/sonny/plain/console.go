package plain

import (
	"strings"
	"time"
)

// heldMost is how long output waits at most for a line that is begun.
const heldMost = 30 * time.Second

// maxWaiting bounds the lines that wait for it; beyond it they are printed at once.
const maxWaiting = 2000

// Console is the terminal of the plain mode: lines that are printed, and one that is
// typed below them. While a line is begun, output waits until it is sent or rubbed out,
// 30 seconds at most. It belongs to one goroutine.
type Console struct {
	Write func(string)     // to the terminal; it must not be nil
	Now   func() time.Time // nil: time.Now

	line    line
	hand    bool   // the first character of the line was typed, not pasted
	bound   string // the question that was open when the line was begun; "": none
	open    string // the question that is printed and not answered; "": none
	waiting []output
	since   time.Time // when the first of them came
}

// output is what is printed together.
type output struct {
	lines  []string
	opened string // it is this question; "": it is none
}

// Typed is a line that was finished.
type Typed struct {
	Text string
	// Question is the one that was on the screen before the line was begun, "" for none:
	// a line answers that one and no other (sonny.md 14).
	Question string
	// Hand says that its first character was typed: then it may be more than a message.
	Hand bool
}

func (c *Console) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// Print prints lines, now or when the line that is begun is finished. They hold nothing
// that a terminal would act on: that is the caller's to see to.
func (c *Console) Print(lines ...string) { c.print(output{lines: lines}) }

// Ask prints a question. Lines that are begun after it are its answers.
func (c *Console) Ask(id string, lines ...string) {
	c.print(output{lines: lines, opened: id})
}

// Closed says that a question is no longer open. One that was not printed yet is not
// printed any more.
func (c *Console) Closed(id string) {
	if c.open == id {
		c.open = ""
	}
	for i := range c.waiting {
		if c.waiting[i].opened == id {
			c.waiting[i] = output{}
		}
	}
}

func (c *Console) print(o output) {
	if len(o.lines) == 0 {
		return
	}
	if !c.line.begun() {
		c.out(o)
		return
	}
	if len(c.waiting) == 0 {
		c.since = c.now()
	}
	c.waiting = append(c.waiting, o)
	if len(c.waiting) >= maxWaiting {
		c.through()
	}
}

func (c *Console) out(o output) {
	if len(o.lines) == 0 {
		return
	}
	c.Write(strings.Join(o.lines, "\r\n") + "\r\n")
	if o.opened != "" {
		c.open = o.opened
	}
}

// Due is when what waits is printed all the same; the zero time for never.
func (c *Console) Due() time.Time {
	if len(c.waiting) == 0 {
		return time.Time{}
	}
	return c.since.Add(heldMost)
}

// Late prints what has waited long enough, and the begun line below it again.
func (c *Console) Late() {
	if due := c.Due(); !due.IsZero() && !c.now().Before(due) {
		c.through()
	}
}

// through prints what waits through a line that is begun.
func (c *Console) through() {
	c.Write("\r\n")
	c.flush()
	c.Write(c.line.shown())
}

func (c *Console) flush() {
	for _, o := range c.waiting {
		c.out(o)
	}
	c.waiting = nil
}

// Hide has stars stand for what is typed from now on: from the character on with which
// secret says of the line so far that it is one. nil shows all that is typed.
func (c *Console) Hide(secret func(line string) bool) { c.line.secret = secret }

// Begun reports whether a line is begun.
func (c *Console) Begun() bool { return c.line.begun() }

// Text is the message that is begun.
func (c *Console) Text() string { return c.line.text() }

// Key takes a key by its chord and the text it types. It gives the line that Enter
// finished; ok is false for every other key.
func (c *Console) Key(name, typed string) (done Typed, ok bool) {
	switch name {
	case "enter", "ctrl+j":
		return c.enter()
	case "backspace", "ctrl+h":
		c.Write(c.line.rubbed())
	case "ctrl+u":
		c.Write(c.line.cleared())
	case "tab":
		c.typed(" ")
	default:
		if typed != "" {
			c.typed(typed)
		}
	}
	if !c.line.begun() {
		c.flush()
	}
	return Typed{}, false
}

// Paste adds a text, which may have several lines, to the line. It never sends it.
func (c *Console) Paste(s string) {
	if s != "" {
		c.typing(func() string { return c.line.pasted(s) })
	}
}

// Restore puts a message that was not sent before into the line again. hand is what Typed
// said of it.
func (c *Console) Restore(s string, hand bool) {
	begun := c.line.begun()
	c.Paste(s)
	if !begun {
		c.hand = hand
	}
}

func (c *Console) typed(s string) {
	first := !c.line.begun()
	c.typing(func() string { return c.line.typed(s) })
	c.hand = c.hand || first
}

func (c *Console) typing(add func() string) {
	if !c.line.begun() {
		c.bound, c.hand = c.open, false
	}
	c.Write(add())
}

func (c *Console) enter() (Typed, bool) {
	if !c.line.begun() {
		return Typed{Question: c.open}, true
	}
	c.Write("\r\n")
	message, whole := c.line.ended()
	if !whole {
		c.Write(head)
		return Typed{}, false
	}
	done := Typed{Text: message, Question: c.bound, Hand: c.hand}
	c.bound = ""
	c.flush()
	return done, true
}

// Drop rubs the begun line out, and reports whether there was one.
func (c *Console) Drop() bool {
	if !c.line.begun() {
		return false
	}
	c.Key("ctrl+u", "")
	return true
}

// Newline leaves the line that is begun where it stands, for what another program
// prints, or the end.
func (c *Console) Newline() {
	if c.line.begun() {
		c.Write("\r\n")
	}
	c.flush()
}

// Again shows the begun line after Newline.
func (c *Console) Again() { c.Write(c.line.shown()) }

package ahead

import (
	"context"
	"slices"
	"sync"

	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/setup"
)

// Aloud is a terminal on which screens are read out as lines (sonny.md 14): of each
// frame the rows that are new are printed, and a line that is typed goes to the screen
// as its keys. It is for the screens that stand alone; the app has its own plain form.
type Aloud struct {
	Terminal
	events chan term.Event
	leave  context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	con   *plain.Console
	why   string
	spoke bool
	keys  func() bool // whether the screen asks for a key now, which is never shown; nil: it takes no lines
	left  int         // keys of a line that the screen has not taken yet
	typed bool        // a line was typed since the newest frame
	rows  []string
}

// ReadAloud reads out what is drawn on a terminal that is open for lines. why is what
// the first line says. It takes the terminal's events until Close.
func ReadAloud(t Terminal, why string) *Aloud {
	ctx, leave := context.WithCancel(context.Background())
	r := &Aloud{Terminal: t, why: why, events: make(chan term.Event), leave: leave, con: &plain.Console{Write: t.Write}}
	r.wg.Go(func() { r.listen(ctx) })
	return r
}

// Close gives the terminal's events back.
func (r *Aloud) Close() {
	r.leave()
	r.wg.Wait()
	r.con.Newline()
}

// Spoke reports whether anything was printed.
func (r *Aloud) Spoke() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spoke
}

// Events are the keys that the typed lines are made of.
func (r *Aloud) Events() <-chan term.Event { return r.events }

// Size is one at which nothing of a screen is cut or wrapped.
func (r *Aloud) Size() (w, h int, err error) { return plain.Wide, everyRow, nil }

// everyRow is more than a screen that is read out has, so that none of it is cut.
const everyRow = 600

// takesLines gives a screen what is typed as whole lines, until it is called with nil. asksKey
// tells whether stars stand for all of a line, and is asked on the goroutine that draws. Of
// every other line they stand for what begins as a key does.
func (r *Aloud) takesLines(asksKey func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = asksKey
	r.con.Hide(nil)
	if asksKey != nil {
		r.con.Hide(whole) // until it is drawn
	}
}

// whole has stars stand for all of a line.
func whole(string) bool { return true }

// taken says that the screen has begun to act on a line: when the next frame has nothing new,
// it was no answer.
func (r *Aloud) taken() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.typed = true
}

// Draw prints the rows that were not in the frame before, once the line that was typed
// is taken as a whole.
func (r *Aloud) Draw(f *term.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left > 0 {
		r.left--
	}
	if r.left > 0 {
		return
	}
	if !r.spoke {
		r.spoke = true
		r.con.Print(plain.Because + r.why)
	}
	rows, news := plain.Rows(f), false
	for _, row := range rows {
		if !slices.Contains(r.rows, row) {
			r.con.Print(plain.Notice + ": " + row)
			news = true
		}
	}
	if r.typed && !news && len(rows) > 0 {
		r.con.Print(plain.Notice+": that line is no answer here.", plain.Notice+": "+rows[len(rows)-1])
	}
	r.rows, r.typed = rows, false
	if r.keys != nil {
		r.con.Hide(setup.BeginsKey)
		if r.keys() {
			r.con.Hide(whole)
		}
	}
}

// listen makes keys of the lines that are typed.
func (r *Aloud) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.Terminal.Events():
			for _, e := range r.heard(e) {
				select {
				case r.events <- e:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// heard takes an event of the terminal's, and gives those that it makes for the screen.
func (r *Aloud) heard(e term.Event) []term.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := e.(type) {
	case term.Closed:
		return []term.Event{e}
	case term.Paste:
		r.con.Paste(edit.Pasted(e.Text))
	case term.Key:
		if e.Name == "ctrl+c" || e.Name == "ctrl+d" || e.Name == "esc" {
			r.con.Drop()
			return []term.Event{e}
		}
		if done, ok := r.con.Key(e.Name, e.Text); ok {
			if r.keys != nil {
				r.con.Hide(whole) // what is asked for next is not known before it is drawn
				return []term.Event{spoken{term.Paste{Text: done.Text}}}
			}
			keys := keysOf(done.Text)
			r.left, r.typed = len(keys), true
			return keys
		}
	}
	return nil
}

// spoken is a whole line that was typed.
type spoken struct{ term.Paste }

// keysOf are the keys that a line stands for: a choice is its one character, "esc" and
// the like are the key of that name, and everything else is typed and taken by Enter.
func keysOf(line string) (keys []term.Event) {
	switch {
	case slices.Contains([]string{"esc", "up", "down"}, line):
		return []term.Event{term.Key{Name: line}}
	case len(line) == 1:
		return []term.Event{term.Key{Name: line, Text: line}}
	case line != "":
		keys = append(keys, term.Paste{Text: line})
	}
	return append(keys, term.Key{Name: "enter"})
}

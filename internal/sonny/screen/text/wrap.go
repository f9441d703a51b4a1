package text

// Frame is how wrapped text stands: its width with all of it, and what precedes the
// first line and the others.
type Frame struct {
	Width       int
	First, Rest []Span
}

// Wrap lays spans out as lines of at most f.Width cells. It breaks at spaces where it
// can, within a word where a word is longer than a line, and never within a grapheme
// cluster. A frame too narrow for its own prefixes still takes a cluster a line.
func Wrap(spans []Span, f Frame) []Line {
	w := wrapper{frame: f}
	w.open(f.First)
	for _, s := range spans {
		w.grows = false
		at := 0
		for cluster, width := range Clusters(s.Text) {
			w.add(s, at, at+len(cluster), width)
			at += len(cluster)
		}
	}
	w.close(Hard)
	return w.lines
}

// wrapper is a line that is being filled. Its spans are slices of the source's text.
type wrapper struct {
	frame Frame
	lines []Line
	now   []Span
	used  int // cells, the prefix among them
	head  int // how many spans of now are the prefix

	grows bool // the last span of now is of the source's span at hand
	from  int  // and begins at this byte of it

	// Where the line may be broken: in span breakAt of now, which ends before the
	// space at breakLen and goes on after it. -1 for nowhere.
	breakAt, breakLen int
}

func (w *wrapper) open(prefix []Span) {
	w.now = append(make([]Span, 0, len(prefix)+2), prefix...)
	w.head = len(prefix)
	w.used = Line{Spans: prefix}.Width()
	w.breakAt, w.grows = -1, false
}

func (w *wrapper) close(end Break) {
	w.lines = append(w.lines, Line{Spans: w.now, End: end})
}

func (w *wrapper) add(like Span, from, to, width int) {
	space := like.Text[from:to] == " "
	for w.used+width > w.frame.Width && len(w.now) > w.head {
		if space {
			w.close(Space)
			w.open(w.frame.Rest)
			return
		}
		w.turn()
	}
	if !w.grows {
		w.now, w.from, w.grows = append(w.now, like), from, true
	}
	last := len(w.now) - 1
	w.now[last].Text = like.Text[w.from:to]
	w.used += width
	if space {
		w.breakAt, w.breakLen = last, len(w.now[last].Text)-1
	}
}

// turn ends the line at its last space, or here where it has none, and takes what
// stood after that along, which may be too much again.
func (w *wrapper) turn() {
	if w.breakAt < 0 {
		w.close(Glue)
		w.open(w.frame.Rest)
		return
	}
	tail := append([]Span{}, w.now[w.breakAt:]...)
	tail[0].Text = tail[0].Text[w.breakLen+1:]
	from, grows := w.from, w.grows
	if len(tail) == 1 {
		from += w.breakLen + 1
	}
	w.now = w.now[:w.breakAt+1]
	w.now[w.breakAt].Text = w.now[w.breakAt].Text[:w.breakLen]
	w.close(Space)
	w.open(w.frame.Rest)
	for _, s := range tail {
		if s.Text != "" {
			w.now = append(w.now, s)
			w.used += Width(s.Text)
			w.from, w.grows = from, grows
		}
	}
}

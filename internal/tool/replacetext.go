package tool

import (
	"bytes"
	"strings"

	"agent/protocol"
)

const (
	lf   = "\n"
	crlf = "\r\n"
)

// replaceText replaces old by new in a file's content, which is UTF-8: once,
// or everywhere with all. Line endings are matched as equal; lines that stay
// keep theirs, new ones get that of the line they follow or replace. A
// byte-order mark is no part of the text, and stays (runtime.md 11, "Text files
// keep what they had").
func (e *Env) replaceText(data []byte, old, new string, all bool) ([]byte, int, *Failure) {
	body := bytes.TrimPrefix(data, []byte(byteOrderMark))
	mark := data[:len(data)-len(body)]
	oldText, newText := requested(old), requested(new)
	if oldText == "" {
		return nil, 0, invalidf("old is empty but for a byte-order mark")
	}
	text := body
	if bytes.Contains(body, []byte(crlf)) {
		text = bytes.ReplaceAll(body, []byte(crlf), []byte(lf))
	}
	count := bytes.Count(text, []byte(oldText))
	last := false
	if count == 0 && endsWithout(text, oldText) {
		// The last line has no ending, though old gives it one.
		oldText, newText = strings.TrimSuffix(oldText, lf), strings.TrimSuffix(newText, lf)
		count, last = 1, true
	}
	r := replacing{body: body, text: text, old: oldText, new: strings.SplitAfter(newText, lf), newSize: len(newText), last: last}
	switch {
	case count == 0:
		return nil, 0, failuref(protocol.EditTargetNotFound, "%s", nearest(e.Redact.Bytes(text), oldText))
	case count == 1 && !last && r.overlapping():
		count = 2
	}
	if count > 1 && !all {
		return nil, 0, failuref(protocol.EditTargetAmbiguous,
			"old occurs %d times; give more of the text around the place, or set replace_all", count)
	}
	size := len(mark) + r.size(count)
	if size > maxFile {
		return nil, 0, failuref(protocol.ToolOutputLimit, "the file would be %d bytes; at most %d are written: nothing was changed", size, maxFile)
	}
	out := append(make([]byte, 0, size), mark...)
	r.build(func(piece []byte) { out = append(out, piece...) })
	return out, count, nil
}

// requested is a text of a request with plain line endings and no mark.
func requested(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, byteOrderMark), crlf, lf)
}

// endsWithout reports whether text ends with old but for old's final newline.
func endsWithout(text []byte, old string) bool {
	line, ok := strings.CutSuffix(old, lf)
	return ok && line != "" && bytes.HasSuffix(text, []byte(line))
}

// replacing is a change to a body.
type replacing struct {
	body    []byte
	text    []byte // the body with plain endings
	old     string
	new     []string // its lines, each with its newline
	newSize int
	last    bool     // only what text ends with is replaced
	from    []int    // alignLines of old and new, once asked for
	was     []string // endings of old's lines at the last place
	now     []string // and of new's
}

// place is a stretch of the body that is replaced.
type place struct{ start, end int }

// overlapping reports whether the text's only occurrence of old has another
// that begins inside it.
func (r *replacing) overlapping() bool {
	i := bytes.Index(r.text, []byte(r.old))
	return bytes.Contains(r.text[i+1:], []byte(r.old))
}

// each gives the places of old in the body, from the left; they do not
// overlap.
func (r *replacing) each(use func(place)) {
	at := 0 // in text
	if r.last {
		at = len(r.text) - len(r.old)
	}
	w := walker{body: r.body, pair: bytes.Index(r.body, []byte(crlf))}
	for {
		i := bytes.Index(r.text[at:], []byte(r.old))
		if i < 0 {
			return
		}
		at += i
		start := w.inBody(at)
		at += len(r.old)
		use(place{start, w.inBody(at)})
	}
}

// walker turns rising offsets in a text with plain endings into offsets in the
// body it was made from.
type walker struct {
	body    []byte
	dropped int // endings of two bytes before the last offset
	pair    int // where in the body the next one is, -1 for nowhere
}

func (w *walker) inBody(offset int) int {
	for w.pair >= 0 && w.pair-w.dropped < offset {
		w.dropped++
		next := w.pair + len(crlf)
		if w.pair = bytes.Index(w.body[next:], []byte(crlf)); w.pair >= 0 {
			w.pair += next
		}
	}
	return offset + w.dropped
}

// size is the length of the changed body, with count places.
func (r *replacing) size(count int) (n int) {
	if uniform, ending := r.uniform(); uniform {
		more := len(ending) - len(lf)
		was := len(r.old) + strings.Count(r.old, lf)*more
		is := r.newSize + (len(r.new)-1)*more
		return len(r.body) + count*(is-was)
	}
	// What it comes to at least, before going through all places.
	if least := len(r.body) + count*(r.newSize-2*len(r.old)); least > maxFile {
		return least
	}
	r.build(func(piece []byte) { n += len(piece) })
	return n
}

// uniform reports whether all lines of the body end alike, and how.
func (r *replacing) uniform() (bool, string) {
	all, pairs := bytes.Count(r.body, []byte(lf)), bytes.Count(r.body, []byte(crlf))
	if pairs > 0 {
		return all == pairs, crlf
	}
	return true, lf
}

// build gives the pieces of the changed body to emit, in order.
func (r *replacing) build(emit func([]byte)) {
	uniform, ending := r.uniform()
	at := 0
	r.each(func(p place) {
		emit(r.body[at:p.start])
		var endings []string
		if !uniform {
			endings = r.endings(p)
		}
		for i, line := range r.new {
			text, ended := strings.CutSuffix(line, lf)
			emit([]byte(text))
			if !ended {
				continue
			}
			if !uniform {
				ending = endings[i]
			}
			emit([]byte(ending))
		}
		at = p.end
	})
	emit(r.body[at:])
}

// endings says how each line of the new text ends at a place of a body with
// mixed endings. The old text's last line ends after the place.
func (r *replacing) endings(p place) []string {
	was := r.was[:0]
	for rest := r.body[p.start:p.end]; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		was = append(was, endingAt(rest, i))
		rest = rest[i+1:]
	}
	was = append(was, r.endingAfter(p))
	r.was = was
	if r.from == nil {
		r.from = alignLines(strings.Split(r.old, lf), r.new)
	}
	if r.now == nil {
		r.now = make([]string, len(r.new))
	}
	for i := range r.new {
		r.now[i] = was[r.from[i]]
	}
	return r.now
}

// endingAt is the ending whose newline is at i.
func endingAt(text []byte, i int) string {
	if i > 0 && text[i-1] == '\r' {
		return crlf
	}
	return lf
}

// endingAfter is the ending of the line that the place ends in; where that has
// none, of the line before it.
func (r *replacing) endingAfter(p place) string {
	if i := bytes.IndexByte(r.body[p.end:], '\n'); i >= 0 {
		return endingAt(r.body, p.end+i)
	}
	if i := bytes.LastIndexByte(r.body[:p.end], '\n'); i >= 0 {
		return endingAt(r.body, i)
	}
	return lf
}

package tool

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"agent/protocol"
)

// likenesses are the ways in which a line of a patch may be one of the file,
// in the order in which they are tried: as it is, but for blanks at its end,
// but for blanks at both ends.
var likenesses = []func(string) string{
	func(s string) string { return s },
	blankless,
	func(s string) string { return strings.Trim(s, " \t") },
}

// applyHunks makes the changes of a section in a file's content, which is
// UTF-8. Lines that stay are kept byte for byte; inserted ones get the ending
// of the line they replace or follow; a byte-order mark stays, and the end of
// the file is as it was unless the change says otherwise (runtime.md 11, "Text
// files keep what they had").
func (e *Env) applyHunks(ctx context.Context, path string, data []byte, hunks []*hunk) ([]byte, *Failure) {
	body := bytes.TrimPrefix(data, []byte(byteOrderMark))
	mark := data[:len(data)-len(body)]
	p := patching{body: body, out: append(make([]byte, 0, len(data)+1<<10), mark...), mark: len(mark)}
	p.final = len(body) == 0 || bytes.HasSuffix(body, []byte(lf))
	for _, h := range hunks {
		start, f := p.locate(ctx, e.Redact, h)
		if ctx.Err() != nil {
			return nil, failuref(protocol.Cancelled, "%s: the turn ended first", path)
		}
		if f != nil {
			return nil, fileFailure(protocol.PatchContextNotFound, path, f)
		}
		p.keep(p.body[p.at:start])
		p.at = start
		p.change(h)
		if len(p.out) > maxFile {
			break
		}
	}
	p.keep(p.body[p.at:])
	p.end()
	if len(p.out) > maxFile {
		return nil, failuref(protocol.ToolOutputLimit, "%s would be more than %d bytes: nothing was changed", path, maxFile)
	}
	return p.out, nil
}

// patching is a file being changed, hunk after hunk.
type patching struct {
	body  []byte // as it was, without its mark
	at    int    // in body: the first line that no hunk has used
	out   []byte // as it will be
	mark  int    // bytes of out that are the mark
	final bool   // it will end with a newline
}

// lineAt is the line that begins at a place of text, without its ending, and
// where the next one begins.
func lineAt(text []byte, at int) (line []byte, next int) {
	i := bytes.IndexByte(text[at:], '\n')
	if i < 0 {
		return text[at:], len(text)
	}
	return bytes.TrimSuffix(text[at:at+i], []byte("\r")), at + i + 1
}

// locate finds where in the body a hunk's first line is. What it gives counts
// only while ctx lasts.
func (p *patching) locate(ctx context.Context, mask Redactor, h *hunk) (int, *Failure) {
	from := p.at
	for _, anchor := range h.anchors {
		if ctx.Err() != nil {
			return 0, nil
		}
		next, ok := p.anchor(anchor, from)
		if !ok {
			return 0, failuref(protocol.PatchContextNotFound, "hunk %d (line %d of the patch): no line of the file is the one after @@, %s; it must be one whole line, without line numbers",
				h.number, h.line, shown(anchor))
		}
		from = max(from, next)
	}
	switch {
	case len(h.old) == 0 && (h.atEnd || len(h.anchors) == 0):
		return len(p.body), nil
	case len(h.old) == 0:
		return from, nil
	}
	old := h.old
	if from == 0 && strings.HasPrefix(old[0], byteOrderMark) {
		old = append([]string{strings.TrimPrefix(old[0], byteOrderMark)}, old[1:]...)
	}
	for _, like := range likenesses {
		if start := p.find(like, old, from, h.atEnd); start >= 0 {
			return start, nil
		}
	}
	return 0, p.notFound(mask, h, from)
}

// anchor finds the line that narrows a search from a place on, and gives where
// the next one begins. One that stands before that place narrows nothing.
func (p *patching) anchor(text string, from int) (next int, ok bool) {
	for _, part := range []struct {
		body []byte
		from int
	}{{p.body, from}, {p.body[:from], 0}} {
		for _, like := range likenesses {
			if start := find(part.body, like, []string{text}, part.from); start >= 0 {
				_, next := lineAt(part.body, start)
				return next, true
			}
		}
	}
	return 0, false
}

// find gives where old stands in the body from a line's beginning on, or -1.
func (p *patching) find(like func(string) string, old []string, from int, atEnd bool) int {
	if !atEnd {
		return find(p.body, like, old, from)
	}
	start := lastLines(p.body, len(old))
	if start < from {
		return -1
	}
	if find(p.body[start:], like, old, 0) != 0 {
		return -1
	}
	return start
}

// lastLines is where the last n lines of text begin, -1 where it has fewer.
func lastLines(text []byte, n int) int {
	end := len(text)
	for ; n > 0; n-- {
		if end == 0 {
			return -1
		}
		end = bytes.LastIndexByte(text[:end-1], '\n') + 1
	}
	return end
}

// find gives where the lines of old stand in text from a line's beginning on,
// or -1. It looks at each line of the text once, however often the beginning
// of old recurs (the method of Knuth, Morris and Pratt).
func find(text []byte, like func(string) string, lines []string, from int) int {
	old := make([]string, len(lines))
	for i, line := range lines {
		old[i] = like(line)
	}
	back := make([]int32, len(old)) // how many lines still match when the one after does not
	for i, k := 1, int32(0); i < len(old); i++ {
		for k > 0 && old[i] != old[k] {
			k = back[k-1]
		}
		if old[i] == old[k] {
			k++
		}
		back[i] = k
	}
	matched := int32(0)
	for at := from; at < len(text); {
		line, next := lineAt(text, at)
		at = next
		have := like(string(line))
		for matched > 0 && have != old[matched] {
			matched = back[matched-1]
		}
		if have == old[matched] {
			matched++
		}
		if int(matched) == len(old) {
			return lastLines(text[:at], len(old))
		}
	}
	return -1
}

func (p *patching) notFound(mask Redactor, h *hunk, from int) *Failure {
	where := "in the file"
	switch {
	case h.atEnd:
		where = "at the end of the file"
	case len(h.anchors) > 0:
		where = "after the line that @@ names"
	case from > 0:
		where = "after the hunk before"
	}
	return failuref(protocol.PatchContextNotFound, "hunk %d (line %d of the patch): its lines are not %s; %s",
		h.number, h.line, where, nearLine(mask.Bytes(p.body), h.old))
}

// nearLine names the line of a file that is the first to differ from lines that
// nearly are there. The file is masked, since a secret that is cut to be shown
// is not found any more.
func nearLine(body []byte, old []string) string {
	if len(old) > maxNear {
		old = old[:maxNear]
	}
	folded := make([]string, len(old))
	for i, line := range old {
		folded[i] = fold(line)
	}
	text := bytes.ReplaceAll(body, []byte(crlf), []byte(lf))
	number, length := bestRun(text, folded)
	if length == 0 {
		return "no line of the file is like the first of them, " + shown(old[0])
	}
	i := 0
	for line := range bytes.SplitSeq(text, []byte(lf)) {
		switch n := i - number; {
		case n == len(old):
			return fmt.Sprintf("line %d of the file is like the first of them", number+1)
		case n >= 0 && string(line) != old[n]:
			return fmt.Sprintf("line %d of the file is %s, the hunk has %s", i+1, shown(string(line)), shown(old[n]))
		}
		i++
	}
	return fmt.Sprintf("the file ends after its line %d", i)
}

// change puts a hunk in its place, which is where the output has got to.
func (p *patching) change(h *hunk) {
	for lines := h.lines; len(lines) > 0; {
		n := 0
		for n < len(lines) && lines[n].op != ' ' {
			n++
		}
		p.replace(lines[:n])
		if lines = lines[n:]; len(lines) > 0 {
			_, next := lineAt(p.body, p.at)
			p.keep(p.body[p.at:next])
			p.at = next
			lines = lines[1:]
		}
	}
	switch {
	case h.newBare:
		p.final = false
	case h.oldBare:
		p.final = true
	}
}

// replace drops and inserts the lines of a stretch in which none stays.
func (p *patching) replace(lines []hunkLine) {
	var old, new, was []string
	for _, l := range lines {
		if l.op == '+' {
			new = append(new, l.text)
			continue
		}
		old = append(old, l.text)
		_, next := lineAt(p.body, p.at)
		was = append(was, p.endingOf(next))
		p.at = next
	}
	if len(old) == 0 {
		for _, text := range new {
			p.insert(text, p.ending())
		}
		return
	}
	for i, from := range alignLines(old, new) {
		p.insert(new[i], was[from])
	}
}

// endingOf is the ending of the line that ends at a place of the body; where
// it has none, of the line before it.
func (p *patching) endingOf(end int) string {
	if i := bytes.LastIndexByte(p.body[:end], '\n'); i >= 0 {
		return endingAt(p.body, i)
	}
	return lf
}

// ending is the ending of the last line of the output that has one; where none
// has, the first of the body.
func (p *patching) ending() string {
	if i := bytes.LastIndexByte(p.out, '\n'); i >= 0 {
		return endingAt(p.out, i)
	}
	if i := bytes.IndexByte(p.body, '\n'); i >= 0 {
		return endingAt(p.body, i)
	}
	return lf
}

// keep takes over lines of the body.
func (p *patching) keep(lines []byte) {
	if len(lines) > 0 {
		p.close()
		p.out = append(p.out, lines...)
	}
}

func (p *patching) insert(text, ending string) {
	p.close()
	if len(p.out) == p.mark && p.mark > 0 {
		text = strings.TrimPrefix(text, byteOrderMark)
	}
	p.out = append(append(p.out, text...), ending...)
}

// close ends the last line of the output, which was the body's last, before
// another one follows.
func (p *patching) close() {
	if len(p.out) > p.mark && p.out[len(p.out)-1] != '\n' {
		p.out = append(p.out, p.ending()...)
	}
}

// end makes the output end as it should.
func (p *patching) end() {
	switch ended := bytes.HasSuffix(p.out, []byte(lf)); {
	case len(p.out) == p.mark:
	case p.final && !ended:
		p.close()
	case !p.final && ended:
		last, _ := bytes.CutSuffix(p.out, []byte(lf))
		p.out = bytes.TrimSuffix(last, []byte("\r"))
	}
}

package tool

import (
	"strconv"
	"strings"

	"agent/protocol"
)

// maxSections bounds the sections of a patch, and with them the result.
const maxSections = 1000

// The actions of a patch's sections, as its result names them.
const (
	actionAdd    = "add"
	actionDelete = "delete"
	actionUpdate = "update"
	actionMove   = "move"
)

// section is what a patch does to one file.
type section struct {
	line     int // of its header in the patch, from 1
	action   string
	path, to string // as the patch names them; to only of a move
	content  []byte // of an added file
	hunks    []*hunk

	added, removed int // lines; of a deleted file once it is planned
}

// paths are the names of files that a section has.
func (s *section) paths() []string {
	if s.action == actionMove {
		return []string{s.path, s.to}
	}
	return []string{s.path}
}

// where is the path of the file that a section leaves, or deletes.
func (s *section) where() string {
	if s.action == actionMove {
		return s.to
	}
	return s.path
}

// hunk is one change within a file.
type hunk struct {
	number  int      // within its section, from 1
	line    int      // of its @@ in the patch
	anchors []string // lines that occur before it in the file, in order
	lines   []hunkLine
	old     []string // texts of the lines that must be there
	atEnd   bool     // it ends where the file ends
	// The file's last line has no newline before and after the change.
	oldBare, newBare bool
}

// hunkLine is a line that stays, ' ', goes, '-', or comes, '+'.
type hunkLine struct {
	op   byte
	text string
}

const (
	beginPatch  = "*** Begin Patch"
	endPatch    = "*** End Patch"
	addFile     = "*** Add File:"
	deleteFile  = "*** Delete File:"
	updateFile  = "*** Update File:"
	moveTo      = "*** Move to:"
	endOfFile   = "*** End of File"
	noFinalLine = `\ No newline at end of file`
)

// patchReader goes through the lines of a patch.
type patchReader struct {
	rest   string
	more   bool // rest is a line at least, if an empty one
	number int  // of that line in the patch, from 1
}

// parsePatch reads a patch in the envelope of runtime.md 11. Its failures are
// patch_invalid with the number of the line, and invalid_path.
func parsePatch(patch string) ([]*section, *Failure) {
	r := &patchReader{rest: strings.TrimRight(requested(patch), " \t\n"), more: true, number: 1}
	if line, _ := r.peek(); blankless(line) != beginPatch {
		return nil, r.invalid("it must be %q, not %s", beginPatch, shown(line))
	}
	r.next()
	var sections []*section
	for {
		line, ok := r.peek()
		switch {
		case !ok:
			return nil, r.invalid("the patch ends without %q", endPatch)
		case blankless(line) == endPatch && len(sections) == 0:
			return nil, r.invalid("the patch has no section")
		case blankless(line) == endPatch:
			r.next()
			if more, ok := r.peek(); ok {
				return nil, r.invalid("%s follows %q", shown(more), endPatch)
			}
			return sections, nil
		case len(sections) == maxSections:
			return nil, r.invalid("a patch has at most %d sections: make several patches of it", maxSections)
		}
		s, f := r.section(line)
		if f != nil {
			return nil, f
		}
		sections = append(sections, s)
	}
}

// peek is the line that comes next; false at the end.
func (r *patchReader) peek() (string, bool) {
	line, _, _ := strings.Cut(r.rest, lf)
	return line, r.more
}

func (r *patchReader) next() {
	_, r.rest, r.more = strings.Cut(r.rest, lf)
	r.number++
}

func (r *patchReader) invalid(format string, args ...any) *Failure {
	f := failuref(protocol.PatchInvalid, format, args...)
	f.Detail = "line " + strconv.Itoa(r.number) + " of the patch: " + f.Detail
	return f
}

// blankless is a line of the envelope without blanks at its end.
func blankless(line string) string { return strings.TrimRight(line, " \t") }

func (r *patchReader) section(header string) (*section, *Failure) {
	s := &section{line: r.number}
	for _, kind := range []struct{ prefix, action string }{
		{addFile, actionAdd}, {deleteFile, actionDelete}, {updateFile, actionUpdate},
	} {
		if path, ok := strings.CutPrefix(header, kind.prefix); ok {
			s.action, s.path = kind.action, strings.TrimSpace(path)
		}
	}
	if s.action == "" {
		return nil, r.invalid("it must begin a section (%q, %q or %q) or be %q, not %s", addFile, deleteFile, updateFile, endPatch, shown(header))
	}
	if f := r.path(s.path); f != nil {
		return nil, f
	}
	r.next()
	switch s.action {
	case actionAdd:
		return s, r.content(s)
	case actionUpdate:
		return s, r.update(s)
	}
	return s, nil
}

func (r *patchReader) path(path string) *Failure {
	if path == "" {
		return r.invalid("the path is missing")
	}
	f := checkPath(arg[string]{true, path})
	if f != nil {
		f.Detail = "line " + strconv.Itoa(r.number) + " of the patch: " + f.Detail
	}
	return f
}

// content reads the lines of a new file.
func (r *patchReader) content(s *section) *Failure {
	for {
		line, ok := r.peek()
		switch {
		case ok && strings.HasPrefix(line, "+"):
			s.content = append(append(s.content, line[1:]...), lf...)
			s.added++
		case ok && blankless(line) == noFinalLine && s.added > 0:
			s.content = s.content[:len(s.content)-len(lf)]
			r.next()
			return nil
		case ok && !strings.HasPrefix(line, "***"):
			return r.invalid("a line of a new file begins with +, not as %s does", shown(line))
		default:
			return nil
		}
		r.next()
	}
}

func (r *patchReader) update(s *section) *Failure {
	if line, ok := r.peek(); ok && strings.HasPrefix(line, moveTo) {
		s.action, s.to = actionMove, strings.TrimSpace(strings.TrimPrefix(line, moveTo))
		if f := r.path(s.to); f != nil {
			return f
		}
		r.next()
	}
	for {
		line, ok := r.peek()
		switch {
		case ok && strings.HasPrefix(line, "@@"):
			h, f := r.hunk(len(s.hunks) + 1)
			if f != nil {
				return f
			}
			s.hunks = append(s.hunks, h)
			for _, l := range h.lines {
				switch l.op {
				case '+':
					s.added++
				case '-':
					s.removed++
				}
			}
		case ok && !strings.HasPrefix(line, "***"):
			return r.invalid("a hunk begins with @@, not as %s does", shown(line))
		case len(s.hunks) == 0 && s.action == actionUpdate:
			return r.invalid("the update of %s has no hunk", shown(s.path))
		default:
			return nil
		}
	}
}

// hunk reads one hunk. Several @@ lines in a row narrow the search one after
// the other.
func (r *patchReader) hunk(number int) (*hunk, *Failure) {
	h := &hunk{number: number, line: r.number}
	for {
		line, ok := r.peek()
		anchor, head := strings.CutPrefix(line, "@@")
		if !ok || !head {
			break
		}
		if anchor = strings.TrimPrefix(anchor, " "); blankless(anchor) != "" {
			h.anchors = append(h.anchors, anchor)
		}
		r.next()
	}
	for {
		line, ok := r.peek()
		switch {
		case ok && blankless(line) == endOfFile:
			r.next()
			h.atEnd = true
			return h.complete(r)
		case ok && blankless(line) == noFinalLine:
			if f := h.bare(r); f != nil {
				return nil, f
			}
		case !ok || strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "***"):
			return h.complete(r)
		default:
			if f := h.add(r, line); f != nil {
				return nil, f
			}
		}
		r.next()
	}
}

// add takes a line of the hunk. An empty one is an empty line that stays: the
// blank that should lead it is easily lost.
func (h *hunk) add(r *patchReader, line string) *Failure {
	op, text := byte(' '), ""
	if line != "" {
		op, text = line[0], line[1:]
	}
	switch {
	case op != ' ' && op != '-' && op != '+':
		return r.invalid("a line of a hunk begins with a space, - or +, not as %s does", shown(line))
	case h.newBare || h.oldBare && op != '+':
		return r.invalid("no such line can follow %q", noFinalLine)
	}
	h.lines = append(h.lines, hunkLine{op, text})
	if op != '+' {
		h.old = append(h.old, text)
	}
	return nil
}

// bare takes the line that says that the one before it has no newline.
func (h *hunk) bare(r *patchReader) *Failure {
	if len(h.lines) == 0 {
		return r.invalid("%q follows no line", noFinalLine)
	}
	op := h.lines[len(h.lines)-1].op
	h.oldBare = h.oldBare || op != '+'
	h.newBare = h.newBare || op != '-'
	h.atEnd = true
	return nil
}

func (h *hunk) complete(r *patchReader) (*hunk, *Failure) {
	if len(h.lines) == 0 {
		return nil, r.invalid("the hunk of line %d has no lines", h.line)
	}
	return h, nil
}

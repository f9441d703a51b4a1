package secret

import "bytes"

// line is what a pass knows of the line that it is in.
type line struct {
	start  int  // -1 where it lies too far back to be looked at
	seen   int  // up to here, quotes and what breaks a path were looked for
	quote  bool // one was seen
	blanks bool // nothing but blanks was seen
	broken int  // where the first thing that is in no path was seen, -1 for nowhere
}

func newLine(at int) line { return line{start: at, seen: at, blanks: true, broken: -1} }

func (l *line) move(by int) {
	if l.start >= 0 {
		l.start -= by
	}
	l.seen = max(0, l.seen-by)
	if l.broken >= 0 {
		l.broken = max(0, l.broken-by)
	}
}

// see looks at the line up to to.
func (l *line) see(b []byte, to int) {
	for ; l.seen < to; l.seen++ {
		c := b[l.seen]
		if isQuote(c) {
			l.quote = true
		}
		if l.blanks && isBlank(c) {
			continue
		}
		l.blanks = false
		if l.broken < 0 && (isBlank(c) || isQuote(c) || c == '=' || c == '[' && bytes.HasPrefix(b[l.seen:], []byte(Mark))) {
			l.broken = l.seen
		}
	}
}

// skip passes over what is masked: to the one who looks at the text again, it
// is a mark.
func (l *line) skip(b []byte, from, to int) {
	l.see(b, from)
	l.blanks = false
	if l.broken < 0 {
		l.broken = from
	}
	l.seen = max(l.seen, to)
}

// start says how a name stands at the start of its line.
type start struct {
	ok       bool
	indent   int  // blanks before the line's text
	numbered bool // behind the prefix of a search or a numbering
	plus     bool // behind the + of a change
}

var keywords = []string{"export ", "set ", "declare -x ", "ENV ", "ARG "}

// startOf reports whether at is the start of its line: whether before it there
// are but blanks, one "- ", one "+", one keyword, and the prefix of a search or
// a numbering (approvals.md 20.6, rule 4).
func (f *fieldsPass) startOf(at int) start {
	from := f.line.start
	if from < 0 || at-from > maxPrefix || f.floor > from {
		return start{}
	}
	before := f.b[from:at]
	var s start
	dash, keyword := false, false
	for {
		if n := len(before); n == 0 || f.isNumbering(before, f.b[from+n]) {
			s.ok, s.numbered = true, n > 0
			if n > 0 && isDigit(before[n-1]) {
				n++ // the tab
			}
			s.indent = indentOf(f.b[from+n:at], s.plus)
			return s
		}
		last := len(before) - 1
		word := keywordEnd(before)
		switch {
		case isBlank(before[last]):
			if word > 0 && !keyword {
				keyword = true
				before = before[:len(before)-word]
				continue
			}
			before = before[:last]
		case before[last] == '+' && !s.plus:
			s.plus = true
			before = before[:last]
		case before[last] == '-' && !dash && f.b[from+last+1] == ' ':
			dash = true
			before = before[:last]
		default:
			return start{}
		}
	}
}

// keywordEnd is the length of the keyword that before ends with, 0 for none.
func keywordEnd(before []byte) int {
	for _, k := range keywords {
		if bytes.HasSuffix(before, []byte(k)) {
			if n := len(before) - len(k); n == 0 || !nameBytes[before[n-1]] {
				return len(k)
			}
		}
	}
	return 0
}

// indentOf is how many blanks stand before a line's text, behind its +.
func indentOf(line []byte, plus bool) int {
	i := 0
	if plus {
		i = bytes.IndexByte(line, '+') + 1
	}
	n := 0
	for i+n < len(line) && isBlank(line[i+n]) {
		n++
	}
	return n
}

// isNumbering reports whether before, the start of a line, is the prefix of a
// search or a numbering: 12: or 12<tab>, with blanks before, path:12: or
// path-12-. next is the byte behind it.
func (f *fieldsPass) isNumbering(before []byte, next byte) bool {
	last := len(before) - 1
	mark := before[last]
	switch {
	case mark == ':' || mark == '-':
	case isDigit(mark) && next == '\t':
		mark, last = '\t', last+1
	default:
		return false
	}
	digits := last
	for digits > 0 && last-digits < maxDigits && isDigit(before[digits-1]) {
		digits--
	}
	if digits == last {
		return false
	}
	if mark != '-' && len(bytes.Trim(before[:digits], " \t")) == 0 {
		return true
	}
	if mark == '\t' || digits < 2 || before[digits-1] != mark {
		return false
	}
	f.line.see(f.b, f.line.start+digits)
	return !isBlank(before[0]) && (f.line.broken < 0 || f.line.broken >= f.line.start+digits-1)
}

// maxDigits is how long a line's number may be.
const maxDigits = 10

// numberedEnd is where, in a run of name bytes, the last -12- ends; 0 for
// nowhere.
func numberedEnd(run []byte) int {
	if bytes.IndexByte(run, '-') < 0 {
		return 0
	}
	for end := len(run) - 1; end > 1; end-- {
		if run[end] != '-' || !isDigit(run[end-1]) {
			continue
		}
		i := end - 1
		for i > 0 && isDigit(run[i]) {
			i--
		}
		if run[i] == '-' {
			return end + 1
		}
	}
	return 0
}

// block is an open YAML block: the lines indented deeper than its key's belong
// to it and are masked.
type block struct{ key start }

// progress is how a step of a pass came out.
type progress int

const (
	undecided progress = iota // more text is needed
	decided
	elsewhere // the step is not the one to take
)

// blockLine handles the line at scan while a block is open.
func (f *fieldsPass) blockLine(end bool, out *text) progress {
	from := f.scan
	if f.block.key.numbered {
		n, whole := numberingBefore(f.b[from:], end)
		if !whole {
			return undecided
		}
		from += n
	}
	if f.block.key.plus && from < len(f.b) && (f.b[from] == '+' || f.b[from] == '-' || f.b[from] == ' ') {
		from++
	}
	at := from
	for at < len(f.b) && isBlank(f.b[at]) {
		at++
	}
	switch deeper := at-from > f.block.key.indent; {
	case deeper:
		f.send(at, out)
		f.scan = at
		f.cut = &rest{lead: true, stops: &lineStops, trim: &blankTrim}
		return decided
	case at == len(f.b) && !end:
		return undecided
	case at < len(f.b) && f.b[at] == '\r' && at+1 == len(f.b) && !end:
		return undecided
	case at < len(f.b) && (f.b[at] == '\n' || bytes.HasPrefix(f.b[at:], []byte("\r\n"))):
		f.scan = at
		return elsewhere
	}
	f.block = nil
	return elsewhere
}

// maxNumbering is how long the prefix of a search is looked for in a block's
// line, in bytes.
const maxNumbering = 512

// numberingBefore is the length of the prefix of a search or a numbering that
// a line begins with, 0 for none. whole is false where the line breaks off
// before that is decided.
func numberingBefore(b []byte, end bool) (n int, whole bool) {
	i := 0
	for i < len(b) && i < maxNumbering && isBlank(b[i]) {
		i++
	}
	lead := i
	for ; i < len(b) && i < maxNumbering; i++ {
		c := b[i]
		switch {
		case c == '\n' || isQuote(c) || c == '=' || isBlank(c) && c != '\t' || c == '\t' && i == lead:
			return 0, true
		case c != ':' && c != '-' && c != '\t':
			continue
		}
		digits := i
		for digits > lead && isDigit(b[digits-1]) {
			digits--
		}
		alone := digits == lead
		if digits < i && (alone || c != '\t' && lead == 0 && digits > 1 && b[digits-1] == c) {
			return i + 1, true
		}
		if c == '\t' {
			return 0, true
		}
	}
	return 0, end || i == maxNumbering
}

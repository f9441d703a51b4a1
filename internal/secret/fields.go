package secret

import "bytes"

const (
	maxBlanksBefore = 8              // blanks between a name and its separator
	maxBlanks       = 64             // blanks between a separator and its value
	maxLevel        = 255            // backslashes before a quote
	maxPrefix       = 4 << 10        // bytes of a line before a name that is at the line's start
	maxTrim         = 256            // bytes at a value's end that are left out of it
	maxLook         = 2*maxTrim + 64 // bytes of a value after which it is decided whether it is masked
	backLook        = 1 << 10        // bytes before a separator that may belong to its name
)

// fieldsPass masks the values of fields that are named like secrets
// (approvals.md 20.5 and 20.6). It goes from separator to separator, and from
// one that may follow a secret's name looks back for the name and on for the
// value. Of a value no more than maxLook bytes are held: by then it is sure to
// be masked, and what follows of it is dropped as it comes.
type fieldsPass struct {
	window
	scan  int  // where to look on
	line  line // the line that scan is in, newLine(0) at first
	floor int  // end of the last thing masked: no name begins before it
	block *block
	cut   *rest // what is left of a value whose mark is out
	code  bool  // the text may run: mask one word or string at a time (judge.go)
}

func newFieldsPass() *fieldsPass { return &fieldsPass{line: newLine(0)} }

func (f *fieldsPass) run(in *text, end bool, out *text) {
	s := borrow()
	defer s.giveBack()
	f.open(&s.window, in)
	f.send(f.look(end, out), out)
	from := f.keepFrom()
	f.close(&s.window, from)
	f.scan, f.floor = f.scan-from, max(0, f.floor-from)
	f.line.move(from)
}

// keepFrom is where what may still explain what comes begins.
func (f *fieldsPass) keepFrom() int {
	from := min(f.scan, f.sent)
	if f.line.start >= 0 && f.scan-f.line.start <= maxPrefix+backLook {
		return min(from, f.line.start)
	}
	f.line.see(f.b, max(f.line.seen, min(from, f.scan-backLook)))
	f.line.start = -1
	return max(0, min(from, f.scan-backLook))
}

// triggers are the bytes that the scan stops at.
var triggers = bytesOf("\n=:-")

// look goes on as far as is decided, and returns where what must be held
// begins.
func (f *fieldsPass) look(end bool, out *text) (hold int) {
	for {
		if f.cut != nil && !f.dropRest(end, out) {
			return f.sent
		}
		if f.block != nil && f.scan == f.line.start {
			switch f.blockLine(end, out) {
			case undecided:
				return f.scan
			case decided:
				continue
			}
		}
		if hold, more := f.next(end, out); !more {
			return hold
		}
	}
}

// next handles one trigger. more is false at the end of the text, or where
// more of it is needed: then hold is where what must be held begins.
func (f *fieldsPass) next(end bool, out *text) (hold int, more bool) {
	i := f.scan
	for i < len(f.b) && !triggers[f.b[i]] {
		i++
	}
	f.scan = i
	if i == len(f.b) {
		return i, false
	}
	switch f.b[i] {
	case '\n':
		f.scan = i + 1
		f.line = newLine(i + 1)
		return 0, true
	case '-':
		return f.option(end, out)
	}
	n, ok := f.nameBefore(i)
	if !ok {
		f.scan = i + 1
		return 0, true
	}
	sep := separator(f.b[i:])
	value, found, wait := f.valueStart(i+sep, end)
	if wait {
		return len(f.b), false
	}
	if !found {
		f.scan = i + 1
		return 0, true
	}
	return f.value(field{name: n, sep: string(f.b[i : i+sep]), at: i, value: value}, end, out)
}

// separator is the length of the separator that b begins with.
func separator(b []byte) int {
	for _, s := range []string{":=", "===", "==", "=>"} {
		if bytes.HasPrefix(b, []byte(s)) {
			return len(s)
		}
	}
	return 1
}

// valueStart skips the blanks before a value. wait says that the text breaks
// off before the value begins: nothing of it has to be held.
func (f *fieldsPass) valueStart(i int, end bool) (value int, found, wait bool) {
	value = i
	for value < len(f.b) && value-i <= maxBlanks && isBlank(f.b[value]) {
		value++
	}
	switch {
	case value-i > maxBlanks:
		return 0, false, false
	case value == len(f.b):
		return 0, false, !end
	}
	return value, f.b[value] != '\n', false
}

// name is a field's name as it stands in the text.
type name struct {
	start, end int // its bounds, without quotes
	after      int // behind its quote and bracket, where it has some
	class      class
	quoted     bool
	first      start // where on its line it stands
}

// nameBefore reads the name that the separator at i follows, if it is one of a
// secret.
func (f *fieldsPass) nameBefore(i int) (name, bool) {
	k := i
	for k > f.floor && i-k < maxBlanksBefore && isBlank(f.b[k-1]) {
		k--
	}
	n := name{after: k}
	if k > f.floor && f.b[k-1] == ']' {
		k--
	}
	level, quote := 0, byte(0)
	if k > f.floor && isQuote(f.b[k-1]) {
		k--
		quote = f.b[k]
		level = f.backslashes(k)
		k -= level
	}
	n.end = k
	if !endsSecretly(f.b[f.floor:k]) {
		return n, false
	}
	n.start = f.runStart(k)
	if n.quoted = quote != 0; n.quoted && !f.opens(n.start, quote, level) {
		return n, false
	}
	return f.classified(n)
}

// runStart is where the run of name bytes that ends at end begins.
func (f *fieldsPass) runStart(end int) int {
	start := end
	for start > f.floor && end-start < maxName && nameBytes[f.b[start-1]] {
		start--
	}
	return start
}

// backslashes is how many stand before i, at most maxLevel and one.
func (f *fieldsPass) backslashes(i int) int {
	n := 0
	for i-n > f.floor && n <= maxLevel && f.b[i-n-1] == '\\' {
		n++
	}
	return n
}

// opens reports whether a quote behind exactly level backslashes stands before
// start.
func (f *fieldsPass) opens(start int, quote byte, level int) bool {
	return level <= maxLevel && start > f.floor && f.b[start-1] == quote && f.backslashes(start-1) == level
}

// classified adds the class and the place of a name; false for a harmless one.
func (f *fieldsPass) classified(n name) (name, bool) {
	n.class = classOf(f.b[n.start:n.end])
	if n.quoted {
		return n, n.class != harmless
	}
	// In a search's output, path-12-name is one run.
	if at := numberedEnd(f.b[n.start:n.end]); at > 0 {
		bare := n.start + at
		if inner := classOf(f.b[bare:n.end]); n.class != harmless || inner != harmless {
			if s := f.startOf(bare); s.ok {
				n.start, n.first = bare, s
				if n.class == harmless {
					n.class = inner
				}
				return n, true
			}
		}
	}
	if n.class == harmless {
		return n, false
	}
	n.first = f.startOf(n.start)
	return n, true
}

// option handles a run that begins with --, whose value may stand behind blanks
// alone.
func (f *fieldsPass) option(end bool, out *text) (hold int, more bool) {
	i := f.scan
	f.scan = i + 1
	if i > f.floor && nameBytes[f.b[i-1]] {
		return 0, true
	}
	j := i
	for j < len(f.b) && j-i <= maxName && nameBytes[f.b[j]] {
		j++
	}
	if j == len(f.b) && !end && j-i <= maxName && (j == i+1 || f.b[i+1] == '-') {
		f.scan = i
		return len(f.b), false
	}
	if j-i > maxName || j-i < 3 || f.b[i+1] != '-' || classOf(f.b[i:j]) == harmless {
		return 0, true
	}
	n := name{start: i, end: j, after: j, class: classOf(f.b[i:j])}
	k := j
	if i > f.floor && isQuote(f.b[i-1]) {
		level := f.backslashes(i - 1)
		for k < len(f.b) && k-j < level && f.b[k] == '\\' {
			k++
		}
		switch {
		case k == len(f.b) && !end:
			f.scan = i
			return len(f.b), false
		case k < len(f.b) && k-j == level && f.b[k] == f.b[i-1] && level <= maxLevel:
			k++
			n.quoted, n.after = true, k
		default:
			k = j
		}
	}
	value, found, wait := f.valueStart(k, end)
	switch {
	case wait:
		f.scan = i
		return len(f.b), false
	case !found || value == k || (f.b[value] == '=' || f.b[value] == ':') && value-k <= maxBlanksBefore:
		f.scan = j
		return 0, true
	}
	return f.value(field{name: n, at: i, value: value}, end, out)
}

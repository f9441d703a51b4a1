package secret

import "bytes"

// field is a secret's name and what follows it.
type field struct {
	name  name
	sep   string // empty where blanks alone separate
	at    int    // where its judging begins anew when more text is needed
	value int    // where the value begins
}

// extent is how far a value reaches.
type extent struct {
	from, to int
	open     bool // it goes on past to, as rest says
	rest     rest
	quoted   bool
	block    bool // it may be the sign of a YAML block
}

var (
	lineStops   = bytesOf("\n")
	headerStops = bytesOf("\n\"'`\\")
	envStops    = bytesOf("\n \t\"'`")
	plainStops  = bytesOf("\n \t,;&)}]\"'<>|`")
	blankTrim   = bytesOf(" \t\r")
	listTrim    = bytesOf(" \t\r,;")

	// In text that may run, a value ends where a shell would begin anew.
	codeStops       = bytesOf("\n \t,;&(){}]\"'<>|`$")
	codeHeaderStops = bytesOf("\n\"'`\\;&|<>()$")
)

// value judges the value of a field, and masks it if it is a secret.
func (f *fieldsPass) value(d field, end bool, out *text) (hold int, more bool) {
	f.scan = d.value
	if bytes.HasPrefix(f.b[d.value:], []byte(Mark)) {
		return 0, true
	}
	x, p := f.extent(d, end)
	if bytes.HasPrefix([]byte(Mark), f.b[d.value:]) && !end {
		p = undecided
	}
	switch p {
	case undecided:
		f.scan = d.at
		return d.value, false
	case elsewhere:
		return 0, true
	}
	to := x.to
	if !x.open {
		to = f.trimmed(x.from, x.to, x.rest.trim)
	}
	if x.block && isBlockSign(f.b[x.from:to]) {
		f.block = &block{d.name.first}
		f.scan = to
		return 0, true
	}
	from, secret := f.secretPart(d, x, to)
	switch {
	case !secret:
	case x.open:
		f.line.skip(f.b, from, from)
		f.mask(from, from, fieldValue, out)
		f.scan, f.cut = from, &x.rest
	default:
		f.line.skip(f.b, from, to)
		f.mask(from, to, fieldValue, out)
		f.scan, f.floor = to, to
	}
	return 0, true
}

// isBlockSign reports whether a value says that a YAML block follows.
func isBlockSign(value []byte) bool {
	return 0 < len(value) && len(value) <= 3 && (value[0] == '|' || value[0] == '>')
}

// extent finds how far the value of d reaches, by the first of the rules of
// approvals.md 20.6 that fits; elsewhere says that there is no value.
func (f *fieldsPass) extent(d field, end bool) (extent, progress) {
	b := f.b[d.value:]
	inside, level, quote, p := openingQuote(b, end)
	if f.code && quote == '`' {
		p = elsewhere // a command
	}
	switch {
	case p == undecided:
		return extent{}, undecided
	case p == decided:
		x := extent{from: d.value + inside, quoted: true}
		x.rest = rest{quote: quote, level: level, stops: &lineStops, trim: &blankTrim}
		return f.reach(x, x.from, end)
	case d.name.class == header || d.name.class == cookie:
		x := extent{from: d.value, rest: rest{stops: &lineStops, trim: &listTrim}}
		if f.line.see(f.b, d.name.start); f.line.quote {
			x.rest.stops = &headerStops
		}
		if d.name.class == cookie {
			x.rest.trim = &blankTrim
		}
		if f.code {
			x.rest.stops = &codeHeaderStops
		}
		return f.reach(x, x.from, end)
	}
	n := placeholder(b)
	switch {
	case n < 0 && !end:
		return extent{}, undecided
	case b[0] == '[' || b[0] == '{' && n <= 0:
		return extent{}, elsewhere
	}
	return f.unquoted(d, max(n, 0), end)
}

// unquoted is extent for the rules from the fourth on; n is the length of the
// placeholder that the value begins with.
func (f *fieldsPass) unquoted(d field, n int, end bool) (extent, progress) {
	x := extent{from: d.value, rest: rest{stops: &plainStops, trim: &listTrim}}
	if f.code {
		x.rest.stops = &codeStops
		return f.reach(x, x.from, end)
	}
	after := x.from + n
	switch {
	case d.name.first.ok && (d.sep == "=" || d.sep == ":" && d.value > d.at+1):
		x.rest = rest{stops: &lineStops, comment: true, trim: &listTrim}
		x.block = d.sep == ":"
		after = x.from
	case n > 0:
	case f.isEnv(d):
		x.rest.stops = &envStops
	}
	if f.isEnv(d) {
		x.rest.trim = &blankTrim
	}
	return f.reach(x, after, end)
}

// isEnv reports whether d is written as an environment variable is:
// NAME=value, with neither blanks nor small letters.
func (f *fieldsPass) isEnv(d field) bool {
	return d.sep == "=" && !d.name.quoted && d.name.end == d.at && d.value == d.at+1 &&
		bytes.IndexFunc(f.b[d.name.start:d.name.end], func(r rune) bool { return 'a' <= r && r <= 'z' }) < 0
}

// reach looks for the value's end from after on, over maxLook bytes.
func (f *fieldsPass) reach(x extent, after int, end bool) (extent, progress) {
	limit := min(len(f.b), after+maxLook)
	if f.code {
		limit = len(f.b) // what runs may stand anywhere in it
	}
	search := x.rest
	i, found := search.end(f.b[:limit], after, x.from)
	switch {
	case found:
		x.to = i
	case limit == after+maxLook && !f.code:
		x.to, x.open = limit, true
	case !end:
		return x, undecided
	default:
		x.to = limit
	}
	return x, decided
}

// openingQuote reads the quote that a value begins with, behind backslashes and
// a string's prefix; inside is where the text in it begins.
func openingQuote(b []byte, end bool) (inside, level int, quote byte, p progress) {
	i := 0
	if bytes.IndexByte([]byte("fbruFBRU"), b[0]) >= 0 {
		i = 1
	}
	for i+level < len(b) && level <= maxLevel && b[i+level] == '\\' {
		level++
	}
	switch at := i + level; {
	case level > maxLevel:
		return 0, 0, 0, elsewhere
	case at == len(b) && !end:
		return 0, 0, 0, undecided
	case at < len(b) && isQuote(b[at]):
		return at + 1, level, b[at], decided
	}
	return 0, 0, 0, elsewhere
}

// trimmed is the end of a value without what is left out at it. Where that
// would be more than maxTrim bytes, nothing is.
func (f *fieldsPass) trimmed(from, to int, set *[256]bool) int {
	z := to
	for z > from && set[f.b[z-1]] {
		if z--; to-z > maxTrim {
			return to
		}
	}
	return z
}

var schemes = []string{"bearer", "basic", "token", "digest", "negotiate", "apikey", "aws4-hmac-sha256"}

const (
	schemeIn   = 32  // bytes of a header's value in which a blank ends its scheme
	likenessIn = 256 // bytes of a value by which it is judged what it looks like
)

// secretPart reports whether a value that ends at to is to be masked, and from
// where on.
func (f *fieldsPass) secretPart(d field, x extent, to int) (from int, secret bool) {
	from = x.from
	least := 4
	if x.quoted {
		least = 1
	}
	switch value := f.b[from:to]; d.name.class {
	case strict:
		if !likeToken(value) || f.brought(from, to) {
			return 0, false
		}
	case cookie:
		least = 8
		if bytes.IndexByte(value[:min(len(value), likenessIn)], '=') < 0 || f.brought(from, to) {
			return 0, false
		}
	case header:
		least = 8
		skip, ok := schemeOf(value)
		if !ok || skip == 0 && f.brought(from, to) {
			return 0, false
		}
		from += skip
	}
	value, own := f.b[from:to], f.b[d.name.start:d.name.end]
	if len(value) < least || isPlaceholder(value) || isFilling(value, own) || f.code && x.quoted && substitutes(value) {
		return 0, false
	}
	assigned := (d.sep == "=" || d.sep == ":=") && (d.name.after != d.at || d.value != d.at+len(d.sep))
	return from, x.quoted || f.isEnv(d) || !isCode(value, assigned)
}

// likeToken reports whether a value looks like a token: 16 bytes or more, and
// in the first 256 a letter, a digit and no blank.
func likeToken(value []byte) bool {
	letter, digit := false, false
	for _, c := range value[:min(len(value), likenessIn)] {
		if isBlank(c) {
			return false
		}
		letter, digit = letter || isLetter(c), digit || isDigit(c)
	}
	return letter && digit && len(value) >= 16
}

// schemeOf is how many bytes a header's value has before its secret; false
// where its first word is no scheme.
func schemeOf(value []byte) (skip int, ok bool) {
	first := value[:min(len(value), schemeIn)]
	i := bytes.IndexAny(first, " \t")
	if i < 0 {
		return 0, true
	}
	word := string(bytes.ToLower(value[:i]))
	for _, s := range schemes {
		if word != s {
			continue
		}
		skip = i
		for skip < len(value) && skip-i < maxBlanks && isBlank(value[skip]) {
			skip++
		}
		return skip, true
	}
	return 0, false
}

// rest is where a value ends, and how far the search for it has come.
type rest struct {
	stops   *[256]bool // bytes that end it
	quote   byte       // the quote that ends it, 0 for none,
	level   int        // behind this many backslashes
	comment bool       // a # behind a blank ends it
	lead    bool       // the blanks before it are not over: its mark is still to come
	trim    *[256]bool // bytes left out at its end

	run int // backslashes before the place the search has come to
}

// end looks for the value's end from i on; found is false where it lies past
// b's end. Marks are no stops.
func (r *rest) end(b []byte, i, from int) (end int, found bool) {
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case r.quote != 0 && c == r.quote && r.run%(2*(r.level+1)) == r.level:
			return i - r.level, true
		case r.comment && c == '#' && i > 0 && isBlank(b[i-1]):
			return i, true
		case r.stops[c] && !(c == ']' && i+1-from >= len(Mark) && bytes.HasSuffix(b[from:i+1], []byte(Mark))):
			return i, true
		case c == '\\':
			r.run++
		default:
			r.run = 0
		}
	}
	return i, false
}

// dropRest drops what is left of a value whose mark is out; false where it goes
// on past the text that is there.
func (f *fieldsPass) dropRest(end bool, out *text) bool {
	r := f.cut
	if r.lead && !f.leadOver(out) {
		return f.cut == nil || end
	}
	to, found := r.end(f.b, f.scan, f.sent)
	f.line.skip(f.b, f.scan, to)
	if !found && !end {
		f.scan = len(f.b)
		f.drop(len(f.b) - 2*maxTrim - maxLevel)
		return false
	}
	to = f.trimmed(f.sent, to, r.trim)
	f.drop(to)
	f.scan, f.floor, f.cut = to, to, nil
	return true
}

// leadOver passes on the blanks before a value, and its mark where it begins.
func (f *fieldsPass) leadOver(out *text) bool {
	at := f.scan
	for at < len(f.b) && (isBlank(f.b[at]) || f.b[at] == '\r') {
		at++
	}
	f.scan = at
	if at == len(f.b) {
		f.send(at, out)
		return false
	}
	if f.b[at] == '\n' {
		f.cut = nil
		return false
	}
	f.mask(at, at, fieldValue, out)
	f.cut.lead = false
	return true
}

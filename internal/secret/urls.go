package secret

import "bytes"

const (
	urlTrigger = "://"
	maxURL     = 4096 // bytes behind :// that are looked at
	longUser   = 20   // bytes from which on a user name alone is taken for a token
)

// urlsPass masks credentials in URLs (approvals.md 20.4). What follows a ://
// is held until the address ends, 4 KiB at most.
type urlsPass struct {
	window
	scan  int  // where to look on
	start int  // where the open span starts
	in    bool // a span is open
	code  bool // the text may run: mask nothing that a shell would (judge.go)
}

func (u *urlsPass) run(in *text, end bool, out *text) {
	s := borrow()
	defer s.giveBack()
	u.open(&s.window, in)
	for u.step(end, out) {
	}
	from := u.sent
	if !u.in { // the start of a trigger is no secret, and still counts
		from = max(0, min(from, len(u.b)-len(urlTrigger)+1))
	}
	u.close(&s.window, from)
	u.scan, u.start = u.scan-from, u.start-from
}

// step goes on to the next decision; false when more text is needed for it.
func (u *urlsPass) step(end bool, out *text) bool {
	if !u.in {
		i := bytes.Index(u.b[u.scan:], []byte(urlTrigger))
		if i < 0 {
			u.send(len(u.b), out)
			u.scan = max(u.scan, len(u.b)-len(urlTrigger)+1)
			return false
		}
		u.start = u.scan + i + len(urlTrigger)
		u.send(u.start, out)
		u.scan, u.in = u.start, true
	}
	if !u.spanEnds(end) {
		return false
	}
	if from, to := u.credentials(u.start, u.scan); from < to {
		u.mask(from, to, urlCredential, out)
	}
	u.in = false
	return true
}

// spanEnds moves to the end of the open span; false when more text is needed.
func (u *urlsPass) spanEnds(end bool) bool {
	limit := min(len(u.b), u.start+maxURL)
	for ; u.scan < limit; u.scan++ {
		if !urlStops[u.b[u.scan]] {
			continue
		}
		rest := u.b[u.scan:]
		if rest[0] != ':' || bytes.HasPrefix(rest, []byte(urlTrigger)) {
			return true
		}
		if !end && len(rest) < len(urlTrigger) && bytes.HasPrefix([]byte(urlTrigger), rest) {
			return false
		}
	}
	return end || u.scan == u.start+maxURL
}

// urlStops are the bytes that may end a span; a colon only before //.
var urlStops = bytesOf(" \t\n\r\v\f\"'`<>\\:")

func bytesOf(set string) (table [256]bool) {
	for i := range len(set) {
		table[set[i]] = true
	}
	return table
}

// credentials are the bounds of what is masked in a span, none where from is
// not below to.
func (u *urlsPass) credentials(start, end int) (from, to int) {
	to = u.userEnd(start, end)
	if to <= start || u.brought(start, to) {
		return 0, 0
	}
	from = start
	if i := bytes.IndexByte(u.b[start:to], ':'); i >= 0 {
		from = start + i + 1
	} else if to-start < longUser {
		return 0, 0
	}
	if isPlaceholder(u.b[from:to]) || u.code && mayRun(u.b[from:to]) {
		return 0, 0
	}
	return from, to
}

// userEnd is where the user information of a span ends, before start where
// there is none.
func (u *urlsPass) userEnd(start, end int) int {
	span := u.b[start:end]
	authority := span
	if i := bytes.IndexAny(span, "/?#"); i >= 0 {
		authority = span[:i]
	}
	if at := bytes.LastIndexByte(authority, '@'); at >= 0 {
		return start + at
	}
	_, port, ok := bytes.Cut(authority, []byte(":"))
	if !ok || isDigits(port) || authority[0] == '[' {
		return -1
	}
	return start + bytes.LastIndexByte(span, '@')
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

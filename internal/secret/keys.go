package secret

import "bytes"

const (
	beginMarker = "-----BEGIN "
	dashes      = "-----"
	maxLabel    = 64       // bytes between BEGIN and the dashes behind it
	maxKey      = 64 << 10 // bytes between BEGIN's marker and END's
)

// keysPass masks the bodies of private keys (approvals.md 20.3). A body is held
// until its END, the next BEGIN or 64 KiB of it have come.
type keysPass struct {
	window
	scan int    // where to look on
	end  []byte // the marker that ends the open block, nil outside of one
	long bool   // within a line that the limit of a block has cut: masked to its end
	code bool   // the text may run: mask nothing that is no key's (judge.go)
}

func (k *keysPass) run(in *text, end bool, out *text) {
	s := borrow()
	defer s.giveBack()
	k.open(&s.window, in)
	for k.step(end, out) {
	}
	from := k.sent
	k.close(&s.window, from)
	k.scan -= from
}

// step goes on to the next decision; false when more text is needed for it.
func (k *keysPass) step(end bool, out *text) bool {
	switch {
	case k.long:
		return k.dropLine()
	case k.end != nil:
		return k.body(end, out)
	}
	return k.outside(end, out)
}

// outside looks for the marker of a private key.
func (k *keysPass) outside(end bool, out *text) bool {
	i := bytes.Index(k.b[k.scan:], []byte(beginMarker))
	if i < 0 {
		to := len(k.b)
		if !end {
			to -= begun(k.b[k.scan:], beginMarker)
		}
		k.send(to, out)
		k.scan = to
		return false
	}
	at := k.scan + i
	label, whole := beginLabel(k.b[at:])
	if !whole && !end {
		k.send(at, out)
		k.scan = at
		return false
	}
	k.scan = at + len(beginMarker)
	if isPrivateKey(label) {
		k.scan += len(label) + len(dashes)
		k.send(k.scan, out)
		k.end = []byte("-----END " + string(label) + dashes)
	}
	return true
}

// begun is how many bytes at b's end begin marker.
func begun(b []byte, marker string) int {
	n := min(len(b), len(marker)-1)
	for ; n > 0; n-- {
		if string(b[len(b)-n:]) == marker[:n] {
			break
		}
	}
	return n
}

// beginLabel is the label of the BEGIN marker at b's start, nil where it is no
// marker. whole is false where b ends before that is decided.
func beginLabel(b []byte) (label []byte, whole bool) {
	b = b[len(beginMarker):]
	n := 0
	for n < len(b) && n <= maxLabel && isLabelByte(b[n]) {
		n++
	}
	after := b[n:]
	switch {
	case n > maxLabel:
		return nil, true
	case len(after) < len(dashes):
		return nil, string(after) != dashes[:len(after)]
	case string(after[:len(dashes)]) != dashes:
		return nil, true
	}
	return b[:n], true
}

func isLabelByte(c byte) bool {
	return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == ' '
}

func isPrivateKey(label []byte) bool {
	label = bytes.TrimSuffix(label, []byte(" BLOCK"))
	return string(label) == "PRIVATE KEY" || bytes.HasSuffix(label, []byte(" PRIVATE KEY"))
}

// body looks for the end of an open block, whose body begins at sent.
func (k *keysPass) body(end bool, out *text) bool {
	limit := k.sent + maxKey
	for {
		i := bytes.Index(k.b[k.scan:], []byte(dashes))
		if i < 0 {
			k.scan = len(k.b) - begun(k.b[k.scan:], dashes)
			break
		}
		k.scan += i
		if k.scan > limit {
			break
		}
		rest := k.b[k.scan:]
		switch {
		case bytes.HasPrefix(rest, k.end):
			k.terminated(k.scan, out)
			return true
		case bytes.HasPrefix(rest, []byte(beginMarker)):
			k.unterminated(k.scan, false, out)
			return true
		case !end && (bytes.HasPrefix(k.end, rest) || bytes.HasPrefix([]byte(beginMarker), rest)):
			return false
		}
		k.scan++
	}
	switch {
	case k.scan > limit:
		k.unterminated(limit, true, out)
		return true
	case end:
		k.unterminated(len(k.b), false, out)
		return true
	}
	return false
}

// terminated masks every line of the body, which ends at to. A body that
// brought marks along was masked before, perhaps when its end was no end of it:
// of that one, what an unterminated body loses.
func (k *keysPass) terminated(to int, out *text) {
	k.end, k.scan = nil, to
	again := k.brought(k.sent, to)
	for first := true; k.sent < to; first = false {
		from, till, next := k.line(to)
		if k.code {
			k.runs(from, till, out)
			k.send(next, out)
			continue
		}
		if again && !k.goesOn(from, till, first) {
			return
		}
		if from < till {
			k.mask(from, till, privateKey, out)
		}
		k.send(next, out)
	}
}

// unterminated masks the lines of a body without an end that look like one. It
// reaches to to; cut says that the text goes on there.
func (k *keysPass) unterminated(to int, cut bool, out *text) {
	k.end, k.scan = nil, to
	for first := true; k.sent < to; first = false {
		from, till, next := k.line(to)
		if !k.goesOn(from, till, first) {
			return
		}
		if k.code {
			k.runs(from, till, out)
			k.send(next, out)
			continue
		}
		if k.long = cut && next == to && k.b[to-1] != '\n'; k.long {
			till, next = to, to
		}
		if from < till {
			k.mask(from, till, privateKey, out)
		}
		k.send(next, out)
	}
}

// runs masks of a line, in text that may run, what a key's line is made of: all
// of it, or long runs in it.
func (k *keysPass) runs(from, till int, out *text) {
	for at := from; at < till; {
		end := at
		for end < till && isBase64(k.b[end]) {
			end++
		}
		if end-at >= codeRun || end > at && at == from && end == till {
			k.mask(at, end, privateKey, out)
		}
		at = end + 1
	}
}

// goesOn reports whether a body without an end goes on with b[from:till], which
// is a line without its separators. What follows a marker on its own line must
// be 4 bytes or more: the marker may be mentioned in a sentence. A line that
// brought a mark along had its chance.
func (k *keysPass) goesOn(from, till int, first bool) bool {
	line := k.b[from:till]
	switch {
	case string(line) == Mark: // a known value may be a line of a key
		return true
	case k.brought(from, till):
		return false
	case first && len(line) > 0 && len(unquoted(line)) < 4:
		return false
	}
	return bodyLike(line)
}

// dropLine leaves out the rest of a line that is masked already.
func (k *keysPass) dropLine() bool {
	i := bytes.IndexByte(k.b[k.sent:], '\n')
	k.long = i < 0
	if k.long {
		k.drop(len(k.b))
	} else {
		k.drop(k.sent + i)
	}
	k.scan = k.sent
	return !k.long
}

// line is the next line of the body, which ends at to: the bounds of what is no
// separator in it, and where the line after it begins.
func (k *keysPass) line(to int) (from, till, next int) {
	next = to
	till = to
	if i := bytes.IndexByte(k.b[k.sent:to], '\n'); i >= 0 {
		till, next = k.sent+i, k.sent+i+1
	}
	line := k.b[k.sent:till]
	core := trimSeparators(line)
	from = k.sent + leadingSeparators(line)
	return from, from + len(core), next
}

// trimSeparators is line without the separators at its ends: space, tab, CR,
// and a written-out \n, \r or \t with one or more backslashes.
func trimSeparators(line []byte) []byte {
	line = line[leadingSeparators(line):]
	for len(line) > 0 {
		last := len(line) - 1
		switch line[last] {
		case ' ', '\t', '\r':
			line = line[:last]
			continue
		case 'n', 'r', 't':
			if cut := bytes.TrimRight(line[:last], `\`); len(cut) < last {
				line = cut
				continue
			}
		}
		break
	}
	return line
}

func leadingSeparators(line []byte) int {
	i := 0
	for i < len(line) {
		switch line[i] {
		case ' ', '\t', '\r':
			i++
			continue
		case '\\':
			j := i
			for j < len(line) && line[j] == '\\' {
				j++
			}
			if j < len(line) && (line[j] == 'n' || line[j] == 'r' || line[j] == 't') {
				i = j + 1
				continue
			}
		}
		break
	}
	return i
}

// base64Run is how long a run of base64 characters makes a line a key's.
const base64Run = 40

// codeRun is how long one is, in text that may run, that is taken for a part of
// a key.
const codeRun = 16

// bodyLike reports whether a line, without its separators, may be a line of a
// key.
func bodyLike(line []byte) bool {
	for _, header := range []string{"Proc-Type:", "DEK-Info:", "Comment:", "Version:"} {
		if bytes.HasPrefix(line, []byte(header)) {
			return true
		}
	}
	line = unquoted(line)
	run := 0
	for _, c := range line {
		if !isBase64(c) {
			run = 0
			continue
		}
		if run++; run >= base64Run {
			return true
		}
	}
	return run == len(line)
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '='
}

// unquoted is a line without the quotes, commas and semicolons behind it.
func unquoted(line []byte) []byte { return bytes.TrimRight(line, "\"'`,;") }

package secret

import (
	"bytes"
	"strings"
)

// kindNames are the words in the judge's marks.
var kindNames = map[kind]string{
	knownValue: "known value", privateKey: "private key", urlCredential: "URL credential", fieldValue: "field value",
	tokenValue: "token",
}

// Judge masks secrets in what the judge of a call is shown (approvals.md 11). It
// finds what Redactor finds, and tokens by their form; its marks say which kind
// of secret stood there: [secret: KIND].
//
// It works on whole texts. A mark that a text brings along ([REDACTED]) is written
// in small letters first: text that was not masked must not be able to pass for
// text that was.
//
// It is safe for concurrent use.
type Judge struct{ known *Values }

// NewJudge returns a redactor whose first pass is known. Values added to it later
// count from then on.
func NewJudge(known *Values) *Judge { return &Judge{known} }

// Text is a text that is read: every value after a field named like a secret is
// masked as far as a field's value may reach (approvals.md 20.6).
func (j *Judge) Text(s string) string { return j.mask(s, false) }

// Code is a text that may run or is about to be written: a command, an argument,
// a script. There a mask must not hide what runs, so a field's value ends at the
// next word of a shell (the rule for lines would take "password=x; rm -rf ~" for
// a password), what is computed in it stays, and in a private key's block what
// cannot be a key's stays.
func (j *Judge) Code(s string) string { return j.mask(s, true) }

// Field is the value of a field apart from its name, as in a call's arguments:
// masked whole when the name is a secret's, else as Code.
func (j *Judge) Field(name, value string) string {
	c := classOf([]byte(name))
	v := []byte(value)
	masked := j.Code(value)
	least := 4
	switch c {
	case harmless:
		return masked
	case strict:
		if !likeToken(v) {
			return masked
		}
	case header, cookie:
		head := name + ": "
		if shown, ok := strings.CutPrefix(j.Code(head+value), head); ok {
			return shown
		}
		return markOf(knownValue) // it begins with the name
	}
	if len(v) < least || isPlaceholder(v) || isFilling(v, []byte(name)) || mayRun(v) {
		return masked
	}
	return markOf(fieldValue)
}

func markOf(k kind) string { return "[secret: " + kindNames[k] + "]" }

func (j *Judge) mask(s string, code bool) string {
	if s == "" {
		return s
	}
	s = strings.ReplaceAll(s, Mark, strings.ToLower(Mark))
	fields := newFieldsPass()
	fields.code = code
	passes := []pass{
		&valuesPass{values: j.known}, &tokensPass{}, &keysPass{code: code}, &urlsPass{code: code}, fields,
	}
	memory := borrow()
	defer memory.giveBack()
	out := through(memory, passes, []byte(s), true)
	if len(out.marks) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, m := range out.marks {
		b.Write(out.b[at:m.at])
		b.WriteString(markOf(m.kind))
		at = m.at + len(Mark)
	}
	b.Write(out.b[at:])
	return b.String()
}

// substitutes reports whether a quoted value holds what a shell would run.
func substitutes(value []byte) bool {
	return bytes.IndexByte(value, '`') >= 0 || bytes.Contains(value, []byte("$(")) || bytes.Contains(value, []byte("${"))
}

// mayRun reports whether a value holds what ends a word of a shell, or what a
// shell would run.
func mayRun(value []byte) bool { return bytes.ContainsAny(value, "`$;&|()<>\n") }

// tokenForms are the tokens that are known by how they begin, with their least
// whole length. The longer of two beginnings stands first.
var tokenForms = []struct {
	prefix string
	least  int
}{
	{"sk-ant-", 24},
	{"sk-proj-", 24},
	{"sk-", 24},
	{"github_pat_", 30},
	{"ghp_", 30},
	{"gho_", 30},
	{"ghu_", 30},
	{"ghs_", 30},
	{"xoxb-", 20},
	{"xoxp-", 20},
	{"glpat-", 20},
	{"AIza", 35},
	{"npm_", 30},
	{"hf_", 30},
}

const (
	jwtStart  = "eyJ"
	jwtPart   = 8
	awsKeyLen = 20 // AKIA or ASIA and 16 more
	plainRun  = 16 // of letters and digits in a token behind sk-
)

// tokensPass masks tokens by their form. It is for whole texts.
type tokensPass struct {
	noJWT   int // none begins before it
	noPlain int // up to here no token holds a long run of letters and digits
}

func (t *tokensPass) held() int { return 0 }

func (t *tokensPass) run(in *text, _ bool, out *text) {
	w := window{text: *in}
	for at := 0; at < len(w.b); {
		n := t.at(w.b, at)
		if n == 0 {
			at++
			continue
		}
		w.mask(at, at+n, tokenValue, out)
		at += n
	}
	w.send(len(w.b), out)
}

// at is the length of the token that begins at i, 0 for none.
func (t *tokensPass) at(b []byte, i int) int {
	rest := b[i:]
	switch rest[0] {
	case 'e':
		return t.jwt(b, i)
	case 'A':
		if n := awsKey(rest); n > 0 {
			return n
		}
	case 's', 'g', 'x', 'n', 'h':
	default:
		return 0
	}
	for _, form := range tokenForms {
		if !bytes.HasPrefix(rest, []byte(form.prefix)) {
			continue
		}
		// "disk-" and "task-" end like the beginning of a token.
		worded := form.prefix == "sk-" && i > 0 && (isLetter(b[i-1]) || isDigit(b[i-1]))
		if worded && i < t.noPlain {
			return 0
		}
		n := tokenRun(rest)
		if n < form.least {
			return 0
		}
		if worded && !plainRunIn(rest[:n]) {
			t.noPlain = i + n
			return 0
		}
		return n
	}
	return 0
}

// tokenRun is how many bytes of a token b begins with.
func tokenRun(b []byte) int {
	n := 0
	for n < len(b) && isTokenByte(b[n]) {
		n++
	}
	return n
}

func isTokenByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c == '-' }

// plainRunIn reports whether a token holds a long run of letters and digits, a
// digit among them.
func plainRunIn(b []byte) bool {
	run, digit := 0, false
	for _, c := range b {
		if !isLetter(c) && !isDigit(c) {
			run, digit = 0, false
			continue
		}
		run++
		if digit = digit || isDigit(c); run >= plainRun && digit {
			return true
		}
	}
	return false
}

// jwt is the length of the dot-joined token that begins at i: three parts of 8
// bytes or more, and those that follow.
func (t *tokensPass) jwt(b []byte, i int) int {
	if i < t.noJWT || !bytes.HasPrefix(b[i:], []byte(jwtStart)) {
		return 0
	}
	first, end, parts := 0, i, 0
	for at := i; ; {
		n := tokenRun(b[at:])
		if at == i {
			first = at + n
		}
		if n < jwtPart {
			break
		}
		parts, end = parts+1, at+n
		if end == len(b) || b[end] != '.' {
			break
		}
		at = end + 1
	}
	if parts < 3 {
		t.noJWT = first // what begins within the first part has the same behind it
		return 0
	}
	return end - i
}

// awsKey is the length of the AWS key id that b begins with.
func awsKey(b []byte) int {
	if !bytes.HasPrefix(b, []byte("AKIA")) && !bytes.HasPrefix(b, []byte("ASIA")) {
		return 0
	}
	n := 0
	for n < len(b) && (isUpper(b[n]) || isDigit(b[n])) {
		n++
	}
	if n < awsKeyLen {
		return 0
	}
	return n
}

package secret

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The oracle redacts a whole text the slow way: with expressions, from the
// words of approvals.md 20, and without regard to how much it looks at. A mark
// that it puts in begins with newMark's first byte until it is done; no text of
// these tests holds that byte. The limits of 64 KiB and of a value's end are
// left to tables.

const newMark = "\x01REDACTED]"

func oracle(values []string, text string) string {
	text = oracleFields(oracleURLs(oracleKeys(oracleValues(values, text))))
	return strings.ReplaceAll(text, newMark, Mark)
}

// oracleValues keeps the marks that the text brought along apart.
func oracleValues(values []string, text string) string {
	var out strings.Builder
	for i, part := range strings.Split(text, Mark) {
		if i > 0 {
			out.WriteString(Mark)
		}
		out.WriteString(strings.ReplaceAll(reference(values, part), Mark, newMark))
	}
	return out.String()
}

var (
	oracleBegin = regexp.MustCompile(`-----BEGIN ((?:[A-Z0-9 ]* )?PRIVATE KEY(?: BLOCK)?)-----`)
	oracleLine  = regexp.MustCompile(`(?s)^((?:[ \t\r]|\\+[nrt])*)(.*?)((?:[ \t\r]|\\+[nrt])*)$`)
	oracleBody  = regexp.MustCompile(`^(?:Proc-Type:|DEK-Info:|Comment:|Version:)|[A-Za-z0-9+/=]{40}|^[A-Za-z0-9+/=]*$`)
)

func oracleKeys(text string) string {
	var out strings.Builder
	for {
		m := oracleBegin.FindStringSubmatchIndex(text)
		if m == nil {
			return out.String() + text
		}
		label := text[m[2]:m[3]]
		out.WriteString(text[:m[1]])
		text = text[m[1]:]
		body := text
		if i := strings.Index(body, "-----BEGIN "); i >= 0 {
			body = body[:i]
		}
		i := strings.Index(text, "-----END "+label+"-----")
		terminated := i >= 0 && i <= len(body)
		if terminated {
			body = text[:i]
		}
		text = text[len(body):]
		again := terminated && strings.Contains(body, Mark)
		lines := strings.Split(body, "\n")
		for n, line := range lines {
			p := oracleLine.FindStringSubmatch(line)
			bare := strings.TrimRight(p[2], "\"'`,;")
			if (!terminated || again) && p[2] != Mark && p[2] != newMark && (!oracleBody.MatchString(bare) || n == 0 && p[2] != "" && len(bare) < 4 || strings.Contains(p[2], Mark)) {
				out.WriteString(strings.Join(lines[n:], "\n"))
				break
			}
			if p[2] != "" {
				p[2] = newMark
			}
			out.WriteString(p[1] + p[2] + p[3])
			if n < len(lines)-1 {
				out.WriteString("\n")
			}
		}
	}
}

var oracleSpan = regexp.MustCompile("^[^ \t\n\r\v\f\"'`<>\\\\]*")

func oracleURLs(text string) string {
	parts := strings.Split(text, "://")
	for i := range parts {
		if i == 0 {
			continue
		}
		span := oracleSpan.FindString(parts[i])
		span = span[:min(len(span), 4096)]
		rest := parts[i][len(span):]
		parts[i] = oracleSpanMasked(span) + rest
	}
	return strings.Join(parts, "://")
}

func oracleSpanMasked(span string) string {
	authority := regexp.MustCompile(`^[^/?#]*`).FindString(span)
	at := strings.LastIndex(authority, "@")
	if at < 0 && regexp.MustCompile(`^[^\[:][^:]*:.*[^0-9]|^:.*[^0-9]`).MatchString(authority) {
		at = strings.LastIndex(span, "@")
	}
	if at < 0 || strings.Contains(span[:at], Mark) {
		return span
	}
	user, password, colon := strings.Cut(span[:at], ":")
	switch {
	case colon && password != "" && !oraclePlaceholder.MatchString(password):
		return user + ":" + newMark + span[at:]
	case !colon && len(user) >= 20 && !oraclePlaceholder.MatchString(user):
		return newMark + span[at:]
	}
	return span
}

const placeholders = `\$\{[A-Za-z0-9_.]+\}|\$\{\{[A-Za-z0-9_. \t]+\}\}|\{\{[A-Za-z0-9_. \t]+\}\}|\{[A-Za-z0-9_.]+\}|\$[A-Z_][A-Z0-9_]*|` +
	`%[A-Za-z0-9_.]+%|\$\([^)"'` + "`" + `\n]+\)|<[A-Za-z0-9_. \t-]+>`

var (
	oraclePlaceholder = regexp.MustCompile(`^(?:` + placeholders + `)$`)
	oracleFilled      = regexp.MustCompile(`^(?:` + placeholders + `)`)
	oracleFilling     = regexp.MustCompile(`(?i)^(?:null|nil|none|true|false|undefined|string|str|text|bytes|any|optional|required|[*x.]+)$`)
	oracleName        = regexp.MustCompile("([A-Za-z0-9_.-]{1,64})((\\\\*)([\"'`]))?\\]?([ \t]{0,8})$")
	oracleOption      = regexp.MustCompile("^(--[A-Za-z0-9_.-]+)((\\\\*)([\"'`]))?([ \t]{1,64})")
	oracleSep         = regexp.MustCompile(`^(?::=|===|==|=>|:|=)([ \t]{0,64})`)
	oracleQuote       = regexp.MustCompile("^[fbruFBRU]?(\\\\*)([\"'`])")
	oracleNumber      = regexp.MustCompile("^(?:[ \t]*[0-9]{1,10}[:\t]|[^ \t\"'`=]+:[0-9]{1,10}:|[^ \t\"'`=]+-[0-9]{1,10}-)$")
	oracleDecor       = regexp.MustCompile(`^(?:[ \t]|- |\+|\b(?:export|set|declare -x|ENV|ARG) )*$`)
	oracleSchemes     = regexp.MustCompile(`(?i)^(?:Bearer|Basic|Token|Digest|Negotiate|ApiKey|AWS4-HMAC-SHA256)[ \t]{1,64}`)
	identifierPath    = `[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_][A-Za-z0-9_]*)`
	oraclePath        = regexp.MustCompile(`^[&*]?` + identifierPath + `+$`)
	oracleCall        = regexp.MustCompile("^" + identifierPath + "*(?:[(\\[](?:[\"'`]|$)|\\(\\)(?:$|[.)?,; \t]))")
	oracleAssigned    = regexp.MustCompile(`(?s)^` + identifierPath + `*\(.*\)$`)
	oracleCamel       = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	oracleAcronym     = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
	oracleAlways      = regexp.MustCompile(`(?:^|_)(?:password|passwd|passphrase|api_key|apikey|access_key|secret_key|secret_access_key|private_key|signing_key|encryption_key)$|_(?:pass|pwd|secret|token)$`)
	oraclePlain       = regexp.MustCompile(`(?:^|_)(?:page|next|continuation|pagination|sync|resume|cursor|eos|bos|pad|unk|sep|cls|mask|special)_token$`)
)

func oracleNormal(name string) string {
	name = strings.TrimLeft(name, "-.")
	name = oracleAcronym.ReplaceAllString(name, "${1}_$2")
	name = oracleAcronym.ReplaceAllString(name, "${1}_$2")
	name = oracleCamel.ReplaceAllString(name, "${1}_$2")
	name = oracleCamel.ReplaceAllString(name, "${1}_$2")
	return strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

func oracleClass(name string) class {
	n := oracleNormal(name)
	switch {
	case n == "secret" || n == "token":
		return strict
	case n == "authorization" || n == "proxy_authorization":
		return header
	case n == "cookie" || n == "set_cookie":
		return cookie
	case oracleAlways.MatchString(n) && !oraclePlain.MatchString(n):
		return always
	}
	return harmless
}

// oracleField is one name with what follows it.
type oracleField struct {
	text             string
	line, floor      int // where the line begins; where the last mask ended
	name, sep        string
	start            int // of the name
	nameEnd, sepAt   int
	value            int
	quoted, adjacent bool
	class            class
	first            bool
	prefix, indent   string // of a line that begins with the field
}

func oracleFields(text string) string {
	var out strings.Builder
	sent, pos, floor := 0, 0, 0
	for pos < len(text) {
		line := strings.LastIndexByte(text[:pos], '\n') + 1
		f := oracleField{text: text, line: line, floor: floor}
		var found bool
		switch {
		case text[pos] == ':' || text[pos] == '=':
			found = f.separated(pos)
		case strings.HasPrefix(text[pos:], "--"):
			found = f.option(pos)
		}
		if !found {
			pos++
			continue
		}
		from, to, block := f.judge()
		pos = f.value
		if from < to {
			out.WriteString(text[sent:from] + newMark)
			sent, pos, floor = to, to, to
		}
		if block {
			end := strings.IndexByte(text[pos:], '\n')
			if end < 0 {
				break
			}
			// The comment on the key's line is looked at for itself.
			comment := oracleFields(text[pos : pos+end])
			masked, length := f.block(text[pos+end+1:])
			return out.String() + text[sent:pos] + comment + "\n" + masked + oracleFields(text[pos+end+1+length:])
		}
	}
	return out.String() + text[sent:]
}

func (f *oracleField) separated(pos int) bool {
	m := oracleName.FindStringSubmatchIndex(f.text[max(f.line, f.floor):pos])
	if m == nil {
		return false
	}
	base := max(f.line, f.floor)
	f.start, f.nameEnd = base+m[2], base+m[3]
	f.name = f.text[f.start:f.nameEnd]
	if m[4] >= 0 {
		opening := f.text[base+m[4] : base+m[5]]
		before := f.text[base:f.start]
		if !strings.HasSuffix(before, opening) || strings.HasSuffix(before, `\`+opening) {
			return false
		}
		f.quoted = true
	}
	s := oracleSep.FindStringSubmatchIndex(f.text[pos:])
	f.sepAt, f.sep, f.value = pos, f.text[pos:pos+s[2]], pos+s[1]
	f.adjacent = f.value == pos+len(f.sep) && m[10] == m[11]
	if f.value == len(f.text) || strings.ContainsRune(" \t\n", rune(f.text[f.value])) {
		return false
	}
	f.class = oracleClass(f.name)
	if f.quoted {
		return f.class != harmless
	}
	f.first = f.startsLine(f.start)
	for cut := len(f.name) - 1; cut > 0; cut-- {
		if !regexp.MustCompile(`-[0-9]+-$`).MatchString(f.name[:cut]) {
			continue
		}
		inner := oracleClass(f.name[cut:])
		if (f.class != harmless || inner != harmless) && f.startsLine(f.start+cut) {
			if f.class == harmless {
				f.class = inner
			}
			f.first, f.name, f.start = true, f.name[cut:], f.start+cut
		}
		break
	}
	return f.class != harmless
}

func (f *oracleField) option(pos int) bool {
	if pos > f.floor && regexp.MustCompile(`[A-Za-z0-9_.-]`).MatchString(f.text[pos-1:pos]) {
		return false
	}
	m := oracleOption.FindStringSubmatchIndex(f.text[pos:])
	if m == nil || m[3]-m[2] > 64 {
		return false
	}
	f.start, f.nameEnd, f.value = pos, pos+m[3], pos+m[1]
	f.name = f.text[pos : pos+m[3]]
	if m[4] >= 0 {
		opening := f.text[pos+m[4] : pos+m[5]]
		before := f.text[max(f.line, f.floor):pos]
		if !strings.HasSuffix(before, opening) || strings.HasSuffix(before, `\`+opening) {
			return false
		}
		f.quoted = true
	}
	if f.value == len(f.text) || strings.ContainsRune(" \t\n", rune(f.text[f.value])) {
		return false
	}
	if c := f.text[f.value]; (c == ':' || c == '=') && m[11]-m[10] <= 8 {
		return false
	}
	f.class = oracleClass(f.name)
	return f.class != harmless
}

// startsLine looks for a split of what stands before at into a prefix and what
// may stand between it and a name.
func (f *oracleField) startsLine(at int) bool {
	before := f.text[f.line:at]
	if f.floor > f.line {
		return false
	}
	for cut := len(before); cut >= 0; cut-- {
		decor := before[cut:]
		if strings.Count(decor, "- ") > 1 || strings.Count(decor, "+") > 1 || !oracleDecor.MatchString(decor) ||
			len(regexp.MustCompile(`[a-zA-Z] `).FindAllString(decor, -1)) > 1 {
			continue
		}
		prefix := before[:cut]
		if prefix == "" || oracleNumber.MatchString(prefix) && !strings.Contains(prefix, "REDACTED]") {
			f.prefix = prefix
			f.indent = regexp.MustCompile(`^[ \t]*`).FindString(decor)
			if strings.Contains(decor, "+") {
				f.indent = regexp.MustCompile(`\+([ \t]*)`).FindStringSubmatch(decor)[1]
				f.prefix += "+"
			}
			return true
		}
	}
	return false
}

func (f *oracleField) isEnv() bool {
	return f.sep == "=" && !f.quoted && f.adjacent && f.nameEnd == f.sepAt && !strings.ContainsAny(f.name, "abcdefghijklmnopqrstuvwxyz")
}

// judge gives what of the value is masked, and whether a block follows.
func (f *oracleField) judge() (from, to int, block bool) {
	v := f.text[f.value:]
	if strings.HasPrefix(v, Mark) || strings.HasPrefix(v, newMark) {
		return 0, 0, false
	}
	eol := v
	if i := strings.IndexByte(v, '\n'); i >= 0 {
		eol = v[:i]
	}
	trim := " \t\r"
	q := oracleQuote.FindStringSubmatchIndex(eol)
	skip, end := 0, len(eol)
	filled := oracleFilled.FindString(eol)
	plain := regexp.MustCompile("^(?:" + regexp.QuoteMeta(Mark) + "|" + newMark + "|[^ \t,;&)}\\]\"'<>|`\n])*")
	switch {
	case q != nil:
		skip = q[1]
		level := q[3] - q[2]
		for i := skip; i < len(eol); i++ {
			run := len(eol[skip:i]) - len(strings.TrimRight(eol[skip:i], `\`))
			if eol[i] == eol[q[4]] && run%(2*(level+1)) == level {
				end = i - level
				break
			}
		}
	case f.class == header || f.class == cookie:
		if strings.ContainsAny(f.unmaskedBefore(), "\"'`") {
			if i := strings.IndexAny(eol, "\"'`\\"); i >= 0 {
				end = i
			}
		}
		if f.class == header {
			trim += ",;"
		}
	case strings.HasPrefix(v, "[") || strings.HasPrefix(v, "{") && filled == "":
		return 0, 0, false
	case f.first && (f.sep == "=" || f.sep == ":" && f.value > f.sepAt+1):
		before := f.text[f.value-1:][:1+len(eol)]
		if m := regexp.MustCompile(`[ \t]#`).FindStringIndex(before); m != nil {
			end = m[1] - 2
		}
		block = f.sep == ":"
		trim += ",;"
	case filled != "":
		end = len(filled) + len(plain.FindString(eol[len(filled):]))
		trim += ",;"
	case f.isEnv():
		end = len(regexp.MustCompile("^[^ \t\"'`]*").FindString(eol))
	default:
		end = len(plain.FindString(eol))
		trim += ",;"
	}
	if f.isEnv() {
		trim = " \t\r"
	}
	value := strings.TrimRight(eol[skip:end], trim)
	if block && len(value) > 0 && len(value) <= 3 && (value[0] == '|' || value[0] == '>') {
		return 0, 0, true
	}
	least := 4
	if q != nil {
		least = 1
	}
	looked := value[:min(256, len(value))]
	switch f.class {
	case strict:
		if len(value) < 16 || !regexp.MustCompile(`[A-Za-z]`).MatchString(looked) || !regexp.MustCompile(`[0-9]`).MatchString(looked) ||
			strings.ContainsAny(looked, " \t") || strings.Contains(value, Mark) {
			return 0, 0, false
		}
	case cookie:
		least = 8
		if !strings.Contains(looked, "=") || strings.Contains(value, Mark) {
			return 0, 0, false
		}
	case header:
		least = 8
		if strings.ContainsAny(value[:min(32, len(value))], " \t") {
			m := oracleSchemes.FindString(value)
			if m == "" {
				return 0, 0, false
			}
			skip += len(m)
			value = value[len(m):]
		} else if strings.Contains(value, Mark) {
			return 0, 0, false
		}
	}
	if len(value) < least || oraclePlaceholder.MatchString(value) && len(value) <= 128 || oracleFilling.MatchString(value) ||
		regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`).MatchString(value) && oracleNormal(value) == oracleNormal(f.name) {
		return 0, 0, false
	}
	if q == nil && !f.isEnv() && len(value) <= 256 {
		last := value[strings.LastIndexAny(value, ".:>")+1:]
		assigned := (f.sep == "=" || f.sep == ":=") && !f.adjacent
		if oraclePath.MatchString(value) && oracleClass(last) != harmless || oracleCall.MatchString(value) ||
			assigned && oracleAssigned.MatchString(value) {
			return 0, 0, false
		}
	}
	return f.value + skip, f.value + skip + len(value), false
}

// unmaskedBefore is the line before the name, without what was masked in it.
func (f *oracleField) unmaskedBefore() string {
	return f.text[f.line:f.start]
}

// block masks the lines of a YAML block that text begins with.
func (f *oracleField) block(text string) (masked string, length int) {
	var out strings.Builder
	for _, line := range strings.SplitAfter(text, "\n") {
		body := strings.TrimSuffix(line, "\n")
		prefix := ""
		if strings.TrimRight(f.prefix, "+") != "" {
			prefix = regexp.MustCompile("^(?:[ \t]*[0-9]+[:\t-]|[^ \t\"'`=:-]+(?::[0-9]+:|-[0-9]+-))").FindString(body)
		}
		rest := body[len(prefix):]
		if strings.HasSuffix(f.prefix, "+") && rest != "" && strings.ContainsAny(rest[:1], "+- ") {
			prefix, rest = prefix+rest[:1], rest[1:]
		}
		core := strings.TrimLeft(rest, " \t")
		if core == "" || core == "\r" {
			out.WriteString(line)
			length += len(line)
			continue
		}
		lead := rest[:len(rest)-len(core)]
		if len(lead) <= len(f.indent) {
			break
		}
		core = strings.TrimLeft(rest, " \t\r")
		lead = rest[:len(rest)-len(core)]
		bare := strings.TrimRight(core, " \t\r")
		if bare != "" {
			bare = newMark
		}
		out.WriteString(prefix + lead + bare + core[len(strings.TrimRight(core, " \t\r")):] + line[len(body):])
		length += len(line)
	}
	return out.String(), length
}

// fragments are what random texts are made of.
var fragments = []string{
	"password", "db_password", "API_KEY", "DB_PASSWORD", "apiKey", "token", "a_token", "secret", "Authorization", "cookie", "x", "name",
	"--password", "--api-key", "a-12-password", "src/a-3-token", "next_token", "cfg.password", "a::b::token", "getenv(", "os.environ[", "f()", "g(a)",
	"=", ":", ": ", " = ", ":=", "==", "=>", " ", "  ", "\t", "\n", "\n  ", "\n    ", "\n- ", "\n+", "\r\n", "#", " #",
	`"`, "'", "`", `\"`, `\\`, `\`, `\\\"`, `\n`, ",", ";", "&", ")", "]", "[", "{", "}", "<", ">", "|", ">-", "\n12:", "\nsrc/a.b:12:", "\n7\t", "\nexport ", "\nENV ",
	"abcd", "hunter2", "0123456789abcdef", "Bearer ", "Basic ", "a=b", "null", "xxxx", "****", "$NAME", "${NAME}", "{name}", "<your key>", "%NAME%", "$(cat f)", "{{ a.b }}",
	"://", "ann:q9@", "@", "/", "?", "8080", "host", "[::1]", "user-of-twenty-and-more-bytes",
	"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----", "-----",
	"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB", "Proc-Type: 4", "the end.",
	known, known[:9], known[9:], Mark, "[REDAC", "TED]", "é", "\x00", "\xff",
}

var someText = rapid.Map(rapid.SliceOfN(rapid.SampledFrom(fragments), 3, 24), func(parts []string) string { return strings.Join(parts, "") })

func inPieces(t *rapid.T, r *Redactor, text string) string {
	var out bytes.Buffer
	w := r.Stream(&out)
	for at := 0; at < len(text); {
		n := rapid.IntRange(1, min(12, len(text)-at)).Draw(t, "piece")
		w.Write([]byte(text[at : at+n]))
		at += n
	}
	w.Close()
	return out.String()
}

func TestAnyTextIsMaskedAsTheOracleMasksIt(t *testing.T) {
	t.Parallel()
	r := redactor(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(someText, keyText).Draw(t, "text")
		got := string(r.Bytes([]byte(text)))
		if want := oracle([]string{known}, text); got != want {
			t.Fatalf("of   %q\n got  %q\n want %q", text, got, want)
		}
	})
}

// keyText is made of what may change where a private key ends.
var keyText = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
	"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----", "\n", "\n", "\npassword: ", "x password=",
	"abcd", " ", "the end.", "://a:", "@", Mark, "\npassword: |\n  ", `"`, ",", known, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB", `\n`,
}), 3, 16), func(parts []string) string { return strings.Join(parts, "") })

func TestAP77AnyTextInAnyPiecesAndTwice(t *testing.T) {
	t.Parallel()
	r := redactor(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(someText, keyText).Draw(t, "text")
		got := string(r.Bytes([]byte(text)))
		if pieces := inPieces(t, r, text); pieces != got {
			t.Fatalf("of %q\n in pieces %q\n as whole  %q", text, pieces, got)
		}
		if again := string(r.Bytes([]byte(got))); again != got {
			t.Fatalf("AP-77 of %q\n once  %q\n twice %q", text, got, again)
		}
		if strings.Contains(got, known) {
			t.Fatalf("of %q the known value is left: %q", text, got)
		}
	})
}

func FuzzRedactor(f *testing.F) {
	for _, seed := range fragments {
		f.Add([]byte("password="+seed+"\n"+seed+": 'x'"), 3)
	}
	r := redactor(f)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		got := r.Bytes(slices.Clone(text))
		if bytes.Contains(got, []byte(known)) {
			t.Errorf("of %q the known value is left: %q", text, got)
		}
		if again := r.Bytes(slices.Clone(got)); !bytes.Equal(again, got) {
			t.Errorf("of %q once %q, twice %q", text, got, again)
		}
		var out bytes.Buffer
		w := r.Stream(&out)
		for chunk := range slices.Chunk(text, max(1, size%64)) {
			w.Write(chunk)
		}
		w.Close()
		if !bytes.Equal(out.Bytes(), got) {
			t.Errorf("of %q in pieces of %d %q, as a whole %q", text, size, out.Bytes(), got)
		}
	})
}

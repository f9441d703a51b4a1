package sandbox

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// form is a word of a profile, or a list of forms.
type form struct {
	word   string
	quoted bool // "…" or #"…"
	list   []form
	isList bool
}

// readProfile reads a profile's text: lists that balance, words, strings.
func readProfile(text string) (forms []form, err error) {
	r := &formReader{text: text}
	for {
		r.space()
		if r.at == len(text) {
			return forms, nil
		}
		f, err := r.form()
		if err != nil {
			return nil, err
		}
		if !f.isList {
			return nil, fmt.Errorf("%q stands outside of a rule", f.word)
		}
		forms = append(forms, f)
	}
}

type formReader struct {
	text string
	at   int
}

func (r *formReader) space() {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == ';':
			for r.at < len(r.text) && r.text[r.at] != '\n' {
				r.at++
			}
		case c == ' ' || c == '\n':
			r.at++
		default:
			return
		}
	}
}

func (r *formReader) form() (form, error) {
	r.space()
	rest := r.text[r.at:]
	switch {
	case rest == "":
		return form{}, fmt.Errorf("a list has no end")
	case rest[0] == ')':
		return form{}, fmt.Errorf("a list ends at %d that never began", r.at)
	case rest[0] == '(':
		r.at++
		f := form{isList: true}
		for {
			r.space()
			if r.at < len(r.text) && r.text[r.at] == ')' {
				r.at++
				return f, nil
			}
			inner, err := r.form()
			if err != nil {
				return f, err
			}
			f.list = append(f.list, inner)
		}
	case rest[0] == '"' || strings.HasPrefix(rest, `#"`):
		start := strings.IndexByte(rest, '"') + 1
		end := strings.IndexByte(rest[start:], '"')
		if end < 0 {
			return form{}, fmt.Errorf("a string has no end")
		}
		word := rest[start : start+end]
		if rest[0] == '"' && strings.Contains(word, `\`) {
			return form{}, fmt.Errorf("%q needs an escape, which no profile of ours does", word)
		}
		r.at += start + end + 1
		return form{word: word, quoted: true}, nil
	}
	end := strings.IndexAny(rest, "() \n;\"")
	if end < 1 {
		return form{}, fmt.Errorf("what is %.20q?", rest)
	}
	r.at += end
	return form{word: rest[:end]}, nil
}

// head is the first word of a list.
func (f *form) head() string {
	if !f.isList || len(f.list) == 0 {
		return ""
	}
	return f.list[0].word
}

// judge decides about operations as Seatbelt does: the last rule that fits wins.
type judge struct {
	rules  []form
	params map[string]string
}

// asked is one operation of a command.
type asked struct {
	op     string
	path   string // of the file; of the socket, for the network
	device bool   // it is a character device
	domain string // of system-socket
	ip     bool   // the network, not a Unix socket
	tty    bool   // with the extension of a terminal that was opened inside
}

// newJudge reads a profile and checks what must be true of any: it balances,
// every parameter it uses is bound, once, every one that is bound is used, and no
// path stands in its text.
func newJudge(s *profile) (*judge, error) {
	rules, err := readProfile(s.text.String())
	if err != nil {
		return nil, err
	}
	j := &judge{params: map[string]string{}}
	for _, p := range s.params {
		if _, twice := j.params[p.name]; twice {
			return nil, fmt.Errorf("%s is bound twice", p.name)
		}
		j.params[p.name] = p.value
	}
	used := map[string]bool{}
	for i, rule := range rules {
		switch rule.head() {
		case "version":
			if i != 0 {
				return nil, fmt.Errorf("the version stands at %d", i)
			}
			continue
		case "allow", "deny":
		default:
			return nil, fmt.Errorf("%q is no rule", rule.head())
		}
		if err := j.check(rule, used); err != nil {
			return nil, err
		}
		j.rules = append(j.rules, rule)
	}
	for name := range j.params {
		if !used[name] {
			return nil, fmt.Errorf("%s is bound and not used", name)
		}
	}
	return j, nil
}

// constantPath are the paths that a profile may name itself.
var constantPath = regexp.MustCompile(`^(/|/dev/(null|zero|random|urandom|dtracehelper|ptmx))$`)

func (j *judge) check(f form, used map[string]bool) error {
	switch f.head() {
	case "param":
		name := f.list[1].word
		if _, bound := j.params[name]; !bound || len(f.list) != 2 || !f.list[1].quoted {
			return fmt.Errorf("%s is not bound", name)
		}
		used[name] = true
		return nil
	case "literal", "subpath":
		if len(f.list) != 2 || f.list[1].quoted && !constantPath.MatchString(f.list[1].word) {
			return fmt.Errorf("a path stands in the profile: %v", f.list)
		}
	case "regex":
		if len(f.list) != 2 || f.list[1].quoted && f.list[1].word != "^/dev/ttys[0-9]+$" {
			return fmt.Errorf("a path stands in the profile: %v", f.list)
		}
	}
	for _, inner := range f.list {
		if err := j.check(inner, used); err != nil {
			return err
		}
	}
	return nil
}

// allows is the profile's decision.
func (j *judge) allows(a asked) bool {
	for _, rule := range slices.Backward(j.rules) {
		if j.fits(rule, a) {
			return rule.head() == "allow"
		}
	}
	panic("the profile has no default")
}

func (j *judge) fits(rule form, a asked) bool {
	named, filtered := false, false
	for _, f := range rule.list[1:] {
		if f.isList {
			filtered = true
			continue
		}
		family, whole := strings.CutSuffix(f.word, "*")
		named = named || f.word == "default" || f.word == a.op || whole && strings.HasPrefix(a.op, family)
	}
	if !named || !filtered {
		return named
	}
	return slices.ContainsFunc(rule.list[1:], func(f form) bool { return f.isList && j.filter(f, a) })
}

func (j *judge) filter(f form, a asked) bool {
	rest := f.list[1:]
	switch f.head() {
	case "require-all":
		return !slices.ContainsFunc(rest, func(g form) bool { return !j.filter(g, a) })
	case "require-any":
		return slices.ContainsFunc(rest, func(g form) bool { return j.filter(g, a) })
	case "require-not":
		return !j.filter(rest[0], a)
	case "literal":
		return a.path == j.value(rest[0])
	case "subpath":
		return within(a.path, j.value(rest[0]))
	case "regex":
		return regexp.MustCompile("(?s)" + j.value(rest[0])).MatchString(a.path)
	case "remote", "local":
		if rest[0].word != "unix-socket" {
			panic("unknown address " + rest[0].word)
		}
		return !a.ip && (len(rest) == 1 || j.filter(rest[1], a))
	case "vnode-type":
		return a.device && rest[0].word == "CHARACTER-DEVICE"
	case "extension":
		return a.tty && rest[0].word == "com.apple.sandbox.pty"
	case "socket-domain":
		return a.domain == rest[0].word
	}
	panic("unknown filter " + f.head())
}

func (j *judge) value(f form) string {
	if f.isList {
		return j.params[f.list[1].word]
	}
	return f.word
}

func TestReadProfile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"(a", "a", ")", "(a))", `(a "b)`, `(a "\")`, "(a (b)"} {
		if got, err := readProfile(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
	got, err := readProfile("; c )\n(a \"b c\" #\"\\d\" (e));\n(f)")
	if err != nil || len(got) != 2 || got[0].list[1].word != "b c" || got[0].list[2].word != `\d` || got[0].list[3].head() != "e" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{
		`(allow x (param "A"))`, `(version 1)(x)`, `(allow file-write* (subpath "/etc"))`, `(allow file-write* (regex #"^/etc"))`,
	} {
		s := &profile{}
		s.text.WriteString(text)
		if _, err := newJudge(s); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
	s := &profile{params: []param{{"A", "/"}}}
	s.text.WriteString("(allow default)")
	if _, err := newJudge(s); err == nil {
		t.Error("an unused parameter was taken")
	}
}

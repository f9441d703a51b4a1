package scripted

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a script file beyond its 4 MiB.
const (
	maxWaitMS = 3_600_000 // delay_ms, pace_ms, retry_after_ms: an hour
	maxCalls  = 64        // of one step, as of one response (providers.md 5)
)

var (
	codeForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// reserved are the substitutions every step has.
var reserved = []string{"prompt", "last", "bot", "workspace", "n"}

// check finds the first fault of a decoded file and compiles what matching
// needs.
func (s *script) check() error {
	if s.Version != 1 {
		return invalid("version: must be 1, is %d", s.Version)
	}
	if len(s.Models) == 0 {
		return invalid("models: at least one model is needed")
	}
	for _, e := range s.Models {
		if err := e.check("models." + e.name); err != nil {
			return err
		}
	}
	return nil
}

func (e *entry) check(path string) error {
	if e.name == "" || len(e.name) > 256 || strings.ContainsFunc(e.name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return invalid("models: %q is no model name: 1 to 256 bytes without control characters", clip(e.name, 64))
	}
	if e.ContextTokens < 0 {
		return invalid("%s.context_tokens: must not be negative", path)
	}
	if err := checkWait(path+".pace_ms", e.PaceMS); err != nil {
		return err
	}
	if len(e.Scripts) == 0 {
		return invalid("%s.scripts: at least one script is needed", path)
	}
	for i := range e.Scripts {
		d := &e.Scripts[i]
		if err := d.check(fmt.Sprintf("%s.scripts[%d]", path, i)); err != nil {
			return err
		}
		if d.Match.Any == nil {
			continue
		}
		if e.any != nil {
			return invalid("%s.scripts[%d].match.any: a model has at most one such script; this one could never be chosen", path, i)
		}
		e.any = d
	}
	return nil
}

func (d *dialogue) check(path string) error {
	if err := d.Match.check(path + ".match"); err != nil {
		return err
	}
	if len(d.Steps) == 0 {
		return invalid("%s.steps: at least one step is needed", path)
	}
	known := d.Match.names()
	for i := range d.Steps {
		st := &d.Steps[i]
		last := d.RepeatLast && i == len(d.Steps)-1
		if err := st.check(fmt.Sprintf("%s.steps[%d]", path, i), known, last); err != nil {
			return err
		}
	}
	return nil
}

func (m *match) check(path string) error {
	var given []string
	add := func(name string, set bool) {
		if set {
			given = append(given, name)
		}
	}
	add("prefix", m.Prefix != nil)
	add("equals", m.Equals != nil)
	add("contains", m.Contains != nil)
	add("regex", m.Regex != nil)
	add("any", m.Any != nil)
	if len(given) != 1 {
		return invalid("%s: exactly one of prefix, equals, contains, regex, any is needed; given: %s", path, orNone(given))
	}
	switch {
	case m.Any != nil && !*m.Any:
		return invalid("%s.any: can only be true", path)
	case m.Prefix != nil && *m.Prefix == "", m.Contains != nil && *m.Contains == "":
		return invalid(`%s.%s: an empty string matches everything; write {"any":true}`, path, given[0])
	case m.Regex != nil:
		re, err := regexp.Compile(*m.Regex)
		if err != nil {
			return invalid("%s.regex: %v", path, err)
		}
		for _, name := range re.SubexpNames() {
			if slices.Contains(reserved, name) {
				return invalid("%s.regex: a group cannot be called %s, which has a meaning of its own", path, name)
			}
		}
		m.re = re
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// names are the substitutions that a match gives its steps.
func (m *match) names() map[string]bool {
	known := make(map[string]bool)
	for _, name := range reserved {
		known[name] = true
	}
	if m.re == nil {
		return known
	}
	for i, name := range m.re.SubexpNames() {
		known[fmt.Sprint(i)] = true
		if name != "" {
			known[name] = true
		}
	}
	return known
}

// check looks at one step. known gains the step's captures for the steps
// after it; a repeated last step comes after itself.
func (st *step) check(path string, known map[string]bool, repeated bool) error {
	if st.Text == nil && st.Thinking == nil && st.Calls == nil && st.Error == nil && st.WebSearch == nil {
		return invalid("%s: a step needs text, thinking, calls, web_search or error", path)
	}
	if err := st.checkCaptures(path + ".capture"); err != nil {
		return err
	}
	if repeated {
		st.learn(known)
	}
	texts := []struct {
		name string
		text *string
	}{{"text", st.Text}, {"thinking", st.Thinking}, {"without", st.Without}}
	for _, t := range texts {
		if t.text == nil {
			continue
		}
		if err := checkText(path+"."+t.name, *t.text, known); err != nil {
			return err
		}
	}
	if err := st.checkCalls(path, known); err != nil {
		return err
	}
	st.learn(known)
	return st.checkRest(path)
}

func (st *step) learn(known map[string]bool) {
	for name := range st.Capture {
		known[name] = true
	}
}

func (st *step) checkCaptures(path string) error {
	st.captures = make(map[string]*regexp.Regexp, len(st.Capture))
	for _, name := range slices.Sorted(maps.Keys(st.Capture)) {
		if len(name) > 64 || !nameForm.MatchString(name) {
			return invalid("%s: %q is no name: a letter or _, then letters, digits and _", path, clip(name, 64))
		}
		if slices.Contains(reserved, name) {
			return invalid("%s.%s: this name has a meaning of its own", path, name)
		}
		re, err := regexp.Compile(st.Capture[name])
		if err != nil {
			return invalid("%s.%s: %v", path, name, err)
		}
		st.captures[name] = re
	}
	return nil
}

func (st *step) checkCalls(path string, known map[string]bool) error {
	if st.Calls != nil && len(st.Calls) == 0 {
		return invalid("%s.calls: is empty; leave it out", path)
	}
	if len(st.Calls) > maxCalls {
		return invalid("%s.calls: %d calls; a response holds at most %d", path, len(st.Calls), maxCalls)
	}
	if st.Without != nil && len(st.Calls) == 0 {
		return invalid("%s.without: means nothing in a step without calls", path)
	}
	for i := range st.Calls {
		c := &st.Calls[i]
		at := fmt.Sprintf("%s.calls[%d]", path, i)
		if c.Tool == "" {
			return invalid("%s.tool: the name of a tool is needed", at)
		}
		if c.Arguments == nil {
			c.Arguments = []byte("{}")
		}
		if c.Arguments.Kind() != '{' {
			return invalid("%s.arguments: an object is wanted here, this is %s", at, kindName(c.Arguments.Kind()))
		}
		c.Arguments = bytes.TrimSpace(c.Arguments)
		err := eachString(c.Arguments, func(s string) error { return checkText(at+".arguments", s, known) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (st *step) checkRest(path string) error {
	if err := checkWait(path+".delay_ms", st.DelayMS); err != nil {
		return err
	}
	if st.PaceMS != nil {
		if err := checkWait(path+".pace_ms", *st.PaceMS); err != nil {
			return err
		}
	}
	if st.Error != nil {
		if err := st.Error.check(path + ".error"); err != nil {
			return err
		}
	}
	if st.Cut != nil {
		if !slices.Contains([]string{"stall", "eof", "mid_frame"}, st.Cut.Kind) {
			return invalid("%s.cut: must be stall, eof or mid_frame, is %q", path, clip(st.Cut.Kind, 64))
		}
		if err := checkAttempts(path+".cut.attempts", st.Cut.Attempts); err != nil {
			return err
		}
	}
	if st.Fallback != nil && (st.Fallback.From == "" || st.Fallback.To == "") {
		return invalid("%s.fallback: from and to are needed", path)
	}
	if err := st.Usage.check(path + ".usage"); err != nil {
		return err
	}
	return st.Expect.check(path + ".expect")
}

func (f *failure) check(path string) error {
	if f.Code == "" && f.Status == 0 {
		return invalid("%s: a code or a status is needed", path)
	}
	if f.Code != "" && (len(f.Code) > 64 || !codeForm.MatchString(f.Code)) {
		return invalid("%s.code: %q is no error code: small letters, digits and _", path, clip(f.Code, 64))
	}
	if f.Status != 0 && (f.Status < 300 || f.Status > 599) {
		return invalid("%s.status: must be 300 to 599, is %d", path, f.Status)
	}
	if f.Code == "" {
		f.Code = fmt.Sprintf("provider_http_%d", f.Status)
	}
	closes := f.Status == 429 || f.Status == 529
	if closes && f.Code != "provider_rate_limited" && f.Code != fmt.Sprintf("provider_http_%d", f.Status) {
		return invalid("%s: status %d closes the pool, which code %s does not; leave one of them out", path, f.Status, f.Code)
	}
	if utf8.RuneCountInString(f.Detail) > 512 {
		return invalid("%s.detail: more than 512 characters", path)
	}
	if err := checkWait(path+".retry_after_ms", f.RetryAfterMS); err != nil {
		return err
	}
	return checkAttempts(path+".attempts", f.Attempts)
}

func (u *usage) check(path string) error {
	if u == nil {
		return nil
	}
	fields := []struct {
		name  string
		value int64
	}{
		{"input_tokens", value(u.Input)},
		{"output_tokens", value(u.Output)},
		{"cached_input_tokens", u.Cached},
		{"cache_write_tokens", value(u.CacheWrite)},
		{"cache_write_1h_tokens", u.CacheWrite1h},
		{"reasoning_tokens", value(u.Reasoning)},
	}
	for _, f := range fields {
		if f.value < 0 || f.value > 1<<40 {
			return invalid("%s.%s: must be 0 to 2^40", path, f.name)
		}
	}
	if part := u.Cached + value(u.CacheWrite); part > value(u.Input) {
		return invalid("%s: input_tokens counts cached and written tokens too, so it must be at least %d", path, part)
	}
	if u.CacheWrite1h > value(u.CacheWrite) {
		return invalid("%s.cache_write_1h_tokens: is part of cache_write_tokens, so it cannot be more", path)
	}
	if u.Output != nil && value(u.Reasoning) > *u.Output {
		return invalid("%s.reasoning_tokens: is part of output_tokens, so it cannot be more", path)
	}
	return nil
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

func (x *expect) check(path string) error {
	switch {
	case x == nil:
	case *x == expect{}:
		return invalid("%s: nothing is expected; leave it out", path)
	case x.Images != nil && *x.Images < 0:
		return invalid("%s.images: must not be negative", path)
	case x.Items != nil && *x.Items < 0:
		return invalid("%s.items: must not be negative", path)
	case x.Reasoning != nil && !slices.Contains([]string{"", "low", "medium", "high", "xhigh", "max"}, *x.Reasoning):
		return invalid("%s.reasoning: must be low, medium, high, xhigh, max or empty", path)
	}
	return nil
}

func checkWait(path string, ms int64) error {
	if ms < 0 || ms > maxWaitMS {
		return invalid("%s: must be 0 to %d milliseconds, is %d", path, maxWaitMS, ms)
	}
	return nil
}

func checkAttempts(path string, n *int) error {
	if n != nil && *n < 1 {
		return invalid("%s: must be 1 or more; leave it out to fail always", path)
	}
	return nil
}

func checkText(path, text string, known map[string]bool) error {
	for _, p := range split(text) {
		if p.name != "" && !known[p.name] {
			return invalid("%s: ${%s} is not known here (known: %s); write $${ for a plain ${",
				path, clip(p.name, 64), strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return nil
}

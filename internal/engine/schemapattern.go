package engine

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

const (
	patternBytes = 4 << 10 // of one pattern
	patternsSize = 50_000  // of a schema's patterns together, in about instructions
)

// pattern is a regular expression of a schema.
type pattern struct {
	re   *regexp.Regexp // nil: not checked
	size int            // about how many instructions it has
}

// patternsOf compiles the patterns of one schema, each text once.
func (s *schema) patternsOf(m map[string]any, at *spot) error {
	if p, has := m["pattern"]; has {
		text, ok := p.(string)
		if !ok {
			return malformed(at, "pattern", "text")
		}
		if err := s.compile(text); err != nil {
			return fmt.Errorf("%s %w", at.member("pattern").pointer(), err)
		}
	}
	members, _ := m["patternProperties"].(map[string]any)
	for _, text := range sortedKeys(members) {
		if err := s.compile(text); err != nil {
			return fmt.Errorf("%s: a name %w", at.member("patternProperties").pointer(), err)
		}
	}
	return nil
}

func (s *schema) compile(text string) error {
	if s.patterns[text] != nil {
		return nil
	}
	shown := shortJSON(text)
	if len(text) > patternBytes {
		return fmt.Errorf("is a pattern of %d bytes, of at most %d: %s", len(text), patternBytes, shown)
	}
	tree, err := syntax.Parse(asRE2(text), syntax.Perl)
	if err != nil {
		if !isBeyondRE2(text, err) {
			return fmt.Errorf("is no regular expression that can be read: %s: %w", shown, err)
		}
		s.patterns[text] = &pattern{}
		return nil
	}
	p := &pattern{size: patternSize(tree)}
	if s.size += p.size; s.size > patternsSize {
		return fmt.Errorf("is a pattern too large, alone or with those before it: %s; repeat less", shown)
	}
	if p.re, err = regexp.Compile(asRE2(text)); err != nil {
		return fmt.Errorf("is no regular expression that can be read: %s: %w", shown, err)
	}
	s.patterns[text] = p
	return nil
}

// isBeyondRE2 reports whether a pattern that RE2 does not read may be one of
// ECMA 262, as schemas have them: with a look around, a reference to a group, an
// escape or a property of its own, or more repetitions than RE2 has.
func isBeyondRE2(text string, err error) bool {
	var fault *syntax.Error
	if !errors.As(err, &fault) {
		return false
	}
	switch fault.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatSize:
		return true
	case syntax.ErrInvalidCharRange:
		return strings.Contains(text, `\p`) || strings.Contains(text, `\P`)
	case syntax.ErrInvalidNamedCapture:
		return strings.Contains(text, "(?<=") || strings.Contains(text, "(?<!")
	}
	return false
}

// asRE2 spells what ECMA 262 spells otherwise: \uXXXX, \u{X}, \cX, [] and [^].
func asRE2(text string) string {
	var b strings.Builder
	for class := false; text != ""; {
		n, spelled := 1, ""
		switch {
		case strings.HasPrefix(text, `\u`) || strings.HasPrefix(text, `\c`):
			n, spelled = asRune(text)
		case text[0] == '\\' && len(text) > 1:
			n = 2
		case !class && strings.HasPrefix(text, "[^]"):
			n, spelled = 3, `[\x00-\x{10FFFF}]`
		case !class && strings.HasPrefix(text, "[]"):
			n, spelled = 2, `[^\x00-\x{10FFFF}]`
		case text[0] == '[':
			if class { // for RE2 it may begin a class of POSIX
				spelled = `\[`
			}
			class = true
		case text[0] == ']':
			class = false
		}
		if spelled == "" {
			spelled = text[:n]
		}
		b.WriteString(spelled)
		text = text[n:]
	}
	return b.String()
}

// asRune spells \uXXXX, \u{X} or \cX at the start of a text, of which it takes n
// bytes. What is none of them is left as it is.
func asRune(text string) (n int, spelled string) {
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == "" }
	switch {
	case text[1] == 'c' && len(text) > 2 && ('a' <= text[2]|0x20 && text[2]|0x20 <= 'z'):
		return 3, fmt.Sprintf(`\x{%x}`, text[2]&0x1f)
	case text[1] == 'u' && len(text) >= 6 && digits(text[2:6]):
		return 6, `\x{` + text[2:6] + `}`
	case strings.HasPrefix(text, `\u{`):
		if hex, _, ok := strings.Cut(text[3:], "}"); ok && digits(hex) {
			return 4 + len(hex), `\x{` + hex + `}`
		}
	}
	return 2, ""
}

// patternSize is about how many instructions a pattern has once it is compiled.
func patternSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

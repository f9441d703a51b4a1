package secret

import (
	"bytes"
	"slices"
)

// maxPlaceholder is the longest placeholder, and maxPlain the longest other
// value that is left as code or filling, in bytes.
const (
	maxPlaceholder = 128
	maxPlain       = 256
)

// isPlaceholder reports whether a whole value stands for one that is filled in
// elsewhere (approvals.md 20.6).
func isPlaceholder(value []byte) bool {
	n := placeholder(value)
	return n > 0 && n == len(value)
}

// placeholder is the length of the placeholder that b begins with, 0 for none;
// -1 where b breaks off before that is decided.
func placeholder(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	b = b[:min(len(b), maxPlaceholder)]
	n := 0
	switch {
	case len(b) == 1 && (b[0] == '$' || b[0] == '%' || b[0] == '{' || b[0] == '<'):
		n = -1
	case bytes.HasPrefix(b, []byte("${{")):
		n = enclosed(b, 3, isReferenceOrBlank, "}}")
	case bytes.HasPrefix(b, []byte("${")):
		n = enclosed(b, 2, isReference, "}")
	case bytes.HasPrefix(b, []byte("$(")):
		n = enclosed(b, 2, isCommand, ")")
	case b[0] == '$':
		n = variable(b)
	case b[0] == '%':
		n = enclosed(b, 1, isReference, "%")
	case bytes.HasPrefix(b, []byte("{{")):
		n = enclosed(b, 2, isReferenceOrBlank, "}}")
	case b[0] == '{':
		n = enclosed(b, 1, isReference, "}")
	case b[0] == '<':
		n = enclosed(b, 1, isWords, ">")
	}
	if len(b) == maxPlaceholder {
		return max(n, 0)
	}
	return n
}

// enclosed is the length of what begins with opening bytes, goes on with one or
// more that fit, and ends with closing; 0 and -1 are as for placeholder.
func enclosed(b []byte, opening int, fits func(byte) bool, closing string) int {
	i := opening
	for i < len(b) && fits(b[i]) {
		i++
	}
	switch {
	case len(b)-i < len(closing) && string(b[i:]) == closing[:len(b)-i]:
		return -1
	case i == opening || !bytes.HasPrefix(b[i:], []byte(closing)):
		return 0
	}
	return i + len(closing)
}

// variable is the length of a $NAME without small letters.
func variable(b []byte) int {
	if !isUpper(b[1]) && b[1] != '_' {
		return 0
	}
	i := 1
	for i < len(b) && (isUpper(b[i]) || isDigit(b[i]) || b[i] == '_') {
		i++
	}
	return i
}

func isReference(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c == '.' }

func isReferenceOrBlank(c byte) bool { return isReference(c) || isBlank(c) }

func isCommand(c byte) bool { return c != ')' && c != '\n' && !isQuote(c) }

func isWords(c byte) bool { return isReferenceOrBlank(c) || c == '-' }

// fillings are values that say that there is none, or of which kind it is.
var fillings = []string{
	"null", "nil", "none", "true", "false", "undefined", "string", "str", "text", "bytes", "any", "optional", "required",
}

// isFilling reports whether a value is one of the fillings in any case, made of
// stars, x or dots alone, or its own field's name again.
func isFilling(value, name []byte) bool {
	if len(value) > maxPlain {
		return false
	}
	if len(bytes.Trim(value, "*xX.")) == 0 {
		return true
	}
	if len(value) > maxName {
		return false
	}
	if slices.Contains(fillings, string(bytes.ToLower(value))) {
		return true
	}
	for _, c := range value {
		if !nameBytes[c] {
			return false
		}
	}
	return bytes.Equal(normalized(nil, value), normalized(nil, name))
}

// isCode reports whether an unquoted value reads a secret instead of being one:
// a path that ends in a secret's name, or a call. assigned says that it stands
// behind a = or := with a blank beside it.
func isCode(value []byte, assigned bool) bool {
	if len(value) > maxPlain {
		return false
	}
	bare := value
	if len(bare) > 0 && (bare[0] == '&' || bare[0] == '*') {
		bare = bare[1:]
	}
	if n, parts, last := path(bare); n > 0 && n == len(bare) && parts > 1 && classOf(last) != harmless {
		return true
	}
	n, _, _ := path(value)
	if n == 0 || n == len(value) {
		return false
	}
	open, after := value[n], value[n+1:]
	switch {
	case open != '(' && open != '[':
		return false
	case len(after) == 0 || isQuote(after[0]):
		return true
	case open == '(' && after[0] == ')' && (len(after) == 1 || isBlank(after[1]) || bytes.IndexByte([]byte(".)?,;"), after[1]) >= 0):
		return true
	}
	return open == '(' && assigned && value[len(value)-1] == ')'
}

// path reads the identifiers that b begins with, joined by . :: -> ?. or !. and
// gives their length, their number and the last.
func path(b []byte) (length, parts int, last []byte) {
	for {
		start := length
		if start < len(b) && isDigit(b[start]) {
			break
		}
		end := start
		for end < len(b) && (isLetter(b[end]) || isDigit(b[end]) || b[end] == '_') {
			end++
		}
		if end == start {
			break
		}
		parts, last = parts+1, b[start:end]
		joint := jointAt(b[end:])
		if joint == 0 || end+joint == len(b) {
			return end, parts, last
		}
		length = end + joint
	}
	// A joint with no identifier behind it belongs to no path.
	if parts == 0 {
		return 0, 0, nil
	}
	return length - trailingJoint(b[:length]), parts, last
}

func jointAt(b []byte) int {
	for _, joint := range []string{".", "::", "->", "?.", "!."} {
		if bytes.HasPrefix(b, []byte(joint)) {
			return len(joint)
		}
	}
	return 0
}

func trailingJoint(b []byte) int {
	for _, joint := range []string{"::", "->", "?.", "!.", "."} {
		if bytes.HasSuffix(b, []byte(joint)) {
			return len(joint)
		}
	}
	return 0
}

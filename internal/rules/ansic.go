package rules

import (
	"strconv"
	"strings"
)

var ansiLetters = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11,
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiC is the text of $'…', whose escapes a shell decodes. It ends at a NUL.
func ansiC(s string) string {
	var text strings.Builder
	for len(s) > 0 {
		if s[0] != '\\' || len(s) == 1 {
			text.WriteByte(s[0])
			s = s[1:]
			continue
		}
		var decoded string
		if decoded, s = ansiEscape(s[1:]); decoded == "\x00" {
			break
		}
		text.WriteString(decoded)
	}
	return text.String()
}

// ansiEscape decodes what follows a backslash, and gives the rest.
func ansiEscape(s string) (decoded, rest string) {
	if b, ok := ansiLetters[s[0]]; ok {
		return string(rune(b)), s[1:]
	}
	switch s[0] {
	case 'x':
		if strings.HasPrefix(s, "x{") {
			if decoded, rest = ansiNumber(s[2:], 16, len(s), "", false); rest == s[2:] {
				decoded = "\x00"
			}
			return decoded, strings.TrimPrefix(rest, "}")
		}
		return ansiNumber(s[1:], 16, 2, s[:1], false)
	case 'u':
		return ansiNumber(s[1:], 16, 4, s[:1], true)
	case 'U':
		return ansiNumber(s[1:], 16, 8, s[:1], true)
	case 'c':
		if len(s) > 1 {
			return string(rune(s[1] & 0x1f)), s[2:]
		}
	}
	if '0' <= s[0] && s[0] <= '7' {
		return ansiNumber(s, 8, 3, "", false)
	}
	return `\` + s[:1], s[1:]
}

// ansiNumber decodes at most most digits of s; without one the escape stands for
// itself.
func ansiNumber(s string, base, most int, name string, isRune bool) (decoded, rest string) {
	n := 0
	for n < len(s) && n < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	if n == 0 {
		return `\` + name, s
	}
	v, _ := strconv.ParseUint(s[max(0, n-8):n], base, 32)
	if isRune {
		return string(rune(v)), s[n:]
	}
	return string([]byte{byte(v)}), s[n:]
}

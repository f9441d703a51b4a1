package termsafe

import (
	"unicode/utf16"
	"unicode/utf8"
)

// AppendJSON appends a JSON value, on one line, whose strings mean the same but hold
// nothing that a terminal acts on: DEL, C1 controls, bidirectional controls, tag
// characters, U+2028 and U+2029 become \uXXXX (section 5 of the command-line document).
// Such characters stand in strings only. A byte that is no UTF-8 becomes \ufffd, and
// blanks between tokens that could end the line a space.
func AppendJSON(dst, value []byte) []byte { return appendJSON(dst, value, ' ') }

// AppendJSONLines is AppendJSON that keeps the newlines between tokens.
func AppendJSONLines(dst, value []byte) []byte { return appendJSON(dst, value, '\n') }

func appendJSON(dst, value []byte, newline byte) []byte {
	for i := 0; i < len(value); {
		b := value[i]
		switch {
		case b == '\n':
			dst = append(dst, newline)
			i++
		case b < ' ':
			dst = append(dst, ' ')
			i++
		case b < 0x7f:
			dst = append(dst, b)
			i++
		default:
			r, size := utf8.DecodeRune(value[i:])
			if r == utf8.RuneError && size == 1 || Acts(r) {
				dst = appendU(dst, r)
			} else {
				dst = append(dst, value[i:i+size]...)
			}
			i += size
		}
	}
	return dst
}

func appendU(dst []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return appendU(appendU(dst, high), low)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

package term

import "unicode/utf8"

// maxString bounds a control string of the terminal's (a reply, a clipboard): 1 MiB.
const maxString = 1 << 20

const (
	esc = 0x1b
	bel = 0x07
	can = 0x18
	sub = 0x1a
)

// sequence finds the first key, character or control sequence of what was read: its
// bytes, and whether it is whole. Of one that is not, n is all there is. It tells the
// terminal's speech apart and says nothing of its meaning.
func sequence(b []byte) (n int, whole bool) {
	switch {
	case len(b) == 0:
		return 0, false
	case b[0] == esc:
		return escaped(b)
	case b[0] < utf8.RuneSelf:
		return 1, true
	case !utf8.FullRune(b):
		return len(b), false
	}
	_, n = utf8.DecodeRune(b)
	return n, true
}

func escaped(b []byte) (n int, whole bool) {
	if len(b) == 1 {
		return 1, false
	}
	switch b[1] {
	case esc:
		return twice(b)
	case '[':
		return csi(b, 2)
	case 'O':
		return ss3(b, 2)
	case ']':
		return str(b, true)
	case 'P', 'X', '^', '_':
		return str(b, false)
	}
	n, whole = sequence(b[1:])
	return n + 1, whole
}

// twice is an escape before another. Some terminals send a key with Alt so; else they
// are two presses, and the first stands alone.
func twice(b []byte) (n int, whole bool) {
	if len(b) == 2 {
		return 2, false
	}
	switch b[2] {
	case '[':
		return csi(b, 3)
	case 'O':
		return ss3(b, 3)
	}
	return 1, true
}

// csi ends a control sequence whose parameters begin at i. A byte that cannot be of one
// ends it too: what came before it is dropped by the decoder.
func csi(b []byte, i int) (n int, whole bool) {
	if i < len(b) && b[i] == '[' { // the function keys of the Linux console
		return min(i+2, len(b)), i+1 < len(b)
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1, true
		case c < 0x20 || c > 0x7e:
			return i, true
		}
	}
	return len(b), len(b) > maxString
}

func ss3(b []byte, i int) (n int, whole bool) {
	for ; i < len(b); i++ {
		if b[i] < '0' || b[i] > '9' {
			return i + 1, true
		}
	}
	return len(b), false
}

// str ends a control string: at its terminator, or where it was cancelled.
func str(b []byte, bell bool) (n int, whole bool) {
	for i := 2; i < len(b); i++ {
		switch b[i] {
		case bel:
			if bell {
				return i + 1, true
			}
		case can, sub:
			return i + 1, true
		case esc:
			if i+1 == len(b) {
				return len(b), false
			}
			if b[i+1] == '\\' {
				return i + 2, true
			}
			return i, true
		}
	}
	return len(b), len(b) > maxString
}

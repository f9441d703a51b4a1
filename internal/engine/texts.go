package engine

import (
	"unicode/utf8"

	"agent/protocol"
)

// promptFrame is what an entry takes besides its text, encoded, with the comma.
func promptFrame(p *protocol.Prompt) int {
	bare := *p
	bare.Text, bare.Truncated = "", false
	line, _ := protocol.Append(nil, bare)
	return len(line) + 1
}

// callFrame is what an entry takes besides its arguments.
func callFrame(c protocol.PromptCall) int {
	c.Arguments = ""
	line, _ := c.AppendJSON(nil)
	return len(line) + 1
}

// fitTexts cuts texts, oldest first, so that they take at most each of one and,
// with their frames, at most together, all encoded; the newest are kept whole
// first. It gives how many entries fit at all: the newest ones.
func fitTexts(texts []*string, frames []int, together, one int) (kept int) {
	room := together
	for kept < len(frames) && frames[len(frames)-1-kept] <= room {
		room -= frames[len(frames)-1-kept]
		kept++
	}
	for i := len(texts) - 1; i >= 0; i-- {
		*texts[i] = cutEncoded(*texts[i], min(room, one))
		if i >= len(texts)-kept {
			room -= encodedLen(*texts[i])
		}
	}
	return kept
}

// encodedLen is the length of a text in JSON, without the quotes.
func encodedLen(text string) (n int) {
	for i := 0; i < len(text); {
		size, took := encodedChar(text[i:])
		n += size
		i += took
	}
	return n
}

// cutEncoded is the longest beginning of a text that takes at most n bytes in
// JSON.
func cutEncoded(text string, n int) string {
	for i := 0; i < len(text); {
		size, took := encodedChar(text[i:])
		if n -= size; n < 0 {
			return text[:i]
		}
		i += took
	}
	return text
}

// encodedChar is what the first character of a text takes in JSON, and in the
// text.
func encodedChar(text string) (size, took int) {
	switch b := text[0]; {
	case b == '"', b == '\\', b == '\b', b == '\f', b == '\n', b == '\r', b == '\t':
		return 2, 1
	case b < ' ':
		return 6, 1
	case b < utf8.RuneSelf:
		return 1, 1
	}
	r, took := utf8.DecodeRuneInString(text)
	return utf8.RuneLen(r), took // what is no character becomes U+FFFD
}

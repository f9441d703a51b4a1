package tool

import (
	"bytes"
	"unicode/utf8"

	"agent/protocol"
)

const byteOrderMark = "\xef\xbb\xbf"

// wideText names the encoding that a file's first bytes announce where it is
// none we read, or is empty.
func wideText(start []byte) string {
	for _, w := range []struct{ mark, name string }{
		{"\xff\xfe\x00\x00", "UTF-32"},
		{"\x00\x00\xfe\xff", "UTF-32"},
		{"\xff\xfe", "UTF-16"},
		{"\xfe\xff", "UTF-16"},
	} {
		if bytes.HasPrefix(start, []byte(w.mark)) {
			return w.name
		}
	}
	return ""
}

func notUTF8(name string) *Failure {
	return failuref(protocol.FileNotUTF8, "it is %s text; only UTF-8 is read and written: convert it with shell (iconv) first", name)
}

// checkUTF8 refuses what is no UTF-8, naming the first bad byte.
func checkUTF8(data []byte) *Failure {
	if name := wideText(data); name != "" {
		return notUTF8(name)
	}
	for at := 0; at < len(data); {
		if data[at] < utf8.RuneSelf {
			at++
			continue
		}
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return failuref(protocol.FileNotUTF8, "byte %d is not UTF-8; the file is unchanged", at)
		}
		at += size
	}
	return nil
}

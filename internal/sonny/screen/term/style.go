package term

import (
	"strconv"

	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/theme"
)

// sgr appends the sequence that makes the terminal draw in a style, whatever it drew
// in before.
func sgr(dst []byte, s theme.Style, d theme.Depth) []byte {
	dst = append(dst, "\x1b["...)
	if s == (theme.Style{}) {
		return append(dst, 'm')
	}
	dst = append(dst, '0')
	for _, a := range []struct {
		on   bool
		code string
	}{
		{s.Attr&text.Bold != 0, ";1"},
		{s.Faint, ";2"},
		{s.Attr&text.Italic != 0, ";3"},
		{s.Attr&text.Underline != 0, ";4"},
		{s.Attr&text.Reverse != 0, ";7"},
		{s.Attr&text.Strike != 0, ";9"},
	} {
		if a.on {
			dst = append(dst, a.code...)
		}
	}
	dst = colour(dst, d.Reduce(s.Fg), 30)
	dst = colour(dst, d.Reduce(s.Bg), 40)
	return append(dst, 'm')
}

// colour appends the parameters of one colour; base is 30 or 40.
func colour(dst []byte, c theme.Color, base int) []byte {
	number := func(n int) { dst = strconv.AppendInt(append(dst, ';'), int64(n), 10) }
	if n, ok := c.Palette(); ok {
		switch {
		case n < 8:
			number(base + int(n))
		case n < 16:
			number(base + 60 + int(n) - 8)
		default:
			number(base + 8)
			number(5)
			number(int(n))
		}
		return dst
	}
	if r, g, b, ok := c.Parts(); ok {
		number(base + 8)
		for _, n := range []int{2, int(r), int(g), int(b)} {
			number(n)
		}
	}
	return dst
}

// bare reports whether a space in a style looks as the terminal's own blank.
func bare(s theme.Style) bool {
	return !s.Bg.Set() && s.Attr&(text.Underline|text.Reverse|text.Strike) == 0
}

// linkable is a link's target as it may stand in a sequence, "" where it may not.
func linkable(url string) string {
	const most = 2048
	if len(url) > most {
		return ""
	}
	for i := range len(url) {
		if url[i] <= ' ' || url[i] >= 0x7f {
			return ""
		}
	}
	return url
}

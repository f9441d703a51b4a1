package md

import (
	"net/url"
	"regexp"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
)

// maxURL bounds an address that is made a link, in bytes. Terminals take no more.
const maxURL = 2083

var (
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	place  = regexp.MustCompile(`^(.*[^:/]):\d{1,7}(:\d{1,7})?$`)
	inCode = regexp.MustCompile(`^[\w./@+-]*\w\.[A-Za-z]\w{0,9}:\d{1,7}(:\d{1,7})?$`)
)

// target is where a link leads, as Span.URL has it; false for what stays text.
func target(dest string) (string, bool) {
	if dest == "" || len(dest) > maxURL || strings.ContainsFunc(dest, termsafe.Line.Escapes) {
		return "", false
	}
	lower := strings.ToLower(dest)
	for _, safe := range []string{"http://", "https://", "mailto:"} {
		if strings.HasPrefix(lower, safe) && len(dest) > len(safe) {
			return dest, !strings.Contains(dest, " ")
		}
	}
	if strings.HasPrefix(dest, "#") || strings.HasPrefix(dest, "//") || strings.HasPrefix(dest, "?") {
		return "", false
	}
	if scheme.MatchString(dest) && !place.MatchString(dest) {
		return "", false
	}
	path, err := url.PathUnescape(dest)
	if err != nil || strings.ContainsFunc(path, termsafe.Line.Escapes) {
		path = dest
	}
	return FileLink + path, true
}

// isPlace reports code that names a place in a file.
func isPlace(s string) bool { return len(s) <= maxURL && inCode.MatchString(s) }

// linked is the target as the message's spans carry it: that of a file always, an
// address where the terminal takes it.
func (d *Doc) linked(url string) string {
	if d.opt.Links || strings.HasPrefix(url, FileLink) {
		return url
	}
	return ""
}

// bareLinks marks addresses that stand in the text as they are.
func (d *Doc) bareLinks(spans []text.Span) []text.Span {
	for i := 0; i < len(spans); i++ {
		s := spans[i]
		if s.URL != "" || s.Role == text.Code || s.Role == text.Link || s.Role == text.Dim {
			continue
		}
		from, to := findAddress(s.Text)
		if from < 0 {
			continue
		}
		parts := make([]text.Span, 0, 3)
		for _, part := range []struct {
			text, url string
			role      text.Role
		}{{s.Text[:from], "", s.Role}, {s.Text[from:to], d.linked(s.Text[from:to]), text.Link}, {s.Text[to:], "", s.Role}} {
			if part.text != "" {
				parts = append(parts, text.Span{Text: part.text, URL: part.url, Role: part.role, Attr: s.Attr})
			}
		}
		spans = append(spans[:i:i], append(parts, spans[i+1:]...)...)
		if from > 0 {
			i++
		}
	}
	return spans
}

// findAddress is where the first address in a text stands; -1 for none.
func findAddress(s string) (from, to int) {
	for at := 0; ; {
		n := strings.Index(s[at:], "http")
		if n < 0 {
			return -1, -1
		}
		from = at + n
		rest := s[from:]
		head := len("https://")
		if strings.HasPrefix(rest, "http://") {
			head = len("http://")
		} else if !strings.HasPrefix(rest, "https://") {
			head = 0
		}
		if end := addressEnd(rest); head > 0 && end > head && (from == 0 || !wordByte(s[from-1])) {
			return from, from + end
		}
		at = from + len("http")
	}
}

// addressEnd is how long an address at the beginning of a text is: to a blank or
// a quote, without the marks that end a sentence and a bracket that it did not open.
func addressEnd(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"<>`{}|\\^", r)
	})
	if end < 0 {
		end = len(s)
	}
	for end > 0 {
		switch c := s[end-1]; {
		case strings.IndexByte(".,:;!?'*_~", c) >= 0:
		case c == ')' && strings.Count(s[:end], ")") > strings.Count(s[:end], "("):
		case c == ']' && strings.Count(s[:end], "]") > strings.Count(s[:end], "["):
		default:
			return end
		}
		end--
	}
	return end
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

package clipboard

import (
	"net/url"
	"path/filepath"
	"strings"

	"agent/internal/sonny/pen"
)

// Paths are the files that a dropped or pasted text names: one a line, quoted as
// a shell has them or as URLs. nil where it is anything else.
func Paths(s string) (paths []string) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\r", "\n"))
	if s == "" || len(s) > 16<<10 {
		return nil
	}
	for line := range strings.SplitSeq(s, "\n") {
		path := Unquoted(line)
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/") || !pen.LooksLike(path) {
			return nil
		}
		paths = append(paths, path)
	}
	return paths
}

// Unquoted is a path without the quoting that a terminal gives what is dropped on it.
func Unquoted(s string) string {
	s = strings.TrimSpace(s)
	if rest, is := strings.CutPrefix(s, "file://"); is {
		if path, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost")); err == nil {
			return path
		}
	}
	if len(s) > 1 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

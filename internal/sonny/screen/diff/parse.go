package diff

import (
	"strconv"
	"strings"
)

// reader goes through the lines of a diff.
type reader struct {
	files []*File
	file  *File // the last of them

	old, new int  // rows that the hunk at hand still has
	open     bool // rows of it may come
	named    bool // the file's paths are known from lines of their own
}

// Parse reads a unified diff of any number of files, as git and diff write it. What
// it does not know it passes over: a diff is shown as far as it can be read.
func Parse(diff string) []*File {
	var r reader
	for line := range strings.Lines(diff) {
		r.line(strings.TrimSuffix(line, "\n"))
	}
	return r.files
}

func (r *reader) line(line string) {
	switch {
	case r.open && r.row(line):
	case strings.HasPrefix(line, "diff --git "):
		r.begin()
		r.file.Old, r.file.New = gitPaths(line[len("diff --git "):])
	case strings.HasPrefix(line, "--- ") && !r.open:
		r.before(pathOf(line[len("--- "):], "a/"))
	case strings.HasPrefix(line, "+++ ") && r.file != nil:
		r.file.New = pathOf(line[len("+++ "):], "b/")
		r.open = false
	case strings.HasPrefix(line, "@@ ") && r.file != nil:
		r.hunk(line)
	case r.file != nil && !r.open:
		r.header(line)
	}
}

// begin begins a file.
func (r *reader) begin() {
	r.file = &File{OldSize: -1, NewSize: -1}
	r.files = append(r.files, r.file)
	r.open, r.named = false, false
}

// before takes the path of a file as it was, which begins one where nothing else did.
func (r *reader) before(path string) {
	if r.file == nil || r.named || len(r.file.Hunks) > 0 {
		r.begin()
	}
	r.named = true
	r.file.Old = path
}

// hunk takes the line that begins a hunk: @@ -1,2 +1,3 @@ section.
func (r *reader) hunk(line string) {
	ranges, section, ok := strings.Cut(line[len("@@ "):], " @@")
	before, after, both := strings.Cut(ranges, " ")
	old, oldCount, fine := span(before, '-')
	new, newCount, fine2 := span(after, '+')
	if !ok || !both || !fine || !fine2 {
		return
	}
	r.old, r.new, r.open = oldCount, newCount, true
	r.file.open(Hunk{Old: old, New: new, Section: strings.TrimSpace(section)})
}

// span reads -1,2 or -1.
func span(s string, sign byte) (from, count int, ok bool) {
	if s == "" || s[0] != sign {
		return 0, 0, false
	}
	first, rest, counted := strings.Cut(s[1:], ",")
	from, err := strconv.Atoi(first)
	if err != nil || from < 0 || from > 1<<30 {
		return 0, 0, false
	}
	if !counted {
		return from, 1, true
	}
	count, err = strconv.Atoi(rest)
	return from, count, err == nil && count >= 0 && count <= 1<<30
}

// row takes a line of the open hunk; false when it is none.
func (r *reader) row(line string) bool {
	if strings.HasPrefix(line, `\`) {
		r.bare()
		return true
	}
	if r.old <= 0 && r.new <= 0 {
		r.open = false
		return false
	}
	op, text := byte(Same), ""
	if line != "" {
		op, text = line[0], line[1:]
	}
	switch op {
	case Same:
		r.old--
		r.new--
	case Removed:
		r.old--
	case Added:
		r.new--
	default:
		r.open = false
		return false
	}
	r.file.add(Row{Op: op, Text: strings.TrimSuffix(text, "\r")})
	return true
}

// bare takes the line that says that the one before has no newline.
func (r *reader) bare() {
	if n := len(r.file.Hunks); n > 0 && r.file.Cut == 0 {
		if rows := r.file.Hunks[n-1].Rows; len(rows) > 0 {
			rows[len(rows)-1].Bare = true
		}
	}
}

// header takes a line between a file's first and its hunks.
func (r *reader) header(line string) {
	f := r.file
	switch {
	case strings.HasPrefix(line, "new file mode "):
		f.Old = ""
	case strings.HasPrefix(line, "deleted file mode "):
		f.New = ""
	case strings.HasPrefix(line, "rename from "):
		f.Old = unquote(line[len("rename from "):])
	case strings.HasPrefix(line, "rename to "):
		f.New = unquote(line[len("rename to "):])
	case strings.HasPrefix(line, "copy from "):
		f.Old = unquote(line[len("copy from "):])
	case strings.HasPrefix(line, "copy to "):
		f.New = unquote(line[len("copy to "):])
	case strings.HasPrefix(line, "Binary files "), line == "GIT binary patch":
		f.Binary = true
	}
}

// gitPaths takes the two paths of git's first line apart. They are equal but for
// renames, whose paths stand again in lines of their own.
func gitPaths(s string) (old, new string) {
	if strings.HasPrefix(s, `"`) {
		end := quoteEnd(s)
		return strings.TrimPrefix(unquote(s[:end]), "a/"), strings.TrimPrefix(unquote(strings.TrimSpace(s[end:])), "b/")
	}
	if n := len(s) / 2; len(s)%2 == 1 && s[n] == ' ' && strings.TrimPrefix(s[:n], "a/") == strings.TrimPrefix(s[n+1:], "b/") {
		return strings.TrimPrefix(s[:n], "a/"), strings.TrimPrefix(s[n+1:], "b/")
	}
	old, new, _ = strings.Cut(s, " b/")
	return strings.TrimPrefix(old, "a/"), strings.TrimPrefix(unquote(new), "b/")
}

// quoteEnd is where a quoted path at the beginning of s ends.
func quoteEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// pathOf is the path of a --- or +++ line, "" for none.
func pathOf(s, prefix string) string {
	if !strings.HasPrefix(s, `"`) {
		s, _, _ = strings.Cut(s, "\t")
	}
	s = unquote(strings.TrimSuffix(s, "\r"))
	if s == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(s, prefix)
}

// unquote takes git's quotes from a path.
func unquote(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	s = strings.TrimSuffix(s[1:quoteEnd(s)], `"`)
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if n, err := strconv.ParseUint(s[i:min(i+3, len(s))], 8, 8); err == nil && i+3 <= len(s) {
			b.WriteByte(byte(n))
			i += 2
			continue
		}
		if at := strings.IndexByte("abtnvfr", s[i]); at >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r"[at])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

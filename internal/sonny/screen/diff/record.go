package diff

import "strings"

// Edit is what the tool edit did: it replaced old by new. at is the number of the
// line where old began in the file, 0 where nobody knows: the call does not say.
func Edit(path, old, new string, at int) *File {
	f := &File{Old: path, New: path, OldSize: -1, NewSize: -1}
	old, new = f.within(lf(old)), f.within(lf(new))
	f.compare(linesOf(old), edits(old, new), at)
	f.forgetEnds()
	return f
}

// forgetEnds takes away that a text ends without a newline, which says nothing when
// the text is a part of a file.
func (f *File) forgetEnds() {
	for _, h := range f.Hunks {
		for i := range h.Rows {
			h.Rows[i].Bare = false
		}
	}
}

// Write is what the tool write did: it made the file, or replaced what was in it
// before. before is nil for a file that was not there, or whose content nobody kept.
func Write(path string, before *string, content string) *File {
	if before != nil {
		return Compare(path, lf(*before), lf(content))
	}
	f := Compare(path, "", lf(content))
	f.Old = ""
	return f
}

// lf is a text with newlines alone: the tools keep the endings that a file has.
func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// The lines of the tool apply_patch's envelope (runtime.md 11).
const (
	addFile    = "*** Add File:"
	deleteFile = "*** Delete File:"
	updateFile = "*** Update File:"
	moveTo     = "*** Move to:"
)

// Patch reads the argument of the tool apply_patch. The daemon took it, so that
// nothing is checked here. Its hunks have no line numbers, and a file that it deletes
// no rows: neither stands in the call.
func Patch(patch string) []*File {
	var files []*File
	var f *File
	begin := func(old, new string) {
		f = &File{Old: old, New: new, OldSize: -1, NewSize: -1}
		files = append(files, f)
	}
	for line := range strings.Lines(lf(patch)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, addFile):
			begin("", strings.TrimSpace(line[len(addFile):]))
			f.open(Hunk{New: 1})
		case strings.HasPrefix(line, deleteFile):
			begin(strings.TrimSpace(line[len(deleteFile):]), "")
		case strings.HasPrefix(line, updateFile):
			path := strings.TrimSpace(line[len(updateFile):])
			begin(path, path)
		case f == nil:
		case strings.HasPrefix(line, moveTo):
			f.New = strings.TrimSpace(line[len(moveTo):])
		case strings.HasPrefix(line, "***"):
		default:
			f.patched(line)
		}
	}
	return files
}

// patched takes a line of a section of a patch.
func (f *File) patched(line string) {
	if section, ok := strings.CutPrefix(line, "@@"); ok {
		// Several in a row narrow the place down; the last is the nearest.
		if n := len(f.Hunks); n > 0 && len(f.Hunks[n-1].Rows) == 0 {
			f.Hunks = f.Hunks[:n-1]
		}
		f.open(Hunk{Section: strings.TrimSpace(section)})
		return
	}
	if len(f.Hunks) == 0 {
		return
	}
	switch {
	case line == "":
		f.add(Row{Op: Same})
	case line[0] == Same || line[0] == Added || line[0] == Removed:
		f.add(Row{Op: line[0], Text: line[1:]})
	}
}

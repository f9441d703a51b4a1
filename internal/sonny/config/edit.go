package config

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
)

// set gives the text with a setting at a value, a literal of TOML. Nothing else of the
// text changes: a value is replaced where it stands, and a setting that is not there
// gets a line in its table, or a table at the end. Each way to do it is tried until
// one gives a text that reads as the old one with the setting; nil when none does.
func (d *document) set(path []string, value string) []byte {
	want := cloned(d.tree)
	v, ok := parsedLiteral(value)
	if !ok || !plant(want, path, v) {
		return nil
	}
	for _, try := range []func([]string, string) []byte{d.replace, d.intoInline, d.intoTable, d.besideDotted, d.atTop, d.newTable, d.dotted} {
		if text := try(path, value); text != nil && reads(text, want) {
			return text
		}
	}
	return nil
}

// unset gives the text without a setting, or without all below a table; false when
// there is none.
func (d *document) unset(path []string) ([]byte, bool) {
	if _, there := lookup(d.tree, path); !there {
		return d.text, false
	}
	want := cloned(d.tree)
	uproot(want, path)
	var cuts [][2]int
	for i, s := range d.sections[1:] {
		if hasPrefix(s.path, path) {
			cuts = append(cuts, [2]int{s.start, d.sections[i+1].body})
		}
	}
	for i, e := range d.entries {
		if hasPrefix(e.path, path) && (e.outer < 0 || !hasPrefix(d.entries[e.outer].path, path)) {
			cuts = append(cuts, d.cutOf(i))
		}
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return b[0] - a[0] })
	text := slices.Clone(d.text)
	for _, cut := range cuts {
		text = slices.Delete(text, cut[0], cut[1])
	}
	if !reads(text, want) {
		return nil, true
	}
	return text, true
}

// cutOf is what goes with an entry: its line, or what stands before the comment on it;
// in an inline table it and one comma.
func (d *document) cutOf(i int) [2]int {
	e := d.entries[i]
	if e.outer >= 0 {
		return d.cutInline(i)
	}
	if e.comment >= 0 {
		return [2]int{e.start, e.comment}
	}
	return [2]int{d.lineStart(e.start), d.lineEnd(e.end)}
}

func (d *document) cutInline(i int) [2]int {
	e := d.entries[i]
	before, after := -1, -1
	for j, other := range d.entries {
		if other.outer == e.outer && j < i {
			before = j
		}
		if other.outer == e.outer && j > i && after < 0 {
			after = j
		}
	}
	switch {
	case before >= 0:
		return [2]int{d.entries[before].end, e.end}
	case after >= 0:
		return [2]int{e.start, d.entries[after].start}
	}
	end := e.end
	rest := bytes.TrimLeft(d.text[end:], " \t\r\n")
	if bytes.HasPrefix(rest, []byte(",")) { // which nothing may stand before
		end = len(d.text) - len(rest) + 1
	}
	return [2]int{e.start, end}
}

// replace puts the value in the place of the one that is there.
func (d *document) replace(path []string, value string) []byte {
	i := d.at(path)
	if i < 0 {
		return nil
	}
	return splice(d.text, d.entries[i].value, d.entries[i].end, value)
}

// intoInline adds to the innermost inline table that the setting belongs to.
func (d *document) intoInline(path []string, value string) []byte {
	table := -1
	for i, e := range d.entries {
		if e.inline && len(e.path) < len(path) && hasPrefix(path, e.path) {
			table = i
		}
	}
	if table < 0 {
		return nil
	}
	e := d.entries[table]
	pair := KeyText(path[len(e.path):]) + " = " + value
	last := -1
	for i := range d.entries {
		if d.entries[i].outer == table {
			last = i
		}
	}
	if last < 0 {
		behind := " "
		if e.end-e.value > len("{}") {
			behind = ""
		}
		return splice(d.text, e.value+1, e.value+1, " "+pair+behind)
	}
	end := d.entries[last].end
	return splice(d.text, end, end, ", "+pair)
}

// intoTable adds a line to the table that has a header.
func (d *document) intoTable(path []string, value string) []byte {
	parent := path[:len(path)-1]
	for i, s := range d.sections {
		if i > 0 && !s.array && slices.Equal(s.path, parent) {
			return d.addLine(i, path, value)
		}
	}
	return nil
}

// besideDotted adds a line to where the table is made by dotted keys.
func (d *document) besideDotted(path []string, value string) []byte {
	parent := path[:len(path)-1]
	for _, e := range d.entries {
		s := d.sections[e.section]
		if len(parent) > len(s.path) && len(e.path) > len(parent) && e.outer < 0 && hasPrefix(e.path, parent) && !s.array {
			return d.addLine(e.section, path, value)
		}
	}
	return nil
}

// atTop adds a setting that is in no table.
func (d *document) atTop(path []string, value string) []byte {
	if len(path) > 1 {
		return nil
	}
	return d.addLine(0, path, value)
}

// newTable adds a table at the end.
func (d *document) newTable(path []string, value string) []byte {
	if len(path) < 2 {
		return nil
	}
	nl := d.newline()
	var b strings.Builder
	if n := len(d.text); n > 0 {
		if d.text[n-1] != '\n' {
			b.WriteString(nl)
		}
		b.WriteString(nl)
	}
	last := len(path) - 1
	b.WriteString("[" + KeyText(path[:last]) + "]" + nl + KeyText(path[last:]) + " = " + value + nl)
	return splice(d.text, len(d.text), len(d.text), b.String())
}

// dotted adds a dotted line to the nearest table above that has a place.
func (d *document) dotted(path []string, value string) []byte {
	best := 0
	for i, s := range d.sections {
		if !s.array && len(s.path) < len(path) && hasPrefix(path, s.path) && len(s.path) >= len(d.sections[best].path) {
			best = i
		}
	}
	return d.addLine(best, path, value)
}

// addLine adds a line behind the last setting of a section.
func (d *document) addLine(i int, path []string, value string) []byte {
	s := d.sections[i]
	at, indent := s.body, ""
	found := false
	for _, e := range d.entries {
		if e.section == i && e.outer < 0 {
			start := d.lineStart(e.start)
			at, indent, found = d.lineEnd(e.end), string(d.text[start:e.start]), true
		}
	}
	nl := d.newline()
	text := indent + KeyText(path[len(s.path):]) + " = " + value + nl
	if i == 0 && !found {
		var behind string
		at, behind = d.top()
		text += strings.ReplaceAll(behind, "\n", nl)
	}
	if at > 0 && d.text[at-1] != '\n' {
		text = nl + text
	}
	return splice(d.text, at, at, text)
}

// top is where the first setting goes that is in no table, and what stands behind it:
// before the first header and the comment that belongs to it, below a comment that
// begins the file.
func (d *document) top() (at int, behind string) {
	if len(d.sections) == 1 {
		return len(d.text), ""
	}
	at = d.sections[1].start
	for above := at; above > 0; {
		above = d.lineStart(above - 1)
		if !bytes.HasPrefix(bytes.TrimLeft(d.text[above:], " \t"), []byte("#")) {
			return at, "\n"
		}
		if above > 0 {
			at = above
		}
	}
	return d.sections[1].start, "\n"
}

// newline is how the file's lines end.
func (d *document) newline() string {
	if i := bytes.IndexByte(d.text, '\n'); i > 0 && d.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func splice(text []byte, from, to int, with string) []byte {
	return slices.Concat(text[:from], []byte(with), text[to:])
}

// reads reports whether a text is TOML that says what want does.
func reads(text []byte, want map[string]any) bool {
	got, err := parse(text)
	return err == nil && reflect.DeepEqual(pruned(got.tree), pruned(want))
}

func parsedLiteral(value string) (any, bool) {
	v, _ := parseValue(value)
	return v, v != nil
}

// cloned copies the tables of a tree.
func cloned(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for k, v := range tree {
		if table, ok := v.(map[string]any); ok {
			v = cloned(table)
		}
		out[k] = v
	}
	return out
}

// pruned is a tree without tables that hold nothing: an empty one sets nothing.
func pruned(tree map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range tree {
		if table, ok := v.(map[string]any); ok {
			if table = pruned(table); len(table) == 0 {
				continue
			}
			v = table
		}
		out[k] = v
	}
	return out
}

// plant puts a value into a tree; false where a value stands in the way, or a table
// in the value's place.
func plant(tree map[string]any, path []string, v any) bool {
	last := len(path) - 1
	for _, part := range path[:last] {
		next, there := tree[part]
		if !there {
			next = map[string]any{}
			tree[part] = next
		}
		table, ok := next.(map[string]any)
		if !ok {
			return false
		}
		tree = table
	}
	if _, table := tree[path[last]].(map[string]any); table {
		return false
	}
	tree[path[last]] = v
	return true
}

func uproot(tree map[string]any, path []string) {
	last := len(path) - 1
	if above, ok := lookup(tree, path[:last]); ok {
		if table, ok := above.(map[string]any); ok {
			delete(table, path[last])
		}
	}
}

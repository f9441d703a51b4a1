package config

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"agent/internal/secret"
)

// A document is the text of a TOML file with where its settings stand in it. Offsets
// are bytes of text.
type document struct {
	text     []byte
	tree     map[string]any
	sections []section // the first is what stands before any header
	entries  []entry   // in the order of the text, a table's before what is in it
}

type section struct {
	path  []string
	array bool // [[path]]
	start int  // of the header's line
	body  int  // behind the header's line
}

type entry struct {
	path       []string // with its section's
	section    int
	start      int // of the key
	value, end int // of the value
	comment    int // of the comment behind it on its line, -1 for none
	outer      int // the entry in whose inline table it stands, -1 for none
	inline     bool
}

// maxParts bounds a key with its tables. No setting has nearly as many, and a file from
// a checkout may be made to cost much otherwise.
const maxParts = 32

var errDeep = fmt.Errorf("a key with its tables has more than %d parts", maxParts)

// parse reads the text. Its error says where it is no TOML, and holds nothing of it.
func parse(text []byte) (*document, error) {
	tree, err := secret.ParseConfig(text)
	if err != nil {
		return nil, err
	}
	d := &document{text: text, tree: tree, sections: []section{{}}}
	p := unstable.Parser{KeepComments: true}
	p.Reset(text)
	for p.NextExpression() {
		whole := true
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			whole = d.header(n)
		case unstable.KeyValue:
			whole = d.entry(n, d.sections[len(d.sections)-1].path, -1)
		}
		if !whole {
			return nil, errDeep
		}
	}
	return d, p.Error()
}

// header takes in a table's header; false where its key has too many parts.
func (d *document) header(n *unstable.Node) bool {
	path, first, last := keyOf(n)
	if len(path) > maxParts {
		return false
	}
	d.sections = append(d.sections, section{
		path: path, array: n.Kind == unstable.ArrayTable,
		start: d.lineStart(first), body: d.lineEnd(last),
	})
	return true
}

// entry takes in a key and its value, and what is in an inline table; false where a key
// has too many parts.
func (d *document) entry(n *unstable.Node, below []string, outer int) bool {
	parts, start, keyEnd := keyOf(n)
	if len(below)+len(parts) > maxParts {
		return false
	}
	e := entry{
		path: slices.Concat(below, parts), section: len(d.sections) - 1,
		start: start, value: d.valueAt(keyEnd), end: int(n.Raw.Offset + n.Raw.Length),
		comment: -1, outer: outer, inline: n.Value().Kind == unstable.InlineTable,
	}
	if behind := n.Next(); outer < 0 && behind != nil && behind.Kind == unstable.Comment {
		e.comment = int(behind.Raw.Offset)
	}
	at := len(d.entries)
	d.entries = append(d.entries, e)
	if !e.inline {
		return true
	}
	for children := n.Value().Children(); children.Next(); {
		child := children.Node()
		if child.Kind == unstable.KeyValue && !d.entry(child, e.path, at) {
			return false
		}
	}
	return true
}

// keyOf gives the parts of a node's key, where the first begins and the last ends.
func keyOf(n *unstable.Node) (parts []string, start, end int) {
	for it := n.Key(); it.Next(); {
		k := it.Node()
		if len(parts) == 0 {
			start = int(k.Raw.Offset)
		}
		parts = append(parts, string(k.Data))
		end = int(k.Raw.Offset + k.Raw.Length)
	}
	return parts, start, end
}

// valueAt is where the value begins of a key that ends at at.
func (d *document) valueAt(at int) int {
	at += bytes.IndexByte(d.text[at:], '=') + 1
	for at < len(d.text) && (d.text[at] == ' ' || d.text[at] == '\t') {
		at++
	}
	return at
}

func (d *document) lineStart(at int) int { return bytes.LastIndexByte(d.text[:at], '\n') + 1 }

// lineEnd is behind the newline of at's line.
func (d *document) lineEnd(at int) int {
	if i := bytes.IndexByte(d.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(d.text)
}

// at is the entry of exactly this path, or -1.
func (d *document) at(path []string) int {
	return slices.IndexFunc(d.entries, func(e entry) bool { return slices.Equal(e.path, path) })
}

// lineOf is the number of the line on which a setting stands, 0 when it has none.
func (d *document) lineOf(path []string) int {
	for _, e := range d.entries {
		if hasPrefix(e.path, path) || hasPrefix(path, e.path) && e.inline && d.at(path) < 0 {
			return 1 + bytes.Count(d.text[:e.start], []byte("\n"))
		}
	}
	return 0
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// lookup is the value at a path of a tree.
func lookup(tree map[string]any, path []string) (any, bool) {
	var at any = tree
	for _, part := range path {
		table, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = table[part]; !ok {
			return nil, false
		}
	}
	return at, true
}

// ParseKey takes a dotted key apart as TOML writes it; a part with other characters
// than letters, digits, - and _ stands in quotes. nil is no key.
func ParseKey(text string) []string {
	if strings.ContainsAny(text, "\n\r") {
		return nil
	}
	d, err := parse([]byte(text + "=0"))
	if err != nil || len(d.entries) != 1 || d.entries[0].value != len(text)+1 {
		return nil
	}
	return d.entries[0].path
}

var bare = matching(`[A-Za-z0-9_-]+`)

// KeyText is a key as ParseKey reads it.
func KeyText(parts []string) string {
	out := make([]string, len(parts))
	for i, part := range parts {
		out[i] = part
		if !bare(part) {
			out[i] = quote(part)
		}
	}
	return strings.Join(out, ".")
}

// literal is a value as TOML: a string, bool, int64, float64 or a list of them.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = literal(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	panic("config: no value of a setting")
}

// quote is a text as a basic string of TOML.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			hex := strconv.FormatInt(int64(r), 16)
			b.WriteString(`\u` + strings.Repeat("0", 4-len(hex)) + hex)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// parseValue reads a value as a person types it: TOML where it is some, else the text
// itself. It gives both readings; the first is nil when the text is no TOML.
func parseValue(text string) (value any, asText string) {
	tree, err := secret.ParseConfig([]byte("v = " + text + "\n"))
	if err != nil || len(tree) != 1 {
		return nil, text
	}
	return tree["v"], text
}

// typed is a value that a person typed for a key, as it stands in the file.
func (k *Key) typed(text string) (any, bool) {
	value, asText := parseValue(text)
	if value != nil {
		if _, ok := k.kind.take(value); ok {
			return value, true
		}
	}
	_, ok := k.kind.take(asText)
	return asText, ok
}

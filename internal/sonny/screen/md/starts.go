package md

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// shape is what a line begins when no block is open before it.
type shape uint8

const (
	prose   shape = iota // a paragraph, and with it a table or a setext heading
	oneLine              // an ATX heading or a thematic break
	item                 // of a list
	indented
	fence
	quote
	html
)

// start is how a line begins a block.
type start struct {
	shape shape

	// Of a list item: its marker's last character, its number, the column where
	// its content begins, and whether it has none on this line.
	marker byte
	number int
	column int
	bare   bool

	// Of a fence: its character, how many there are, how far they are indented,
	// and what follows them. Of HTML: its kind, and for kinds 1 to 5 what ends it.
	char   byte
	count  int
	indent int
	info   string
	kind   ast.HTMLBlockType
}

// indentOf is the width of a line's leading blanks in columns, and their bytes.
func indentOf(line []byte) (columns, size int) { return util.IndentWidth(line, 0) }

// begin says what a line that is not blank begins, in the order in which goldmark's
// block parsers are asked.
func begin(line []byte) start {
	columns, at := indentOf(line)
	if columns > 3 {
		return start{shape: indented}
	}
	rest := line[at:]
	switch c := rest[0]; {
	case isRule(rest):
		return start{shape: oneLine}
	case c == '#' && isHeading(rest):
		return start{shape: oneLine}
	case c == '>':
		return start{shape: quote}
	case c == '`' || c == '~':
		if s, ok := fenceStart(rest, columns); ok {
			return s
		}
	case c == '<':
		if kind, ok := htmlKind(line); ok {
			return start{shape: html, kind: kind}
		}
	default:
		if s, ok := itemStart(rest, columns); ok {
			return s
		}
	}
	return start{shape: prose}
}

// special reports whether a line may begin a block other than a paragraph, or make
// a heading of one.
func special(line []byte) bool {
	columns, at := indentOf(line)
	if columns > 3 {
		return false
	}
	c := line[at]
	return bytes.IndexByte([]byte("#>-+*_=`~<"), c) >= 0 || c >= '0' && c <= '9'
}

// isRule reports a thematic break: three or more of one mark, blanks between.
func isRule(rest []byte) bool {
	c, n := rest[0], 0
	if c != '-' && c != '*' && c != '_' {
		return false
	}
	for _, b := range rest {
		switch {
		case b == c:
			n++
		case !util.IsSpace(b):
			return false
		}
	}
	return n >= 3
}

func isHeading(rest []byte) bool {
	n := 0
	for n < len(rest) && rest[n] == '#' {
		n++
	}
	return n <= 6 && (n == len(rest) || util.IsSpace(rest[n]))
}

// isSetext reports a line that makes a heading of the paragraph before it.
func isSetext(line []byte) bool {
	columns, at := indentOf(line)
	if columns > 3 || line[at] != '=' && line[at] != '-' {
		return false
	}
	return len(bytes.Trim(bytes.TrimRight(line[at:], " \t\r\n"), string(line[at:at+1]))) == 0
}

func fenceStart(rest []byte, indent int) (start, bool) {
	n := 0
	for n < len(rest) && rest[n] == rest[0] {
		n++
	}
	info := bytes.TrimSpace(rest[n:])
	if n < 3 || rest[0] == '`' && bytes.IndexByte(info, '`') >= 0 {
		return start{}, false
	}
	return start{shape: fence, char: rest[0], count: n, indent: indent, info: string(info)}, true
}

// closes reports whether a line ends the fence.
func (s start) closes(line []byte) bool {
	columns, at := indentOf(line)
	if columns > 3 {
		return false
	}
	n := 0
	for at+n < len(line) && line[at+n] == s.char {
		n++
	}
	return n >= s.count && util.IsBlank(line[at+n:])
}

func itemStart(rest []byte, indent int) (start, bool) {
	n, number := 0, 0
	if c := rest[0]; c == '-' || c == '+' || c == '*' {
		n = 1
	} else {
		for n < len(rest) && n < 10 && rest[n] >= '0' && rest[n] <= '9' {
			number = number*10 + int(rest[n]-'0')
			n++
		}
		if n == 0 || n > 9 || n == len(rest) || rest[n] != '.' && rest[n] != ')' {
			return start{}, false
		}
		n++
	}
	blanks, _ := util.IndentWidth(rest[n:], indent+n)
	bare := util.IsBlank(rest[n:])
	if !bare && blanks == 0 {
		return start{}, false
	}
	if bare || blanks > 4 {
		blanks = 1
	}
	return start{shape: item, marker: rest[n-1], number: number, column: indent + n + blanks, bare: bare}, true
}

// bareItem reports a line that is nothing but the marker of a list item, at any
// depth. goldmark has ways of its own with these.
func bareItem(line []byte) bool {
	rest := bytes.TrimLeft(line, " \t>")
	if len(rest) == 0 {
		return false
	}
	for {
		s, ok := itemStart(rest, 0)
		if !ok {
			return false
		}
		if s.bare {
			return true
		}
		_, after, _ := bytes.Cut(rest, []byte{s.marker})
		rest = bytes.TrimLeft(after, " \t>")
		if len(rest) == 0 {
			return true
		}
	}
}

// tooDeep bounds how many containers one line may open.
const tooDeep = 100

// nests counts what may be markers of containers at the beginning of a line.
func nests(line []byte) int {
	n := 0
	for _, c := range line {
		switch {
		case c == '>' || c == '-' || c == '+' || c == '*' || c == '.' || c == ')':
			n++
		case c != ' ' && c != '\t' && (c < '0' || c > '9'):
			return n
		}
	}
	return n
}

// htmlEnds are what ends the first five kinds of HTML blocks.
var htmlEnds = map[ast.HTMLBlockType][]string{
	ast.HTMLBlockType1: {"</script>", "</pre>", "</style>", "</textarea>"},
	ast.HTMLBlockType2: {"-->"},
	ast.HTMLBlockType3: {"?>"},
	ast.HTMLBlockType4: {">"},
	ast.HTMLBlockType5: {"]]>"},
}

// ends reports whether an HTML block ends with this line.
func (s start) ends(line []byte) bool {
	for _, end := range htmlEnds[s.kind] {
		if bytes.Contains(bytes.ToLower(line), []byte(end)) {
			return true
		}
	}
	return false
}

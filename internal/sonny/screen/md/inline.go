package md

import (
	"strings"

	"agent/internal/sonny/screen/text"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// runs collects what stands within a line, and the lines that the model broke.
type runs struct {
	page  *page
	lines [][]text.Span
	now   []text.Span
}

// inline gives the lines of a block of text, in the look of its surroundings.
func (p *page) inline(n ast.Node, look text.Span) [][]text.Span {
	r := &runs{page: p}
	r.children(n, look)
	r.newline()
	return r.lines
}

// cell gives the text of a table's cell as one line.
func (p *page) cell(n ast.Node, look text.Span) []text.Span {
	var all []text.Span
	for i, line := range p.inline(n, look) {
		if i > 0 {
			all = append(all, text.Span{Text: " "})
		}
		all = append(all, line...)
	}
	return all
}

// newline ends the line at hand.
func (r *runs) newline() {
	r.lines = append(r.lines, r.page.doc.bareLinks(r.now))
	r.now = nil
}

// put adds text from outside.
func (r *runs) put(s string, look text.Span) {
	if s == "" {
		return
	}
	if n := len(r.now); n > 0 && text.Printable(s) && alike(r.now[n-1], look) {
		r.now[n-1].Text += s
		return
	}
	r.now = append(r.now, text.Outside(s, look)...)
}

func alike(a, b text.Span) bool {
	return a.Role == b.Role && a.Attr == b.Attr && a.URL == b.URL && a.Chrome == b.Chrome
}

func (r *runs) children(n ast.Node, look text.Span) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		r.node(c, look)
	}
}

func (r *runs) node(n ast.Node, look text.Span) {
	src := r.page.src
	switch n := n.(type) {
	case *ast.Text:
		r.text(n, look)
	case *ast.String:
		r.put(string(n.Value), look)
	case *ast.CodeSpan:
		r.code(n, look)
	case *ast.Emphasis:
		if n.Level > 1 {
			look.Attr |= text.Bold
		} else {
			look.Attr |= text.Italic
		}
		r.children(n, look)
	case *east.Strikethrough:
		look.Attr |= text.Strike
		r.children(n, look)
	case *ast.Link:
		r.link(n, resolve(string(n.Destination)), look)
	case *ast.AutoLink:
		r.autoLink(string(n.Label(src)), n.AutoLinkType == ast.AutoLinkEmail, look)
	case *ast.Image:
		r.image(n, look)
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			seg := n.Segments.At(i)
			r.written(string(seg.Value(src)), look)
		}
	case *east.TaskCheckBox:
		r.box(n, look)
	}
}

// text is a run of words, which may end the line.
func (r *runs) text(n *ast.Text, look text.Span) {
	s := string(n.Segment.Value(r.page.src))
	if !n.IsRaw() {
		s = resolve(s)
	}
	r.put(s, look)
	if n.SoftLineBreak() || n.HardLineBreak() {
		r.newline()
	}
}

// written is text that keeps its own line breaks.
func (r *runs) written(s string, look text.Span) {
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			r.newline()
		}
		r.put(line, look)
	}
}

func (r *runs) code(n *ast.CodeSpan, look text.Span) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(r.page.src))
		}
	}
	s := strings.ReplaceAll(b.String(), "\n", " ")
	look.Role = text.Code
	if look.URL == "" && isPlace(s) {
		look.URL = FileLink + s
	}
	r.put(s, look)
}

// box is a task's box that did not become the item's mark.
func (r *runs) box(n *east.TaskCheckBox, look text.Span) {
	list, _ := n.Parent().Parent().Parent().(*ast.List)
	if list != nil && list.IsOrdered() {
		r.put(boxMark(n), look)
	}
}

// link is a link's text, with its address where nothing else shows it.
func (r *runs) link(n ast.Node, dest string, look text.Span) {
	url, known := target(dest)
	if !known {
		r.children(n, look)
		r.spell(dest, look)
		return
	}
	inner := look
	inner.Role, inner.URL = text.Link, r.page.doc.linked(url)
	from := len(r.now)
	r.children(n, inner)
	if !r.page.doc.opt.Links && !r.shows(from, dest) {
		r.once(dest, look)
	}
}

// shows reports whether the text since span from is an address itself.
func (r *runs) shows(from int, dest string) bool {
	if from > len(r.now) {
		return false
	}
	var b strings.Builder
	for _, s := range r.now[from:] {
		b.WriteString(s.Text)
	}
	return b.String() == dest || "mailto:"+b.String() == dest
}

// spell puts an address in brackets.
func (r *runs) spell(dest string, look text.Span) {
	if dest == "" {
		return
	}
	look.URL = ""
	look.Role = text.Dim
	r.put(" ("+dest+")", look)
}

// once spells an address the first time that it occurs in a message.
func (r *runs) once(dest string, look text.Span) {
	p := r.page
	at, ok := p.doc.shown[dest]
	if ok && at != p.index || p.spelled[dest] {
		return
	}
	p.spelled[dest] = true
	if p.ended {
		p.doc.shown[dest] = p.index
	}
	r.spell(dest, look)
}

func (r *runs) autoLink(label string, mail bool, look text.Span) {
	dest := label
	if mail {
		dest = "mailto:" + label
	}
	if url, ok := target(dest); ok {
		look.Role, look.URL = text.Link, r.page.doc.linked(url)
	}
	r.put(label, look)
}

// image is a picture's words and where it lies; nothing is fetched.
func (r *runs) image(n *ast.Image, look text.Span) {
	dest := resolve(string(n.Destination))
	before := len(r.now)
	if url, ok := target(dest); ok {
		inner := look
		inner.Role, inner.URL = text.Link, r.page.doc.linked(url)
		r.children(n, inner)
	} else {
		r.children(n, look)
	}
	if len(r.now) == before {
		r.put("picture", look)
	}
	r.spell(dest, look)
}

// resolve takes the backslashes and entities of Markdown out of a text.
func resolve(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			b.WriteByte(s[i+1])
			i += 2
			continue
		case s[i] == '&':
			if end := strings.IndexByte(s[i:min(len(s), i+maxEntity)], ';'); end > 0 {
				b.WriteString(entity(s[i : i+end+1]))
				i += end + 1
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// maxEntity is longer than any entity's name.
const maxEntity = 40

// entity is the character that an entity stands for, or what was given.
func entity(s string) string {
	if strings.HasPrefix(s, "&#") {
		return string(util.ResolveNumericReferences([]byte(s)))
	}
	return string(util.ResolveEntityNames([]byte(s)))
}

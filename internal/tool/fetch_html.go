package tool

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

const (
	maxLink  = 2 << 10 // bytes of a link's target that is shown
	maxDepth = 16      // lists within lists that are told apart
	maxCells = 64      // bytes of bars for empty cells
)

// page turns HTML into text while it goes by. It holds no more than where it is
// in the page: the text it has written is not looked at again.
type page struct {
	w    *bufio.Writer
	err  error    // what writing met; nothing more is read then
	base *url.URL // what links start from

	based   bool   // the page has named its base
	started bool   // something was written
	space   bool   // a blank stands before the next text
	breaks  int    // newlines that stand before it, at most two
	prefix  string // what begins the next text: a list's mark, a heading's
	inRow   bool   // the table's row has a cell
	pre     int    // depth of preformatted text
	fresh   bool   // it has just begun

	link   string // the target of the link being written
	open   bool   // its bracket was written
	lists  [maxDepth]int
	depth  int    // of lists; lists[i] is -1 of bullets, else the last number
	raw    string // the element whose content is no markup, while in it
	again  bool   // its start tag comes a second time, after a part of its content
	skip   string // the element that is left out, while in it
	nested int    // how deep it stands in itself
}

// htmlToText writes a page of UTF-8 as readable text: blocks on lines of their
// own, headings, lists, tables and preformatted text marked, links as
// [text](target). It returns the error that reading or writing met.
func htmlToText(r io.Reader, w io.Writer, base *url.URL) error {
	p := &page{w: bufio.NewWriterSize(w, 4<<10), base: base}
	for feed := r; feed != nil; {
		var err error
		if feed, err = p.pass(feed); err != nil {
			_ = p.w.Flush()
			return err
		}
	}
	p.finish()
	return p.w.Flush()
}

// finish closes what the page left open and ends the last line.
func (p *page) finish() {
	p.endLink()
	if p.pre > 0 {
		p.pre = 1
		p.endPre()
	}
	if p.started {
		p.put("\n")
	}
}

func (p *page) put(text string) {
	if _, err := p.w.WriteString(text); err != nil {
		p.err = err
	}
}

// say writes visible text, after what stands before it.
func (p *page) say(text string) {
	switch {
	case !p.started:
	case p.breaks > 0:
		p.put("\n\n"[:p.breaks])
	case p.space:
		p.put(" ")
	}
	p.started, p.space, p.breaks = true, false, 0
	if p.prefix != "" {
		p.put(p.prefix)
		p.prefix = ""
	}
	if p.link != "" && !p.open {
		p.put("[")
		p.open = true
	}
	p.put(text)
}

// text writes text of the page, its blanks as one.
func (p *page) text(text string) {
	if p.skip != "" || text == "" {
		return
	}
	if p.pre > 0 {
		p.sayPre(text)
		return
	}
	for text != "" {
		n := strings.IndexAny(text, " \t\r\n\f")
		switch {
		case n < 0:
			p.say(text)
			return
		case n > 0:
			p.say(text[:n])
		}
		p.space = true
		text = text[n+1:]
	}
}

// sayPre writes preformatted text as it is, but for what ends its lines.
func (p *page) sayPre(text string) {
	if p.fresh { // a newline there is none of the text
		text = strings.TrimPrefix(strings.TrimPrefix(text, "\r"), "\n")
		p.fresh = false
	}
	first := true
	for line := range strings.SplitSeq(text, "\n") {
		if !first {
			p.breakPre()
		}
		first = false
		if line = strings.TrimSuffix(line, "\r"); line != "" {
			p.say(line)
		}
	}
}

// breakPre begins a new line within preformatted text.
func (p *page) breakPre() {
	p.space = false
	if p.breaks == 2 {
		p.put("\n")
		p.breaks = 1
	}
	p.breaks++
}

// block makes the next text begin on a line of its own, after an empty one
// with n 2; text that a mark of its own begins does so already.
func (p *page) block(n int) {
	if p.prefix == "" {
		p.breaks = max(p.breaks, n)
		p.space = false
	}
}

// blocks are the elements that stand on lines of their own: 1, or 2 with an
// empty one around them.
var blocks = map[string]int{
	"address": 1, "article": 2, "aside": 2, "blockquote": 2, "body": 1, "caption": 1, "center": 1, "dd": 1, "details": 2,
	"dialog": 2, "div": 1, "dl": 2, "dt": 1, "fieldset": 2, "figcaption": 1, "figure": 2, "footer": 2, "form": 2,
	"header": 2, "head": 2, "html": 1, "legend": 1, "main": 2, "nav": 2, "noscript": 1, "option": 1, "p": 2,
	"section": 2, "select": 1, "summary": 1, "table": 2, "tbody": 1, "textarea": 1, "tfoot": 1, "thead": 1, "title": 2, "tr": 1,
}

// rawElements are those whose content the tokenizer takes as no markup.
var rawElements = []string{"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"}

// skipped are the elements of which nothing is shown.
var skipped = []string{"iframe", "math", "noembed", "noframes", "script", "style", "svg", "template"}

// start takes a start tag; attribute gives the value of one of its attributes.
func (p *page) start(name string, closed bool, attribute func(string) string) {
	p.raw = ""
	if slices.Contains(rawElements, name) {
		p.raw = name
	}
	switch {
	case p.again:
		p.again = false
		return
	case p.skip == name && !closed:
		p.nested++
		return
	case p.skip != "":
		return
	case slices.Contains(skipped, name):
		if !closed || p.raw != "" {
			p.skip, p.nested = name, 1
		}
		return
	}
	if n := blocks[name]; n > 0 {
		p.block(n)
	}
	switch name {
	case "a":
		p.endLink()
		p.link = p.target(attribute("href"))
	case "base":
		p.setBase(attribute("href"))
	case "br":
		if p.pre > 0 {
			p.breakPre()
			return
		}
		p.breaks = min(p.breaks+1, 2)
		p.space = false
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.prefix = ""
		p.block(2)
		p.prefix = "######"[:name[1]-'0'] + " "
	case "hr":
		p.block(2)
		p.text("---")
		p.block(2)
	case "img":
		if alt := attribute("alt"); strings.TrimSpace(alt) != "" {
			p.text("[image: " + strings.TrimSpace(alt) + "]")
		}
	case "ol", "ul":
		p.list(name)
	case "li":
		p.item()
	case "pre":
		p.startPre()
	case "tr":
		p.inRow, p.prefix = false, ""
		p.block(1)
	case "td", "th":
		p.cell()
	}
}

func (p *page) end(name string) {
	p.raw = ""
	if p.skip != "" {
		if p.skip == name {
			if p.nested--; p.nested == 0 {
				p.skip = ""
			}
		}
		return
	}
	if n := blocks[name]; n > 0 {
		p.block(n)
	}
	switch name {
	case "a":
		p.endLink()
	case "h1", "h2", "h3", "h4", "h5", "h6":
		p.prefix = ""
		p.block(2)
	case "ol", "ul":
		p.depth = max(0, p.depth-1)
		p.block(1)
		if p.depth == 0 {
			p.block(2)
		}
	case "li":
		p.prefix = ""
		p.block(1)
	case "pre":
		p.endPre()
	case "tr":
		p.prefix = ""
	}
}

// setBase takes what a page says its links start from. Only the first counts, as
// in a browser, and none that is longer than an address may be: each link costs
// what its base is long.
func (p *page) setBase(href string) {
	if p.based || href == "" {
		return
	}
	p.based = true
	if u, err := p.base.Parse(href); err == nil && len(href) <= maxURL {
		p.base = u
	}
}

// shownSchemes are those of link targets that lead somewhere.
var shownSchemes = []string{"http", "https", "mailto", "ftp", "tel"}

// target is a link's target made absolute; "" when it leads nowhere else.
func (p *page) target(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > maxLink {
		return ""
	}
	u, err := p.base.Parse(href)
	if err != nil || !slices.Contains(shownSchemes, u.Scheme) {
		return ""
	}
	if text := u.String(); len(text) <= maxLink {
		return text
	}
	return ""
}

func (p *page) endLink() {
	if p.link == "" {
		return
	}
	if !p.open {
		p.say("")
	}
	p.put("](" + p.link + ")")
	p.link, p.open = "", false
}

func (p *page) list(name string) {
	p.block(1)
	if p.depth == 0 {
		p.block(2)
	}
	if p.depth < maxDepth {
		p.lists[p.depth] = -1
		if name == "ol" {
			p.lists[p.depth] = 0
		}
	}
	p.depth++
}

func (p *page) item() {
	p.prefix = ""
	p.block(1)
	level := min(max(p.depth, 1), maxDepth) - 1
	mark := "- "
	if p.depth > 0 && p.lists[level] >= 0 {
		p.lists[level]++
		mark = strconv.Itoa(p.lists[level]) + ". "
	}
	p.prefix = strings.Repeat("  ", level) + mark
}

// cell begins a cell of a table, which a bar parts from the one before, unless
// that has lines of its own.
func (p *page) cell() {
	if p.inRow && p.breaks == 0 {
		p.space = true
		if len(p.prefix) < maxCells {
			p.prefix += "| "
		}
	}
	p.inRow = true
}

func (p *page) startPre() {
	if p.pre++; p.pre == 1 {
		p.block(2)
		p.say("```")
		p.block(1)
		p.fresh = true
	}
}

func (p *page) endPre() {
	if p.pre == 0 {
		return
	}
	if p.pre--; p.pre == 0 {
		p.breaks, p.space = 1, false
		p.say("```")
		p.block(2)
	}
}

// maxToken bounds what the tokenizer holds of one tag, comment or stretch of
// text, in bytes.
const maxToken = 64 << 10

// pass takes in what a tokenizer reads from feed. At a token that is too large
// to be held it gives what is to be read after it, by another tokenizer; nil
// at the page's end.
func (p *page) pass(feed io.Reader) (rest io.Reader, err error) {
	z := html.NewTokenizer(feed)
	z.SetMaxBuf(maxToken)
	for p.err == nil {
		kind := z.Next()
		if cutOff(kind, z.Raw()) {
			return p.oversize(bytes.Clone(z.Raw()), io.MultiReader(bytes.NewReader(bytes.Clone(z.Buffered())), feed)), nil
		}
		switch kind {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return nil, err
			}
			return nil, nil
		case html.TextToken:
			if p.skip == "" {
				p.text(string(z.Text()))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := string(name)
			if tag == "noscript" {
				z.NextIsNotRawText() // no script runs here: it is shown
			}
			p.start(tag, kind == html.SelfClosingTagToken, func(key string) string { return attributeOf(z, &more, key) })
		case html.EndTagToken:
			name, _ := z.TagName()
			p.end(string(name))
		}
	}
	return nil, p.err
}

// cutOff reports whether a token ends where the tokenizer would hold no more.
// Of a text, after which it may have gone back a little, it may do so without.
func cutOff(kind html.TokenType, raw []byte) bool {
	if kind == html.TextToken {
		return len(raw) >= maxToken-len(`</noframes>`)
	}
	return len(raw) >= maxToken
}

// attributeOf is the value of the first attribute with this name.
func attributeOf(z *html.Tokenizer, more *bool, key string) string {
	for *more {
		var k, v []byte
		k, v, *more = z.TagAttr()
		if string(k) == key {
			return string(v)
		}
	}
	return ""
}

// oversize takes the beginning of a token that was not read to its end, and
// gives what is to be read next so that the page goes on as it was meant.
func (p *page) oversize(raw []byte, rest io.Reader) io.Reader {
	switch {
	case p.raw != "":
		keep := tailAt(raw, "<&", 32)
		p.text(html.UnescapeString(string(raw[:len(raw)-len(keep)])))
		p.again = true
		return io.MultiReader(strings.NewReader("<"+p.raw+">"), bytes.NewReader(keep), rest)
	case bytes.HasPrefix(raw, []byte("<!--")):
		if bytes.HasSuffix(raw, []byte("-->")) {
			return rest
		}
		return io.MultiReader(strings.NewReader("<!-- "), bytes.NewReader(raw[len(raw)-len("--!"):]), rest)
	case raw[0] == '<' && (raw[1] == '/' || raw[1] == '!' || raw[1] == '?' || isLetter(raw[1])):
		return io.MultiReader(strings.NewReader(bareTag(raw)), afterTag(raw, rest))
	}
	keep := tailAt(raw, "<&", 32)
	p.text(html.UnescapeString(string(raw[:len(raw)-len(keep)])))
	return io.MultiReader(bytes.NewReader(keep), rest)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// tailAt is the end of text from the last of some characters on, if that is
// among the last n bytes: what may go on in what comes next.
func tailAt(text []byte, chars string, n int) []byte {
	tail := text[max(0, len(text)-n):]
	i := bytes.LastIndexAny(tail, chars)
	if i < 0 {
		return nil
	}
	return tail[i:]
}

// bareTag is a tag without its attributes; nothing of a declaration.
func bareTag(raw []byte) string {
	name := raw[1:]
	begin := "<"
	if name[0] == '/' {
		name, begin = name[1:], "</"
	}
	n := 0
	for n < len(name) && n < 32 && (isLetter(name[n]) || name[n] >= '0' && name[n] <= '9') {
		n++
	}
	if n == 0 || !isLetter(name[0]) {
		return ""
	}
	return begin + string(name[:n]) + ">"
}

// afterTag gives what stands behind a tag whose beginning was read.
func afterTag(raw []byte, rest io.Reader) io.Reader {
	var quote, before byte
	step := func(c byte) {
		switch {
		case quote == 0 && before == '=' && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			before = c
		}
	}
	last := len(raw) - 1
	for _, c := range raw[:last] {
		step(c)
	}
	if raw[last] == '>' && quote == 0 {
		return rest
	}
	step(raw[last])
	r := bufio.NewReaderSize(rest, 4<<10)
	for {
		c, err := r.ReadByte()
		if err != nil || c == '>' && quote == 0 {
			return r
		}
		step(c)
	}
}

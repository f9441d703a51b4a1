package cli

import (
	"fmt"
	"regexp"
	"strings"
)

// page is a man page that is being written, in the classic man macros and in
// ASCII. It bears no date, so that one source gives one page.
type page struct{ b strings.Builder }

func newPage(name, short string) *page {
	r := &page{}
	r.line(fmt.Sprintf(`.TH %s 1 "" "agent %s" "Agent"`, strings.ToUpper(name), roff(Version)))
	r.section("NAME")
	r.line(roff(name) + ` \- ` + roff(short))
	return r
}

// line writes what is roff already.
func (r *page) line(s string) { r.b.WriteString(s + "\n") }

func (r *page) section(title string) { r.line(`.SH "` + roff(title) + `"`) }

func (r *page) paragraph(s string) {
	r.line(".PP")
	r.line(roff(s))
}

// term is a word to type and what it means.
func (r *page) term(head, text string) {
	r.line(".TP")
	r.line(`\fB` + roff(head) + `\fR`)
	r.line(roff(text))
}

// example is shown as it is.
func (r *page) example(lines []string) {
	r.line(".PP")
	r.line(".RS 4")
	r.line(".nf")
	for _, l := range lines {
		r.line(roff(l))
	}
	r.line(".fi")
	r.line(".RE")
}

var (
	fence    = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```\n")
	codeSpan = regexp.MustCompile("`([^`]*)`")
)

// text writes the Markdown of reference.md: headings, paragraphs, fences,
// tables of two columns and code spans.
func (r *page) text(markdown string) {
	for markdown != "" {
		at := fence.FindStringSubmatchIndex(markdown)
		if at == nil {
			r.blocks(markdown)
			return
		}
		r.blocks(markdown[:at[0]])
		r.example(strings.Split(strings.TrimSuffix(markdown[at[2]:at[3]], "\n"), "\n"))
		markdown = markdown[at[1]:]
	}
}

func (r *page) blocks(markdown string) {
	for _, block := range strings.Split(markdown, "\n\n") {
		block = strings.TrimSpace(block)
		switch {
		case block == "":
		case strings.HasPrefix(block, "# "):
			r.section(strings.ToUpper(block[2:]))
		case strings.HasPrefix(block, "|"):
			r.rows(strings.Split(block, "\n")[2:])
		default:
			r.line(".PP")
			r.line(spans(block))
		}
	}
}

func (r *page) rows(rows []string) {
	for _, row := range rows {
		cells := strings.SplitN(strings.Trim(row, "| "), " | ", 2)
		r.line(".TP")
		r.line(spans(cells[0]))
		r.line(spans(cells[1]))
	}
}

// spans sets code in bold.
func spans(s string) string {
	return codeSpan.ReplaceAllString(roff(s), `\fB$1\fR`)
}

// roff escapes text: a backslash, a dash that is to be copied, what begins a
// request at a line's start, and what is no ASCII.
func roff(s string) string {
	var b strings.Builder
	for i, c := range s {
		switch {
		case i == 0 && (c == '.' || c == '\''):
			b.WriteString(`\&` + string(c))
		case c == '\\':
			b.WriteString(`\e`)
		case c == '-':
			b.WriteString(`\-`)
		case c == '~':
			b.WriteString(`\(ti`)
		case c == '\'':
			b.WriteString(`\(aq`)
		case c == '`':
			b.WriteByte('`') // taken by spans, or shown
		case c == '"':
			b.WriteString(`\(dq`)
		case c == '…':
			b.WriteString("...")
		case c > '~':
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

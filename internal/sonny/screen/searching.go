package screen

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/story"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// searchCommands look for text in the transcript (sonny.md 11).
var searchCommands = feature{
	commands: []slashCommand{{"search", "[TEXT]", "find text in this transcript", func(a *App, args string) error { a.openSearch(args); return nil }}},
	actions:  map[string]func(*App){"search": func(a *App) { a.openSearch("") }},
}

// maxSearched bounds the text of a history that is looked in, in bytes. What is older
// is not searched, and the panel says so.
const maxSearched = 16 << 20

// searched is a cell of the history as a search sees it.
type searched struct {
	kind  cells.Kind
	node  int64
	words string
}

// searchPanel is a line below the transcript: what is looked for, and what is found.
type searchPanel struct {
	s     *session
	field edit.Field
	all   []searched // the newest first
	bytes int
	next  int64 // the node to read on from; 0: at the head
	ended bool  // the whole history is here
	cut   bool  // it is longer than what is looked in
	of    string
	exact bool // mind the case
	regex bool
	bad   string // why the expression is none
	hits  []int  // of all
	at    int    // of hits; -1 before the first
	going int64  // the node that is to be shown once it is loaded; 0: none
}

func (a *App) openSearch(words string) {
	s := a.at()
	if s == nil {
		return
	}
	p := &searchPanel{s: s, at: -1}
	p.field.Set(words)
	a.panel = p
	p.read(a)
	p.find()
}

func (p *searchPanel) hints() []string {
	return []string{"Enter next", "Alt+p previous", "Alt+c case", "Alt+r regexp", "Esc close"}
}

// read takes the history a part at a time into the search.
func (p *searchPanel) read(a *App) {
	from := p.next
	do(a, func(ctx context.Context) (*story.Part, error) {
		return story.Of(a.client(), p.s.bot).Part(ctx, from, story.PartNodes)
	},
		func(part *story.Part, err error) {
			if a.panel != panel(p) {
				return
			}
			if err != nil {
				p.ended = true
				a.notes.fail(err)
				return
			}
			p.take(part)
			p.find()
			if !p.ended && !p.cut {
				p.read(a)
			}
			p.arrive(a)
		})
}

// take adds a part, the newest cell first.
func (p *searchPanel) take(part *story.Part) {
	old := p.s.tr.Like()
	part.Show(old, func(int64) bool { return true })
	for i := old.Len() - 1; i >= 0; i-- {
		c := old.At(i)
		words := c.Words()
		if p.bytes += len(words); p.bytes > maxSearched {
			p.cut = true
			return
		}
		p.all = append(p.all, searched{kind: c.Kind, node: c.Node, words: words})
	}
	next, more := part.Next()
	p.next, p.ended = next, !more
}

// find looks through what is here.
func (p *searchPanel) find() {
	words := p.field.Text()
	key := fmt.Sprint(words, p.exact, p.regex)
	if key != p.of {
		p.at = -1
	}
	p.of, p.hits, p.bad, p.s.mark.find = key, nil, "", nil
	if words == "" {
		return
	}
	if !p.regex {
		words = regexp.QuoteMeta(words)
	}
	if !p.exact {
		words = "(?i)" + words
	}
	find, err := regexp.Compile(words)
	if err != nil {
		p.bad = "no regular expression: " + err.Error()
		return
	}
	p.s.mark.find = find
	for i, s := range p.all {
		if find.MatchString(s.words) {
			p.hits = append(p.hits, i)
		}
	}
}

// counts are the cells found by their kind.
func (p *searchPanel) counts() string {
	n := map[string]int{}
	for _, i := range p.hits {
		n[kindWords[p.all[i].kind]]++
	}
	var out []string
	for _, kind := range []string{"messages", "replies", "thoughts", "tools", "notices"} {
		if n[kind] > 0 {
			out = append(out, fmt.Sprintf("%s %d", kind, n[kind]))
		}
	}
	return strings.Join(out, " · ")
}

var kindWords = map[cells.Kind]string{
	cells.User: "messages", cells.Reply: "replies", cells.Thought: "thoughts", cells.Call: "tools",
	cells.Reads: "tools", cells.Notice: "notices", cells.Error: "notices",
}

func (p *searchPanel) view(a *App, c term.Canvas) {
	w, h := c.Size()
	rows := 3
	p.s.view(a, c.Sub(0, 0, w, h-rows), a.place(a.w, a.h))
	right := p.counts()
	c.Put(0, h-rows, text.Titled("search", right, w), w)
	line, x := p.field.Line("/ ", w-4)
	c.Put(2, h-2, line, w-2)
	c.SetCursor(2+x, h-2)
	c.Put(2, h-1, p.state().Cut(w-4), w-2)
}

// state says how far the search is.
func (p *searchPanel) state() text.Line {
	if p.bad != "" {
		return text.Of(text.Fail, cells.OneLine(p.bad))
	}
	var words []string
	switch {
	case p.field.Empty():
		words = append(words, "type what to look for")
	case len(p.hits) == 0 && p.ended:
		words = append(words, "nowhere")
	case p.at < 0:
		words = append(words, human.Count(len(p.hits), "place", "places"))
	default:
		words = append(words, fmt.Sprintf("%d of %d", p.at+1, len(p.hits)))
	}
	if p.exact {
		words = append(words, "case")
	}
	if p.regex {
		words = append(words, "regexp")
	}
	switch {
	case p.cut:
		words = append(words, "what is older than 16 MiB of text is not searched")
	case !p.ended:
		words = append(words, "reading the history…")
	}
	return text.Of(text.Dim, strings.Join(words, " · "))
}

func (p *searchPanel) key(a *App, k term.Key) bool {
	switch k.Name {
	case "enter":
		p.step(a, 1)
		return false
	case "esc":
		p.s.mark.find = nil
		return true
	}
	for _, name := range a.o.Keys.Find(k.Name, keys.State{Panel: "search"}, keys.Panel) {
		switch name {
		case "found_previous":
			p.step(a, -1)
		case "found_case":
			p.exact = !p.exact
		case "found_regexp":
			p.regex = !p.regex
		default:
			continue
		}
		p.find()
		return false
	}
	if p.field.Key(a.o.Keys, k.Name, k.Text) {
		p.find()
	}
	return false
}

// step goes to the next place: from the newest to the older ones.
func (p *searchPanel) step(a *App, by int) {
	if len(p.hits) == 0 {
		return
	}
	p.at = (p.at + by + len(p.hits)) % len(p.hits)
	if p.at < 0 {
		p.at = len(p.hits) - 1
	}
	p.going = p.all[p.hits[p.at]].node
	p.arrive(a)
}

// arrive shows the place that is gone to, once the transcript holds it.
func (p *searchPanel) arrive(a *App) {
	if p.going == 0 {
		return
	}
	s := p.s
	if oldest := s.tr.Oldest(); oldest > p.going && !s.story.IsWhole() {
		s.story.WhenGrown(func() { p.arrive(a) })
		s.story.LoadOlder()
		return
	}
	if c := s.tr.FoldedAt(p.going); c != nil {
		s.story.Unfold(c, func() { p.arrive(a) })
		return
	}
	words := p.all[p.hits[max(p.at, 0)]]
	p.going = 0
	for i := range s.tr.Len() {
		c := s.tr.At(i)
		if c.Node != words.node || c.Words() != words.words {
			continue
		}
		c.Open(s.look)
		s.mark.cell = c
		row := s.tr.Find(s.look, c)
		for j, r := range s.tr.Rows(s.look, row, row+c.Height(s.look)) {
			if s.mark.find.MatchString(r.Line.String()) {
				row += j
				break
			}
		}
		s.reveal(a, row, 3)
		return
	}
}

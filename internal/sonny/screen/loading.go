package screen

import (
	"context"

	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// loadOlder reads the part before the oldest that is there.
func (s *session) loadOlder(a *App) {
	if s.older || s.whole || !s.loaded || s.next == 0 {
		return
	}
	s.older = true
	from, newer, look, style := s.next, s.oldest, s.look, a.o.Markdown
	do(a, func(ctx context.Context) (*olderPart, error) {
		p, err := readPart(ctx, a, s.bot, from, loadNodes)
		if err != nil {
			return nil, err
		}
		// It is measured here, so that no frame waits for it.
		older := cells.New(style)
		p.show(older, func(turn int64) bool { return turn != newer })
		older.Measure(look)
		return &olderPart{p, older}, nil
	}, func(p *olderPart, err error) {
		s.older = false
		if !a.shows(s) || err != nil {
			return
		}
		s.knows(p.loadedPart)
		a.tellUsed(p.tr, usedIn(p.loadedPart))
		s.began(p.loadedPart)
		s.tr.Prepend(p.tr)
		a.slack.soon()
		if grew := s.grew; grew != nil {
			s.grew = nil
			grew()
		}
	})
}

// scrollTop goes to the oldest that is loaded, what is on its way with it.
func (a *App) scrollTop() {
	a.scroll(everything)
	if s := a.at(); s != nil && s.older && s.grew == nil {
		s.grew = func() { s.up = everything }
	}
}

// everything is more rows than there are.
const everything = 1 << 30

// olderPart is a part with its cells.
type olderPart struct {
	*loadedPart
	tr *cells.Transcript
}

// fill puts a part into a transcript.
func (s *session) fill(tr *cells.Transcript, p *loadedPart) {
	s.knows(p)
	p.show(tr, func(turn int64) bool { return !s.hears(turn) })
}

// knows keeps what a part tells besides its cells.
func (s *session) knows(p *loadedPart) {
	for i := range p.turns {
		s.about[p.turns[i].Turn] = aboutTurn(&p.turns[i])
		s.newest = max(s.newest, p.turns[i].Turn)
	}
	for _, n := range p.nodes {
		s.nodes[n.Node] = true
	}
	if len(p.nodes) > 0 {
		s.oldest = p.nodes[0].Turn
	}
}

func aboutTurn(t *protocol.Turn) cells.About {
	about := cells.About{Origin: t.Origin}
	if t.From != nil {
		about.From = t.From.Bot
	}
	return about
}

// show puts the part's items into a transcript, and how the turns ended of which ends
// says so. It may run beside the loop.
func (p *loadedPart) show(tr *cells.Transcript, ends func(turn int64) bool) {
	about := map[int64]cells.About{}
	for i := range p.turns {
		about[p.turns[i].Turn] = aboutTurn(&p.turns[i])
	}
	for i, n := range p.nodes {
		if item := p.items[n.Node]; item != nil {
			tr.Item(n.Node, n.Turn, item, about[n.Turn], false)
		}
		if i+1 == len(p.nodes) || p.nodes[i+1].Turn != n.Turn {
			if end := p.ends[n.Turn]; end != nil && ends(n.Turn) {
				tr.Ended(n.Turn, end.Status, said(end.Error), said(end.Detail))
			}
		}
	}
}

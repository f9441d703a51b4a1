// Package story is what a session on screen tells: its bot's durable history, loaded from
// its end backwards in parts, and what happens now, shown in the order of the events
// (sonny.md 8.1). A Story owns what is loaded, what is on its way and what waits for that;
// how it looks, and where in it the person is, are the screen's.
package story

import (
	"cmp"
	"context"
	"slices"

	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// How many items are loaded at a time. The first ones are few, so that the screen is full
// soon; what is missing of the usual number follows at once.
const (
	PartNodes  = 400
	firstNodes = 48
)

// Screen is what a story needs of the screen that shows it. Its methods are called in the
// loop.
type Screen interface {
	beside.Loop
	// Shows reports whether the story is on screen still; what comes for one that is not
	// is let go.
	Shows() bool
	// Look is how it is laid out.
	Look() cells.Look
	Fail(err error)
	// Cut reports whether the daemon cannot be reached.
	Cut() bool

	// Filled hears that the newest part is in the transcript, and Loaded that with it all
	// is that has happened until now.
	Filled(*Part)
	Loaded()
	// Older hears of a part that comes before what is there, and of its cells.
	Older(*Part, *cells.Transcript)
	// Took hears that an item came into the transcript, and Finished that a call's result
	// did.
	Took()
	Finished(*cells.ToolCall)
	// Ended hears of a turn's end that is shown.
	Ended(*protocol.TurnFinished)
}

// Story is a bot's. It belongs to the loop.
type Story struct {
	screen Screen
	past   History
	tr     *cells.Transcript

	loaded bool
	whole  bool   // the oldest item is loaded
	older  bool   // older ones are on their way
	next   int64  // the node at which what is not loaded ends; 0 for none
	oldest int64  // the turn of the oldest item that is here
	newest int64  // the newest turn that is shown
	grew   func() // called once when older items are loaded; nil for nothing

	about   map[int64]cells.About
	items   []item            // that the transcript holds, or has folded; the oldest first
	pending []*protocol.Event // events of which the items are on their way, in order
	asking  bool
	around  around
}

// New is the story that a history tells, of which nothing is loaded. It fills a transcript.
func New(screen Screen, past History, tr *cells.Transcript) *Story {
	return &Story{screen: screen, past: past, tr: tr, about: map[int64]cells.About{}}
}

// IsLoaded reports whether the newest part is here, or cannot be read.
func (s *Story) IsLoaded() bool { return s.loaded }

// IsWhole reports whether the oldest item is here.
func (s *Story) IsWhole() bool { return s.whole }

// IsSettled reports whether all that has happened is in the transcript.
func (s *Story) IsSettled() bool { return len(s.pending) == 0 && !s.asking }

// Growing reports whether older items are on their way.
func (s *Story) Growing() bool { return s.older }

// Turns is how many turns are known, and Items how many items are here.
func (s *Story) Turns() int { return len(s.about) }
func (s *Story) Items() int { return len(s.items) }

// Newest is the newest turn that is known; 0 for none.
func (s *Story) Newest() int64 { return s.newest }

// Load reads the newest part.
func (s *Story) Load() {
	beside.Do(s.screen, func(ctx context.Context) (*Part, error) { return s.past.Part(ctx, 0, firstNodes) },
		func(p *Part, err error) {
			if !s.screen.Shows() {
				return
			}
			if err != nil {
				s.loaded = true
				s.screen.Fail(err)
				return
			}
			s.Fill(p)
			s.step()
			s.screen.Loaded()
			s.LoadOlder()
		})
}

// Fill puts the newest part into the transcript.
func (s *Story) Fill(p *Part) {
	s.loaded = true
	s.knows(p)
	p.Show(s.tr, func(turn int64) bool { return !s.hears(turn) })
	s.began(p)
	s.screen.Filled(p)
}

// item is an item of the history, with its turn.
type item struct{ node, turn int64 }

// find is where an item is, or would be, among those that are here.
func (s *Story) find(node int64) (at int, here bool) {
	return slices.BinarySearchFunc(s.items, node, func(x item, node int64) int { return cmp.Compare(x.node, node) })
}

// has reports whether an item is here.
func (s *Story) has(node int64) bool {
	_, here := s.find(node)
	return here
}

// holds notes that an item is here.
func (s *Story) holds(node, turn int64) {
	if at, here := s.find(node); !here {
		s.items = slices.Insert(s.items, at, item{node, turn})
	}
}

// began notes where the part before the one that was loaded ends.
func (s *Story) began(p *Part) {
	next, more := p.Next()
	s.next, s.whole = next, !more
}

// knows keeps what a part tells besides its cells.
func (s *Story) knows(p *Part) {
	for i := range p.turns {
		s.about[p.turns[i].Turn] = aboutTurn(&p.turns[i])
		s.newest = max(s.newest, p.turns[i].Turn)
	}
	for _, n := range p.nodes {
		s.holds(n.Node, n.Turn)
	}
	if len(p.nodes) > 0 {
		s.oldest = p.nodes[0].Turn
	}
}

// LoadOlder reads the part before the oldest that is there.
func (s *Story) LoadOlder() {
	if s.older || s.whole || !s.loaded || s.next == 0 {
		return
	}
	s.older = true
	from, newer, look, older := s.next, s.oldest, s.screen.Look(), s.tr.Like()
	beside.Do(s.screen, func(ctx context.Context) (*Part, error) {
		p, err := s.past.Part(ctx, from, PartNodes)
		if err != nil {
			return nil, err
		}
		// It is measured here, so that no frame waits for it.
		p.Show(older, func(turn int64) bool { return turn != newer })
		older.Measure(look)
		return p, nil
	}, func(p *Part, err error) {
		s.older = false
		if !s.screen.Shows() || err != nil {
			return
		}
		s.knows(p)
		s.began(p)
		s.screen.Older(p, older)
		s.tr.Prepend(older)
		if grew := s.grew; grew != nil {
			s.grew = nil
			grew()
			return
		}
		s.bound(older.Height(s.around.look))
	})
}

// WhenGrown calls a function once when older items are here that are on their way.
func (s *Story) WhenGrown(call func()) { s.grew = call }

// Awaited reports whether somebody waits for older items.
func (s *Story) Awaited() bool { return s.grew != nil }

// Event takes an event of the bot. Those that come while items are on their way wait for
// them, so that all is shown in order.
func (s *Story) Event(e *protocol.Event) {
	if !e.Durable && !e.IsDelta() && e.Kind != protocol.KindRetry {
		return
	}
	s.pending = append(s.pending, e)
	s.step()
}

// Forget lets go of the events that wait for their items: their bot is gone.
func (s *Story) Forget() { s.pending = nil }

// hears reports whether a turn's end is among the events that are still to be shown.
func (s *Story) hears(turn int64) bool {
	return slices.ContainsFunc(s.pending, func(e *protocol.Event) bool { return e.Kind == protocol.KindTurnFinished && e.Turn == turn })
}

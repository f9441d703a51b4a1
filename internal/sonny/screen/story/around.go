package story

import (
	"context"
	"slices"

	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/cells"
)

// around is what is on its way around the view.
type around struct {
	loading *cells.Cell // the range whose items are; nil for none
	then    func()      // once, when they are here; nil for nothing
	// Where the view was when a range could not be read: it is read again when that is
	// elsewhere.
	failed bool
	look   cells.Look
	from   int
	to     int
}

// Around hears which rows are in view, from one up to another. It sees to it that what is
// near them is here, and lets go of what is far, so that what is kept is bounded
// (cells.MostCells and cells.MostBytes).
func (s *Story) Around(l cells.Look, from, to int) {
	moved := s.around.from != from || s.around.to != to
	s.around.look, s.around.from, s.around.to = l, from, to
	if s.around.failed = s.around.failed && !moved; !s.around.failed {
		if c := s.tr.Folded(l, from, to); c != nil {
			s.unfold(c, l)
		}
	}
	s.bound(0)
}

// Printed is Around for a screen that prints what was taken of the transcript, and shows
// none of it again.
func (s *Story) Printed(l cells.Look) { s.tr.FoldTaken(l) }

// bound lets go of what is far from the view, which stands so many rows lower than it did
// in the newest frame.
func (s *Story) bound(lower int) {
	if s.around.loading == nil && s.around.to > 0 {
		s.tr.Fold(s.around.look, s.around.from+lower, s.around.to+lower)
	}
}

// Unfold brings the items of a range back, and then calls a function.
func (s *Story) Unfold(c *cells.Cell, then func()) {
	s.around.then = then
	s.unfold(c, s.screen.Look())
}

// unfold reads the items of a range, unless those of another are on their way.
func (s *Story) unfold(c *cells.Cell, l cells.Look) {
	from, before, is := c.Range()
	if !is || s.around.loading != nil {
		return
	}
	s.around.loading = c
	first, _ := s.find(from)
	last, _ := s.find(before)
	list, about, again := slices.Clone(s.items[first:last]), map[int64]cells.About{}, s.tr.Like()
	nodes := make([]int64, len(list))
	for i, x := range list {
		nodes[i], about[x.turn] = x.node, s.about[x.turn]
	}
	beside.Do(s.screen, func(ctx context.Context) (struct{}, error) {
		items, err := s.past.Items(ctx, nodes)
		if err != nil {
			return struct{}{}, err
		}
		for _, x := range list { // how their turns ended was never folded
			if raw := items[x.node]; raw != nil {
				again.Item(x.node, x.turn, raw, about[x.turn], false)
			}
		}
		again.Measure(l)
		return struct{}{}, nil
	}, func(_ struct{}, err error) {
		then := s.around.then
		s.around.loading, s.around.then = nil, nil
		if !s.screen.Shows() {
			return
		}
		if err != nil {
			s.around.failed = true
			s.screen.Fail(err)
			return
		}
		s.tr.Unfold(c, again)
		if then != nil {
			then() // which goes there
			return
		}
		s.bound(0)
	})
}

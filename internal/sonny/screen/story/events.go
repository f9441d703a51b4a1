package story

import (
	"context"
	"encoding/json"
	"slices"

	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// step shows what can be shown, and asks for the items that are missing.
func (s *Story) step() {
	if s.asking || !s.loaded {
		return
	}
	var missing []int64
	for _, e := range s.pending {
		if n := nodeOf(e); n != 0 && !s.has(n) && !slices.Contains(missing, n) && len(missing) < PartNodes {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		s.show(nil)
		return
	}
	s.asking = true
	beside.Do(s.screen, func(ctx context.Context) (map[int64]json.RawMessage, error) {
		return s.past.Items(ctx, missing)
	},
		func(items map[int64]json.RawMessage, err error) {
			s.asking = false
			if !s.screen.Shows() {
				return
			}
			if err != nil {
				if !s.screen.Cut() {
					s.screen.Fail(err)
				}
				items = map[int64]json.RawMessage{}
				for _, n := range missing {
					items[n] = nil
				}
			}
			s.show(items)
			s.step()
		})
}

// nodeOf is the item that an event is of; 0 for none.
func nodeOf(e *protocol.Event) int64 {
	switch e.Kind {
	case protocol.KindAccepted, protocol.KindMessage, protocol.KindToolCompleted, protocol.KindSteered:
		var d struct {
			Node int64 `json:"node"`
		}
		if json.Unmarshal(e.Data, &d) == nil {
			return d.Node
		}
	}
	return 0
}

// show takes the pending events in order, up to the first whose item is not here.
func (s *Story) show(items map[int64]json.RawMessage) {
	for len(s.pending) > 0 {
		e := s.pending[0]
		n := nodeOf(e)
		item, here := items[n]
		if n != 0 && !here && !s.has(n) {
			return
		}
		s.pending = s.pending[1:]
		if n != 0 && s.has(n) {
			item = nil // it was loaded with the history
		}
		s.take(e, n, item)
	}
	s.pending = nil
}

// take shows one event.
func (s *Story) take(e *protocol.Event, node int64, item json.RawMessage) {
	switch e.Kind {
	case protocol.KindTextDelta, protocol.KindThinkingDelta:
		s.tr.Delta(e.Turn, e.Kind == protocol.KindThinkingDelta, e.Text())
		return
	case protocol.KindRetry:
		s.tr.Void()
		return
	case protocol.KindAccepted:
		var d protocol.Accepted
		if e.Decode(&d) == nil {
			about := cells.About{Origin: d.Origin}
			if d.From != nil {
				about.From = d.From.Bot
			}
			s.about[e.Turn] = about
		}
		s.newest = max(s.newest, e.Turn)
	case protocol.KindTurnFinished:
		s.ended(e)
	}
	if item != nil {
		turn := e.Turn
		if e.Kind == protocol.KindSteered {
			var d protocol.Steered
			if e.Decode(&d) == nil {
				turn = d.From
			}
		}
		s.tr.Item(node, e.Turn, item, s.about[turn], e.Kind == protocol.KindSteered)
		s.screen.Took()
	}
	if node != 0 {
		s.holds(node, e.Turn)
	}
	s.tr.Event(e)
	if e.Kind == protocol.KindToolCompleted && item != nil {
		s.finished(e)
	}
}

// finished tells of a call whose result is here.
func (s *Story) finished(e *protocol.Event) {
	var d protocol.ToolCompleted
	if e.Decode(&d) != nil {
		return
	}
	if c := s.tr.Call(d.CallID); c != nil {
		s.screen.Finished(c)
	}
}

// ended shows how a turn ended, where that needs a word.
func (s *Story) ended(e *protocol.Event) {
	var d protocol.TurnFinished
	if e.Decode(&d) != nil || d.Status == protocol.StatusSteered || d.Missed() {
		return
	}
	s.tr.Ended(e.Turn, d.Status, said(d.Error), said(d.Detail))
	s.screen.Ended(&d)
}

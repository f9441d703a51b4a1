package engine

import (
	"errors"
	"fmt"

	"agent/internal/store"
	"agent/internal/window"
	"agent/protocol"
)

// cut is a place where a summary's coverage may end, and what a summary up to
// it covers anew (runtime.md 21).
type cut struct {
	node     store.Node  // the tail's first
	prompt   store.Node  // of the turn it lies inside; none when node is a prompt
	first    store.Node  // the span's first: the last summary's cut, or none for the root
	span     window.Span // from first up to node, as it is sent
	from, to int64       // ordinals of the span's turns
	catchUp  bool        // part of what there is to summarize
}

// walkPiece is how many nodes one look at the store walks over.
const walkPiece = 1024

// walkBack calls f for the nodes from one towards the root until it returns
// false, in pieces, so that no read lasts long.
func (t *task) walkBack(from int64, f func(c *store.Conn, n *store.Node) (bool, error)) error {
	for from != 0 {
		err := t.e.read(t.ctx, "walk", func(c *store.Conn) (err error) {
			left, next := walkPiece, int64(0)
			werr := store.Walk(c, from, func(n store.Node) bool {
				if left == 0 {
					next = n.ID
					return false
				}
				left--
				more := false
				more, err = f(c, &n)
				return more && err == nil
			})
			from = next
			return errors.Join(err, werr)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// findCut finds the newest boundary that may be the next cut and whose tail
// satisfies holds: a turn's prompt, or a round's start inside the newest turn.
// Where no tail does, since what is to be summarized is one long turn that is
// over, it is the oldest prompt after that. ok is false when there is none.
func (t *task) findCut(v *view, holds func(tail window.Span) bool) (k cut, ok bool, err error) {
	newest, err := t.newestOutput()
	if err != nil {
		return k, false, err
	}
	var top, after store.Node
	inNewest := true // no turn's first node has been passed
	afterRole := ""
	err = t.walkBack(v.head, func(c *store.Conn, n *store.Node) (bool, error) {
		if top.ID == 0 {
			top, after = *n, *n
			return true, nil
		}
		if after.ID <= v.ahead.compaction.Cut {
			return false, nil
		}
		tail := window.Span{Bytes: v.floor.at(&top) - v.floor.at(n), Items: top.Depth - n.Depth}
		found := false
		if holds(tail) {
			switch {
			case after.Turn != 0:
				found = true
			case inNewest && after.ID <= newest:
				role := afterRole
				if role == "" {
					if role, err = t.roleOf(c, after.ID); err != nil {
						return false, err
					}
				}
				if afterRole, err = t.roleOf(c, n.ID); err != nil {
					return false, err
				}
				found = afterRole == "tool" && role != "tool"
			}
		}
		if found {
			k.node = after
			return false, nil
		}
		if after.Turn != 0 {
			inNewest, k.node = false, after
		}
		after = *n
		return true, nil
	})
	if err != nil || k.node.ID == 0 {
		return k, false, err
	}
	return k, true, t.measureCut(v, &k)
}

// measureCut fills in what a cut at k.node covers.
func (t *task) measureCut(v *view, k *cut) error {
	old := &v.ahead.compaction
	return t.e.read(t.ctx, "cut", func(c *store.Conn) error {
		var err error
		var ok bool
		if old.Cut != 0 {
			if k.first, ok, err = store.NodeByID(c, old.Cut); err != nil || !ok {
				return badItem(old.Cut, err)
			}
		}
		if k.node, ok, err = store.NodeByID(c, k.node.ID); err != nil || !ok {
			return badItem(k.node.ID, err)
		}
		k.to = k.node.TurnSeq - 1
		if k.prompt = (store.Node{}); k.node.Turn == 0 {
			var p int64
			if err := store.Walk(c, k.node.ID, func(n store.Node) bool { p = n.ID; return n.Turn == 0 }); err != nil {
				return err
			}
			if k.prompt, ok, err = store.NodeByID(c, p); err != nil || !ok {
				return badItem(p, err)
			}
			k.to = k.prompt.TurnSeq
		}
		k.from = old.CoveredTo + 1
		if old.Pinned != 0 || old.Node == 0 {
			k.from = max(old.CoveredTo, 1)
		}
		k.span, err = spanFrom(c, k.first.ID, k.node.Parent, v.floor)
		return err
	})
}

// oldestPart is the longest run from the span's first item that a summarizer
// takes at once: up to a prompt, or a round's start inside the newest turn;
// inside an older turn only when that turn alone is too big.
func (t *task) oldestPart(v *view, k cut, fits func(window.Span) bool) (part cut, err error) {
	newest := store.Node{}
	err = t.walkBack(v.head, func(_ *store.Conn, n *store.Node) (bool, error) {
		newest = *n
		return n.Turn == 0, nil
	})
	if err != nil {
		return part, err
	}
	for _, anywhere := range []bool{false, true} {
		part = cut{catchUp: true}
		after, role := store.Node{}, ""
		base, depth := int64(0), int64(0)
		if k.first.ID != 0 {
			base, depth = v.floor.at(&k.first)-v.floor.own(&k.first), k.first.Depth-1
		}
		err = t.walkBack(k.node.Parent, func(c *store.Conn, n *store.Node) (bool, error) {
			if after.ID == 0 {
				after = *n
				return true, nil
			}
			if after.ID <= k.first.ID {
				return false, nil
			}
			span := window.Span{Bytes: v.floor.at(n) - base, Items: n.Depth - depth}
			if span.Items > 0 && fits(span) && after.Turn == 0 && (anywhere || after.ID > newest.ID) {
				mine, err := role, error(nil)
				if mine == "" {
					mine, err = t.roleOf(c, after.ID)
				}
				if err == nil {
					role, err = t.roleOf(c, n.ID)
				}
				if err != nil {
					return false, err
				}
				if role == "tool" && mine != "tool" {
					part.node = after
				}
			} else if span.Items > 0 && fits(span) && after.Turn != 0 {
				part.node = after
			}
			after = *n
			return part.node.ID == 0, nil
		})
		if err != nil {
			return part, err
		}
		if part.node.ID != 0 {
			return part, t.measureCut(v, &part)
		}
	}
	return part, protocol.Fail(protocol.CompactionSpanLimit, fmt.Sprintf(
		"a single round of turn %d is larger than what a summary may be made from", k.from))
}

// promptsUpTo are the prompts of all turns that a cut covers whole: those kept
// before and those of the span.
func (t *task) promptsUpTo(v *view, k *cut) ([]window.Prompt, error) {
	old := v.ahead.compaction
	if old.Node != 0 {
		if err := t.e.read(t.ctx, "summary", old.Texts); err != nil {
			return nil, err
		}
	}
	list, err := promptsOf(&old)
	if err != nil {
		return nil, err
	}
	type place struct{ node, ordinal int64 }
	var places []place // newest first
	err = t.walkBack(k.node.Parent, func(_ *store.Conn, n *store.Node) (bool, error) {
		if n.Turn != 0 && n.ID != k.prompt.ID {
			places = append(places, place{n.ID, n.TurnSeq})
		}
		return n.ID > k.first.ID, nil
	})
	if err != nil {
		return nil, err
	}
	if p := &v.ahead.prompt; p.ID != 0 && p.ID != k.prompt.ID {
		places = append(places, place{p.ID, p.TurnSeq}) // it was pinned so far
	}
	all := list
	err = t.e.read(t.ctx, "prompts", func(c *store.Conn) error {
		all = list[:len(list):len(list)]
		for i := len(places) - 1; i >= 0; i-- {
			item, ok, err := store.ItemOf(c, nil, places[i].node)
			if err != nil || !ok {
				return badItem(places[i].node, err)
			}
			d, err := t.e.describe(string(t.family), places[i].node, item)
			if err != nil {
				return err
			}
			all = append(all, window.Prompt{Turn: places[i].ordinal, Text: window.CutPrompt(d.Text)})
		}
		return nil
	})
	return all, err
}

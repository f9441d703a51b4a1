package story

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"agent/client"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// History is where a story is read. Its methods are called beside the loop.
type History interface {
	// Part reads up to so many items that end at a node, 0 for the head, and the turns that
	// they are of.
	Part(ctx context.Context, from int64, most int) (*Part, error)
	// Items reads items by their nodes. What is too large for a line is left out.
	Items(ctx context.Context, nodes []int64) (map[int64]json.RawMessage, error)
}

// Of is a bot's history.
func Of(daemon *client.Client, bot string) History { return history{daemon, bot} }

type history struct {
	daemon *client.Client
	bot    string
}

// Part is a part of a history as it was read.
type Part struct {
	nodes []protocol.Node
	items map[int64]json.RawMessage
	next  *int64
	turns []protocol.Turn             // those of the nodes; of the newest part, all up to the newest
	ends  map[int64]*protocol.Outcome // of turns that came to no good end
}

// maxEnds bounds how many turns' ends are asked for with a part.
const maxEnds = 16

func (h history) Part(ctx context.Context, from int64, most int) (*Part, error) {
	ask := &protocol.HistoryNodes{Bot: h.bot, Limit: protocol.Set(int64(most))}
	if from > 0 {
		ask.From = protocol.Set(from)
	}
	var page protocol.NodePage
	if err := h.daemon.Do(ctx, protocol.OpHistoryNodes, ask, &page); err != nil {
		if errors.Is(err, protocol.BotNotFound) || from == 0 {
			return nil, err
		}
		return &Part{}, nil
	}
	p := &Part{nodes: page.Nodes, next: page.NextFrom}
	slices.Reverse(p.nodes)
	ids := make([]int64, 0, len(p.nodes))
	first, last := int64(1<<52), int64(0)
	for _, n := range p.nodes {
		ids = append(ids, n.Node)
		first, last = min(first, n.Turn), max(last, n.Turn)
	}
	var err error
	if p.items, err = h.Items(ctx, ids); err != nil {
		return nil, err
	}
	for t, err := range h.daemon.Turns(ctx, h.bot, first-1) {
		if err != nil {
			return nil, err
		}
		if from > 0 && t.Turn > last {
			break
		}
		p.turns = append(p.turns, *t)
	}
	return p, p.readEnds(ctx, h)
}

// readEnds asks how the newest turns ended that failed or were interrupted.
func (p *Part) readEnds(ctx context.Context, h history) error {
	p.ends = map[int64]*protocol.Outcome{}
	for i := len(p.turns) - 1; i >= 0 && len(p.ends) < maxEnds; i-- {
		t := p.turns[i]
		if t.Status != protocol.StatusFailed && t.Status != protocol.StatusInterrupted {
			continue
		}
		end, err := h.daemon.Result(ctx, h.bot, t.Turn)
		if errors.Is(err, protocol.TurnResultPruned) {
			continue
		}
		if err != nil {
			return err
		}
		p.ends[t.Turn] = end
	}
	return nil
}

func (h history) Items(ctx context.Context, ids []int64) (map[int64]json.RawMessage, error) {
	items := map[int64]json.RawMessage{}
	for len(ids) > 0 {
		var page protocol.ItemPage
		ask := &protocol.HistoryItems{Bot: h.bot, Nodes: ids[:min(len(ids), PartNodes)]}
		if err := h.daemon.Do(ctx, protocol.OpHistoryItems, ask, &page); err != nil {
			return nil, err
		}
		if len(page.Items) == 0 {
			return items, nil
		}
		for _, it := range page.Items {
			items[it.Node] = it.Item
		}
		ids = ids[len(page.Items):]
	}
	return items, nil
}

// said is what a pointer to a text holds; "" for nil.
func said[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

// Next is the node at which the part before this one ends. more reports whether there is
// one.
func (p *Part) Next() (node int64, more bool) {
	if p.next == nil {
		return 0, false
	}
	return *p.next, len(p.nodes) > 0
}

// Turns are the turns of the part's items; of the newest part, all up to the newest.
func (p *Part) Turns() []protocol.Turn { return p.turns }

// Used are those turns with what they used.
func (p *Part) Used() (turns []usage.Turn) {
	for i := range p.turns {
		turns = append(turns, usage.TurnOf(&p.turns[i]))
	}
	return turns
}

func aboutTurn(t *protocol.Turn) cells.About {
	about := cells.About{Origin: t.Origin}
	if t.From != nil {
		about.From = t.From.Bot
	}
	return about
}

// Show puts the part's items into a transcript, and how the turns ended of which ends
// says so. It may run beside the loop.
func (p *Part) Show(tr *cells.Transcript, ends func(turn int64) bool) {
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

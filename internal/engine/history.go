package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"agent/internal/store"
	"agent/protocol"
)

// HistoryNodes lists a bot's lineage, newest first, inherited history
// included (protocol.md 9).
func (e *Engine) HistoryNodes(ctx context.Context, r *protocol.HistoryNodes) (*protocol.NodePage, *protocol.Error) {
	limit, ok := protocol.PageLimit(r.Limit, protocol.DefaultHistoryLimit, protocol.MaxHistoryNodes)
	if !ok {
		return nil, protocol.Fail(protocol.InvalidHistoryPage, fmt.Sprintf("limit is 1 to %d", protocol.MaxHistoryNodes))
	}
	page := &protocol.NodePage{Nodes: []protocol.Node{}}
	err := e.read(ctx, "history_nodes", func(c *store.Conn) error {
		bot, err := findBot(c, r.Bot, 0)
		if err != nil {
			return err
		}
		from, named := r.From.Get()
		if !named {
			from = bot.Head
		}
		if from == 0 && !named {
			if r.OldestFirst {
				page.NextNewer = protocol.Null[int64]()
			}
			return nil
		}
		if err := onLineage(ctx, c, &bot, from); err != nil {
			return err
		}
		if r.OldestFirst { // begin not far above the page
			above, err := store.Above(c, &bot, max(r.MinNode.Or(0), 0), int64(limit))
			if err != nil {
				return err
			}
			from = min(from, above)
		}
		return listNodes(ctx, c, page, from, r.MinNode.Or(0), limit, r.OldestFirst)
	})
	return page, readError(err)
}

// listNodes fills a page. Only first items carry their turn, so those of the
// others are found by going on to the turn's start.
func listNodes(ctx context.Context, c *store.Conn, page *protocol.NodePage, from, least int64, limit int, oldest bool) error {
	var nodes []protocol.Node // newest first
	open := 0                 // from here on the turn is not known yet
	var next, newer int64
	err := store.Walk(c, from, func(n store.Node) bool {
		inPage := n.ID >= least && (oldest || len(nodes) < limit)
		if inPage {
			nodes = append(nodes, protocol.Node{Node: n.ID})
		} else if next == 0 && n.ID >= least {
			next = n.ID
		}
		if n.Turn != 0 {
			for i := open; i < len(nodes); i++ {
				nodes[i].Turn = n.Turn
			}
			open = len(nodes)
		}
		if oldest && len(nodes) > 2*limit && open > limit {
			// Only the last limit nodes can be the page: the rest is let go.
			drop := min(open, len(nodes)) - limit
			newer = nodes[drop-1].Node
			nodes = append(nodes[:0:0], nodes[drop:]...)
			open -= drop
		}
		done := !inPage && open == len(nodes)
		return !done && ctx.Err() == nil
	})
	if err != nil {
		return err
	}
	if oldest {
		if len(nodes) > limit {
			newer = nodes[len(nodes)-limit-1].Node
			nodes = nodes[len(nodes)-limit:]
		}
		page.NextNewer = protocol.Null[int64]()
		if newer != 0 {
			page.NextNewer = protocol.Set(newer)
		}
	}
	page.Nodes = append(page.Nodes, nodes...)
	if next != 0 {
		page.NextFrom = &next
	}
	return context.Cause(ctx)
}

func onLineage(ctx context.Context, c *store.Conn, bot *store.Bot, node int64) error {
	ok, err := store.OnLineage(ctx, c, bot, node)
	if err == nil && !ok {
		err = protocol.Fail(protocol.NodeNotInHistory, fmt.Sprintf("node %d is not in the bot's history", node))
	}
	return err
}

// HistoryItems gives stored items: a prefix of what is asked, at most 768 KiB,
// or one larger item alone.
func (e *Engine) HistoryItems(ctx context.Context, r *protocol.HistoryItems) (*protocol.ItemPage, *protocol.Error) {
	if len(r.Nodes) == 0 || len(r.Nodes) > protocol.MaxHistoryNodes || repeats(r.Nodes) {
		return nil, protocol.Fail(protocol.InvalidHistoryPage, fmt.Sprintf("nodes are 1 to %d distinct ids", protocol.MaxHistoryNodes))
	}
	page := &protocol.ItemPage{Items: []protocol.Item{}}
	err := e.read(ctx, "history_items", func(c *store.Conn) error {
		bot, err := findBot(c, r.Bot, 0)
		if err != nil {
			return err
		}
		if err := allOnLineage(ctx, c, &bot, r.Nodes); err != nil {
			return err
		}
		return readItems(c, page, r.Nodes)
	})
	return page, readError(err)
}

func readItems(c *store.Conn, page *protocol.ItemPage, nodes []int64) error {
	total := int64(0)
	for _, id := range nodes {
		size, ok, err := store.ItemSize(c, id)
		if err != nil {
			return err
		}
		if !ok {
			return protocol.Fail(protocol.NodeNotInHistory, fmt.Sprintf("node %d is gone", id))
		}
		if len(page.Items) > 0 && total+size > protocol.MaxHistoryPage {
			return nil
		}
		total += size
		// The line holds the item, its entry and the answer's frame.
		if size > protocol.MaxLine-512 {
			page.Items = append(page.Items, protocol.Item{Node: id, Error: protocol.ItemTooLarge})
			total -= size
			continue
		}
		item, _, err := store.ItemOf(c, nil, id)
		if err != nil {
			return err
		}
		page.Items = append(page.Items, protocol.Item{Node: id, Item: item})
	}
	return nil
}

// allOnLineage walks once for any number of nodes, from the newest to the oldest
// of them.
func allOnLineage(ctx context.Context, c *store.Conn, bot *store.Bot, nodes []int64) error {
	want := make(map[int64]bool, len(nodes))
	for _, id := range nodes {
		want[id] = true
	}
	newest, least := slices.Max(nodes), slices.Min(nodes)
	if err := onLineage(ctx, c, bot, newest); err != nil {
		return err
	}
	err := store.Walk(c, newest, func(n store.Node) bool {
		delete(want, n.ID)
		return len(want) > 0 && n.ID > least && ctx.Err() == nil
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	for _, id := range nodes {
		if want[id] {
			return protocol.Fail(protocol.NodeNotInHistory, fmt.Sprintf("node %d is not in the bot's history", id))
		}
	}
	return nil
}

// Item is one stored item, byte for byte.
func (e *Engine) Item(ctx context.Context, name string, node int64) (json.RawMessage, *protocol.Error) {
	var item []byte
	err := e.read(ctx, "item", func(c *store.Conn) error {
		bot, err := findBot(c, name, 0)
		if err != nil {
			return err
		}
		if err := onLineage(ctx, c, &bot, node); err != nil {
			return err
		}
		item, _, err = store.ItemOf(c, nil, node)
		return err
	})
	return item, readError(err)
}

func repeats(ids []int64) bool {
	seen := make(map[int64]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"agent/client/items"
	"agent/client/termsafe"
	"agent/protocol"
)

var historyVerb = verb{
	name: "history", short: "conversation items; search in them",
	long: "Prints a page of a bot's stored items, newest first; with --all every item, one a\n" +
		"line; with --search those whose text holds a text. What a fork inherited is there.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		h := &history{app: a}
		t.filled(&h.nodes.Bot, "bot", "NAME", "the bot; required")
		t.stated(&h.from, "from", 1, mostInteger, "the newest node; default the head")
		t.stated(&h.min, "min-node", 1, mostInteger, "the oldest node; default the first")
		t.number(&h.limit, "limit", 1, protocol.MaxHistoryNodes, "items of a page; default 64")
		t.toggle(&h.nodes.OldestFirst, "oldest-first", "the oldest page of the range; with --all, the oldest item first")
		t.toggle(&h.ids, "ids", "nodes and turns only")
		t.toggle(&h.all, "all", "every item, one a line")
		t.filled(&h.text, "search", "TEXT", "only items whose text holds this, in either case; one a line, newest first")
		t.number(&h.scan, "scan", 0, mostInteger, "with --search: nodes looked at, at most; 0 all, default 10000")
		h.limit, h.scan = 64, 10_000
		read := a.reading(c, s, t, h.run, "bot")
		return func(ctx context.Context, operands []string) error {
			if err := h.check(t); err != nil {
				return err
			}
			return read(ctx, operands)
		}
	},
}

type history struct {
	app       *app
	nodes     protocol.HistoryNodes
	from, min *int64
	limit     int64
	scan      int64
	ids, all  bool
	text      string
}

func (h *history) check(t *table) error {
	switch {
	case h.ids && h.all:
		return usagef("--ids with --all: --all prints whole items, --ids none; leave one out (pages of ids go on with --from)")
	case h.ids && h.text != "":
		return usagef("--ids with --search: a search prints where it found something anyway; leave --ids out")
	case h.all && h.text != "":
		return usagef("--all with --search: a search goes through the history (how far, says --scan); leave --all out")
	case h.nodes.OldestFirst && h.text != "":
		return usagef("--oldest-first with --search: it goes from the newest on; leave --oldest-first out")
	case t.given("scan") && h.text == "":
		return usagef("--scan needs --search")
	}
	return nil
}

func (h *history) run(ctx context.Context, l *link) error {
	if h.from != nil {
		h.nodes.From = protocol.Set(*h.from)
	}
	if h.min != nil {
		h.nodes.MinNode = protocol.Set(*h.min)
	}
	h.nodes.Limit = protocol.Set(h.limit)
	switch {
	case h.text != "":
		return h.search(ctx, l)
	case h.all:
		return h.everything(ctx, l)
	}
	return h.page(ctx, l)
}

// storedNode is one item with its place.
type storedNode struct {
	node, turn int64
	item       json.RawMessage
	failed     protocol.Code // item_too_large
}

// fetch reads the items of a page of nodes, in the order given, and hands each
// on as it arrives.
func (h *history) fetch(ctx context.Context, l *link, nodes []protocol.Node, each func(storedNode) error) error {
	for len(nodes) > 0 {
		r := protocol.HistoryItems{Bot: h.nodes.Bot}
		for _, n := range nodes {
			r.Nodes = append(r.Nodes, n.Node)
		}
		var page protocol.ItemPage
		if err := l.Do(ctx, protocol.OpHistoryItems, &r, &page); err != nil {
			return err
		}
		if len(page.Items) == 0 || len(page.Items) > len(nodes) {
			return protocol.Fail(protocol.InvalidHistoryPage, "the daemon answered with a page that leads nowhere")
		}
		for i, it := range page.Items {
			if err := each(storedNode{nodes[i].Node, nodes[i].Turn, it.Item, it.Error}); err != nil {
				return err
			}
		}
		nodes = nodes[len(page.Items):]
	}
	return nil
}

// append is the item as a JSON object.
func (n *storedNode) append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"node":`...), n.node, 10)
	dst = strconv.AppendInt(append(dst, `,"turn":`...), n.turn, 10)
	switch {
	case n.failed != "":
		dst = appendText(append(dst, `,"error":`...), string(n.failed))
	case n.item != nil:
		dst = termsafe.AppendJSON(append(dst, `,"item":`...), n.item)
	}
	return append(dst, '}')
}

// page prints one page; its items are written as they arrive.
func (h *history) page(ctx context.Context, l *link) error {
	var page protocol.NodePage
	if err := l.Do(ctx, protocol.OpHistoryNodes, &h.nodes, &page); err != nil {
		return err
	}
	if h.app.pretty && !h.ids {
		return h.pretty(ctx, l, page.Nodes)
	}
	out := []byte(`{"items":[`)
	first := true
	add := func(n storedNode) error {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = n.append(out)
		if len(out) < 64<<10 {
			return nil
		}
		err := h.app.write(out)
		out = out[:0]
		return err
	}
	if h.ids {
		for _, n := range page.Nodes {
			if err := add(storedNode{node: n.Node, turn: n.Turn}); err != nil {
				return err
			}
		}
	} else if err := h.fetch(ctx, l, page.Nodes, add); err != nil {
		return err
	}
	out = appendNode(append(out, `],"next_from":`...), page.NextFrom)
	if h.nodes.OldestFirst {
		var newer *int64
		if n, ok := page.NextNewer.Get(); ok {
			newer = &n
		}
		out = appendNode(append(out, `,"next_newer":`...), newer)
	}
	return h.app.write(append(out, "}\n"...))
}

func appendNode(dst []byte, node *int64) []byte {
	if node == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, *node, 10)
}

// walk goes through every page of nodes, in the order wanted.
func (h *history) walk(ctx context.Context, l *link, each func([]protocol.Node) (more bool, err error)) error {
	for {
		var page protocol.NodePage
		if err := l.Do(ctx, protocol.OpHistoryNodes, &h.nodes, &page); err != nil {
			return err
		}
		next := page.NextFrom
		if h.nodes.OldestFirst {
			for i, j := 0, len(page.Nodes)-1; i < j; i, j = i+1, j-1 {
				page.Nodes[i], page.Nodes[j] = page.Nodes[j], page.Nodes[i]
			}
			next = nil
			if n, ok := page.NextNewer.Get(); ok {
				next = &n
			}
		}
		more, err := each(page.Nodes)
		if err != nil || !more || next == nil {
			return err
		}
		if h.nodes.OldestFirst {
			h.nodes.MinNode = protocol.Set(*next)
		} else {
			h.nodes.From = protocol.Set(*next)
		}
	}
}

func (h *history) everything(ctx context.Context, l *link) error {
	return h.walk(ctx, l, func(nodes []protocol.Node) (bool, error) {
		if h.app.pretty {
			return true, h.pretty(ctx, l, nodes)
		}
		return true, h.fetch(ctx, l, nodes, func(n storedNode) error {
			return h.app.write(append(n.append(nil), '\n'))
		})
	})
}

// pretty shows items: who or which tool, then the text, a blank line between.
// A result names its call's tool where the call is among the nodes.
func (h *history) pretty(ctx context.Context, l *link, nodes []protocol.Node) error {
	var list []items.Part
	tools := map[string]string{}
	err := h.fetch(ctx, l, nodes, func(n storedNode) error {
		if n.failed != "" {
			list = append(list, items.Part{Kind: items.Other, Text: string(n.failed)})
			return nil
		}
		for _, p := range items.Parts(n.item) {
			if p.Kind == items.Call {
				tools[p.CallID] = p.Name
			}
			list = append(list, p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, p := range list {
		head := string(p.Kind)
		switch {
		case p.Kind == items.Call:
			head = "▸ " + p.Name
		case p.Kind == items.Result && tools[p.CallID] != "":
			head = tools[p.CallID]
		}
		b.WriteString(termsafe.OneLine(head) + "\n")
		text := p.Text
		if command := callCommand(text); p.Kind == items.Call && command != "" {
			text = command
		}
		if text != "" {
			b.WriteString(strings.TrimRight(termsafe.Prose.Text(text), "\n") + "\n")
		}
		b.WriteString("\n")
	}
	return h.app.write([]byte(b.String()))
}

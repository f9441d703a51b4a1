package client

import (
	"context"
	"io"
	"iter"

	"agent/protocol"
)

// paged yields the entries of page after page. fetch returns a page and
// whether another follows.
func paged[T any](fetch func() (entries []T, more bool, err error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			entries, more, err := fetch()
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range entries {
				if !yield(&entries[i], nil) {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// Bots yields all records in name order, by pages of 64, without instructions.
func (c *Client) Bots(ctx context.Context) iter.Seq2[*protocol.Bot, error] {
	return func(yield func(*protocol.Bot, error) bool) {
		var r protocol.Bots
		paged(func() ([]protocol.Bot, bool, error) {
			page, err := call[protocol.BotPage](ctx, c, protocol.OpBots, &r)
			if err != nil {
				return nil, false, err
			}
			return page.Bots, advance(&r.After, page.NextAfter), nil
		})(yield)
	}
}

// Turns yields a bot's turns after one, in id order.
func (c *Client) Turns(ctx context.Context, bot string, after int64) iter.Seq2[*protocol.Turn, error] {
	return func(yield func(*protocol.Turn, error) bool) {
		r := protocol.Turns{Bot: bot, After: after}
		paged(func() ([]protocol.Turn, bool, error) {
			page, err := call[protocol.TurnPage](ctx, c, protocol.OpTurns, &r)
			if err != nil {
				return nil, false, err
			}
			return page.Turns, advance(&r.After, page.NextAfter), nil
		})(yield)
	}
}

// advance moves a page cursor on and reports whether there is a next page.
func advance[N int64 | string](after, next *N) bool {
	if next == nil {
		return false
	}
	*after = *next
	return true
}

// ApprovalFilter picks waiting calls; its zero value is all of them.
type ApprovalFilter struct{ Bot, Tag string }

// Approvals yields the calls that wait for a verdict, in announcement order.
func (c *Client) Approvals(ctx context.Context, o ApprovalFilter) iter.Seq2[*protocol.Approval, error] {
	return func(yield func(*protocol.Approval, error) bool) {
		r := protocol.ApprovalsRequest{Bot: o.Bot, Tag: o.Tag}
		paged(func() ([]protocol.Approval, bool, error) {
			page, err := call[protocol.ApprovalPage](ctx, c, protocol.OpApprovals, &r)
			if err != nil {
				return nil, false, err
			}
			return page.Approvals, advance(&r.After, page.NextAfter), nil
		})(yield)
	}
}

// ToolCalls yields the served calls that wait for a result, in announcement
// order.
func (c *Client) ToolCalls(ctx context.Context, o ApprovalFilter) iter.Seq2[*protocol.ToolCall, error] {
	return func(yield func(*protocol.ToolCall, error) bool) {
		r := protocol.ToolCallsRequest{Bot: o.Bot, Tag: o.Tag}
		paged(func() ([]protocol.ToolCall, bool, error) {
			page, err := call[protocol.ToolCallPage](ctx, c, protocol.OpToolCalls, &r)
			if err != nil {
				return nil, false, err
			}
			return page.Calls, advance(&r.After, page.NextAfter), nil
		})(yield)
	}
}

// HistoryOptions picks a part of a bot's history.
type HistoryOptions struct {
	From        int64 // the newest node wanted; 0: the head
	MinNode     int64 // the oldest node wanted; 0: no bound
	OldestFirst bool  // from MinNode up rather than from From down
}

// History yields stored items, newest first unless OldestFirst says otherwise,
// nodes and items paged together. An item too large for a line has the Error
// item_too_large.
func (c *Client) History(ctx context.Context, bot string, o HistoryOptions) iter.Seq2[*protocol.Item, error] {
	return func(yield func(*protocol.Item, error) bool) {
		h := history{c: c, ctx: ctx, bot: bot, options: o}
		paged(h.fetch)(yield)
	}
}

// history is the paging state: nodes listed, whose items are still to come,
// and where the next page of nodes begins.
type history struct {
	c       *Client
	ctx     context.Context
	bot     string
	options HistoryOptions
	nodes   []protocol.Node
	listed  bool // every node has been listed
}

func (h *history) fetch() (items []protocol.Item, more bool, err error) {
	if len(h.nodes) == 0 {
		if err := h.list(); err != nil || len(h.nodes) == 0 {
			return nil, false, err
		}
	}
	ids := make([]int64, len(h.nodes))
	turns := make(map[int64]int64, len(h.nodes))
	for i, n := range h.nodes {
		ids[i], turns[n.Node] = n.Node, n.Turn
	}
	page, err := call[protocol.ItemPage](h.ctx, h.c, protocol.OpHistoryItems, &protocol.HistoryItems{Bot: h.bot, Nodes: ids})
	if err != nil {
		return nil, false, err
	}
	if len(page.Items) == 0 || len(page.Items) > len(ids) {
		return nil, false, &protocol.Error{Code: protocol.InvalidHistoryPage, Op: protocol.OpHistoryItems, Detail: "the daemon answered with a page that leads nowhere"}
	}
	for i := range page.Items {
		page.Items[i].Turn = turns[page.Items[i].Node]
	}
	h.nodes = h.nodes[len(page.Items):]
	return page.Items, len(h.nodes) > 0 || !h.listed, nil
}

// list fetches the next page of nodes, in the order wanted.
func (h *history) list() error {
	if h.listed {
		return nil
	}
	r := protocol.HistoryNodes{Bot: h.bot, OldestFirst: h.options.OldestFirst}
	if h.options.From != 0 {
		r.From = protocol.Set(h.options.From)
	}
	if h.options.MinNode != 0 {
		r.MinNode = protocol.Set(h.options.MinNode)
	}
	page, err := call[protocol.NodePage](h.ctx, h.c, protocol.OpHistoryNodes, &r)
	if err != nil {
		return err
	}
	h.nodes = page.Nodes
	if !h.options.OldestFirst {
		h.listed = !advance(&h.options.From, page.NextFrom)
		return nil
	}
	for i, j := 0, len(h.nodes)-1; i < j; i, j = i+1, j-1 {
		h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i]
	}
	next, ok := page.NextNewer.Get()
	h.listed, h.options.MinNode = !ok, next
	return nil
}

// Artifact reads one kept stream of a call, a page at a time as it is read. It
// ends with io.EOF; any other error is a *protocol.Error or ctx's. It is for
// one goroutine.
func (c *Client) Artifact(ctx context.Context, bot string, turn int64, callID, stream string) io.Reader {
	return &artifact{c: c, ctx: ctx, request: protocol.ArtifactRequest{Bot: bot, Turn: turn, CallID: callID, Stream: protocol.Set(stream)}}
}

type artifact struct {
	c       *Client
	ctx     context.Context
	request protocol.ArtifactRequest
	text    string
	err     error // what follows the text
}

func (a *artifact) Read(p []byte) (int, error) {
	for a.text == "" {
		if a.err != nil {
			return 0, a.err
		}
		a.fetch()
	}
	n := copy(p, a.text)
	a.text = a.text[n:]
	return n, nil
}

func (a *artifact) fetch() {
	page, err := call[protocol.ArtifactPage](a.ctx, a.c, protocol.OpArtifact, &a.request)
	if err != nil {
		a.err = err
		return
	}
	a.text = page.Text
	if page.Done {
		a.err = io.EOF
	} else if page.NextOffset <= a.request.Offset.Or(0) {
		a.err = &protocol.Error{Code: protocol.InvalidArtifactPage, Op: protocol.OpArtifact, Detail: "the daemon answered with a page that leads nowhere"}
	}
	a.request.Offset = protocol.Set(page.NextOffset)
}

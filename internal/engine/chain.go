package engine

import (
	"agent/internal/model"
)

// chain is where a view stands in the bot's history, for a provider that may go
// on from what its server remembers (providers.md 8); nil for any other.
func (t *task) chain(v *view, tracked *bodies) *model.Chain {
	if t.provider.Info().Transport != model.TransportWebSocket {
		return nil
	}
	return &model.Chain{
		Ahead: v.pinned,
		Nodes: len(v.nodes),
		Node:  func(i int) (int64, uint64) { return v.nodes[i].id, v.nodes[i].form() },
		After: func(n int) model.Items {
			rest := *v
			rest.pinned, rest.nodes = nil, v.nodes[n:]
			rest.measure()
			return rest.items(t.ctx, t.e, t.codec, tracked)
		},
	}
}

// form tells the ways apart in which a node can be sent: whole (0), as its stub,
// without its thinking, with some of its pictures as text.
func (n *viewNode) form() uint64 {
	form := uint64(0)
	if n.stub() {
		form = 1
	}
	if n.thinking > 0 {
		form |= 2
	}
	if n.pics != nil && n.pics.text {
		for i := range n.pics.list {
			form <<= 2
			if p := &n.pics.list[i]; p.out {
				form |= 4
				if p.textOnly {
					form |= 8
				}
			}
		}
	}
	return form
}

// recorded tells the provider under which nodes the answer to the last call is
// stored.
func (t *task) recorded(nodes []int64) {
	if r, ok := t.provider.(model.Rememberer); ok {
		r.Recorded(t.bot, nodes)
	}
}

// forget tells all providers that a bot is deleted.
func (e *Engine) forget(bot int64) {
	for _, p := range e.cfg.Providers {
		if r, ok := p.(model.Rememberer); ok {
			r.Forget(bot)
		}
	}
}

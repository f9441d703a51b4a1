package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/store"
	"agent/protocol"
)

// keptCall is a call whose kept output a bot may read: one of its own turns, or
// one that its lineage has from another bot (runtime.md 12).
type keptCall struct {
	bot    *store.Bot
	turn   int64
	callID string
	node   int64 // the end of the response that planned it; 0: no such call
}

// keptCallOf finds a call for a reader. The nodes decide, which retention and
// deletion of the bot that made them leave where they are.
func (e *Engine) keptCallOf(ctx context.Context, c *store.Conn, name string, turn int64, callID string) (*keptCall, error) {
	bot, err := findBot(c, name, 0)
	if err != nil {
		return nil, err
	}
	node, inherited, err := store.CallNode(c, bot.ID, callID)
	if err != nil {
		return nil, err
	}
	if node != 0 {
		if of, err := turnOf(c, node); err != nil {
			return nil, err
		} else if of != turn {
			node = 0
		}
	}
	k := &keptCall{bot: &bot, turn: turn, callID: callID, node: node}
	if node != 0 && !inherited {
		return k, nil
	}
	t, ok, err := store.TurnByID(c, turn)
	if err != nil || ok && t.Bot == name {
		return k, err
	}
	if node == 0 {
		return nil, protocol.Fail(protocol.TurnNotFound, fmt.Sprintf("%s has no turn %d", name, turn))
	}
	return k, e.delivered(ctx, c, k)
}

// delivered checks that what a command in the background kept came to be known
// on the reader's lineage: its call has a result long before that.
func (e *Engine) delivered(ctx context.Context, c *store.Conn, k *keptCall) error {
	node, ok, err := store.ProcessDelivered(c, k.turn, k.callID)
	if err != nil || !ok {
		return err
	}
	if node != 0 {
		if ok, err = store.InLineage(ctx, c, k.bot.Head, node); err != nil || ok {
			return err
		}
	}
	return protocol.Fail(protocol.TurnNotFound, fmt.Sprintf("what the command of call %s came to is not in the history of %s", k.callID, k.bot.Name))
}

// turnOf is the turn that a node is part of.
func turnOf(c *store.Conn, node int64) (turn int64, err error) {
	err = store.Walk(c, node, func(n store.Node) bool { turn = n.Turn; return turn == 0 })
	return turn, err
}

// noArtifact says why a call has no stream of a name, "" for any: its result
// tells whether there ever was one.
func (e *Engine) noArtifact(c *store.Conn, k *keptCall, stream string) error {
	reference, _ := jsontext.AppendQuote(nil, fmt.Sprintf("%d/%s/%s", k.turn, k.callID, stream))
	named := string(reference)
	if stream == "" {
		named = strings.TrimSuffix(named, `"`)
	}
	text, err := e.resultOf(c, k)
	switch {
	case err != nil:
		return err
	case strings.Contains(text, named):
		return protocol.Fail(protocol.ArtifactPruned, fmt.Sprintf("what call %s of turn %d kept was removed", k.callID, k.turn))
	}
	return protocol.Fail(protocol.ArtifactNotFound, strings.TrimSpace(fmt.Sprintf("call %s of turn %d kept no stream %s", k.callID, k.turn, stream)))
}

// resultOf is the output of a call, "" while it has none. The results of a
// round follow its response, and no fork begins between them.
func (e *Engine) resultOf(c *store.Conn, k *keptCall) (string, error) {
	for node := k.node; node != 0; {
		next, err := store.FirstChild(c, node)
		if err != nil || next == 0 {
			return "", err
		}
		d, err := e.itemAt(c, k.bot.Family, next)
		switch {
		case err != nil || d.Role != "tool":
			return "", err
		case d.CallID == k.callID:
			return d.Text, nil
		}
		node = next
	}
	return "", nil
}

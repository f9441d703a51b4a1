package approver

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"testing"

	"agent/client"
	"agent/protocol"
)

// records is a daemon that only answers from its records: for histories that no
// model would have.
type records struct {
	bots    map[string]protocol.Bot
	prompts map[int64]protocol.Prompts // by turn
	turns   []protocol.Turn
	items   []protocol.Item // oldest first
}

// gatherer asks the records, and knows one secret.
func (r *records) gatherer(t testing.TB) *gatherer {
	c := &client.Client{Target: client.Target{Store: "/x", Socket: "/x.sock"}, Dial: func(context.Context, string) (net.Conn, error) {
		far, near := net.Pipe()
		go r.serve(far)
		return near, nil
	}}
	t.Cleanup(func() { c.Close() })
	g := newGatherer(c, "")
	g.env, g.dir = []string{"X_TOKEN=" + plantedKey}, ""
	return g
}

func (r *records) serve(conn net.Conn) {
	defer conn.Close()
	line, _ := protocol.AppendReady(nil, &protocol.Ready{PID: os.Getpid(), Capabilities: protocol.Capabilities()})
	conn.Write(line)
	lines := protocol.NewLineReader(conn)
	for {
		line, err := lines.Next()
		if err != nil {
			return
		}
		q, _ := protocol.ParseRequest(line)
		answer, failed := r.answer(line)
		if failed == nil {
			line, err = protocol.AppendResult(nil, q.ID, answer)
		}
		if failed != nil || err != nil {
			line = protocol.AppendError(nil, q.ID, failed)
		}
		if _, err := conn.Write(line); err != nil {
			return
		}
	}
}

func (r *records) answer(line []byte) (any, *protocol.Error) {
	var q struct {
		Op    string  `json:"op"`
		Bot   string  `json:"bot"`
		Turn  int64   `json:"turn"`
		Node  int64   `json:"node"`
		Nodes []int64 `json:"nodes"`
	}
	json.Unmarshal(line, &q)
	bot, ok := r.bots[q.Bot]
	if !ok {
		return nil, protocol.Fail(protocol.BotNotFound, "")
	}
	switch q.Op {
	case protocol.OpInspect:
		return bot, nil
	case protocol.OpPrompts:
		if p, ok := r.prompts[q.Turn]; ok {
			return p, nil
		}
		return nil, protocol.Fail(protocol.TurnNotFound, "")
	case protocol.OpTurns:
		return protocol.TurnPage{Turns: r.turns}, nil
	case protocol.OpHistoryNodes:
		page := protocol.NodePage{Nodes: []protocol.Node{}}
		for i := len(r.items) - 1; i >= 0; i-- {
			page.Nodes = append(page.Nodes, protocol.Node{Node: r.items[i].Node, Turn: 1})
		}
		return page, nil
	case protocol.OpHistoryItems:
		page := protocol.ItemPage{Items: []protocol.Item{}}
		for _, n := range q.Nodes {
			page.Items = append(page.Items, r.item(n))
		}
		return page, nil
	case protocol.OpItem:
		return r.item(q.Node).Item, nil
	}
	return nil, protocol.Fail(protocol.UnknownTool, q.Op)
}

func (r *records) item(node int64) protocol.Item {
	for _, i := range r.items {
		if i.Node == node {
			return i
		}
	}
	return protocol.Item{Node: node, Error: protocol.ItemTooLarge}
}

// scene is a bot with one call waiting in turn 100.
func scene(prompts ...protocol.Prompt) (*records, *round) {
	work := "/w"
	for i := range prompts {
		if prompts[i].Bytes == 0 {
			prompts[i].Bytes = int64(len(prompts[i].Text))
		}
	}
	r := &records{
		bots:    map[string]protocol.Bot{"b": {Name: "b", ID: 1, Workspace: &work, Sandbox: workspaceWrite}},
		prompts: map[int64]protocol.Prompts{100: {Status: "waiting", Workspace: &work, Prompts: prompts, Earlier: []protocol.Prompt{}, Calls: []protocol.PromptCall{}}},
	}
	call := protocol.Approval{Bot: "b", BotID: 1, Turn: 100, CallID: "c", Name: "shell", Node: 5000, Cause: "escalation", Arguments: json.RawMessage(`{"command":"true"}`)}
	return r, &round{bot: "b", botID: 1, turn: 100, calls: []protocol.Approval{call}}
}

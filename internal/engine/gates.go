package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"agent/internal/store"
	"agent/protocol"
)

// A bot's gates name the tools whose calls wait for a verdict, and who gives it
// (approvals.md 2). They are a column of its row, in order; nil for none.

// gatesIn reads the gates of a row. A column that cannot be read is an error and
// never no gates.
func gatesIn(bot int64, raw json.RawMessage) (gates []protocol.Gate, err error) {
	if raw == nil {
		return nil, nil
	}
	if json.Unmarshal(raw, &gates) != nil || len(gates) == 0 {
		return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("bots %d: gates cannot be read", bot))
	}
	for _, g := range gates {
		if len(g.Tools) == 0 || g.Tag == "" {
			return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("bots %d: gates cannot be read", bot))
		}
	}
	return gates, nil
}

// gatesText is a row's gates as an event shows them.
func gatesText(raw json.RawMessage) []byte {
	if raw == nil {
		return []byte("[]")
	}
	return raw
}

// naming are the gates that name a tool, in order.
func naming(gates []protocol.Gate, tool string) (out []protocol.Gate) {
	for _, g := range gates {
		if slices.Contains(g.Tools, tool) {
			out = append(out, g)
		}
	}
	return out
}

// checkGateAsked checks the gate of create and fork before anything else of it.
func (e *Engine) checkGateAsked(tools []string, tag string, expire protocol.Opt[int64]) *protocol.Error {
	ms, expires := expire.Get()
	switch {
	case tools == nil && tag == "" && expires:
		return protocol.Fail(protocol.InvalidApproveExpiry, "approve_expire_ms goes with a gate: approve and approver")
	case tools == nil && tag == "":
		return nil
	case tools == nil || tag == "":
		return protocol.Fail(protocol.InvalidGate, "approve, the tools, and approver, the tag, go together")
	}
	g := protocol.Gate{Tag: tag, Tools: tools}
	if expires {
		g.ExpireMS = &ms
	}
	return e.checkGate(g)
}

// checkGate checks one gate by itself.
func (e *Engine) checkGate(g protocol.Gate) *protocol.Error {
	most := len(e.toolNames) + protocol.MaxClientTools
	switch {
	case len(g.Tools) == 0:
		return protocol.Fail(protocol.InvalidGate, "a gate names at least one tool")
	case len(g.Tools) > most:
		return protocol.Fail(protocol.InvalidGate, fmt.Sprintf("a gate names %d tools; there are not that many", len(g.Tools)))
	case !protocol.ValidName(g.Tag):
		return protocol.Fail(protocol.InvalidApprover, fmt.Sprintf("a gate's tag is 1 to %d bytes of letters, digits, - _ and .", protocol.MaxName))
	case g.ExpireMS != nil && (*g.ExpireMS < 1 || *g.ExpireMS > protocol.MaxApproveExpireMS):
		return protocol.Fail(protocol.InvalidApproveExpiry, fmt.Sprintf("a gate expires in 1 to %d milliseconds, or never", protocol.MaxApproveExpireMS))
	}
	return nil
}

// ownGate is the checked gate of a create or a fork as a list, empty for none.
func ownGate(tools []string, tag string, expire protocol.Opt[int64]) []protocol.Gate {
	if tools == nil {
		return nil
	}
	g := protocol.Gate{Tag: tag, Tools: tools}
	if ms, ok := expire.Get(); ok {
		g.ExpireMS = &ms
	}
	return []protocol.Gate{g}
}

// gatesNameTools refuses gates that name a tool which the bot does not have.
func gatesNameTools(gates []protocol.Gate, b *store.Bot) *protocol.Error {
	has, err := allTools(b)
	if err != nil {
		return asError(err)
	}
	for _, g := range gates {
		for _, name := range g.Tools {
			if !slices.Contains(has, name) {
				return protocol.Fail(protocol.ApproveNotInTools, fmt.Sprintf("the gate %s names %q, which %s does not have among its tools", g.Tag, name, b.Name))
			}
		}
	}
	return nil
}

// allTools are a bot's tools, those that a client serves behind the daemon's.
func allTools(b *store.Bot) ([]string, error) {
	declared, err := clientTools(b)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(b.Tools)
	for i := range declared {
		names = append(names, declared[i].Name)
	}
	return names, nil
}

// inheritGates gives a new bot its gates: those of its source, nil for none, of
// its creator, and its own, in this order.
func inheritGates(c *store.Conn, b, source *store.Bot, own []protocol.Gate) error {
	has, err := allTools(b)
	if err != nil {
		return err
	}
	var gates []protocol.Gate
	if source != nil {
		from, err := gatesIn(source.ID, source.Gates)
		if err != nil {
			return err
		}
		gates = addGates(gates, from, has)
	}
	if b.CreatedByID != 0 {
		raw, err := store.BotGates(c, b.CreatedByID)
		if err != nil {
			return err
		}
		from, err := gatesIn(b.CreatedByID, raw)
		if err != nil {
			return err
		}
		gates = addGates(gates, from, has)
	}
	b.Gates, err = encodeGates(addGates(gates, own, has))
	return err
}

// regate replaces a bot's gates. Calls that were announced keep theirs.
func regate(b *store.Bot, gates []protocol.Gate) error {
	if err := gatesNameTools(gates, b); err != nil {
		return err
	}
	has, err := allTools(b)
	if err != nil {
		return err
	}
	b.Gates, err = encodeGates(addGates(nil, gates, has))
	return err
}

// addGates adds gates, as far as they name tools that are there. Those of one tag
// become one: of all their tools, with the shorter expiry.
func addGates(list, more []protocol.Gate, has []string) []protocol.Gate {
	for _, g := range more {
		var tools []string
		for _, name := range g.Tools {
			if slices.Contains(has, name) {
				tools = append(tools, name)
			}
		}
		if len(tools) == 0 {
			continue
		}
		at := slices.IndexFunc(list, func(o protocol.Gate) bool { return o.Tag == g.Tag })
		if at < 0 {
			list = append(list, protocol.Gate{Tag: g.Tag, ExpireMS: g.ExpireMS})
			at = len(list) - 1
		}
		into := &list[at]
		into.Tools = append(into.Tools, tools...)
		slices.Sort(into.Tools)
		into.Tools = slices.Compact(into.Tools)
		if g.ExpireMS != nil && (into.ExpireMS == nil || *g.ExpireMS < *into.ExpireMS) {
			into.ExpireMS = g.ExpireMS
		}
	}
	return list
}

// encodeGates is the form in which a row keeps gates.
func encodeGates(gates []protocol.Gate) (json.RawMessage, error) {
	if len(gates) > protocol.MaxGates {
		return nil, protocol.Fail(protocol.GateLimit, fmt.Sprintf("%d gates, inherited ones included, of at most %d", len(gates), protocol.MaxGates))
	}
	if len(gates) == 0 {
		return nil, nil
	}
	return protocol.Append(nil, gates)
}

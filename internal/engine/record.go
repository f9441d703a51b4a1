package engine

import (
	"encoding/json"
	"errors"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// record commits a model's response: its items, what it used and the calls it
// plans, all before any of them runs (runtime.md 25). It gives the calls.
func (t *task) record(v *view, done *model.Completion) ([]model.Call, error) {
	var plan *gatePlan // made only for a bot that has gates: the commit says so
	for range settleTries {
		calls, err := t.recordPlanned(v, done, plan)
		if !errors.Is(err, errSettleAgain) {
			return calls, err
		}
		if plan, err = t.planGates(done); err != nil {
			return nil, err
		}
	}
	return nil, protocol.Fail(protocol.BotBusy, "the gates or the sandbox of "+t.name+" keep changing")
}

// recordPlanned is record by a plan of what waits for verdicts.
func (t *task) recordPlanned(v *view, done *model.Completion, plan *gatePlan) ([]model.Call, error) {
	var head int64
	nodes := make([]int64, 0, len(done.Items))
	spend := spendOf(done.Usage)
	err := t.e.store.Do("append", func(tx *store.Tx) error {
		head, nodes = t.head, nodes[:0]
		for _, item := range done.Items {
			node, err := tx.AppendNode(head, store.NewNode{Item: item, Thinking: int64(t.codec.ThinkingBytes(item))})
			if err != nil {
				return err
			}
			head, nodes = node, append(nodes, node)
			data := newObject().int("node", node).done()
			if _, err := tx.AddEvent(t.bot, t.name, t.turn, protocol.KindMessage, data); err != nil {
				return err
			}
		}
		if err := t.addUsage(tx, done.Usage); err != nil {
			return err
		}
		if err := t.planCalls(tx, nodes, done.Calls, plan); err != nil {
			return err
		}
		if err := t.moveWindow(tx, v); err != nil {
			return err
		}
		if err := t.addExternal(tx, done.External, "web_search"); err != nil {
			return err
		}
		if err := tx.CountRound(t.turn, spend, t.retries, t.pacedMS); err != nil {
			return err
		}
		return tx.GrowBot(t.bot, t.turn, head, t.head, spend)
	})
	if err != nil {
		return nil, err
	}
	t.head = head
	t.recorded(nodes)
	if len(done.Items) > 0 {
		t.output = head
	}
	t.last, t.shrunk, t.paused = v, false, done.Continue
	t.count(spend)
	return done.Calls, nil
}

func (t *task) planCalls(tx *store.Tx, nodes []int64, calls []model.Call, plan *gatePlan) error {
	if len(calls) == 0 {
		return nil
	}
	last, err := store.LastSeq(tx.Conn(), t.turn)
	if err != nil {
		return err
	}
	for i, c := range calls {
		if err := tx.PlanCall(t.turn, t.bot, nodes[len(nodes)-1], store.ToolCall{CallID: c.ID, Name: c.Name, Seq: last + 1 + i}); err != nil {
			return err
		}
	}
	return t.announce(tx, plan, calls, last+1, nodes)
}

// moveWindow records where the view of the answered request started.
func (t *task) moveWindow(tx *store.Tx, v *view) error {
	if v.moved {
		if err := tx.SetContextStart(t.bot, v.start); err != nil {
			return err
		}
	}
	if v.bound {
		return tx.SetThinking(t.bot, v.thinking)
	}
	return nil
}

// addExternal notes, once, that a tool brought outside content into the turn.
func (t *task) addExternal(tx *store.Tx, external bool, name string) error {
	if !external || contains(t.external, name) {
		return nil
	}
	names, err := json.Marshal(append(t.external[:len(t.external):len(t.external)], name))
	if err != nil {
		return err
	}
	tx.AfterCommit(func() { t.external = append(t.external, name) })
	return tx.SetExternal(t.turn, names)
}

// charge records what a failed or unwanted call used: it counts as a round and
// puts nothing into the history.
func (t *task) charge(u *model.Usage) error {
	if u == nil {
		return nil
	}
	spend := spendOf(u)
	err := t.e.store.Do("charge", func(tx *store.Tx) error {
		if err := t.addUsage(tx, u); err != nil {
			return err
		}
		if err := tx.CountRound(t.turn, spend, t.retries, t.pacedMS); err != nil {
			return err
		}
		return tx.ChargeBot(t.bot, spend)
	})
	if err == nil {
		t.count(spend)
	}
	return err
}

// count adds a recorded call to what the task knows and to the daemon's totals.
func (t *task) count(s store.Spend) {
	t.rounds++
	t.spent(s)
}

// spent is count for what is no round.
func (t *task) spent(s store.Spend) {
	t.used += s.Input + s.Output
	e := t.e
	e.mu.Lock()
	e.totals.InputTokens += s.Input
	e.totals.CachedInputTokens += s.Cached
	e.totals.OutputTokens += s.Output
	e.mu.Unlock()
}

func spendOf(u *model.Usage) store.Spend {
	return store.Spend{Input: u.Input, Output: u.Output, Cached: u.Cached}
}

func (t *task) addUsage(tx *store.Tx, u *model.Usage) error {
	if m := t.summarizer; m != nil && len(u.Models) == 0 {
		named := *u
		named.Models = []model.ModelUsage{{
			Provider: m.Provider, Model: m.Model, Input: u.Input, Output: u.Output,
			Cached: u.Cached, CacheWrite: u.CacheWrite,
		}}
		u = &named
	}
	_, err := tx.AddEvent(t.bot, t.name, t.turn, protocol.KindUsage, usageData(u, t.sentMS, t.purpose))
	return err
}

// usageData is a call's usage as its event gives it.
func usageData(u *model.Usage, sentMS int64, purpose string) json.RawMessage {
	o := newObject().int("input_tokens", u.Input).int("output_tokens", u.Output).
		int("cached_input_tokens", u.Cached).int("sent_ms", sentMS)
	for _, f := range []struct {
		name string
		n    int64
		has  bool
	}{
		{"cache_write_tokens", u.CacheWrite, u.HasCacheWrite},
		{"cache_write_1h_tokens", u.CacheWrite1h, false},
		{"reasoning_tokens", u.Reasoning, u.HasReasoning},
		{"web_search_requests", u.WebSearches, false},
	} {
		if f.n != 0 || f.has {
			o.int(f.name, f.n)
		}
	}
	o.opt("purpose", purpose)
	if u.Estimated {
		o.bool("estimated", true)
	}
	if len(u.Models) > 0 {
		list := []byte{'['}
		for i, m := range u.Models {
			if i > 0 {
				list = append(list, ',')
			}
			part := newObject().opt("provider", m.Provider).str("model", m.Model).int("input_tokens", m.Input).
				int("output_tokens", m.Output).int("cached_input_tokens", m.Cached)
			if m.CacheWrite != 0 {
				part.int("cache_write_tokens", m.CacheWrite)
			}
			list = append(list, part.done()...)
		}
		o.raw("models", append(list, ']'))
	}
	return o.done()
}

package engine

import (
	"encoding/json"
	"fmt"

	"agent/internal/store"
	"agent/internal/window"
	"agent/protocol"
)

// pinnedSummary is the summary block of a version, kept so that it is not made
// again for each request. A version that is extended has another cut.
type pinnedSummary struct {
	node, cut int64
	block     []byte
}

// summaryPinned adds a bot's summary to what stands ahead of its window.
func (t *task) summaryPinned(c *store.Conn, version int64, a *ahead) (err error) {
	if version == 0 {
		return nil
	}
	if a.compaction, err = store.CompactionByNode(c, version); err != nil {
		return err
	}
	k := &a.compaction
	if k.Pinned != 0 {
		ok := false
		if a.prompt, ok, err = store.NodeByID(c, k.Pinned); err != nil || !ok {
			return badItem(k.Pinned, err)
		}
	}
	if t.summary.node != k.Node || t.summary.cut != k.Cut {
		prompts, err := promptsOf(k)
		if err != nil {
			return err
		}
		t.summary = pinnedSummary{node: k.Node, cut: k.Cut, block: t.encodeSummary(k, prompts)}
	}
	a.summary = t.summary.block
	return nil
}

func (t *task) encodeSummary(k *store.Compaction, prompts []window.Prompt) []byte {
	text := window.SummaryText(k.Summary, prompts, k.CoveredTo, k.Pinned != 0)
	return t.codec.UserMarked(text, t.e.cfg.Limits.CacheTTL)
}

func promptsOf(k *store.Compaction) (list []window.Prompt, err error) {
	if k.Prompts == nil {
		return nil, nil
	}
	if err := json.Unmarshal(k.Prompts, &list); err != nil {
		return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("compaction %d: its prompts cannot be read", k.Node))
	}
	return list, nil
}

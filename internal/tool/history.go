package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"

	"agent/protocol"
)

var (
	//go:embed history.md
	historyText string
	//go:embed history.json
	historyParameters string
)

// historyTool pages through earlier turns (runtime.md 11, history).
var historyTool = &builtin[historyArgs]{
	name: "history", description: historyText, parameters: historyParameters, check: checkHistory, run: runHistory,
}

type historyArgs struct {
	Turn   arg[int64] `json:"turn"`
	Offset arg[int64] `json:"offset"`
	Limit  arg[int64] `json:"limit"`
}

const (
	maxHistoryPage = 64 << 10 // bytes of the reading view
	minHistoryRoom = 256      // bytes of context under which no page is given
	// historyItem is how much a family's item takes around an encoded result
	// and its call id, at most.
	historyItem = 160
)

func checkHistory(a *historyArgs) *Failure {
	return first(
		required("turn", a.Turn),
		within("turn", a.Turn, 1, math.MaxInt64),
		within("offset", a.Offset, 0, math.MaxInt64),
		within("limit", a.Limit, 4, maxHistoryPage),
	)
}

func runHistory(ctx context.Context, env *Env, a *historyArgs) Result {
	room, err := env.Past.HistoryRoom(ctx)
	if err != nil {
		return env.refuse(pastFailure(err))
	}
	exhausted := failuref(protocol.HistoryContextExhausted,
		"the context has no room for a page of history; finish this turn, or go on without it")
	if room < minHistoryRoom {
		return env.refuse(exhausted)
	}
	asked := a.Limit.or(maxHistoryPage)
	limit := min(asked, room)
	view, err := env.Past.TurnView(ctx, a.Turn.value, a.Offset.value, int(limit))
	if err != nil {
		return env.refuse(pastFailure(err))
	}
	page := historyPage{turn: a.Turn.value, offset: a.Offset.value, view: view, short: limit < asked}
	room -= int64(historyItem + len(env.CallID))
	text := view.Text
	for {
		output := page.encode(env, text)
		size := int64(len(quote(output)))
		if size <= room {
			return Result{Output: output}
		}
		// What the text takes as sent falls about as its length does.
		next := charStart(text, int(int64(len(text))*max(room, 0)/size))
		if next = min(next, charStart(text, len(text)-1)); next <= 0 {
			return env.refuse(exhausted)
		}
		text = text[:next]
	}
}

type historyPage struct {
	turn, offset int64
	view         View
	short        bool // less was read than was asked for
}

// encode makes the result for the text, which begins the page. The offsets
// count bytes of the stored view, whatever redaction makes of them. A page is
// truncated when the context, not limit, ended it.
func (p historyPage) encode(env *Env, text string) string {
	next := p.offset + int64(len(text))
	done := next >= p.view.Total
	truncated := !done && (p.short || len(text) < len(p.view.Text))
	return fmt.Sprintf(`{"turn":%d,"format":"jsonl","offset":%d,"next_offset":%d,"items":%d,"truncated":%t,"done":%t,"text":%s}`,
		p.turn, p.offset, next, p.view.Items, truncated, done,
		quote(string(env.Redact.Bytes([]byte(text)))))
}

// pastFailure is an error of Past for the model: its own code, or the store's.
func pastFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return failuref(protocol.StorageError, "the conversation's store could not be read")
}

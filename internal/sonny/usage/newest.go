package usage

import (
	"context"
	"errors"

	"agent/client"
	"agent/protocol"
)

// firstBack is how far before a bot's newest event its newest call is looked for first, in
// events of the whole store; each time after it is four times as far.
const firstBack = 64

// NewestCall is what the newest call of a bot for its own context used; nil where no
// event tells. It asks the daemon for a few pages of events.
func NewestCall(ctx context.Context, c *client.Client, bot string) (*protocol.Usage, error) {
	to, err := newestEvent(ctx, c, bot)
	for back := int64(firstBack); err == nil && to > 0; back *= 4 {
		from := max(0, to-back)
		u, err := callBetween(ctx, c, bot, from, to)
		if u != nil || err != nil || from == 0 {
			return u, err
		}
		to = from
	}
	return nil, err
}

// newestEvent is the cursor of a bot's newest event; 0 for none. Cursors are the whole
// store's, so it is found by halving.
func newestEvent(ctx context.Context, c *client.Client, bot string) (int64, error) {
	stats, err := c.Stats(ctx)
	if err != nil {
		return 0, err
	}
	newest, end := int64(0), stats.Cursor
	for newest < end {
		after := newest + (end-newest)/2
		page, err := c.Events(ctx, bot, after, 1)
		if err != nil {
			return 0, err
		}
		if len(page.Events) == 0 {
			end = after
			if after == newest {
				return newest, nil
			}
			continue
		}
		newest = max(newest+1, min(page.NextCursor, end))
	}
	return newest, nil
}

// callBetween is the newest call's usage among the events after one cursor up to another.
func callBetween(ctx context.Context, c *client.Client, bot string, from, to int64) (found *protocol.Usage, err error) {
	for from < to {
		page, err := c.Events(ctx, bot, from, 256)
		if err != nil {
			return nil, err
		}
		events, err := page.All()
		if err != nil || len(events) == 0 {
			return found, err
		}
		for _, e := range events {
			u := &protocol.Usage{}
			if e.Kind == protocol.KindUsage && e.Cursor <= to && e.Decode(u) == nil && u.Purpose == "" {
				found = u
			}
		}
		if page.NextCursor <= from {
			return nil, errors.New("a page of events does not go on")
		}
		from = page.NextCursor
	}
	return found, nil
}

package lead

import (
	"context"

	"agent/client"
	"agent/protocol"
)

// Compact is what /compact gives back of a bot's settings once its turn is over
// (sonny.md 10.5). It is kept with the session before anything is lowered, so that
// whoever is there then, the tool host or the next opening, gives it back.
type Compact struct {
	Request string `json:"request"` // of the turn
	After   int64  `json:"after"`   // the newest turn that had ended before
	At      *int64 `json:"at"`      // compact_at; nil: the daemon's
	Keep    *int64 `json:"keep"`    // compact_keep; nil: the daemon's
	Items   *int64 `json:"items"`   // context_items; nil: the daemon's
}

// Lowers notes that a bot's compaction point is about to be lowered. What an earlier one
// has not given back yet stands.
func (b *Book) Lowers(s Session, c Compact) error {
	return b.Change(func(p *Page) error {
		kept := p.Of(s.Store, s.BotID)
		if kept == nil {
			p.Put(s)
			kept = p.Of(s.Store, s.BotID)
		}
		if old := kept.Compact; old != nil {
			c.At, c.Keep, c.Items = old.At, old.Keep, old.Items
		}
		kept.Compact = &c
		return nil
	})
}

// GiveBack gives a bot its compaction point again, where /compact lowered it and over
// says that its turn will not run any more. It is tried until the daemon is there, and
// done again where it was cut short.
func (b *Book) GiveBack(ctx context.Context, c *client.Client, store string, bot int64, over func(*Compact) bool) error {
	page, _, err := b.Read()
	if err != nil {
		return err
	}
	s := page.Of(store, bot)
	if s == nil || s.Compact == nil || !over(s.Compact) {
		return nil
	}
	_, err = client.Retry(ctx, func(ctx context.Context) (*protocol.Bot, error) {
		return c.Configure(ctx, &protocol.Configure{
			Bot: s.Bot, BotID: s.BotID,
			Settings: protocol.Set(protocol.Settings{
				CompactAt: orDefault(s.Compact.At), CompactKeep: orDefault(s.Compact.Keep), ContextItems: orDefault(s.Compact.Items),
			}),
		})
	})
	if err != nil && protocol.CodeOf(err) != protocol.BotNotFound {
		return err
	}
	return b.Change(func(p *Page) error {
		if now := p.Of(store, bot); now != nil && now.Compact != nil && now.Compact.Request == s.Compact.Request {
			now.Compact = nil
		}
		return nil
	})
}

func orDefault(v *int64) protocol.Opt[int64] {
	if v == nil {
		return protocol.Null[int64]()
	}
	return protocol.Set(*v)
}

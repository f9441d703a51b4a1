package screen

import (
	"context"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/figures"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/story"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// contextCommands show what fills a bot's context (sonny.md 11, 27).
var contextCommands = feature{
	commands: []slashCommand{{"context", "", "what fills the model's window", func(a *App, _ string) error { return a.openContext() }}},
}

// contextPanel is what /context shows.
type contextPanel struct {
	listPanel
	bot      string
	contents *usage.Contents // nil: it is being read
	compacts int64           // tokens at which a summary is made; 0: never
	kept     bool            // the whole history was read
}

// contextPages bounds how many pages of the history are read to be counted.
const contextPages = 25

func (a *App) openContext() error {
	b := a.bot()
	if b == nil {
		return protocol.Fail("failed", "there is no bot yet; your first message makes one")
	}
	p := &contextPanel{bot: b.Record.Name}
	p.title = "context of " + cells.OneLine(p.bot)
	p.right = func() string { return cells.OneLine(b.Record.ModelRef()) }
	p.rows = p.make
	a.panel = p
	p.read(a, b)
	return nil
}

// read counts what the daemon tells of the bot's context.
func (p *contextPanel) read(a *App, b *live.Bot) {
	limits, most := &a.ready.Limits, b.Usage.InputTokens*4
	type answer struct {
		contents *usage.Contents
		compacts int64
		whole    bool
	}
	do(a, func(ctx context.Context) (*answer, error) {
		record, err := a.client().Inspect(ctx, p.bot)
		if err != nil {
			return nil, err
		}
		out := &answer{contents: &usage.Contents{}, compacts: usage.CompactionOf(record, limits)}
		out.contents.Instructions(record.Instructions)
		out.contents.Declared(record.ClientTools)
		if most == 0 {
			most = record.Settings.ContextBytes.Or(limits.ContextBytes)
		}
		out.whole, err = countHistory(ctx, a, p.bot, out.contents, most)
		return out, err
	}, func(got *answer, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		p.contents, p.compacts, p.kept = got.contents, got.compacts, got.whole
	})
}

// countHistory counts items, the newest first, until they make up so many bytes. It
// reports whether that was all.
func countHistory(ctx context.Context, a *App, bot string, into *usage.Contents, most int64) (whole bool, err error) {
	ask := &protocol.HistoryNodes{Bot: bot, Limit: protocol.Set(int64(story.PartNodes))}
	for range contextPages {
		var page protocol.NodePage
		if err := a.client().Do(ctx, protocol.OpHistoryNodes, ask, &page); err != nil {
			return false, err
		}
		ids := make([]int64, 0, len(page.Nodes))
		for _, n := range page.Nodes {
			ids = append(ids, n.Node)
		}
		items, err := story.Of(a.client(), bot).Items(ctx, ids)
		if err != nil {
			return false, err
		}
		for _, id := range ids {
			if into.Items() >= most {
				return false, nil
			}
			into.Item(items[id])
		}
		if page.NextFrom == nil {
			return true, nil
		}
		ask.From = protocol.Set(*page.NextFrom)
	}
	return false, nil
}

func (p *contextPanel) make(a *App) []lists.Row {
	b := a.world.Bot(p.bot)
	if b == nil {
		return nil
	}
	c := &figures.Context{Meter: a.meter(b), Cached: b.Usage.CachedInputTokens, Contents: p.contents, Compacts: p.compacts, Whole: p.kept}
	return c.Rows(min(50, max(10, a.w-20)))
}

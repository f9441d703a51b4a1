package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
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
		out := &answer{contents: &usage.Contents{}, compacts: compactsAt(record, limits)}
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

// compactsAt is at how many tokens a bot's context is summarized; 0 for never.
func compactsAt(record *protocol.Bot, limits *protocol.Limits) int64 {
	if record.CompactionInstructions == nil {
		return 0
	}
	reply := int64(0)
	if limits.OutputTokens != nil {
		reply = *limits.OutputTokens
	}
	set := &record.Settings
	return usage.CompactsAt(set.ContextBytes.Or(limits.ContextBytes), set.CompactAt.Or(limits.CompactAt), set.MaxOutputTokens.Or(reply))
}

// countHistory counts items, the newest first, until they make up so many bytes. It
// reports whether that was all.
func countHistory(ctx context.Context, a *App, bot string, into *usage.Contents, most int64) (whole bool, err error) {
	ask := &protocol.HistoryNodes{Bot: bot, Limit: protocol.Set(int64(loadNodes))}
	for range contextPages {
		var page protocol.NodePage
		if err := a.client().Do(ctx, protocol.OpHistoryNodes, ask, &page); err != nil {
			return false, err
		}
		ids := make([]int64, 0, len(page.Nodes))
		for _, n := range page.Nodes {
			ids = append(ids, n.Node)
		}
		items, err := readItems(ctx, a, bot, ids)
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

func (p *contextPanel) make(a *App) (rows []lists.Row) {
	b := a.world.Bot(p.bot)
	if b == nil {
		return nil
	}
	say := func(name, value string) {
		rows = append(rows, lists.Row{ID: name, Line: text.Join(text.Span{Text: text.Pad(name, 34), Role: text.Dim}, text.Span{Text: value})})
	}
	m := a.meter(b)
	if m.Window > 0 {
		rows = append(rows, lists.Row{Line: meterBar(m, p.compacts, min(50, max(10, a.w-20)))})
	}
	say("newest call", callWords(m, b.Usage.CachedInputTokens))
	if p.contents == nil {
		return append(rows, lists.Row{}, lists.Row{Line: text.Of(text.Dim, "counting…")})
	}
	say("compaction", p.compactionWords(m))
	rows = append(rows, lists.Row{}, lists.Row{Line: text.Of(text.Dim, "about, at four bytes a token")})
	for _, s := range p.contents.Shares(m.Tokens) {
		if s.Tokens == 0 {
			continue
		}
		value := fmt.Sprintf("%8s", usage.Short(s.Tokens))
		if s.Name == "pictures" && p.contents.Pictures > 0 {
			value += "  " + human.Count(int(p.contents.Pictures), "picture", "pictures")
		}
		say(s.Name, value)
	}
	if !p.kept {
		rows = append(rows, lists.Row{Line: text.Of(text.Dim, "what came before is no longer in it, or is more than was counted")})
	}
	return rows
}

// callWords say what the newest call took.
func callWords(m usage.Meter, cached int64) string {
	words := usage.Short(m.Tokens)
	switch {
	case m.Tokens == 0:
		return "none is known yet"
	case m.Window == 0:
		words += " tokens, of a window that is not known"
	default:
		words += " of " + usage.Short(m.Window) + " tokens"
	}
	return words + " · " + usage.Short(cached) + " from the cache"
}

// compactionWords say how far it is to the next summary.
func (p *contextPanel) compactionWords(m usage.Meter) string {
	switch {
	case p.compacts == 0:
		return "never: this bot was made without instructions for it"
	case m.Window > 0 && p.compacts > m.Window:
		return "begins at about " + usage.Short(p.compacts) + ", past the window"
	case m.Tokens >= p.compacts:
		return "due at the next round: it begins at about " + usage.Short(p.compacts)
	}
	return "begins at about " + usage.Short(p.compacts) + ", in " + usage.Short(p.compacts-m.Tokens)
}

// meterBar is the meter in so many cells, with a mark where compaction begins.
func meterBar(m usage.Meter, compacts int64, w int) text.Line {
	share, _ := m.Percent()
	full := min(w, (share*w+99)/100)
	bar := strings.Repeat("█", full) + strings.Repeat("░", w-full)
	mark := w
	if compacts > 0 {
		mark = int(min(int64(w), compacts*int64(w)/m.Window))
	}
	cut := func(from, to int) string { return string([]rune(bar)[from:to]) }
	role := levelRole(m)
	line := text.Join(text.Span{Text: cut(0, mark), Role: role})
	if mark < w {
		line.Spans = append(line.Spans, text.Span{Text: "│", Role: text.Accent}, text.Span{Text: cut(mark+1, w), Role: role})
	}
	line.Spans = append(line.Spans, text.Span{Text: fmt.Sprintf("  %d%%", share), Role: role})
	return line
}

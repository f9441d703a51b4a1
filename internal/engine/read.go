package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// Reads answer from what is committed. Each is one short look at the store.

// Bot is one bot's record, as resume and inspect give it. One being deleted is
// shown as such.
func (e *Engine) Bot(ctx context.Context, name string) (*protocol.Bot, *protocol.Error) {
	var r *protocol.Bot
	err := e.read(ctx, "bot", func(c *store.Conn) error {
		b, ok, err := store.BotByName(c, name)
		if err != nil {
			return err
		}
		if !ok {
			return noBot(name)
		}
		rec := e.record(&b)
		r = &rec
		return nil
	})
	return r, readError(err)
}

// Bots is a page of records by name, without their long texts, at most limit
// and 512 KiB.
func (e *Engine) Bots(ctx context.Context, after string, limit int) (*protocol.BotPage, *protocol.Error) {
	page := &protocol.BotPage{Bots: []protocol.Bot{}}
	size := 0
	err := e.read(ctx, "bots", func(c *store.Conn) error {
		page.Bots, page.NextAfter, size = page.Bots[:0], nil, 0
		return store.Bots(c, after, limit+1, func(b *store.Bot) bool {
			b.Instructions, b.CompactionInstructions = "", ""
			r := e.record(b)
			line, _ := r.AppendListed(nil)
			if len(page.Bots) == limit || len(page.Bots) > 0 && size+len(line) > protocol.MaxBotPage {
				last := page.Bots[len(page.Bots)-1].Name
				page.NextAfter = &last
				return false
			}
			size += len(line)
			page.Bots = append(page.Bots, r)
			return true
		})
	})
	return page, readError(err)
}

// shownPrompt bounds the prompt in a turn's entry, in characters.
const shownPrompt = 256

// Turns is a page of a bot's turns, oldest first.
func (e *Engine) Turns(ctx context.Context, name string, after int64, limit int) (*protocol.TurnPage, *protocol.Error) {
	page := &protocol.TurnPage{Turns: []protocol.Turn{}}
	err := e.read(ctx, "turns", func(c *store.Conn) error {
		bot, err := findBot(c, name, 0)
		if err != nil {
			return err
		}
		var rows []store.Turn
		err = store.Turns(c, name, after, limit+1, func(t *store.Turn) bool {
			if len(t.Prompt) > 4*shownPrompt+4 {
				t.Prompt, _ = cutCharacters(t.Prompt, shownPrompt+1)
			}
			rows = append(rows, *t)
			return true
		})
		if err != nil {
			return err
		}
		if len(rows) > limit {
			rows = rows[:limit]
			page.NextAfter = &rows[limit-1].ID
		}
		for i := range rows {
			r, err := e.turnRecord(c, &bot, &rows[i])
			if err != nil {
				return err
			}
			page.Turns = append(page.Turns, r)
		}
		return nil
	})
	return page, readError(err)
}

func (e *Engine) turnRecord(c *store.Conn, bot *store.Bot, t *store.Turn) (protocol.Turn, error) {
	prompt := t.Prompt
	if t.PromptNode != 0 {
		full, err := e.sharedPrompt(c, bot, t)
		if err != nil {
			return protocol.Turn{}, err
		}
		prompt = full
	}
	prompt, cut := cutCharacters(prompt, shownPrompt)
	r := protocol.Turn{
		Turn: t.ID, RequestID: t.RequestID, Status: t.Status, Delivery: protocol.Delivery(t.Delivery),
		Workspace: ptr(effective(t.Workspace, bot.Workspace)), Model: effective(t.Model, bot.Provider+"/"+bot.Model),
		Prompt: prompt, PromptTruncated: cut, InputTokens: t.Input, OutputTokens: t.Output,
		CachedInputTokens: t.Cached, CacheHit: cacheHit(t.Cached, t.Input), ModelRounds: t.Rounds,
		Retries: t.Retries, PacedMS: t.PacedMS, StartedMS: ptr(t.StartedMS), FinishedMS: ptr(t.FinishedMS),
		External: []string{}, Origin: t.Origin,
	}
	if t.FromBot != "" {
		r.From = &protocol.From{Bot: t.FromBot, BotID: t.FromBotID, Turn: t.FromTurn}
	}
	if t.External != nil {
		if err := json.Unmarshal(t.External, &r.External); err != nil {
			return r, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("turns %d: external cannot be read", t.ID))
		}
	}
	return r, nil
}

// sharedPrompt is a prompt that only its node keeps, without the line that
// names a sender.
func (e *Engine) sharedPrompt(c *store.Conn, bot *store.Bot, t *store.Turn) (string, error) {
	item, _, err := store.ItemOf(c, nil, t.PromptNode)
	if err != nil {
		return "", err
	}
	d, err := e.describe(bot.Family, t.PromptNode, item)
	if err != nil {
		return "", err
	}
	prefix := senderOf(t).Text("")
	if len(prefix) <= len(d.Text) {
		return d.Text[len(prefix):], nil
	}
	return d.Text, nil
}

func (e *Engine) describe(family string, node int64, item []byte) (model.Described, error) {
	codec := e.cfg.Codecs[model.Family(family)]
	if codec == nil {
		return model.Described{}, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("node %d is of family %s, which this build does not know", node, family))
	}
	d, err := codec.Describe(item)
	if err != nil {
		return d, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the item of node %d cannot be read", node))
	}
	return d, nil
}

// Result is a turn's outcome, or its status while it is not over.
func (e *Engine) Result(ctx context.Context, name string, turn int64) (*protocol.Outcome, *protocol.Error) {
	var out *protocol.Outcome
	err := e.read(ctx, "result", func(c *store.Conn) error {
		bot, err := findBot(c, name, 0)
		if err != nil {
			return err
		}
		out, err = e.outcome(c, &bot, turn)
		return err
	})
	return out, readError(err)
}

// outcome is built from the turn's own events, so it goes with them.
func (e *Engine) outcome(c *store.Conn, bot *store.Bot, turn int64) (*protocol.Outcome, error) {
	t, ok, err := store.TurnByID(c, turn)
	if err != nil {
		return nil, err
	}
	if !ok || t.Bot != bot.Name {
		return nil, protocol.Fail(protocol.TurnNotFound, fmt.Sprintf("%s has no turn %d", bot.Name, turn))
	}
	if !protocol.Finished(t.Status) {
		return &protocol.Outcome{Turn: turn, Status: t.Status}, nil
	}
	data, err := store.EndOf(c, turn)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, protocol.Fail(protocol.TurnResultPruned, fmt.Sprintf("the records of turn %d were removed", turn))
	}
	var end protocol.TurnFinished
	ev := protocol.Event{Data: data}
	if err := ev.Decode(&end); err != nil {
		return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the end of turn %d cannot be read", turn))
	}
	text, cut, err := e.lastText(c, bot, turn)
	if err != nil {
		return nil, err
	}
	return &protocol.Outcome{
		Turn: turn, Status: end.Status, Finished: true, Checkpoint: end.Checkpoint, Error: end.Error,
		Detail: end.Detail, Text: text, TextTruncated: cut, Into: end.Into, Node: end.Node, Extra: end.Extra,
	}, nil
}

// lastText is the last assistant text of a turn.
func (e *Engine) lastText(c *store.Conn, bot *store.Bot, turn int64) (text string, cut bool, err error) {
	var nodes []int64
	err = store.MessagesOf(c, turn, func(data []byte) bool {
		var m protocol.Message
		if json.Unmarshal(data, &m) == nil {
			nodes = append(nodes, m.Node)
		}
		return true
	})
	if err != nil {
		return "", false, err
	}
	for _, node := range nodes {
		item, ok, err := store.ItemOf(c, nil, node)
		if err != nil || !ok {
			return "", false, err
		}
		d, err := e.describe(bot.Family, node, item)
		if err != nil {
			return "", false, err
		}
		if d.Role == "assistant" && d.Text != "" {
			text, cut = cutCharacters(d.Text, protocol.MaxOutcomeText)
			return text, cut, nil
		}
	}
	return "", false, nil
}

// Events is a page of a bot's durable events, at most limit and 512 KiB.
func (e *Engine) Events(ctx context.Context, name string, after, limit int64) (*protocol.EventPage, *protocol.Error) {
	page := &protocol.EventPage{Events: []json.RawMessage{}, NextCursor: after}
	err := e.read(ctx, "events", func(c *store.Conn) error {
		bot, err := findBot(c, name, 0)
		if err != nil {
			return err
		}
		if bot.PrunedCursor > after {
			page.PrunedBefore = &bot.PrunedCursor
		}
		return pageEvents(c, name, page, limit)
	})
	return page, readError(err)
}

func pageEvents(c *store.Conn, name string, page *protocol.EventPage, limit int64) error {
	size := 0
	var tooBig error
	err := store.Events(c, name, page.NextCursor, int(limit), func(row store.EventRow) bool {
		line := protocol.AppendEvent(nil, row.Cursor, row.Bot, row.Turn, row.Kind, row.Data)
		line = line[:len(line)-1]
		if len(line) > protocol.MaxEventPage && len(page.Events) == 0 {
			tooBig = protocol.Fail(protocol.EventPageItemLimit, fmt.Sprintf("the event %d takes %d bytes", row.Cursor, len(line)))
		}
		if tooBig != nil || size+len(line) > protocol.MaxEventPage {
			return false
		}
		size += len(line) + 1
		page.Events = append(page.Events, line)
		page.NextCursor = row.Cursor
		return true
	})
	if err == nil {
		err = tooBig
	}
	return err
}

// Replay gives the events of a follow after a cursor as whole lines, at most
// limit and 256 KiB of them, in order; "*" is every bot. last is the cursor
// reached; gone says that the name is not the bot's of that id any more.
func (e *Engine) Replay(ctx context.Context, name string, id, after int64, limit int) (lines [][]byte, last int64, gone bool, err error) {
	last = after
	size := 0
	err = e.read(ctx, "replay", func(c *store.Conn) error {
		lines, last, size = lines[:0], after, 0
		if name != "*" {
			bot, ok, err := store.BotByName(c, name)
			if gone = err == nil && (!ok || bot.ID != id); gone || err != nil {
				return err
			}
		}
		return store.Events(c, name, after, limit, func(row store.EventRow) bool {
			line := protocol.AppendEvent(nil, row.Cursor, row.Bot, row.Turn, row.Kind, row.Data)
			lines = append(lines, line)
			last = row.Cursor
			size += len(line)
			return size < 256<<10
		})
	})
	return lines, last, gone, err
}

// FollowPoint says what a new follow must know: the bot's id, the newest
// cursor, the mark before which events are gone, and the model when that is a
// script.
func (e *Engine) FollowPoint(ctx context.Context, name string) (p FollowPoint, perr *protocol.Error) {
	err := e.read(ctx, "follow", func(c *store.Conn) (err error) {
		if p.Newest, err = store.LastCursor(c); err != nil {
			return err
		}
		if name == "*" {
			p.Pruned, err = store.PrunedCursor(c)
			return err
		}
		bot, err := findBot(c, name, 0)
		if err != nil {
			return err
		}
		p.BotID, p.Pruned = bot.ID, bot.PrunedCursor
		if bot.Family == string(model.FamilyScripted) {
			p.Script = bot.Provider + "/" + bot.Model
		}
		return nil
	})
	return p, readError(err)
}

// FollowPoint is where a follow begins.
type FollowPoint struct {
	BotID  int64
	Newest int64
	Pruned int64
	Script string
}

func (e *Engine) seenFile(ctx context.Context, bot, path string) (row store.SeenRow, ok bool, err error) {
	err = e.read(ctx, "seen", func(c *store.Conn) error {
		row, ok, err = store.SeenFile(c, bot, path)
		return err
	})
	return row, ok, err
}

// readError is a read's failure on the wire, nil for none.
func readError(err error) *protocol.Error {
	if err == nil {
		return nil
	}
	return asError(err)
}

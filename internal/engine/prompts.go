package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// What a prompts answer may take, encoded (protocol.md 9).
const (
	promptsTogether  = 512 << 10
	callsTogether    = 128 << 10
	oneCallArguments = 2 << 10
)

// Prompts says who wrote what a turn was asked, for a program that judges its
// calls. Authorship comes from the records; only where those went with the bot
// that had them does the sender's line in the text stand for them.
func (e *Engine) Prompts(ctx context.Context, r *protocol.PromptsRequest) (*protocol.Prompts, *protocol.Error) {
	limit := r.Bytes.Or(protocol.DefaultPromptsBytes)
	if limit < 1 || limit > protocol.MaxPromptsBytes {
		return nil, protocol.Fail(protocol.InvalidLimit, fmt.Sprintf("bytes is 1 to %d", protocol.MaxPromptsBytes))
	}
	var out *protocol.Prompts
	err := e.read(ctx, "prompts", func(c *store.Conn) error {
		bot, err := findBot(c, r.Bot, 0)
		if err != nil {
			return err
		}
		t, ok, err := store.TurnByID(c, r.Turn)
		if err != nil {
			return err
		}
		if !ok || t.Bot != bot.Name {
			return protocol.Fail(protocol.TurnNotFound, fmt.Sprintf("%s has no turn %d", bot.Name, r.Turn))
		}
		p := &prompting{e: e, ctx: ctx, c: c, bot: &bot}
		out, err = p.answer(&t, limit)
		return err
	})
	return out, readError(err)
}

// prompting is one such question while it is answered.
type prompting struct {
	e   *Engine
	ctx context.Context
	c   *store.Conn
	bot *store.Bot
}

func (p *prompting) answer(t *store.Turn, limit int64) (*protocol.Prompts, error) {
	out := &protocol.Prompts{
		Status: t.Status, Workspace: ptr(effective(t.Workspace, p.bot.Workspace)), External: []string{},
		Prompts: []protocol.Prompt{}, Earlier: []protocol.Prompt{}, Calls: []protocol.PromptCall{},
	}
	if protocol.Finished(t.Status) {
		out.Status = "finished"
	}
	if t.External != nil {
		if err := json.Unmarshal(t.External, &out.External); err != nil {
			return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("turns %d: external cannot be read", t.ID))
		}
	}
	at, before, err := p.place(t)
	if err != nil {
		return nil, err
	}
	if out.Prompts, err = p.own(t, at.ID); err != nil {
		return nil, err
	}
	if at.TurnSeq != 0 {
		if out.Calls, err = p.calls(t.ID, at.TurnSeq); err != nil {
			return nil, err
		}
	}
	out.Earlier, out.More, err = p.earlier(before, limit)
	return out, err
}

// place is the node of a turn's prompt, zero while it has none, and the node
// that earlier prompts lie at or before.
func (p *prompting) place(t *store.Turn) (at store.Node, before int64, err error) {
	id := t.IntoNode
	if id == 0 {
		if id, err = store.TurnNode(p.c, t.ID); err != nil {
			return at, 0, err
		}
	}
	if id == 0 {
		return at, p.bot.Head, nil
	}
	at, _, err = store.NodeByID(p.c, id)
	return at, at.Parent, err
}

// own is the turn's prompt and its steers, oldest first, cut to their limit.
func (p *prompting) own(t *store.Turn, node int64) ([]protocol.Prompt, error) {
	first, err := p.prompt(t, t.ID, node)
	if err != nil {
		return nil, err
	}
	list := []protocol.Prompt{first}
	steers, err := store.SteersInto(p.c, t.ID)
	if err != nil {
		return nil, err
	}
	for i := range steers {
		s, err := p.prompt(&steers[i], steers[i].ID, steers[i].IntoNode)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	texts := make([]*string, len(list))
	frames := make([]int, len(list))
	for i := range list {
		texts[i], frames[i] = &list[i].Text, promptFrame(&list[i])
	}
	kept := fitTexts(texts, frames, promptsTogether, protocol.MaxPromptsBytes)
	if kept < len(list) { // the prompt, then the newest steers
		list = append(list[:1], list[len(list)-kept+1:]...)
	}
	for i := range list {
		list[i].Truncated = int64(len(list[i].Text)) < list[i].Bytes
	}
	return list, nil
}

// prompt is a turn's text and who wrote it: from its row, or, when that is gone,
// from the node alone.
func (p *prompting) prompt(t *store.Turn, turn, node int64) (protocol.Prompt, error) {
	out := protocol.Prompt{Turn: turn, Node: node}
	switch {
	case t == nil:
		d, err := p.e.itemAt(p.c, p.bot.Family, node)
		if err != nil {
			return out, err
		}
		out.From, out.Origin, out.Text = senderIn(d.Text)
	case t.PromptNode != 0:
		text, err := p.e.sharedPrompt(p.c, p.bot, t)
		if err != nil {
			return out, err
		}
		out.Text = text
	default:
		out.Text = t.Prompt
	}
	if t != nil {
		out.Origin = t.Origin
		if t.FromBot != "" {
			out.From = &protocol.From{Bot: t.FromBot, BotID: t.FromBotID, Turn: t.FromTurn}
		}
	}
	out.Bytes = int64(len(out.Text))
	return out, nil
}

var (
	agentLine = regexp.MustCompile(`^Message from agent (\S+) \(id (\d+)\), not from the person:\n`)
	eventLine = regexp.MustCompile(`^Event from (\S+), not from the person:\n`)
)

// senderIn reads the sender's line that the daemon puts ahead of what is not
// the person's (approvals.md 22). A person who wrote such a line is taken for
// less than one, never the other way round.
func senderIn(text string) (from *protocol.From, origin, rest string) {
	if m := agentLine.FindStringSubmatch(text); m != nil {
		id, _ := strconv.ParseInt(m[2], 10, 64)
		return &protocol.From{Bot: m[1], BotID: id}, "", text[len(m[0]):]
	}
	if m := eventLine.FindStringSubmatch(text); m != nil {
		return nil, m[1], text[len(m[0]):]
	}
	return nil, "", text
}

// earlier are the prompts and steers at or before a node, newest first, as many
// as fit.
func (p *prompting) earlier(from, limit int64) (list []protocol.Prompt, more bool, err error) {
	list = []protocol.Prompt{}
	if from == 0 {
		return list, false, nil
	}
	room := int(limit)
	add := func(t *store.Turn, turn, node int64) bool {
		var entry protocol.Prompt
		if more {
			return false
		}
		if entry, err = p.prompt(t, turn, node); err != nil {
			return false
		}
		room -= promptFrame(&entry)
		if room <= 0 {
			more = true
			return false
		}
		entry.Text = cutEncoded(entry.Text, min(room, protocol.MaxPromptsBytes))
		entry.Truncated = int64(len(entry.Text)) < entry.Bytes
		room -= encodedLen(entry.Text)
		list = append(list, entry)
		return true
	}
	last := int64(0) // the newest node of the turn being walked
	walked := store.Walk(p.c, from, func(n store.Node) bool {
		last = max(last, n.ID)
		if n.Turn == 0 {
			return p.ctx.Err() == nil
		}
		ok := p.turnPrompts(&n, last, add, &err)
		last = 0
		return ok
	})
	if err == nil {
		err = walked
	}
	if err == nil {
		err = context.Cause(p.ctx)
	}
	return list, more, err
}

// turnPrompts gives a turn's steers up to a node, newest first, then its prompt.
func (p *prompting) turnPrompts(n *store.Node, last int64, add func(*store.Turn, int64, int64) bool, failed *error) bool {
	steers, err := store.SteersInto(p.c, n.Turn)
	if err != nil {
		*failed = err
		return false
	}
	for i := len(steers) - 1; i >= 0; i-- {
		if s := &steers[i]; s.IntoNode <= last && !add(s, s.ID, s.IntoNode) {
			return false
		}
	}
	t, ok, err := store.TurnByID(p.c, n.Turn)
	if err != nil {
		*failed = err
		return false
	}
	if !ok {
		return add(nil, n.Turn, n.ID)
	}
	return add(&t, t.ID, n.ID)
}

// calls are the calls of a turn in order, each with its steps, the newest when not
// all fit.
func (p *prompting) calls(turn, ordinal int64) ([]protocol.PromptCall, error) {
	nodes, err := turnNodes(p.c, p.bot.Head, ordinal)
	if err != nil {
		return nil, err
	}
	list := []protocol.PromptCall{}
	byID := map[string]int{}
	for i := len(nodes) - 1; i >= 0; i-- {
		d, err := p.e.itemAt(p.c, p.bot.Family, nodes[i])
		if err != nil {
			return nil, err
		}
		for _, call := range d.Calls {
			byID[call.ID] = len(list)
			list = append(list, plannedCall(&call, nodes[i]))
		}
		if at, ok := byID[d.CallID]; ok && d.Role == "tool" {
			list[at].Done, list[at].Failed = true, isFailure(d.Text)
		}
		if err := context.Cause(p.ctx); err != nil {
			return nil, err
		}
	}
	if list, err = p.withSteps(turn, list); err != nil {
		return nil, err
	}
	texts := make([]*string, len(list))
	frames := make([]int, len(list))
	for i := range list {
		texts[i], frames[i] = &list[i].Arguments, callFrame(list[i])
	}
	kept := fitTexts(texts, frames, callsTogether, oneCallArguments)
	list = list[len(list)-kept:]
	for i := range list {
		list[i].ArgumentsTruncated = int64(len(list[i].Arguments)) < list[i].ArgumentsBytes
	}
	return list, nil
}

// withSteps is a list of calls with the steps of each behind it.
func (p *prompting) withSteps(turn int64, calls []protocol.PromptCall) ([]protocol.PromptCall, error) {
	byCall := map[string][]protocol.PromptCall{}
	err := store.TurnSteps(p.c, turn, func(callID string, raw json.RawMessage) error {
		steps, err := readSteps(callID, raw)
		for i := range steps {
			s := &steps[i]
			byCall[callID] = append(byCall[callID], protocol.PromptCall{
				CallID: callID, Step: s.Step, Name: s.Name, Done: s.Done, OK: s.OK, Detail: s.Detail,
			})
		}
		return err
	})
	if err != nil || len(byCall) == 0 {
		return calls, err
	}
	var list []protocol.PromptCall
	for _, call := range calls {
		list = append(append(list, call), byCall[call.CallID]...)
	}
	return list, nil
}

func plannedCall(call *model.Call, node int64) protocol.PromptCall {
	return protocol.PromptCall{
		CallID: call.ID, Name: call.Name, Node: node, Arguments: string(call.Arguments), ArgumentsBytes: int64(len(call.Arguments)),
	}
}

// isFailure reports whether a result is an error, or that of a command which
// ended badly.
func isFailure(output string) bool {
	var r struct {
		Error    json.RawMessage `json:"error"`
		Success  *bool           `json:"success"`
		ExitCode *int64          `json:"exit_code"`
	}
	if json.Unmarshal([]byte(output), &r) != nil {
		return false
	}
	return r.Error != nil && string(r.Error) != "null" || r.Success != nil && !*r.Success || r.ExitCode != nil && *r.ExitCode != 0
}

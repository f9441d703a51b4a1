package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"agent/internal/model"
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
		whole := *k
		if err := whole.Texts(c); err != nil {
			return err
		}
		prompts, err := promptsOf(&whole)
		if err != nil {
			return err
		}
		t.summary = pinnedSummary{node: k.Node, cut: k.Cut, block: t.encodeSummary(&whole, prompts)}
	}
	a.summary = t.summary.block
	return nil
}

func (t *task) encodeSummary(k *store.Compaction, prompts []window.Prompt) []byte {
	text := window.SummaryText(k.Summary, prompts, k.CoveredTo, k.Pinned != 0)
	return t.codec.UserMarked(text, t.lim.CacheTTL)
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

// purposeCompaction marks the usage of a summary.
const purposeCompaction = "compaction"

// compact summarizes the oldest part of the conversation when that is due
// (runtime.md 21). It reports whether the view got smaller. A summary that
// fails leaves the old view, says so, and lets the turn go on.
func (t *task) compact(v *view) (bool, error) {
	if !v.compacts || t.triedAt == t.head || t.summedAt == t.head {
		return false, nil
	}
	p := t.policy()
	if v.start <= v.ahead.compaction.Cut && !p.Full(v.size) {
		return false, nil // the view shows all there is
	}
	before, err := t.sinceSummary(v)
	if err != nil || !p.Full(before) {
		return false, err
	}
	return t.compactTo(v, p)
}

// compactTo makes the summary that leaves what the policy keeps. It is apart from
// compact since a bot's row takes much of the stack, which each turn would have.
func (t *task) compactTo(v *view, p window.Policy) (bool, error) {
	bot, err := t.botRow()
	if err != nil {
		return false, err
	}
	_, pinned := v.ahead.blocks(v.ahead.compaction.Cut, nil)
	k, ok, err := t.findCut(v, func(tail window.Span) bool { return p.Holds(tail, pinned) })
	if err != nil || !ok || !p.Worth(k.span) {
		return false, err
	}
	made, err := t.summarize(v, &bot, &k, p.Bounds)
	if made {
		t.summedAt = t.head
	}
	return made, err
}

// compactAll summarizes as much as may be, for a view that does not fit
// otherwise. input bounds what the summarizer is shown.
func (t *task) compactAll(v *view, input window.Bounds) (bool, error) {
	if !v.compacts || t.triedAt == t.head {
		return false, nil
	}
	bot, err := t.botRow()
	if err != nil {
		return false, err
	}
	k, ok, err := t.findCut(v, func(window.Span) bool { return true })
	if err != nil || !ok {
		return false, err
	}
	return t.summarize(v, &bot, &k, input)
}

func (t *task) botRow() (bot store.Bot, err error) {
	err = t.e.read(t.ctx, "bot", func(c *store.Conn) error {
		var ok bool
		bot, ok, err = store.BotByID(c, t.bot)
		if err == nil && !ok {
			err = protocol.Fail(protocol.BotNotFound, t.name)
		}
		return err
	})
	return bot, err
}

// sinceSummary is what the conversation since the last summary takes with what
// stands ahead of it, whether the window shows all of it or not.
func (t *task) sinceSummary(v *view) (size window.Span, err error) {
	start := v.ahead.compaction.Cut
	err = t.e.read(t.ctx, "since_summary", func(c *store.Conn) error {
		span, err := spanFrom(c, start, v.head, v.floor)
		_, pinned := v.ahead.blocks(start, nil)
		size = joined(span, pinned)
		return err
	})
	return size, err
}

// summarize makes a summary up to a cut and installs it.
func (t *task) summarize(v *view, bot *store.Bot, k *cut, input window.Bounds) (bool, error) {
	if _, over := t.overBound(); over {
		return false, nil // the loop says so
	}
	installed, err := t.trySummary(v, bot, k, input)
	if err == nil || err == errParked {
		return installed, err
	}
	if s := t.stopped(); s != nil {
		return false, s
	}
	var fail *model.Error
	var ours *protocol.Error
	code, detail := protocol.Code(""), ""
	switch {
	case errors.As(err, &fail):
		code, detail = protocol.Code(fail.Code), fail.Detail
	case errors.As(err, &ours) && !strings.HasPrefix(string(ours.Code), "storage_") && !strings.HasPrefix(string(ours.Code), "store_"):
		code, detail = ours.Code, ours.Detail
	default:
		return false, err
	}
	t.triedAt = t.head
	t.notice(protocol.KindCompactionFailed, func(o *object) { o.str("error", string(code)).str("detail", detail) })
	return false, nil
}

// trySummary asks for the summary. Its answer is billed whatever becomes of it.
func (t *task) trySummary(v *view, bot *store.Bot, k *cut, input window.Bounds) (bool, error) {
	call, err := t.summaryCall(v, bot, k, input)
	if err != nil {
		return false, err
	}
	t.purpose = purposeCompaction
	if call.elsewhere {
		t.summarizer = &model.ModelUsage{Provider: call.name, Model: call.req.Model}
	}
	defer func() { t.purpose, t.summarizer = "", nil }()
	done, err := t.complete(call.provider, call.req, call.bodies, t.summarySink)
	if err != nil {
		return false, err
	}
	next, err := t.summaryOf(v, &call.cut, done)
	if err == nil {
		err = t.install(v, next, done.Usage)
		if err == nil {
			return true, nil
		}
	}
	if cerr := t.charge(done.Usage); cerr != nil {
		return false, cerr
	}
	return false, err
}

func (t *task) summarySink(ev model.Event) {
	if t.ctx.Err() != nil || !t.e.cfg.Live.Wants(t.name) {
		return
	}
	switch ev.Kind {
	case model.EventText:
		t.e.cfg.Live.Delta(t.name, t.turn, protocol.KindCompactionTextDelta, ev.Text)
	case model.EventThinking:
		t.e.cfg.Live.Delta(t.name, t.turn, protocol.KindCompactionThinkingDelta, ev.Text)
	}
}

// summaryCall is a request for a summary.
type summaryCall struct {
	cut       cut
	name      string // of the provider
	provider  model.Provider
	req       *model.Request
	bodies    *bodies
	elsewhere bool // another model than the bot's
}

// summaryCall makes the request: a copy of the bot's last call with one more
// item, so that its cached prefix serves, where that call showed the whole
// span; else one of its own, which may have to leave newer parts for later.
func (t *task) summaryCall(v *view, bot *store.Bot, k *cut, input window.Bounds) (*summaryCall, error) {
	own := bot.Provider + "/" + bot.Model
	ref := effective(bot.CompactionModel, own)
	name, id, _ := protocol.ParseModelRef(ref)
	provider, perr := t.e.provider(name, t.family)
	if perr != nil {
		return nil, perr
	}
	call := &summaryCall{cut: *k, name: name, provider: provider, elsewhere: ref != own}
	limit := t.policy().MaxSummary()
	if ref == t.model && t.last != nil && t.last.showed(v, k) {
		ask := t.codec.User(window.SummaryRequest(bot.CompactionInstructions, limit), nil)
		w, err := t.copyOf(t.last, ask, input)
		if err != nil {
			return nil, err
		}
		if w != nil {
			call.req, call.bodies = t.request(w)
			return call, nil
		}
	}
	w, err := t.ownView(v, bot, &call.cut, t.codec.User(window.SummaryRequest("", limit), nil), input)
	if err != nil {
		return nil, err
	}
	call.req, call.bodies = t.request(w)
	call.req.Model, call.req.AllowTools = id, false
	call.req.CacheKey += "-summary"
	call.req.TurnState, call.req.Chain = new(string), nil
	return call, nil
}

// showed reports whether a call's view held all of a cut's span, under the
// summary that is still the bot's.
func (w *view) showed(v *view, k *cut) bool {
	old, now := &w.ahead.compaction, &v.ahead.compaction
	return old.Node == now.Node && old.Cut == now.Cut && w.start <= max(k.first.ID, now.Cut) && k.node.Parent <= w.head
}

// copyOf is a call's view with the items since and one more; nil when that is
// more than the input takes.
func (t *task) copyOf(last *view, ask []byte, input window.Bounds) (*view, error) {
	w := *last
	w.head, w.extra, w.moved, w.bound = t.head, ask, false, false
	if _, placed := t.codec.(model.Placed); placed {
		w.thinking.Below = math.MaxInt64 // what is asked is the last user message
	}
	err := t.e.read(t.ctx, "summary_copy", func(c *store.Conn) (err error) {
		w.span, err = spanFrom(c, w.start, w.head, w.floor)
		return err
	})
	if err != nil {
		return nil, err
	}
	pinned := sizeOf(w.pinned)
	if w.ahead.inside(w.start) {
		pinned.Bytes += weight(&w.ahead.prompt)
		pinned.Items++
	}
	pinned.Bytes += int64(len(ask))
	pinned.Items++
	if !input.Fits(w.span, pinned) {
		return nil, nil
	}
	w.size = joined(w.span, pinned)
	return &w, t.listed(&w)
}

// listed reads a summary request's items.
func (t *task) listed(w *view) error {
	err := t.e.read(t.ctx, "summary_items", func(c *store.Conn) error { return w.list(c, t) })
	w.measure()
	return err
}

// ownView is a request of its own: the summary before, the span's items as the
// model last saw them, then what is asked. What does not fit the summarizer's
// input is left for a later step, and the cut moves.
func (t *task) ownView(v *view, bot *store.Bot, k *cut, ask []byte, input window.Bounds) (*view, error) {
	w := &view{
		start: k.first.ID, floor: v.floor, instructions: bot.CompactionInstructions, reasoning: bot.Reasoning,
		fallbacks: bot.Fallbacks, cacheBot: v.cacheBot, tools: v.tools, extra: ask,
		ahead:    ahead{summary: v.ahead.summary, compaction: v.ahead.compaction, prompt: v.ahead.prompt},
		thinking: store.Thinking{Below: math.MaxInt64},
	}
	pinned, size := w.ahead.blocks(w.start, nil)
	w.pinned = pinned
	size.Bytes += int64(len(ask))
	size.Items++
	fits := func(s window.Span) bool { return input.Fits(s, size) }
	if !fits(k.span) {
		part, err := t.oldestPart(v, *k, fits)
		if err != nil {
			return nil, err
		}
		*k = part
	}
	w.head, w.span, w.size = k.node.Parent, k.span, joined(k.span, size)
	return w, t.listed(w)
}

// installing is a summary that may replace what it covers.
type installing struct {
	cut           cut
	version       store.Compaction
	start         int64 // of the window under it
	before, after window.Span
	promptBytes   int64
}

// summaryOf checks an answer and what the context would be with it.
func (t *task) summaryOf(v *view, k *cut, done *model.Completion) (*installing, error) {
	text, err := t.summaryText(done)
	if err != nil {
		return nil, err
	}
	prompts, err := t.promptsUpTo(v, k)
	if err != nil {
		return nil, err
	}
	n := &installing{cut: *k, version: store.Compaction{
		Node: t.head, Cut: k.node.ID, Pinned: k.prompt.ID, CoveredFrom: 1, CoveredTo: k.to, Summary: text,
	}}
	block, prompts := t.withPrompts(&n.version, prompts)
	if n.version.Prompts, err = json.Marshal(prompts); err != nil {
		return nil, err
	}
	n.promptBytes = window.PromptBytes(prompts)
	n.start = max(v.start, k.node.ID)
	if n.before, err = t.sinceSummary(v); err != nil {
		return nil, err
	}
	w := &view{
		head: v.head, start: n.start, floor: v.floor,
		ahead: ahead{summary: block, note: v.ahead.note, compaction: n.version, prompt: k.prompt},
	}
	if n.after, err = t.sinceSummary(w); err != nil {
		return nil, err
	}
	if n.after.Bytes >= n.before.Bytes || n.after.Items > n.before.Items {
		return nil, protocol.Fail(protocol.CompactionNotSmaller, fmt.Sprintf(
			"the context would take %d bytes in %d items in place of %d in %d", n.after.Bytes, n.after.Items, n.before.Bytes, n.before.Items))
	}
	if full := t.limits().Share(75); n.after.Bytes <= full.Bytes && n.after.Items <= full.Items {
		n.start = k.node.ID // what a window had left out is shown again
		w.start = n.start
	}
	if k.catchUp {
		return n, nil // more may have to be summarized before it fits
	}
	kept := t.note
	err = t.e.read(t.ctx, "summary_room", func(c *store.Conn) error { return t.window(c, w, t.limits()) })
	t.note = kept
	if protocol.CodeOf(err) == protocol.ContextLimit {
		return nil, protocol.Fail(protocol.CompactionContextLimit, "beside the summary, "+asError(err).Detail)
	}
	n.start = w.start
	return n, err
}

// summaryText is what an answer says, if it may be used.
func (t *task) summaryText(done *model.Completion) (string, error) {
	if len(done.Calls) > 0 {
		return "", protocol.Fail(protocol.CompactionToolCall, "in place of a summary the model called "+done.Calls[0].Name)
	}
	text := ""
	for _, item := range done.Items {
		d, err := t.codec.Describe(item)
		if err != nil {
			return "", protocol.Fail(protocol.EmptySummary, "the answer cannot be read")
		}
		if d.Role == "assistant" {
			text += d.Text
		}
	}
	text = strings.TrimSpace(text)
	switch limit := t.policy().MaxSummary(); {
	case text == "":
		return "", protocol.Fail(protocol.EmptySummary, "the model wrote no summary")
	case int64(len(text)) > limit:
		return "", protocol.Fail(protocol.CompactionSummaryLimit, fmt.Sprintf("%d bytes of at most %d", len(text), limit))
	}
	return text, nil
}

// withPrompts encodes a summary with as many prompts as fit beside it in half
// the byte envelope.
func (t *task) withPrompts(k *store.Compaction, prompts []window.Prompt) ([]byte, []window.Prompt) {
	half := t.limits().Bytes / 2
	room := half - int64(len(t.encodeSummary(k, nil)))
	for {
		prompts = window.KeepPrompts(prompts, room)
		block := t.encodeSummary(k, prompts)
		over := int64(len(block)) - half
		if over <= 0 || len(prompts) == 0 {
			return block, prompts
		}
		room = window.PromptBytes(prompts) - max(over, 1)
	}
}

// install makes a summary the bot's, in one transaction with what it cost.
func (t *task) install(v *view, n *installing, u *model.Usage) error {
	spend := spendOf(u)
	err := t.e.store.Do("compact", func(tx *store.Tx) error {
		bot, _, err := store.BotByID(tx.Conn(), t.bot)
		if err != nil {
			return err
		}
		if err := t.addUsage(tx, u); err != nil {
			return err
		}
		if err := tx.CountRound(t.turn, spend, t.retries, t.pacedMS); err != nil {
			return err
		}
		if err := tx.ChargeBot(t.bot, spend); err != nil {
			return err
		}
		previous, err := tx.Compact(t.bot, bot.Compaction, n.start, &n.version)
		if err != nil {
			return err
		}
		_, err = tx.AddEvent(t.bot, t.name, t.turn, protocol.KindCompacted, n.data(previous, t.limits()))
		return err
	})
	if err == nil {
		t.count(spend)
	}
	return err
}

func (n *installing) data(previous int64, limit window.Bounds) json.RawMessage {
	size := func(s window.Span) []byte { return newObject().int("bytes", s.Bytes).int("items", s.Items).done() }
	pair := func(a, b int64) []byte { return fmt.Appendf(nil, "[%d,%d]", a, b) }
	k := &n.version
	return newObject().int("version", k.Node).int("cut", k.Cut).intOrNull("pinned", k.Pinned).intOrNull("previous", previous).
		raw("covered_turns", pair(k.CoveredFrom, k.CoveredTo)).raw("span_turns", pair(n.cut.from, n.cut.to)).
		int("items", n.cut.span.Items).int("bytes", n.cut.span.Bytes).int("summary_bytes", int64(len(k.Summary))).
		int("prompt_bytes", n.promptBytes).bool("catch_up", n.cut.catchUp).
		raw("context_before", size(n.before)).raw("context_after", size(n.after)).
		raw("input_limit", size(window.Span(limit))).
		int("headroom_bytes", limit.Bytes-n.after.Bytes).int("headroom_items", limit.Items-n.after.Items).
		int("reclaimed_bytes", n.before.Bytes-n.after.Bytes).int("reclaimed_items", n.before.Items-n.after.Items).done()
}

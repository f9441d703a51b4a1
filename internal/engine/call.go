package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// What one model call may cost in repeats (runtime.md 18).
const (
	maxAttempts     = 8
	maxPaceAttempts = 64
	callTime        = 300 * time.Second
	firstBackoff    = 250 * time.Millisecond
	maxBackoff      = 30 * time.Second
)

// call makes the turn's next model call, which shows a view.
func (t *task) call(v *view) (*model.Completion, error) {
	req, bodies := t.request(v)
	t.warm.watch(t, req)
	return t.complete(t.provider, req, bodies, t.sink)
}

// complete makes a model call, again where that may help. One that has to wait
// for the provider's pace parks the turn, which then plans it anew.
func (t *task) complete(provider model.Provider, req *model.Request, bodies *bodies, sink func(model.Event)) (*model.Completion, error) {
	attempt, spent := t.attempts, t.callSpent // of a call that was parked
	t.attempts, t.callSpent = 0, 0
	for {
		req.Attempt = attempt
		rep := &model.Report{}
		began := time.Now()
		done, err := provider.Complete(t.ctx, req, sink, rep)
		if errors.Is(err, model.ErrPaced) {
			return nil, t.parkPaced(rep.ParkFor, attempt, spent)
		}
		spent += time.Since(began) - time.Duration(rep.PacedMS)*time.Millisecond
		t.sentMS = rep.SentMS
		if err == nil {
			done.Usage = usageOf(done, rep, req.Items.Bytes)
			t.report(done)
			return done, nil
		}
		if stored := bodies.err(); stored != nil {
			return nil, stored // the transport reports a broken connection
		}
		if cerr := t.charge(rep.Usage); cerr != nil {
			return nil, cerr
		}
		var fail *model.Error
		if t.stopped() != nil || !errors.As(err, &fail) {
			return nil, err
		}
		attempt++
		if err := t.again(fail, attempt, spent); err != nil {
			return nil, err
		}
		wait := t.backoff(fail, attempt)
		t.noticeRetry(attempt, fail, wait)
		spent += wait
		if err := sleep(t.ctx, wait); err != nil {
			return nil, err
		}
		t.retries++
	}
}

// parkPaced parks the turn for so long, with what its call has cost so far.
func (t *task) parkPaced(wait time.Duration, attempts int, spent time.Duration) error {
	return t.park(parkRecord{
		Kind: parkPaced, DeadlineMS: t.e.nowMS() + wait.Milliseconds(),
		PacedSinceMS: t.e.nowMS(), CallAttempts: attempts, CallSpentMS: spent.Milliseconds(),
	})
}

// request fills in what a provider needs. The tracker remembers the bodies
// that it opens.
func (t *task) request(v *view) (*model.Request, *bodies) {
	e := t.e
	_, id, _ := protocol.ParseModelRef(t.model)
	tracked := &bodies{}
	return &model.Request{
		Bot: t.name, BotID: t.bot, Turn: t.turn, Round: t.rounds, Skipped: v.skipped, Workspace: t.workspace,
		Model: id, Instructions: v.instructions, Reasoning: v.reasoning, Tools: v.tools.encoded,
		ToolNames: v.tools.names, AllowTools: true, WebSearch: v.webSearch, Fallbacks: v.fallbacks,
		CacheKey: fmt.Sprintf("%s-%d", e.cfg.Instance, v.cacheBot), CacheTTL: t.lim.CacheTTL,
		MaxOutput: t.lim.MaxOutput, Stall: t.lim.Stall, TurnState: &t.turnState,
		Items: v.items(t.ctx, e, t.codec, tracked), Chain: t.chain(v, tracked),
		IDTaken: t.idTaken, NewID: t.newID,
	}, tracked
}

// bodies remembers the error of the store that ended a reading of a call's
// items: the transport, which may go on with one in another goroutine after the
// call has returned, reports it as a broken connection.
type bodies struct {
	mu    sync.Mutex
	store error
}

func (b *bodies) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.store
}

type trackedBody struct {
	io.ReadCloser
	b *bodies
}

func (t trackedBody) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && protocol.CodeOf(err) != "" {
		t.b.mu.Lock()
		t.b.store = err
		t.b.mu.Unlock()
	}
	return n, err
}

func (t *task) idTaken(id string) (taken bool, err error) {
	err = t.e.read(t.ctx, "call_id", func(c *store.Conn) error {
		taken, err = store.CallIDTaken(c, t.bot, id)
		return err
	})
	return taken, err
}

// newID makes a call id of ours, the same each time the round is made
// (providers.md 5).
func (t *task) newID(index int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%d/%d/%d", t.turn, t.rounds, index))
	return "call_" + hex.EncodeToString(h[:6])
}

// sink hands a piece of the stream to whoever follows.
func (t *task) sink(ev model.Event) {
	if t.ctx.Err() != nil || !t.e.cfg.Live.Wants(t.name) {
		return
	}
	switch ev.Kind {
	case model.EventText:
		t.e.cfg.Live.Delta(t.name, t.turn, protocol.KindTextDelta, ev.Text)
	case model.EventThinking:
		t.e.cfg.Live.Delta(t.name, t.turn, protocol.KindThinkingDelta, ev.Text)
	case model.EventWebSearch:
		t.notice(protocol.KindWebSearch, func(o *object) {
			o.str("status", ev.Status).opt("query", ev.Query).opt("url", ev.URL)
		})
	}
}

// notice gives followers a live notification of this turn.
func (t *task) notice(kind string, fields func(*object)) {
	if !t.e.cfg.Live.Wants(t.name) {
		return
	}
	o := newObject().str("event", kind).str("bot", t.name).int("turn", t.turn).bool("durable", false)
	fields(o)
	t.e.cfg.Live.Notice(t.name, append(o.done(), '\n'))
}

// report tells followers what a finished stream says besides its text.
func (t *task) report(done *model.Completion) {
	for _, s := range done.Fallbacks {
		t.notice(protocol.KindModelFallback, func(o *object) { o.str("from", s.From).str("to", s.To) })
	}
	if done.ThinkingDropped > 0 {
		t.notice(protocol.KindThinkingDropped, func(o *object) { o.int("count", int64(done.ThinkingDropped)) })
	}
}

func (t *task) noticeRetry(attempt int, fail *model.Error, wait time.Duration) {
	t.notice(protocol.KindRetry, func(o *object) {
		o.int("attempt", int64(attempt)).str("error", fail.Code).orNull("detail", fail.Detail).
			int("delay_ms", wait.Milliseconds()).bool("parked", false)
	})
}

// again says why a failed call may not be made another time, nil when it may.
// attempt is how many were made.
func (t *task) again(fail *model.Error, attempt int, spent time.Duration) error {
	most := maxAttempts
	if fail.Pace() {
		most = maxPaceAttempts
	}
	if !fail.Retryable() || takesNone(fail) || attempt >= most || spent >= callTime {
		return fail
	}
	if end, over := t.overBound(); over {
		return &protocol.Error{Code: end.err, Detail: end.detail, Facts: end.facts}
	}
	return nil
}

// backoff is the wait before the next attempt. What a provider asked for is kept
// by its closed pool, which parks the turn; only a local one has no pool. A
// refusal for pace is spaced by that alone.
func (t *task) backoff(fail *model.Error, attempt int) time.Duration {
	local := t.provider.Info().Transport == "local"
	switch {
	case fail.Code == "provider_login_refreshed", fail.Pace() && !local:
		return 0
	case fail.Pace() && fail.Retry > 0:
		return fail.Retry
	}
	d := min(firstBackoff<<min(attempt-1, 10), maxBackoff)
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%d", t.turn, attempt))
	spread := int64(binary.BigEndian.Uint32(sum[:4])%401) - 200 // ± 20 %
	d += d * time.Duration(spread) / 1000
	if local {
		d = max(d, fail.Retry)
	}
	return d
}

// sleep waits, or gives the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// usageOf is what a finished call used: as the provider reported it, else
// estimated by bytes, so that budgets still bind (runtime.md 17).
func usageOf(done *model.Completion, rep *model.Report, sent int64) *model.Usage {
	switch {
	case done.Usage != nil:
		return done.Usage
	case rep.Usage != nil:
		return rep.Usage
	}
	out := 0
	for _, item := range done.Items {
		out += len(item)
	}
	return &model.Usage{Input: sent / 4, Output: int64(out) / 4, Estimated: true}
}

package engine

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

const (
	purposeKeepWarm = "keep_warm"
	// cacheLife is how long a provider keeps a prompt cache that nobody reads.
	cacheLife = 5 * time.Minute
	// refreshWait is how long a refresh waits to be sent.
	refreshWait = 30 * time.Second
)

// refresher is a provider whose prompt cache can be kept by asking again.
type refresher interface {
	Refreshes(req *model.Request) bool
	Refresh(ctx context.Context, req *model.Request, rep *model.Report) error
}

// warmer keeps the prompt cache of a turn's last call alive while its reply
// streams or its tools run (runtime.md 22). It is one timer; only a refresh
// that is due has a goroutine. Its zero value watches nothing.
type warmer struct {
	mu       sync.Mutex
	provider refresher
	req      *model.Request // the call to repeat; nil: nothing is watched
	every    time.Duration
	timer    *time.Timer
	read     time.Time // when the cache was last read
	readMS   int64     // the same by the wall clock: the provider's does not stand while this machine sleeps
	running  *refresh
	spent    []store.Spend // recorded, not yet known to the task
}

// refresh is one repeat of a call.
type refresh struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	sent   bool // guarded by the warmer: it is awaited from then on
}

var (
	errUnwanted = errors.New("the refresh is not wanted any more")
	errLate     = errors.New("the refresh could not be sent in time")
)

// watch begins with a new call, if its cache is one that can be kept.
func (w *warmer) watch(t *task, req *model.Request) {
	r, ok := t.provider.(refresher)
	if !ok || t.lim.KeepWarm <= 0 || !r.Refreshes(req) {
		return
	}
	again, open := *req, req.Items.Open
	w.mu.Lock()
	w.provider, w.req, w.every = r, &again, t.lim.KeepWarm
	w.mu.Unlock()
	req.Items.Open = func() (io.ReadCloser, error) {
		w.touch(t, &again)
		return open()
	}
}

// touch notes that the call is being sent, which reads its cache.
func (w *warmer) touch(t *task, call *model.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.req == call && w.running == nil {
		w.arm(t, time.Now())
	}
}

// arm sets the timer for a cache that was read at a time. w.mu is held.
func (w *warmer) arm(t *task, read time.Time) {
	w.read, w.readMS = read, t.e.nowMS()-time.Since(read).Milliseconds()
	if w.timer != nil {
		w.timer.Stop()
	}
	call := w.req
	w.timer = time.AfterFunc(time.Until(read.Add(w.every)), func() { w.run(t, call) })
}

// left is how long the cache lives yet by whichever clock says less. w.mu is
// held.
func (w *warmer) left(t *task) time.Duration {
	asleep := time.Duration(t.e.nowMS()-w.readMS) * time.Millisecond
	return cacheLife - max(time.Since(w.read), asleep)
}

// run makes one refresh of a call, if that is still the one to keep. The timer
// calls it.
func (w *warmer) run(t *task, call *model.Request) {
	w.mu.Lock()
	if w.req != call || w.running != nil || t.ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	limit := min(refreshWait, w.left(t))
	if limit <= 0 {
		w.req = nil // a refresh would pay for the whole prompt
		w.mu.Unlock()
		return
	}
	req, provider := *call, w.provider
	ctx, cancel := context.WithCancelCause(t.ctx)
	r := &refresh{cancel: cancel, done: make(chan struct{})}
	w.running = r
	w.mu.Unlock()
	late := time.AfterFunc(limit, func() { w.unsent(r, errLate) })
	var sentAt time.Time
	open := req.Items.Open
	req.Items.Open = func() (io.ReadCloser, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if w.left(t) <= 0 {
			return nil, errLate
		}
		r.sent, sentAt = true, time.Now()
		return open()
	}
	rep := &model.Report{}
	err := provider.Refresh(ctx, &req, rep)
	for errors.Is(err, model.ErrPaced) && sleep(ctx, rep.ParkFor) == nil {
		*rep = model.Report{}
		err = provider.Refresh(ctx, &req, rep)
	}
	late.Stop()
	spend, rerr := t.recordRefresh(rep)
	var refused *model.Error
	if errors.As(err, &refused) && context.Cause(ctx) == nil {
		t.notice(protocol.KindKeepWarmFailed, func(o *object) { o.str("error", refused.Code).str("detail", refused.Detail) })
	}
	if rerr != nil {
		t.e.cfg.Log.Error("what a cache refresh used was not recorded", "bot", t.name, "turn", t.turn, "error", rerr)
	}
	w.mu.Lock()
	if spend != (store.Spend{}) {
		w.spent = append(w.spent, spend)
	}
	w.running = nil
	if err != nil {
		w.req = nil // no more until the next call
	} else if w.req == call {
		w.arm(t, sentAt)
	}
	w.mu.Unlock()
	cancel(nil)
	close(r.done)
}

// unsent gives a refresh up that has not been sent.
func (w *warmer) unsent(r *refresh, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.sent {
		r.cancel(why)
	}
}

// settle ends the watch: a refresh that was not sent is dropped, one that was
// is awaited, and what refreshes used counts to the budget. The turn's
// goroutine calls it before the next call, before it parks and at its end.
func (w *warmer) settle(t *task) {
	w.mu.Lock()
	w.req = nil
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	r := w.running
	w.mu.Unlock()
	if r != nil {
		w.unsent(r, errUnwanted)
		<-r.done
	}
	w.mu.Lock()
	spent := w.spent
	w.spent = nil
	w.mu.Unlock()
	for _, s := range spent {
		t.spent(s)
	}
}

// recordRefresh commits what a refresh used: no round, and nothing of the
// history.
func (t *task) recordRefresh(rep *model.Report) (store.Spend, error) {
	if rep.Usage == nil {
		return store.Spend{}, nil
	}
	spend := spendOf(rep.Usage)
	return spend, t.e.store.Do("keep_warm", func(tx *store.Tx) error {
		data := usageData(rep.Usage, rep.SentMS, purposeKeepWarm)
		if _, err := tx.AddEvent(t.bot, t.name, t.turn, protocol.KindUsage, data); err != nil {
			return err
		}
		if err := tx.ChargeTurn(t.turn, spend); err != nil {
			return err
		}
		return tx.ChargeBot(t.bot, spend)
	})
}

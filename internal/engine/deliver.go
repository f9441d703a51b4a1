package engine

import (
	"fmt"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// retryStart is the wait before a start that the store refused is tried again.
const retryStart = 200 * time.Millisecond

// One batch of absorbed steers, one transaction (runtime.md 6).
const (
	steerBatch      = 32
	steerBatchBytes = 256 << 10
)

// startsAtOnce is how many starts of waiting turns stand in the store's queue at
// a time: enough to share commits, and few, so that a long backlog does not hold
// up client requests (runtime.md 4).
const startsAtOnce = 8

// dispatch has waiting turns started while slots are free.
func (e *Engine) dispatch() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.open && e.startsTurns() && e.starting < startsAtOnce && !e.full() &&
		e.ready+int64(len(e.wakes)) > e.starting {
		e.starting++
		e.active++
		s := &start{e: e}
		go e.store.Go("start_turn", s.job, s.done)
	}
}

// start is the start of one waiting turn. Which one is known once its job runs:
// a parked turn whose condition is met, first come first, else the ready turn
// that has waited longest.
type start struct {
	e      *Engine
	chosen bool
	woken  *parkedTurn // nil: a ready one
	task   *task       // set when a turn runs by it
}

func (s *start) job(tx *store.Tx) (err error) {
	s.choose()
	paused, err := s.e.standingPause(tx.Conn())
	switch {
	case err != nil:
	case paused != nil:
		s.task = nil // what is parked ends, what is ready starts after the lift
	case s.e.isDraining():
		s.task = nil // it closes: what waits is the next daemon's
	case s.woken != nil:
		s.task, err = s.e.resume(tx, s.woken)
	default:
		s.task, err = s.e.startReady(tx)
	}
	return err
}

// choose takes the turn out of what waits, once: the job may be run twice.
func (s *start) choose() {
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.chosen {
		return
	}
	s.chosen = true
	if len(e.wakes) == 0 {
		e.begun++
		return
	}
	s.woken = e.wakes[0]
	e.wakes = append(e.wakes[:0:0], e.wakes[1:]...)
}

// done runs behind the commit, or the refusal.
func (s *start) done(err error) {
	e := s.e
	e.mu.Lock()
	e.starting--
	if s.chosen && s.woken == nil {
		e.begun--
	}
	if err != nil || s.task == nil {
		e.active--
	}
	if err != nil && s.woken != nil {
		e.wakes = append(e.wakes, s.woken) // it stays parked, and is tried again
	}
	e.mu.Unlock()
	if err != nil {
		e.cfg.Log.Error("a waiting turn could not be started", "error", err)
		go func() { // it stays as it is, and is tried again
			if e.sleepOpen(retryStart) {
				e.dispatch()
			}
		}()
		return
	}
	e.dispatch()
}

// startReady starts the lowest ready turn, or ends it by what is wrong with
// it now. It gives no task when there was none to start.
func (e *Engine) startReady(tx *store.Tx) (*task, error) {
	c := tx.Conn()
	t, ok, err := store.LowestReady(c)
	if err != nil || !ok {
		return nil, err
	}
	bot, ok, err := store.BotByName(c, t.Bot)
	if err != nil {
		return nil, err
	} else if !ok {
		return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("turn %d has no bot", t.ID))
	}
	if why := e.cannotStart(&bot, &t); why != nil {
		if err := e.endWaiting(tx, &bot, &t, failed(why)); err != nil {
			return nil, err
		}
		return nil, e.promote(tx, &bot)
	}
	e.left(tx, &t)
	task, _, err := e.start(tx, &bot, &t)
	return task, err
}

// cannotStart makes again the checks of a submission that time can change.
func (e *Engine) cannotStart(bot *store.Bot, t *store.Turn) error {
	if t.ExpectedTurn != 0 {
		return protocol.Fail(protocol.StaleTurn, "the turn it was for is over")
	}
	name, _, _ := protocol.ParseModelRef(effective(t.Model, bot.Provider+"/"+bot.Model))
	if _, err := e.provider(name, model.Family(bot.Family)); err != nil {
		return err
	}
	if bot.Budget > 0 && bot.TokensUsed >= bot.Budget {
		return budgetExhausted(bot)
	}
	if effective(t.Workspace, bot.Workspace) == "" {
		return protocol.Fail(protocol.WorkspaceRequired, "neither the submission nor the bot names a workspace")
	}
	return nil
}

// absorb takes in the steers that wait for this turn and fit, and reports
// whether any did. It asks the store only when one may be there.
func (t *task) absorb() (took bool, err error) {
	if !t.steer.Swap(false) {
		return false, nil
	}
	var after, through int64
	for {
		b := batch{t: t, after: after, through: through}
		if err := t.e.store.Do("absorb", b.job); err != nil {
			if asError(err).Code == protocol.StorageError {
				t.steer.Store(true)
			}
			return took, err
		}
		after, through = b.last, b.through
		took = took || b.taken > 0
		t.head = b.head
		if b.left {
			t.steer.Store(true) // no room now; a later boundary asks again
		}
		if !b.more || t.stopped() != nil {
			return took, nil
		}
	}
}

// batch is one transaction of absorbed steers.
type batch struct {
	t       *task
	after   int64 // the steer looked at last by the batch before
	through int64 // the newest steer of this boundary
	last    int64 // the steer looked at last
	head    int64
	taken   int
	more    bool // the batch was full
	left    bool // one did not fit the room
}

func (b *batch) job(tx *store.Tx) error {
	c := tx.Conn()
	b.head, b.taken, b.more, b.left, b.last = b.t.head, 0, false, false, b.after
	if b.through == 0 {
		newest, err := store.NewestSteer(c, b.t.name)
		if err != nil || newest == 0 {
			return err
		}
		b.through = newest
	}
	var steers []store.Turn
	size := 0
	err := store.Steers(c, b.t.name, b.after, b.through, steerBatch+1, func(s *store.Turn) bool {
		if len(steers) == steerBatch || len(steers) > 0 && size+len(s.Prompt) > steerBatchBytes {
			b.more = true
			return false
		}
		steers = append(steers, *s)
		size += len(s.Prompt)
		return true
	})
	if err != nil {
		return err
	}
	for i := range steers {
		s := &steers[i]
		b.last = s.ID
		if s.ExpectedTurn != 0 && s.ExpectedTurn != b.t.turn {
			continue // for another turn; it ends in its place in the line
		}
		if !b.joins(s) {
			b.more = false
			break // and later ones do not overtake it
		}
		room, err := b.fits(tx, s)
		if err != nil {
			return err
		}
		if !room {
			b.more, b.left = false, true
			break
		}
		if err := b.take(tx, s); err != nil {
			return err
		}
	}
	return nil
}

// joins reports whether what the steer names is what the turn works with.
func (b *batch) joins(s *store.Turn) bool {
	return (s.Workspace == "" || s.Workspace == b.t.workspace) && (s.Model == "" || s.Model == b.t.model)
}

// fits reports whether the turn's items, what goes ahead of them and the steer
// stay within three quarters of both envelopes.
func (b *batch) fits(tx *store.Tx, s *store.Turn) (bool, error) {
	own, pinned, err := turnRoom(tx.Conn(), b.t, b.head)
	if err != nil {
		return false, err
	}
	pictures, err := store.TurnPictures(tx.Conn(), s.ID)
	if err != nil {
		return false, err
	}
	own.Bytes += int64(len(b.t.codec.User(senderOf(s).Text(s.Prompt), inItem(pictures))) + len(pictures)*store.PictureWeight)
	own.Items++
	return b.t.limits().Share(75).Fits(own, pinned), nil
}

// take makes a steer part of the turn.
func (b *batch) take(tx *store.Tx, s *store.Turn) error {
	t := b.t
	node, err := appendPrompt(tx, t.codec, b.head, s, false)
	if err != nil {
		return err
	}
	if err := tx.SetHead(t.bot, t.turn, node); err != nil {
		return err
	}
	if err := tx.AbsorbTurn(s.ID, t.e.nowMS(), t.turn, node); err != nil {
		return err
	}
	data := newObject().str("status", protocol.StatusSteered).int("into", t.turn).int("node", node).done()
	if _, err := tx.AddEvent(t.bot, t.name, s.ID, protocol.KindTurnFinished, data); err != nil {
		return err
	}
	data = newObject().int("from", s.ID).int("node", node).done()
	if _, err := tx.AddEvent(t.bot, t.name, t.turn, protocol.KindSteered, data); err != nil {
		return err
	}
	bot := store.Bot{ID: t.bot, Name: t.name, Family: string(t.family)}
	if err := t.e.announce(tx, &bot, s.ID); err != nil {
		return err
	}
	t.e.left(tx, s)
	b.head = node
	b.taken++
	return nil
}

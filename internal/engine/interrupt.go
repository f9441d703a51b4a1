package engine

import (
	"fmt"
	"time"

	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// Interrupt ends a turn: a running one by its task, a waiting one there and
// then. What is running is judged by the store, so that it also works in the
// instant between a task's end and its retirement (runtime.md 14).
func (e *Engine) Interrupt(by *Owner, req *protocol.Interrupt) (*protocol.Interrupted, *protocol.Error) {
	if len(req.Reason) > protocol.MaxReason {
		return nil, protocol.Fail(protocol.ReasonLimit, fmt.Sprintf("%d bytes of at most %d", len(req.Reason), protocol.MaxReason))
	}
	cause := &stop{err: protocol.Cancelled, why: req.Reason, kind: tool.StopInterrupt}
	answer := &protocol.Interrupted{InterruptRequested: true, Turn: req.Turn}
	err := e.store.Do("interrupt", func(tx *store.Tx) error {
		answer.Queued, answer.Parked = false, false
		c := tx.Conn()
		bot, err := findBot(c, req.Bot, 0)
		if err != nil {
			return err
		}
		if err := by.mayEnd(c, protocol.OpInterrupt, &bot); err != nil {
			return err
		}
		if bot.RunningTurn != 0 && bot.RunningTurn == req.Turn && !req.Queued {
			// Now, and not after the commit: an end of this turn may be the
			// next job of the group, and must find the cause.
			if bot.Status == protocol.StatusWaiting || bot.Status == protocol.StatusPaced {
				answer.Parked = true
				return e.endParked(tx, bot.ID, req.Turn, cause)
			}
			if t := e.taskOf(bot.ID); t != nil && t.turn == req.Turn {
				t.stopWith(cause)
			}
			return nil
		}
		t, ok, err := store.TurnByID(c, req.Turn)
		if err != nil {
			return err
		}
		if ok && t.Bot == bot.Name && (t.Status == protocol.StatusQueued || t.Status == protocol.StatusReady) {
			answer.Queued = true
			return e.cancelWaiting(tx, &bot, &t, interrupted(cause))
		}
		if bot.RunningTurn != 0 {
			return protocol.Fail(protocol.StaleTurn, fmt.Sprintf("turn %d is running", bot.RunningTurn))
		}
		return protocol.Fail(protocol.NoActiveTurn, "no turn of "+bot.Name+" is running")
	})
	if err != nil {
		return nil, asError(err)
	}
	return answer, nil
}

// endParked ends a parked turn without waking it.
func (e *Engine) endParked(tx *store.Tx, bot, turn int64, cause *stop) error {
	t, _, err := store.TurnByID(tx.Conn(), turn)
	if err != nil {
		return err
	}
	end := interrupted(cause)
	end.retries, end.pacedMS = t.Retries, t.PacedMS+e.parkedTurnOf(bot).pacedMS()
	return e.endTurn(tx, bot, turn, end)
}

// cancelWaiting ends an entry of a bot's line and lets the next be ready. A
// steer that it blocked may join the running turn now.
func (e *Engine) cancelWaiting(tx *store.Tx, bot *store.Bot, t *store.Turn, end ending) error {
	if err := e.endWaiting(tx, bot, t, end); err != nil {
		return err
	}
	if t.Status == protocol.StatusReady {
		return e.promote(tx, bot)
	}
	tx.AfterCommit(func() {
		if task := e.taskOf(bot.ID); task != nil {
			task.steer.Store(true)
		}
	})
	return nil
}

// Drain stops new turns from starting while those that run go on.
func (e *Engine) Drain() {
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
}

func (e *Engine) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining || e.closing
}

func (e *Engine) isClosing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing
}

// Close ends every running turn with daemon_shutdown and returns when their
// endings are committed. Waiting work stays for the next start.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	e.looks.cancel()
	// What was in the store's queue before this job may still start a turn;
	// what comes behind it may not.
	_ = e.store.Do("close", func(*store.Tx) error { return nil })
	e.mu.Lock()
	for _, t := range e.live {
		t.stopWith(&stop{err: protocol.DaemonShutdown, kind: tool.StopShutdown})
	}
	e.mu.Unlock()
	e.tasks.Wait()
	e.stopProcesses()
	e.waits.stop()
}

// sleepOpen waits, and reports whether the engine still runs turns.
func (e *Engine) sleepOpen(d time.Duration) bool {
	time.Sleep(d)
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closing
}

// WaitIdle returns when no turn runs. Call it while draining only: otherwise
// another may start.
func (e *Engine) WaitIdle() {
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
	_ = e.store.Do("drain", func(*store.Tx) error { return nil }) // starts queued before are in the table
	e.tasks.Wait()
}

package engine

import (
	"agent/internal/store"
	"agent/protocol"
)

// Recover puts right what an earlier daemon left: commands that nobody
// supervises are lost, turns found running are over, each idle bot's line has
// its ready head. It repeats safely (runtime.md 27). Run nothing before it.
func (e *Engine) Recover() error {
	if err := e.finishDeletions(); err != nil {
		return err
	}
	if err := e.dropOldHolds(); err != nil {
		return err
	}
	if err := e.store.Do("recover", e.recoverRunning); err != nil {
		return err
	}
	if err := e.registerParked(); err != nil {
		return err
	}
	if err := e.loadPause(); err != nil {
		return err
	}
	return e.store.Do("recount", func(tx *store.Tx) error {
		c := tx.Conn()
		ready, readyBytes, err := store.CountReady(c)
		if err != nil {
			return err
		}
		queued, queuedBytes, err := store.CountQueued(c)
		if err != nil {
			return err
		}
		tx.AfterCommit(func() {
			e.pending.mu.Lock()
			e.pending.turns, e.pending.bytes = ready+queued, readyBytes+queuedBytes
			e.pending.mu.Unlock()
			e.mu.Lock()
			e.ready = ready
			e.mu.Unlock()
		})
		return nil
	})
}

// Run lets waiting work start.
func (e *Engine) Run() {
	e.mu.Lock()
	e.open = true
	e.mu.Unlock()
	e.dispatch()
}

func (e *Engine) recoverRunning(tx *store.Tx) error {
	c := tx.Conn()
	if err := tx.LoseProcesses(); err != nil {
		return err
	}
	type running struct {
		turn int64
		bot  string
	}
	var found []running
	if err := store.RunningTurns(c, func(turn int64, bot string) { found = append(found, running{turn, bot}) }); err != nil {
		return err
	}
	for _, r := range found {
		bot, _, err := store.BotByName(c, r.bot)
		if err != nil {
			return err
		}
		t, _, err := store.TurnByID(c, r.turn)
		if err != nil {
			return err
		}
		end := ending{
			status: protocol.StatusInterrupted, err: protocol.ProcessInterrupted,
			detail: "the daemon ended while the turn ran", retries: t.Retries, pacedMS: t.PacedMS,
		}
		if err := e.endTurn(tx, bot.ID, r.turn, end); err != nil {
			return err
		}
	}
	return e.promoteIdle(tx)
}

// promoteIdle gives every idle bot with work its ready head.
func (e *Engine) promoteIdle(tx *store.Tx) error {
	c := tx.Conn()
	var names []string
	if err := store.BotsWithQueue(c, func(bot string) { names = append(names, bot) }); err != nil {
		return err
	}
	for _, name := range names {
		bot, _, err := store.BotByName(c, name)
		if err != nil {
			return err
		}
		head, err := store.ReadyHead(c, name)
		if err != nil {
			return err
		}
		if bot.RunningTurn != 0 || head != 0 {
			continue
		}
		if err := e.promote(tx, &bot); err != nil {
			return err
		}
	}
	return nil
}

package engine

import (
	"os"

	"agent/internal/store"
	"agent/protocol"
)

// retain applies a bot's retention in the commit that ends a turn: at most
// one piece, so that a backlog drains over time, and never the turn that ends
// (runtime.md 16).
func (e *Engine) retain(tx *store.Tx, bot *store.Bot, ended int64) error {
	keep := e.limitsFor(bot).RetainTurns
	if keep == 0 {
		return nil
	}
	p, err := tx.PruneTurns(bot.Name, keep, ended)
	if err != nil {
		return err
	}
	e.unlink(tx, p.Files)
	return nil
}

// unlink removes spilled output that no row names any more, once that is
// committed. What a crash leaves is swept at the next start.
func (e *Engine) unlink(tx *store.Tx, files []string) {
	if len(files) == 0 {
		return
	}
	tx.AfterPublish(func() {
		for _, name := range files {
			path, err := e.store.SpillPath(name)
			if err == nil {
				err = os.Remove(path)
			}
			if err != nil && !os.IsNotExist(err) {
				e.cfg.Log.Warn("spilled output was not removed", "file", name, "error", err)
			}
		}
	})
}

// Prune removes the operational records of a bot's older turns, in pieces that
// other work goes between. One that is cut short is asked for again.
func (e *Engine) Prune(by *Owner, req *protocol.Prune) (*protocol.Pruned, *protocol.Error) {
	out := &protocol.Pruned{}
	for id := int64(0); ; {
		var p store.Pruned
		err := e.store.Do("prune", func(tx *store.Tx) error {
			bot, err := findBot(tx.Conn(), req.Bot, id)
			if err != nil {
				return err
			}
			if err := by.mayEnd(tx.Conn(), protocol.OpPrune, &bot); err != nil {
				return err
			}
			id = bot.ID
			if p, err = tx.PruneTurns(req.Bot, req.KeepTurns, 0); err != nil {
				return err
			}
			e.unlink(tx, p.Files)
			out.PrunedCursor = max(bot.PrunedCursor, p.Cursor)
			return nil
		})
		if err != nil {
			return nil, asError(err)
		}
		out.Events += p.Events
		if !p.More {
			return out, nil
		}
	}
}

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"agent/internal/store"
	"agent/protocol"
)

// Delete removes a bot with its records and the part of its history that no
// other bot has, in pieces that other work goes between (runtime.md 16). One
// that is cut short is finished by the next daemon.
func (e *Engine) Delete(by *Owner, req *protocol.Delete) (*protocol.Deleted, *protocol.Error) {
	var id int64
	err := e.store.Do("delete", func(tx *store.Tx) error {
		bot, err := findBot(tx.Conn(), req.Bot, 0)
		if err != nil {
			return err
		}
		if err := by.mayEnd(tx.Conn(), protocol.OpDelete, &bot); err != nil {
			return err
		}
		if err := notBusy(tx.Conn(), &bot); err != nil {
			return err
		}
		id = bot.ID
		if err := e.limitChildren(tx, bot.ID); err != nil {
			return err
		}
		return tx.BeginDelete(bot.ID)
	})
	if err != nil {
		return nil, asError(err)
	}
	e.forget(id)
	if e.cfg.Sandbox != nil && e.cfg.Sandbox.Deleted != nil {
		e.cfg.Sandbox.Deleted(id)
	}
	out, err := e.deleteRest(id, e.sleepOpen)
	if err != nil {
		return nil, asError(err)
	}
	return out, nil
}

// notBusy refuses to delete a bot that has something to do.
func notBusy(c *store.Conn, bot *store.Bot) error {
	busy := func(format string, args ...any) error {
		return protocol.Fail(protocol.BotBusy, bot.Name+": "+fmt.Sprintf(format, args...))
	}
	if bot.RunningTurn != 0 {
		return busy("turn %d is under way; interrupt it first", bot.RunningTurn)
	}
	for _, waiting := range []func(*store.Conn, string) (int64, error){store.ReadyHead, store.QueuedHead} {
		turn, err := waiting(c, bot.Name)
		if err != nil {
			return err
		}
		if turn != 0 {
			return busy("turn %d waits; interrupt it first", turn)
		}
	}
	runs, err := store.RunsProcess(c, bot.ID)
	if err == nil && runs {
		err = busy("a background command runs; end it first")
	}
	return err
}

// deletePatience is how long a store that refuses a piece is asked again. What
// is left then goes at the next start.
const deletePatience = 60 * time.Second

// deleteRest removes what is left of a bot whose deletion has begun. The bot
// answers to nothing by now, so a store that refuses a piece is asked again for
// as long as again waits, up to deletePatience.
func (e *Engine) deleteRest(id int64, again func(time.Duration) bool) (*protocol.Deleted, error) {
	out := &protocol.Deleted{}
	wait, waited := firstEndWait, time.Duration(0)
	for {
		var d store.DeletedPiece
		err := e.store.Do("delete_piece", func(tx *store.Tx) (err error) {
			d, err = e.deletePiece(tx, id)
			return err
		})
		if protocol.CodeOf(err) == protocol.StorageError && waited < deletePatience && again(wait) {
			waited += wait
			wait = min(2*wait, time.Second)
			continue
		}
		if err != nil {
			return nil, err
		}
		wait, waited = firstEndWait, 0
		out.Turns += d.Turns
		out.Events += d.Events
		out.Nodes += d.Nodes
		if d.Gone {
			e.world().DropCache(id)
			return out, nil
		}
	}
}

func (e *Engine) deletePiece(tx *store.Tx, id int64) (d store.DeletedPiece, err error) {
	bot, ok, err := store.BotByID(tx.Conn(), id)
	if err != nil {
		return d, err
	}
	if !ok || bot.Status != protocol.StatusDeleting {
		return d, protocol.Fail(protocol.BotNotFound, fmt.Sprintf("no bot %d is being deleted", id))
	}
	if d, err = tx.DeletePiece(&bot); err != nil {
		return d, err
	}
	e.unlink(tx, d.Files)
	if !d.Gone {
		return d, nil
	}
	tx.AfterPublish(func() {
		line, _ := protocol.AppendLive(nil, protocol.KindDeleted, protocol.DeletedNotice{Bot: bot.Name})
		e.cfg.Live.Deleted(id, bot.Name, line)
		folder := filepath.Join(e.store.FilesDir(), strconv.FormatInt(id, 10))
		if err := os.RemoveAll(folder); err != nil {
			e.cfg.Log.Warn("the folder of a deleted bot's spilled output was not removed", "folder", folder, "error", err)
		}
	})
	return d, nil
}

// finishDeletions ends the deletions that an earlier daemon began.
func (e *Engine) finishDeletions() error {
	var ids []int64
	err := e.read(context.Background(), "deleting", func(c *store.Conn) error {
		ids = ids[:0]
		return store.Deleting(c, func(id int64) { ids = append(ids, id) })
	})
	for _, id := range ids {
		if err != nil {
			break
		}
		_, err = e.deleteRest(id, func(time.Duration) bool { return false })
	}
	return err
}

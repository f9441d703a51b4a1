package engine

import (
	"fmt"
	"time"

	"agent/internal/store"
	"agent/protocol"
)

// expire denies calls and steps at their deadline, in the commit that it is a part
// of. The deadlines of one tag that pass together count once. lapsed, if not nil, is told
// each tag with its count.
func (e *Engine) expire(tx *store.Tx, bot *store.Bot, turn int64, late []judged, lapsed func(tag string, expired int64)) error {
	if len(late) == 0 {
		return nil
	}
	fresh, ok, err := store.BotByID(tx.Conn(), bot.ID) // as the jobs before left it
	if err != nil || !ok {
		return err
	}
	counts, err := countsIn(&fresh, turn)
	if err != nil {
		return err
	}
	now := e.nowMS()
	var tags []string
	for _, c := range late {
		row := c.row.clone()
		for i := range row.Gates {
			if !e.passed(c.of(turn), c.row, i) {
				continue
			}
			g := &row.Gates[i]
			g.Decision, g.AnsweredMS = protocol.Expired, now
			counts.expired(g.Tag)
			if !contains(tags, g.Tag) {
				tags = append(tags, g.Tag)
			}
		}
		if err := e.keepVerdict(tx, bot, turn, &c, row); err != nil {
			return err
		}
	}
	for _, tag := range tags {
		counts.tag(tag).Expired++
		if lapsed != nil {
			lapsed(tag, counts.tag(tag).Expired)
		}
	}
	return keepCounts(tx, bot.ID, &counts)
}

// maxUnserved is how many deadlines in a row may pass with nobody there to meet
// them (approvals.md 14).
const maxUnserved = 3

// expireTurn denies what of a turn's round is due, when what the turn waits for
// is. starting says that the daemon is not serving yet: then nobody can serve a
// tag, and nothing is concluded from that.
func (e *Engine) expireTurn(bot int64, of asked, starting bool) error {
	turn := of.turn
	return e.store.Do("expire", func(tx *store.Tx) error {
		b, ok, err := store.BotByID(tx.Conn(), bot)
		if err != nil || !ok || b.RunningTurn != turn {
			return err
		}
		calls, err := openApprovals(tx.Conn(), turn)
		if err != nil {
			return err
		}
		steps, err := e.openSteps(tx.Conn(), turn)
		if err != nil {
			return err
		}
		var late []judged
		waited := false
		for _, c := range append(calls, steps...) {
			if c.row.standing() == undecided && e.overdue(c.of(turn), c.row) {
				late = append(late, c)
				waited = waited || c.of(turn) == of
			}
		}
		if !waited {
			return nil
		}
		var unserved *stop
		err = e.expire(tx, &b, turn, late, func(tag string, expired int64) {
			if unserved == nil && expired >= maxUnserved && !starting && !e.isServed(tag) {
				unserved = unservedStop(tag, expired)
			}
		})
		if err != nil || unserved == nil {
			return err
		}
		return e.endUnserved(tx, &b, turn, unserved)
	})
}

func unservedStop(tag string, expired int64) *stop {
	fail := protocol.Fail(protocol.ApprovalsUnserved, "").With("tag", tag).With("expired", expired)
	return &stop{
		err: protocol.ApprovalsUnserved, facts: fail.Facts,
		why: fmt.Sprintf("nobody serves %s: %d deadlines passed in a row; start who answers it, or answer by hand (agent approvals)", tag, expired),
	}
}

// endUnserved ends a turn whose calls nobody is there to judge: a parked one
// here, a live one by its task, whose last commit denies them.
func (e *Engine) endUnserved(tx *store.Tx, bot *store.Bot, turn int64, cause *stop) error {
	if bot.Status != protocol.StatusWaiting {
		tx.AfterCommit(func() {
			if t := e.taskOf(bot.ID); t != nil && t.turn == turn {
				t.stopWith(cause)
			}
		})
		return nil
	}
	row, _, err := store.TurnByID(tx.Conn(), turn)
	if err != nil {
		return err
	}
	end := interrupted(cause)
	end.retries, end.pacedMS = row.Retries, row.PacedMS
	return e.endTurn(tx, bot.ID, turn, end)
}

// isServed reports whether a session serves a tag now.
func (e *Engine) isServed(tag string) bool {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.tags.byTag[tag]
	return l != nil && !l.lapsed()
}

// expireLater is expireTurn for a parked turn, or a step. A store that refuses is
// asked again.
func (e *Engine) expireLater(bot int64, of asked) {
	for wait := firstEndWait; ; wait = min(2*wait, time.Second) {
		err := e.expireTurn(bot, of, false)
		if err == nil {
			return
		}
		if protocol.CodeOf(err) != protocol.StorageError || !e.sleepOpen(wait) {
			e.cfg.Log.Error("a call could not be denied at its deadline", "turn", of.turn, "error", err)
			return
		}
	}
}

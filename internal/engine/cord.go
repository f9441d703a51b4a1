package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// cord is the andon cord: what pulls and lifts it, one after the other, and how
// many turns the pull under way has ended (runtime.md 14, approvals.md 17). The
// pause itself is a row.
type cord struct {
	mu    sync.Mutex
	turns atomic.Int64
}

// ended counts a turn that a pause ended. It runs behind the turn's commit.
func (c *cord) ended() { c.turns.Add(1) }

// unnamed is who pulled the cord when a client says nothing about it.
const unnamed = "client"

// Pause pulls the cord: from its commit on no turn starts or resumes, every
// current turn ends, every background and detached command is killed. It
// returns when all of that is committed and the sessions are told, however long
// that takes. A pause that stands already is answered as it is. It is safe for
// concurrent use.
//
// owner is the id of the bot on whose socket it was asked, which is who it is
// attributed to whatever was sent; 0 on the daemon's own socket.
//
// Where the store refuses the record, all is stopped all the same and nothing
// starts; the answer is storage_error, which says that it holds for this daemon
// alone. Asked again it is recorded, if there is room then.
//
// Codes: reason_limit, invalid_by, invalid_from, bot_not_found (the owner was
// deleted), storage_error.
func (e *Engine) Pause(req *protocol.PauseRequest, owner int64) (*protocol.Pause, *protocol.Error) {
	if len(req.Reason) > protocol.MaxReason {
		return nil, protocol.Fail(protocol.ReasonLimit, fmt.Sprintf("%d bytes of at most %d", len(req.Reason), protocol.MaxReason))
	}
	if owner == 0 && len(req.By) > protocol.MaxBy {
		return nil, protocol.Fail(protocol.InvalidBy, fmt.Sprintf("by is 1 to %d bytes", protocol.MaxBy))
	}
	e.cord.mu.Lock()
	defer e.cord.mu.Unlock()
	e.cord.turns.Store(0)
	p := &pull{e: e, req: req, owner: owner}
	if err := e.store.Do("pause", p.job); err != nil {
		return nil, p.unrecorded(asError(err))
	}
	if p.already {
		return pauseAnswer(p.info, 0, 0, true), nil
	}
	processes, err := e.stopAll(p.cause)
	if err != nil {
		return nil, asError(err)
	}
	if err := e.tellEveryone(protocol.KindPaused, p.info); err != nil {
		return nil, asError(err)
	}
	return pauseAnswer(p.info, e.cord.turns.Load(), processes, false), nil
}

// unrecorded makes a pause hold that the store refused. The turns end when there
// is room for their ends, so that nothing waits for them here.
func (p *pull) unrecorded(err *protocol.Error) *protocol.Error {
	if err.Code != protocol.StorageError || p.cause == nil {
		return err
	}
	p.begin()
	p.e.procs.stop()
	if told := p.e.tellEveryone(protocol.KindPaused, p.info); told != nil {
		p.e.cfg.Log.Error("nobody was told of a pause", "error", told)
	}
	return protocol.Fail(err.Code, err.Detail+": all is stopped and nothing starts, but the pause is not recorded and ends with this daemon; make room and pause again")
}

func pauseAnswer(p *protocol.PauseInfo, turns, processes int64, already bool) *protocol.Pause {
	return &protocol.Pause{
		Paused: true, By: p.By, ByID: p.ByID, Turn: p.Turn, Reason: p.Reason, SinceMS: p.SinceMS,
		InterruptedTurns: turns, EndedProcesses: processes, Already: already,
	}
}

// pull is one pull of the cord on its way through the store's writer. Its job
// may be run twice.
type pull struct {
	e     *Engine
	req   *protocol.PauseRequest
	owner int64

	info    *protocol.PauseInfo
	cause   *stop
	already bool // info is an earlier one's
}

func (p *pull) job(tx *store.Tx) (err error) {
	if p.info, err = store.StandingPause(tx.Conn()); err != nil {
		return err
	}
	if p.already = p.info != nil; p.already {
		return nil
	}
	if p.info, err = p.attribution(tx.Conn()); err != nil {
		return err
	}
	p.cause = pausedBy(p.info)
	tx.AfterCommit(p.begin)
	return tx.Pause(p.info)
}

// attribution is the record: whose bot's socket it came over, else what the
// client declared.
func (p *pull) attribution(c *store.Conn) (*protocol.PauseInfo, error) {
	info := &protocol.PauseInfo{By: effective(p.req.By, unnamed), SinceMS: p.e.nowMS()}
	if p.req.Reason != "" {
		info.Reason = &p.req.Reason
	}
	from := p.req.From
	switch {
	case p.owner != 0:
		bot, ok, err := store.BotByID(c, p.owner)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, protocol.Fail(protocol.BotNotFound, "the bot of this socket was deleted")
		}
		info.By, info.ByID = bot.Name, &bot.ID
		if bot.RunningTurn != 0 {
			info.Turn = &bot.RunningTurn
		}
	case from != nil:
		id, err := checkFrom(c, from)
		if err != nil {
			return nil, err
		}
		info.By, info.ByID, info.Turn = from.Bot, &id, &from.Turn
	}
	return info, nil
}

// pausedBy is how a pause ends a turn.
func pausedBy(p *protocol.PauseInfo) *stop {
	by, _ := json.Marshal(p.By)
	s := &stop{err: protocol.Paused, kind: tool.StopPause, facts: map[string]json.RawMessage{"by": by}}
	if p.Reason != nil {
		s.why = *p.Reason
	}
	return s
}

// begin makes the pause hold in memory and stops the turns that run. It comes
// before whatever the writer does next: a turn whose end, or whose park, is
// another job behind this commit finds the cause.
func (p *pull) begin() {
	e := p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pause = p.info
	for _, t := range e.live {
		t.stopWith(p.cause)
	}
}

// stopAll ends every current turn and then, since no turn is left that could
// begin one, every command that outlives its call. It gives the number of those.
func (e *Engine) stopAll(cause *stop) (processes int64, err error) {
	if err := e.endAllParked(cause); err != nil {
		return 0, err
	}
	e.tasks.Wait() // nothing goes live before the lift, which waits for this
	e.mu.Lock()
	e.wakes = nil // of parked turns, and none is left
	e.mu.Unlock()
	return e.procs.stop(), nil
}

// endAllParked ends the turns that are parked, each by a job of its own, so that
// one that cannot be ended holds up no other. A store that refuses is asked
// again. While the pause stands no turn parks any more.
func (e *Engine) endAllParked(cause *stop) error {
	left, err := e.parkedRows()
	for wait := firstEndWait; err == nil && len(left) > 0; wait = min(2*wait, time.Second) {
		if left = e.endParkedRows(left, cause); len(left) > 0 && !e.sleepOpen(wait) {
			return errUnfinished // the next daemon finds the pause and ends them
		}
	}
	return err
}

var errUnfinished = protocol.Fail(protocol.StorageError, "the daemon ends; the next one finds the pause and ends what is left")

type parkedRow struct {
	turn int64
	bot  string
}

func (e *Engine) parkedRows() (list []parkedRow, err error) {
	err = e.read(context.Background(), "parked", func(c *store.Conn) error {
		list = nil
		return store.ParkedTurns(c, func(turn int64, bot string, _ json.RawMessage) {
			list = append(list, parkedRow{turn, bot})
		})
	})
	return list, err
}

// endParkedRows gives those that the store refused to end.
func (e *Engine) endParkedRows(list []parkedRow, cause *stop) (refused []parkedRow) {
	var mu sync.Mutex
	var answers sync.WaitGroup
	answers.Add(len(list))
	for _, row := range list {
		e.store.Go("pause_parked", func(tx *store.Tx) error {
			bot, ok, err := store.BotByName(tx.Conn(), row.bot)
			if err != nil || !ok || bot.RunningTurn != row.turn {
				return err // an interrupt was faster
			}
			return e.endParked(tx, bot.ID, row.turn, cause)
		}, func(err error) {
			if protocol.CodeOf(err) == protocol.StorageError {
				mu.Lock()
				refused = append(refused, row)
				mu.Unlock()
			} else if err != nil {
				e.cfg.Log.Error("a parked turn could not be ended by the pause", "bot", row.bot, "turn", row.turn, "error", err)
			}
			answers.Done()
		})
	}
	answers.Wait()
	return refused
}

// tellEveryone gives all sessions a notice, behind the events committed so far,
// and returns when it is on its way.
func (e *Engine) tellEveryone(kind string, p *protocol.PauseInfo) error {
	told := make(chan struct{})
	err := e.store.Do("tell", func(tx *store.Tx) error {
		tx.AfterPublish(func() {
			defer close(told)
			if line, err := protocol.AppendLive(nil, kind, p); err == nil && e.cfg.Everyone != nil {
				e.cfg.Everyone(line)
			}
		})
		return nil
	})
	if err == nil {
		<-told
	}
	return err
}

// Lift ends the pause that stands and lets the bots' lines start in their order.
// Was is nil when none stood. What the pause interrupted is not taken up again.
// It waits for a pull that is under way. It is safe for concurrent use.
func (e *Engine) Lift() (*protocol.Resumed, *protocol.Error) {
	e.cord.mu.Lock()
	defer e.cord.mu.Unlock()
	var was *protocol.PauseInfo
	err := e.store.Do("lift", func(tx *store.Tx) (err error) {
		if was, err = store.StandingPause(tx.Conn()); err != nil {
			return err
		}
		recorded := was != nil
		if !recorded {
			was = e.Paused() // the store had refused it
		}
		if was == nil {
			return nil
		}
		tx.AfterCommit(func() {
			e.mu.Lock()
			e.pause = nil
			e.mu.Unlock()
		})
		if !recorded {
			return nil
		}
		return tx.LiftPause()
	})
	if err != nil {
		return nil, asError(err)
	}
	if was == nil {
		return &protocol.Resumed{}, nil
	}
	if err := e.tellEveryone(protocol.KindResumed, was); err != nil {
		return nil, asError(err)
	}
	e.dispatch()
	return &protocol.Resumed{Was: was}, nil
}

// Paused is the pause that stands, nil when none does. It must not be changed.
func (e *Engine) Paused() *protocol.PauseInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pause
}

// standingPause is the pause that holds for a job: the recorded one, else one that the
// store refused to record.
func (e *Engine) standingPause(c *store.Conn) (*protocol.PauseInfo, error) {
	p, err := store.StandingPause(c)
	if err != nil || p != nil {
		return p, err
	}
	return e.Paused(), nil
}

// daemonPaused refuses what would have to start now.
func daemonPaused(p *protocol.PauseInfo) *protocol.Error {
	why := ""
	if p.Reason != nil {
		why = ": " + *p.Reason
	}
	return protocol.Fail(protocol.DaemonPaused, "paused by "+p.By+why+"; --delivery queue waits for agent resume").
		With("by", p.By).With("by_id", p.ByID).With("reason", p.Reason).With("since_ms", p.SinceMS)
}

// loadPause takes up the pause that an earlier daemon left standing, and ends
// what that one had not come to (runtime.md 27).
func (e *Engine) loadPause() error {
	var p *protocol.PauseInfo
	err := e.read(context.Background(), "pause", func(c *store.Conn) (err error) {
		p, err = store.StandingPause(c)
		return err
	})
	if err != nil || p == nil {
		return err
	}
	e.mu.Lock()
	e.pause = p
	e.mu.Unlock()
	return e.endAllParked(pausedBy(p))
}

package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"agent/internal/store"
	"agent/protocol"
)

// Owner is the bot that a session on a bot's own socket is (protocol.md 15). A
// nil one is whoever reached the daemon's own socket, who may ask everything.
//
// A bot is known by its id, and what it may do is judged in the job that does
// it: a bot made later under the same name is never taken for it, nor for what
// it made.
type Owner struct {
	ID   int64
	Name string
}

// BotID is the owner's id, 0 on the daemon's own socket.
func (o *Owner) BotID() int64 {
	if o == nil {
		return 0
	}
	return o.ID
}

// Refuse is the refusal of an op on the owner's socket. detail says why.
func (o *Owner) Refuse(op, detail string) *protocol.Error {
	return protocol.Fail(protocol.BotSocketRefused, detail).With("op", op).With("scope", protocol.Scope{Bot: o.Name, BotID: o.ID})
}

// id is whose process handles resolve.
func (o *Owner) id() int64 {
	if o == nil {
		return anyBot
	}
	return o.ID
}

// row is the owner's row. One that is being deleted asks nothing any more.
func (o *Owner) row(c *store.Conn, op string) (store.Bot, error) {
	b, ok, err := store.BotByID(c, o.ID)
	if err == nil && (!ok || b.Status == protocol.StatusDeleting) {
		err = o.Refuse(op, "the bot whose socket this is has been deleted")
	}
	return b, err
}

// mayEnd lets the owner interrupt, delete and prune only what it made.
func (o *Owner) mayEnd(c *store.Conn, op string, bot *store.Bot) error {
	if o == nil {
		return nil
	}
	if _, err := o.row(c, op); err != nil {
		return err
	}
	made, err := o.made(c, bot.ID)
	switch {
	case err != nil:
		return err
	case !made:
		return o.Refuse(op, fmt.Sprintf("%s is no bot that %s made", bot.Name, o.Name))
	case bot.ClosedToBots:
		return o.Refuse(op, bot.Name+" is closed to bots")
	}
	return nil
}

// mayFork lets the owner fork itself and what it made.
func (o *Owner) mayFork(c *store.Conn, source *store.Bot) error {
	switch {
	case o == nil:
		return nil
	case source.ID != o.ID:
		return o.mayEnd(c, protocol.OpFork, source)
	case source.ClosedToBots:
		return o.Refuse(protocol.OpFork, source.Name+" is closed to bots")
	}
	return nil
}

// made reports whether a bot's line of creators reaches the owner. The owner is
// not among what it made.
func (o *Owner) made(c *store.Conn, bot int64) (bool, error) {
	above, err := creatorsOf(c, bot, maxAncestors)
	return slices.Contains(above, o.ID), err
}

// maxCreators bounds how many of the bots above it a deleted sandboxed bot leaves
// in the rows of those it made, nearest first. Those further up are no makers of
// theirs any more.
const maxCreators = 1024

// creatorsOf are the bots above one, nearest first, at most limit. Where one of
// them was deleted, its children's rows say who was above it.
func creatorsOf(c *store.Conn, bot int64, limit int) (above []int64, err error) {
	for id := bot; len(above) < limit; {
		v, ok, err := store.ConfinementOf(c, id)
		if err != nil || !ok || v.CreatedByID == 0 {
			return above, err
		}
		above = append(above, v.CreatedByID)
		if len(v.CreatorLimits) > 0 {
			var l limits
			if json.Unmarshal(v.CreatorLimits, &l) != nil {
				return nil, protocol.Fail(protocol.StorageError, "what binds a bot in the store cannot be read")
			}
			above = append(above, l.Creators...)
			break
		}
		id = v.CreatedByID
	}
	return above[:min(len(above), limit)], nil
}

// makes has a new bot be the owner's, as far as that needs no store.
func (o *Owner) makes(op string, by *string, byID *int64, closed bool) *protocol.Error {
	switch {
	case o == nil:
		return nil
	case *by != "" && *by != o.Name, *byID != 0 && *byID != o.ID:
		return o.Refuse(op, fmt.Sprintf("what is made over this socket is made by %s (id %d)", o.Name, o.ID))
	case closed:
		return o.Refuse(op, "closed is set by a client on the daemon's own socket")
	}
	*by, *byID = o.Name, o.ID
	return nil
}

// webTools reach the network from outside every sandbox (sandbox.md 9).
var webTools = []string{"web_fetch", "web_search"}

// mayMake judges a new bot of the owner's: who asked for it, and what it could
// do that the owner cannot.
func (o *Owner) mayMake(c *store.Conn, op string, b *store.Bot, from *protocol.From) error {
	if _, err := o.sender(c, op, from); err != nil {
		return err
	}
	own, err := o.row(c, op)
	if err != nil {
		return err
	}
	mine, theirs := mayCall(&own, nil), mayCall(b, nil)
	for _, name := range webTools {
		if contains(theirs, name) && !contains(mine, name) {
			return protocol.Fail(protocol.SandboxWidens, o.Name+" may not call "+name+", so that no bot it makes may")
		}
	}
	return nil
}

// maySubmit judges a submission and gives whom it is from.
func (o *Owner) maySubmit(c *store.Conn, bot *store.Bot, r *protocol.Submit, given *protocol.From) (*protocol.From, error) {
	switch {
	case r.Origin != "":
		return nil, o.Refuse(protocol.OpSubmit, "what is submitted over this socket is from "+o.Name+", and has no other origin")
	case bot.ClosedToBots:
		return nil, o.Refuse(protocol.OpSubmit, bot.Name+" is closed to bots")
	}
	return o.sender(c, protocol.OpSubmit, given)
}

// sender is the owner in the turn that asks: the one given, the one it has, or
// its newest when what asks outlived that. It is turn 0 where a bot without a turn
// is spoken for, by somebody who opened its socket.
func (o *Owner) sender(c *store.Conn, op string, given *protocol.From) (*protocol.From, error) {
	own, err := o.row(c, op)
	if err != nil {
		return nil, err
	}
	from := &protocol.From{Bot: own.Name, BotID: own.ID, Turn: own.RunningTurn}
	if given == nil {
		if from.Turn == 0 {
			from.Turn, err = store.NewestTurn(c, own.Name)
		}
		return from, err
	}
	t, ok, err := store.TurnByID(c, given.Turn)
	if err != nil {
		return nil, err
	}
	if given.Bot != own.Name || given.BotID != 0 && given.BotID != own.ID || !ok || t.Bot != own.Name {
		return nil, o.Refuse(op, fmt.Sprintf("turn %d of %s is no turn of %s (id %d), whose socket this is", given.Turn, given.Bot, own.Name, own.ID))
	}
	from.Turn = t.ID
	return from, nil
}

// BusyBots are the bots with a current turn or a live process.
func (e *Engine) BusyBots() map[int64]bool {
	busy := map[int64]bool{}
	e.mu.Lock()
	for id := range e.live {
		busy[id] = true
	}
	for id := range e.parked {
		busy[id] = true
	}
	e.mu.Unlock()
	e.procs.mu.Lock()
	defer e.procs.mu.Unlock()
	for _, p := range e.procs.live {
		busy[p.bot] = true
	}
	return busy
}

// SandboxedBots are the bots with a sandbox that have a current turn, and of the
// others at most limit, those that were made or began a turn last. The most
// recent come last.
func (e *Engine) SandboxedBots(limit int) ([]Owner, error) {
	var list []Owner
	err := e.read(e.looks.ctx, "sandboxed_bots", func(c *store.Conn) error {
		list = list[:0]
		recent, err := store.RecentSandboxed(c, limit)
		if err != nil {
			return err
		}
		for id := range e.BusyBots() {
			b, ok, err := store.BotByID(c, id)
			if err != nil {
				return err
			}
			if ok && len(b.Sandbox) > 0 {
				list = append(list, Owner{b.ID, b.Name})
			}
		}
		for _, r := range slices.Backward(recent) {
			o := Owner{r.ID, r.Name}
			if i := slices.Index(list, o); i >= 0 {
				list = slices.Delete(list, i, i+1)
			}
			list = append(list, o)
		}
		return nil
	})
	return list, err
}

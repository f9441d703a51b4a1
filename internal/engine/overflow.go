package engine

import (
	"errors"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/window"
	"agent/protocol"
)

// fit plans the view of the next call and makes room for it (runtime.md 5,
// steps 3 to 9). again says that what was planned for has changed and the loop
// is to begin anew.
func (t *task) fit() (v *view, again bool, err error) {
	if v, err = t.plan(); err != nil {
		return nil, true, t.recover(err)
	}
	if took, err := t.absorb(); took || err != nil {
		return nil, true, err
	}
	if t.paused {
		return v, false, nil // no boundary: the provider goes on with its answer
	}
	before := t.rounds
	made, err := t.makeRoom(v)
	if err != nil {
		return nil, false, err
	}
	if !made && t.rounds == before {
		return v, false, nil
	}
	t.steer.Store(true) // one that found no room may find it now
	_, err = t.absorb()
	return nil, true, err
}

// makeRoom shortens the view when it is nearly full: old results first, then a
// summary of what is still too much.
func (t *task) makeRoom(v *view) (bool, error) {
	elided, err := t.elide(v)
	if err != nil {
		return false, err
	}
	if elided {
		if v, err = t.plan(); err != nil {
			return false, err
		}
	}
	compacted, err := t.compact(v)
	return elided || compacted, err
}

// recover makes room for a view that does not fit, by err: it shortens old
// results, then summarizes. It gives err back when nothing of that is left.
func (t *task) recover(err error) error {
	if protocol.CodeOf(err) != protocol.ContextLimit {
		return err
	}
	v, perr := t.overfull()
	if perr != nil {
		return perr
	}
	made, merr := t.elideAll(v)
	if merr == nil && !made {
		made, merr = t.compactAll(v, t.limits())
	}
	if merr != nil {
		return merr
	}
	if !made {
		return err
	}
	return nil
}

// shrink makes room once for a call that the provider found too long, so that
// one more can be made; else it gives err back. What the provider takes is not
// known, so it aims at half of what was refused: by shortening old results, by
// summaries, and at last by leaving older turns out.
func (t *task) shrink(refused *view, err error) error {
	var fail *model.Error
	if !errors.As(err, &fail) || fail.Code != "provider_context_exceeded" || t.shrunk || t.stopped() != nil {
		return err
	}
	t.shrunk = true
	goal := window.Bounds{Bytes: refused.size.Bytes / 2, Items: t.limits().Items}
	made := false
	for _, step := range []func(*view) (bool, error){
		t.elideAll,
		func(v *view) (bool, error) { return t.compactDown(v, goal) },
		func(v *view) (bool, error) { return t.narrow(v, goal) },
	} {
		v, perr := t.plan()
		if perr != nil {
			return perr
		}
		if v.size.Bytes <= goal.Bytes {
			break
		}
		did, serr := step(v)
		if serr != nil {
			return serr
		}
		made = made || did
	}
	if !made {
		return err
	}
	return nil
}

// compactDown summarizes until the view is within goal or cannot be made
// smaller.
func (t *task) compactDown(v *view, goal window.Bounds) (made bool, err error) {
	for v.size.Bytes > goal.Bytes {
		did, err := t.compactAll(v, goal)
		if err != nil || !did {
			return made, err
		}
		made = true
		if v, err = t.plan(); err != nil {
			return made, err
		}
	}
	return made, nil
}

// narrow lets the window begin later, at a turn's prompt, so that the view is
// within goal or shows the current turn alone.
func (t *task) narrow(v *view, goal window.Bounds) (bool, error) {
	start := v.start
	err := t.e.read(t.ctx, "narrow", func(c *store.Conn) error {
		w := *v
		if err := t.moveStart(c, &w, goal); err != nil {
			return err
		}
		if start = w.start; start != v.start {
			return nil
		}
		return store.Walk(c, v.head, func(n store.Node) bool { start = n.ID; return n.Turn == 0 })
	})
	if err != nil || start <= v.start {
		return false, err
	}
	return true, t.e.store.Do("narrow", func(tx *store.Tx) error { return tx.SetContextStart(t.bot, start) })
}

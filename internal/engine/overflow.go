package engine

import (
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
	made, err := t.makeRoom(v)
	if err != nil {
		return nil, false, err
	}
	if !made {
		return v, false, nil
	}
	t.steer.Store(true) // one that found no room may find it now
	_, err = t.absorb()
	return nil, true, err
}

// makeRoom shortens the view when it is nearly full.
func (t *task) makeRoom(v *view) (bool, error) {
	return t.elide(v)
}

// recover makes room for a view that does not fit, by err: it shortens old
// results, and gives err back when nothing is left to shorten.
func (t *task) recover(err error) error {
	if protocol.CodeOf(err) != protocol.ContextLimit {
		return err
	}
	v, perr := t.overfull()
	if perr != nil {
		return perr
	}
	made, eerr := t.elideAll(v)
	if eerr != nil {
		return eerr
	}
	if !made {
		return err
	}
	return nil
}

package engine

import (
	"errors"
	"iter"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/window"
	"agent/protocol"
)

// policy is when and how this bot's context is made smaller.
func (t *task) policy() window.Policy {
	l := &t.lim
	return window.Policy{Bounds: t.limits(), At: l.CompactAt, Keep: l.CompactKeep, Output: l.MaxOutput}
}

// stubOf makes a result's stub, for bots whose model can follow it: those that
// have read among the tools they may call. A result with pictures has none: read
// gives text alone.
func stubOf(codec model.Codec, tools []string, r model.Result) func(int64) []byte {
	if len(r.Pictures) > 0 || !contains(tools, "read") {
		return nil
	}
	return func(node int64) []byte {
		short := r
		short.Output = window.Stub(r.Output, node)
		return codec.Result(short)
	}
}

// elide moves the floor below which old results are sent as their stubs, if the
// view is full and enough is saved (runtime.md 20). It reports whether it did.
func (t *task) elide(v *view) (bool, error) {
	p := t.policy()
	if !p.FullBytes(v.size) || v.savable < p.Least() || !contains(t.effective, "read") {
		return false, nil
	}
	newest, err := t.newestOutput()
	if err != nil {
		return false, err
	}
	through := int64(0)
	err = t.e.read(t.ctx, "floor", func(c *store.Conn) (err error) {
		through = window.Floor(p.Bounds.Share(p.Keep).Bytes, newest, v.tail(c, &err))
		return err
	})
	if err != nil {
		return false, err
	}
	return t.moveFloor(v, through, p.Least())
}

// elideAll moves the floor as far as it may go, for a turn that does not fit
// otherwise.
func (t *task) elideAll(v *view) (bool, error) {
	if !contains(t.effective, "read") {
		return false, nil
	}
	newest, err := t.newestOutput()
	if err != nil {
		return false, err
	}
	return t.moveFloor(v, newest, 1)
}

// tail gives a window's items, newest first. err is set when the store fails.
func (v *view) tail(c *store.Conn, err *error) iter.Seq[window.Item] {
	return func(yield func(window.Item) bool) {
		var after store.Node
		*err = store.Walk(c, v.head, func(n store.Node) bool {
			if after.ID != 0 && !yield(window.Item{Node: after.ID, Bytes: v.floor.at(&after) - v.floor.at(&n)}) {
				return false
			}
			after = n
			return n.ID != v.start
		})
	}
}

// moveFloor makes through the floor if the view loses at least that many bytes
// by it.
func (t *task) moveFloor(v *view, through, least int64) (bool, error) {
	if through <= v.floor.node {
		return false, nil
	}
	saved, results := int64(0), int64(0)
	err := t.e.read(t.ctx, "elide_plan", func(c *store.Conn) error {
		saved, results = 0, 0
		return store.Walk(c, v.head, func(n store.Node) bool {
			if n.ID <= through && n.ID > v.floor.node && n.Elided > 0 {
				saved += n.Elided
				results++
			}
			return n.ID > v.floor.node && n.ID > v.start
		})
	})
	if err != nil || saved < least {
		return false, err
	}
	err = t.e.store.Do("elide", func(tx *store.Tx) error {
		bot, _, err := store.BotByID(tx.Conn(), t.bot)
		if err != nil {
			return err
		}
		previous, err := tx.MoveFloor(t.bot, bot.Elision, t.head, through, saved)
		if err != nil {
			return err
		}
		data := newObject().int("version", t.head).intOrNull("previous", previous).int("through", through).
			int("results", results).int("saved_bytes", saved).done()
		_, err = tx.AddEvent(t.bot, t.name, t.turn, protocol.KindElided, data)
		return err
	})
	if protocol.CodeOf(err) == protocol.ElisionVersionShared {
		return false, nil // the view stays; a later boundary has a head of its own
	}
	return err == nil, err
}

// newestOutput is the last node that the model wrote, 0 when there is none. A
// result after it has not been shown yet.
func (t *task) newestOutput() (int64, error) {
	if t.output != 0 {
		return t.output, nil
	}
	found := int64(0)
	err := t.e.read(t.ctx, "newest_output", func(c *store.Conn) (err error) {
		found = 0
		werr := store.Walk(c, t.head, func(n store.Node) bool {
			if n.Turn != 0 {
				return true // a prompt
			}
			role := ""
			if role, err = t.roleOf(c, n.ID); err == nil && role != "user" && role != "tool" {
				found = n.ID
			}
			return err == nil && found == 0
		})
		return errors.Join(err, werr)
	})
	if err == nil {
		t.output = found
	}
	return found, err
}

// roleOf reads who wrote an item.
func (t *task) roleOf(c *store.Conn, node int64) (string, error) {
	item, ok, err := store.ItemOf(c, nil, node)
	if err != nil || !ok {
		return "", badItem(node, err)
	}
	d, err := t.e.describe(string(t.family), node, item)
	return d.Role, err
}

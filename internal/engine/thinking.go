package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"agent/internal/model"
	"agent/internal/store"
)

// bindThinking settles which items go without their thinking: those written
// before what goes ahead of them last changed (providers.md 6).
func (v *view) bindThinking(c *store.Conn, t *task, bot int64) error {
	if codec, ok := t.codec.(model.Placed); ok {
		return v.placeThinking(c, t, codec)
	}
	if t.family != model.FamilyAnthropic {
		return nil
	}
	was, err := store.BotThinking(c, bot)
	if err != nil {
		return err
	}
	h := sha256.New()
	parts := append([][]byte{[]byte(v.instructions), v.tools.encoded}, v.pinned...)
	if v.webSearch != "" { // a tool ahead of the rest
		parts = append(parts, []byte(v.webSearch))
	}
	for _, part := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(v.start))
	h.Write(n[:])
	for i := range v.nodes { // pictures that stand as text change what follows
		if p := v.nodes[i].pics; p != nil && p.text {
			fmt.Fprint(h, v.nodes[i].id, p.outs())
		}
	}
	print := int64(binary.BigEndian.Uint64(h.Sum(nil)) >> 1)
	v.thinking = was
	switch th := &v.thinking; {
	case was.Prefix != print:
		v.bound = true
		*th = store.Thinking{Prefix: print, Below: was.Below, Elided: v.floor.node}
		if was.Prefix != 0 {
			th.Below = v.head + 1
		}
	case was.Elided != v.floor.node:
		first, err := v.firstStub(c, was.Elided)
		if err != nil {
			return err
		}
		v.bound = true
		th.Elided = v.floor.node
		if first != 0 {
			if th.To == 0 || th.To < th.Below || first < th.From {
				th.From = first
			}
			th.To = v.head
		}
	}
	return nil
}

// firstStub is the window's oldest result that is sent as its stub and lies
// past an older floor, 0 for none.
func (v *view) firstStub(c *store.Conn, past int64) (first int64, err error) {
	err = store.Walk(c, v.head, func(n store.Node) bool {
		if n.ID <= past || n.ID < v.start {
			return false
		}
		if n.Elided > 0 && n.ID <= v.floor.node {
			first = n.ID
		}
		return true
	})
	return first, err
}

// lastUser is the last user message up to a head, 0 for none: what is behind it
// was looked at once.
type lastUser struct{ head, node int64 }

// placeThinking has what stands before the last user message go without its
// thinking: servers of such a family want it behind that alone (providers.md
// 9). The place says it all, so nothing is remembered of it.
func (v *view) placeThinking(c *store.Conn, t *task, codec model.Placed) error {
	known := t.lastUser
	found := known.node
	for i := len(v.nodes) - 1; i >= 0 && v.nodes[i].id > known.head; i-- {
		n := &v.nodes[i]
		if n.stub() || n.thinking > 0 {
			continue // a result, an answer
		}
		role, err := placedRole(c, codec, n.id)
		if err != nil {
			return err
		}
		if role == "user" {
			found = n.id
			break
		}
	}
	t.lastUser = lastUser{v.head, found}
	v.thinking = store.Thinking{Below: found}
	return nil
}

// placedRole is who wrote an item, by its beginning.
func placedRole(c *store.Conn, codec model.Placed, node int64) (string, error) {
	var head [model.PlacedHead]byte
	if _, err := store.ItemAt(c, node, 0, head[:]); err != nil {
		return "", badItem(node, err)
	}
	return codec.RoleOf(head[:]), nil
}

package engine

import (
	"cmp"
	"errors"
	"strings"

	"agent/internal/model"
	"agent/internal/store"
)

// heldPictures are those of a result's pictures that its own node names, and
// those that are for showApart at once: where the family's results are text
// alone, all of the call's that is the round's last.
func heldPictures(tx *store.Tx, codec model.Codec, turn int64, call string, all []store.ShownPicture) (own, apart []store.ShownPicture, err error) {
	if _, ok := codec.(model.Placed); !ok || len(all) == 0 {
		return all, nil, nil
	}
	others := false
	err = store.OpenCalls(tx.Conn(), turn, func(c store.ToolCall) { others = others || c.CallID != call })
	if others {
		return all, nil, err
	}
	return nil, all, err
}

// showApart is a step of answering a call, whose result is the head. Where the
// family's results are text alone and no call of the round is open any more, one
// user message behind the last result shows the pictures of all of them, the
// last one's being those given (providers.md 9). It is an item like others,
// committed with that result, so a restart changes nothing. It gives the head.
//
// Pictures of an earlier result count twice towards the window.
func (e *Engine) showApart(tx *store.Tx, codec model.Codec, bot, turn, head int64, last []store.ShownPicture) (int64, error) {
	placed, ok := codec.(model.Placed)
	if !ok {
		return head, nil
	}
	open := false
	if err := store.OpenCalls(tx.Conn(), turn, func(store.ToolCall) { open = true }); err != nil || open {
		return head, err
	}
	pictures, err := roundPictures(tx.Conn(), placed, head)
	if err == nil {
		pictures, err = addShown(tx.Conn(), placed, pictures, head, last)
	}
	if err != nil || len(pictures) == 0 {
		return head, err
	}
	names := make([]string, len(pictures))
	for i := range pictures {
		names[i] = cmp.Or(pictures[i].Path, pictures[i].MediaType)
	}
	text := "[shown by the tools above, in this order: " + strings.Join(names, "; ") + "]"
	node, err := tx.AppendNode(head, store.NewNode{Item: codec.User(text, inItem(pictures)), Pictures: pictures})
	if err != nil {
		return head, err
	}
	return node, tx.SetHead(bot, turn, node)
}

// roundPictures are the pictures that the nodes of the results up to head name,
// oldest first.
func roundPictures(c *store.Conn, codec model.Placed, head int64) (list []store.ShownPicture, err error) {
	var shows []int64 // newest first
	werr := store.Walk(c, head, func(n store.Node) bool {
		role := ""
		if role, err = placedRole(c, codec, n.ID); err != nil || role != "tool" {
			return false
		}
		if n.Pictures > 0 {
			shows = append(shows, n.ID)
		}
		return true
	})
	if err = errors.Join(err, werr); err != nil {
		return nil, err
	}
	for i := len(shows) - 1; i >= 0; i-- {
		var of []store.ShownPicture
		err := store.NodePictures(c, shows[i], func(p store.PictureInfo) {
			of = append(of, store.ShownPicture{Hash: p.Hash, Path: p.Path, MediaType: p.MediaType, Bytes: p.Bytes})
		})
		if err == nil {
			list, err = addShown(c, codec, list, shows[i], of)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// addShown adds the pictures of a result, each with the path that the result
// names where it has none of its own.
func addShown(c *store.Conn, codec model.Codec, list []store.ShownPicture, node int64, of []store.ShownPicture) ([]store.ShownPicture, error) {
	if len(of) == 0 {
		return list, nil
	}
	item, ok, err := store.ItemOf(c, nil, node)
	if err != nil || !ok {
		return nil, badItem(node, err)
	}
	d, err := codec.Describe(item)
	if err != nil {
		return nil, badItem(node, nil)
	}
	path := pathIn(d.Text)
	for _, p := range of {
		p.Path = cmp.Or(p.Path, path)
		list = append(list, p)
	}
	return list, nil
}

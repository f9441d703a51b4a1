package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/window"
	"agent/protocol"
)

// itemPictures are the pictures of one item of a view, in their order.
type itemPictures struct {
	list []shownPicture
	text bool // the item shows less than it holds: some stand as text
}

type shownPicture struct {
	store.PictureInfo
	out      bool // a line of text stands for it
	textOnly bool // since the model takes none
}

func (p *shownPicture) picture() model.Picture {
	return model.Picture{Hash: p.Hash, MediaType: p.MediaType, Bytes: p.Bytes}
}

// choosePictures settles which pictures of the view are sent: the newest ones,
// and none that the provider refused (runtime.md 19). An item that shows less
// than it holds gets the length it has then.
func (v *view) choosePictures(c *store.Conn, t *task) error {
	met := v.turnStart - 1
	if t.last != nil {
		met = max(met, t.last.head)
	}
	textOnly := t.e.takesNoPictures(t.model)
	var sizes []int64
	var sent []*shownPicture
	fresh := 0
	for i := range v.nodes {
		n := &v.nodes[i]
		if n.pics == nil {
			continue
		}
		if err := n.pics.read(c, n.id); err != nil {
			return err
		}
		for j := range n.pics.list {
			p := &n.pics.list[j]
			p.textOnly = textOnly
			if p.out = p.Refused || textOnly; p.out {
				continue
			}
			sent = append(sent, p)
			sizes = append(sizes, p.picture().Base64Len())
			if n.id > met {
				fresh++
			}
		}
	}
	for _, p := range sent[:window.PicturesOut(sizes, fresh)] {
		p.out = true
	}
	for i := range v.nodes {
		if err := v.nodes[i].shorten(c, t.codec); err != nil {
			return err
		}
	}
	return nil
}

// read finds an item's pictures. One that is shown twice is there twice.
func (p *itemPictures) read(c *store.Conn, node int64) error {
	byHash := map[[32]byte]store.PictureInfo{}
	if err := store.NodePictures(c, node, func(i store.PictureInfo) { byHash[i.Hash] = i }); err != nil {
		return err
	}
	item, ok, err := store.ItemOf(c, nil, node)
	if err != nil || !ok {
		return badItem(node, err)
	}
	for {
		at, hash := model.FindPlaceholder(item)
		if at < 0 {
			return nil
		}
		item = item[at+model.PlaceholderLen:]
		info, ok := byHash[hash]
		if !ok {
			return badItem(node, nil)
		}
		p.list = append(p.list, shownPicture{PictureInfo: info})
	}
}

func (n *viewNode) shorten(c *store.Conn, codec model.Codec) error {
	if n.pics == nil {
		return nil
	}
	for i := range n.pics.list {
		n.pics.text = n.pics.text || n.pics.list[i].out
	}
	if !n.pics.text {
		return nil
	}
	item, ok, err := store.ItemOf(c, nil, n.id)
	if err != nil || !ok {
		return badItem(n.id, err)
	}
	item, err = n.pics.asText(codec, item)
	n.bytes = int32(len(item))
	return err
}

// asText is an item with a line of text in the place of each picture that is
// left out. It is made of what the item says, as the item itself was.
func (p *itemPictures) asText(codec model.Codec, item []byte) ([]byte, error) {
	d, err := codec.Describe(item)
	if err != nil {
		return nil, err
	}
	path := pathIn(d.Text)
	var kept []model.Picture
	lines := []string{}
	if d.Text != "" {
		lines = append(lines, d.Text)
	}
	for i := range p.list {
		if pic := &p.list[i]; pic.out {
			lines = append(lines, pic.line(path))
		} else {
			kept = append(kept, pic.picture())
		}
	}
	text := strings.Join(lines, "\n")
	if d.Role == "tool" {
		return codec.Result(model.Result{CallID: d.CallID, Output: text, Pictures: kept}), nil
	}
	return codec.User(text, kept), nil
}

// pathIn is the path that a result of read names, "" for other texts.
func pathIn(text string) string {
	var result struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(text), &result) != nil {
		return ""
	}
	return result.Path
}

// line stands for a picture.
func (p *shownPicture) line(path string) string {
	why := "no longer sent"
	switch {
	case p.Refused:
		why = "not sent, the provider refused it"
	case p.textOnly:
		why = "not sent, the model takes none"
	}
	return fmt.Sprintf("[picture %s: %s]", why, p.name(path))
}

// name says which picture it is.
func (p *shownPicture) name(path string) string {
	facts := fmt.Sprintf("%s, %dx%d, %d bytes", p.MediaType, p.Width, p.Height, p.Bytes)
	if path = cmp.Or(p.Path, path); path == "" {
		return facts
	}
	return path + ", " + facts
}

// grown is by how much the item is longer than stored once its pictures are
// put in.
func (p *itemPictures) grown() (n int64) {
	for i := range p.list {
		if pic := &p.list[i]; !pic.out {
			n += pic.picture().Base64Len() - int64(model.PlaceholderLen)
		}
	}
	return n
}

// shows reports whether any picture is put in.
func (p *itemPictures) shows() bool {
	return slices.ContainsFunc(p.list, func(pic shownPicture) bool { return !pic.out })
}

// outs says of each picture whether a line stands for it.
func (p *itemPictures) outs() (out []bool) {
	for i := range p.list {
		out = append(out, p.list[i].out)
	}
	return out
}

// bytesOf is the raw length of a picture that is put in, -1 for one that the
// item does not show.
func (p *itemPictures) bytesOf(hash [32]byte) int64 {
	for i := range p.list {
		if p.list[i].Hash == hash && !p.list[i].out {
			return p.list[i].Bytes
		}
	}
	return -1
}

var (
	saysPicture = regexp.MustCompile(`(?i)\b(image|picture)`)
	// What says that a model takes no picture at all, and not that one is bad.
	saysTextOnly = regexp.MustCompile(`(?i)(do(es)? not|doesn't|cannot|can't) (support|accept|take|handle) (image|picture|vision)s?\b( input| content)?` +
		`|(image|picture|vision) inputs? (is|are) (not supported|unsupported|disabled)` +
		`|image_url is only supported by certain models|at most 0 images?\b|no endpoints found that support image input` +
		`|is not a multimodal model`)
	// Where a provider says the picture is: an item's index, then maybe a part's.
	itemPlace = regexp.MustCompile(`\b(?:messages|input)[.\[](\d+)`)
	partPlace = regexp.MustCompile(`\bcontent[.\[](\d+)|\boutput[.\[](\d+)`)
)

// setAside answers a refusal of a picture: that picture goes as text from now
// on, and the stored one stays (PV-73). It gives err back when err is no such
// refusal. A provider that does not say which picture it means refuses all of
// those that no answered call has shown, or else all.
func (t *task) setAside(v *view, err error) error {
	var fail *model.Error
	if !errors.As(err, &fail) || t.stopped() != nil {
		return err
	}
	textOnly := takesNone(fail)
	switch {
	case textOnly:
	case fail.Code == "provider_http_400" && saysPicture.MatchString(fail.Detail):
	default:
		return err
	}
	bad := v.refusedPictures(fail.Detail, t.last, v.unseen(t.codec))
	if len(bad) == 0 {
		return err
	}
	names, werr := t.refuse(bad, textOnly)
	if werr != nil {
		return werr
	}
	t.retries++
	t.notice(protocol.KindRetry, func(o *object) {
		o.int("attempt", 1).str("error", fail.Code).
			str("detail", fail.Detail+"; sent again without: "+strings.Join(names, "; ")).
			int("delay_ms", 0).bool("parked", false)
	})
	return nil
}

// takesNone reports whether a failure says that the model takes no pictures: by
// the status of a bad request, of a model that is not there for such a one, or
// of a server that failed at it. Nothing is won by asking again.
func takesNone(fail *model.Error) bool {
	switch fail.Code {
	case "provider_http_400", "provider_http_404", "provider_http_500":
		return saysTextOnly.MatchString(fail.Detail)
	}
	return false
}

// refuse notes that pictures are not to be sent again, and gives their names.
// Where the model takes none that is remembered of the model, as long as this
// daemon lives: another one may take what is in the conversation.
func (t *task) refuse(bad []refusedPicture, textOnly bool) ([]string, error) {
	names := make([]string, len(bad))
	name := func(c *store.Conn) error {
		for i, b := range bad {
			item, ok, err := store.ItemOf(c, nil, b.node)
			if err != nil || !ok {
				return badItem(b.node, err)
			}
			d, err := t.codec.Describe(item)
			if err != nil {
				return badItem(b.node, nil)
			}
			names[i] = b.pic.name(pathIn(d.Text))
		}
		return nil
	}
	if textOnly {
		t.e.mu.Lock()
		t.e.textOnly[t.model] = true
		t.e.mu.Unlock()
		return names, t.e.read(t.ctx, "set_aside", name)
	}
	return names, t.e.store.Do("set_aside", func(tx *store.Tx) error {
		for _, b := range bad {
			if err := tx.RefusePicture(b.node, b.pic.Hash); err != nil {
				return err
			}
		}
		return name(tx.Conn())
	})
}

// takesNoPictures reports whether a model has said so.
func (e *Engine) takesNoPictures(ref string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.textOnly[ref]
}

type refusedPicture struct {
	node int64
	pic  *shownPicture
}

// unseen is how many items stand before those of the view in a request: a family
// of roles sends the instructions as one.
func (v *view) unseen(codec model.Codec) int {
	if _, placed := codec.(model.Placed); placed && !model.Blank(v.instructions) {
		return 1
	}
	return 0
}

// refusedPictures finds what a refusal means; unseen items stand before those of
// the view.
func (v *view) refusedPictures(detail string, last *view, unseen int) []refusedPicture {
	pick := func(wanted func(n *viewNode, i int) bool) (out []refusedPicture) {
		for i := range v.nodes {
			n := &v.nodes[i]
			if n.pics == nil {
				continue
			}
			for j := range n.pics.list {
				if p := &n.pics.list[j]; !p.out && wanted(n, j) {
					out = append(out, refusedPicture{n.id, p})
				}
			}
		}
		return out
	}
	if m := itemPlace.FindStringSubmatch(detail); m != nil {
		at, _ := strconv.Atoi(m[1])
		node := v.sentAt(at - unseen)
		part := -1
		if parts := partPlace.FindAllStringSubmatch(detail, -1); len(parts) > 0 {
			p := parts[len(parts)-1]
			part, _ = strconv.Atoi(p[1] + p[2])
		}
		if node != nil && node.pics != nil {
			if out := pick(func(n *viewNode, i int) bool { return n == node && node.pics.part(i) == part }); len(out) > 0 {
				return out
			}
			if out := pick(func(n *viewNode, i int) bool { return n == node }); len(out) > 0 {
				return out
			}
		}
	}
	if last != nil {
		if out := pick(func(n *viewNode, _ int) bool { return n.id > last.head }); len(out) > 0 {
			return out
		}
	}
	return pick(func(*viewNode, int) bool { return true })
}

// part is the place of a picture among the parts of its item, as sent: the
// text comes first.
func (p *itemPictures) part(i int) int {
	at := 1
	for j := range i {
		if !p.list[j].out {
			at++
		}
	}
	return at
}

// sentAt is the view's item at an index of the request, nil for one that is not
// stored.
func (v *view) sentAt(index int) *viewNode {
	index -= len(v.pinned)
	for i := range v.nodes {
		if v.nodes[i].thinking == v.nodes[i].bytes {
			continue // left out whole
		}
		if index == 0 {
			return &v.nodes[i]
		}
		index--
	}
	return nil
}

package responses

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net/http"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// The transport responses-ws (providers.md 8): the events of a response come as
// messages, and a request may go on from the response before it, of which the
// server remembers what it was sent. The store stays the only history: where
// anything is in doubt the whole input is sent.

// socketBeta names the protocol of the messages.
const socketBeta = "responses_websockets=2026-02-06"

// overSocket is Complete over a WebSocket.
func (p *Provider) overSocket(ctx context.Context, req *model.Request, sink func(model.Event), rep *model.Report) (*model.Completion, error) {
	t := &talk{decoder: newDecoder(req, rep), fields: fields(req, p.bedrock, false)}
	call := &wire.SocketCall{
		Path:      "/responses",
		Header:    http.Header{"Openai-Beta": {socketBeta}},
		Pool:      poolKey(req.Model, p.bedrock),
		MaxOutput: req.MaxOutput,
		Bytes:     int64(len(messageStart)+len(t.fields)+len(suffix)) + req.Items.Bytes,
		Stall:     req.Stall,
	}
	if req.Chain != nil {
		call.Bot = req.BotID
	}
	if req.CacheKey != "" {
		call.Header.Set("session-id", req.CacheKey)
	}
	err := p.sockets.Stream(ctx, call, t, sink, rep)
	if err != nil {
		t.drop(err)
		return nil, err
	}
	c, err := t.finish(sink)
	t.remember(c)
	return c, p.client.Clean(err)
}

// Recorded is told under which ids the last response of a bot is stored; see
// model.Rememberer.
func (p *Provider) Recorded(bot int64, nodes []int64) {
	if p.sockets == nil {
		return
	}
	if s := p.sockets.Of(bot); s != nil {
		if m, ok := s.Memory.(*memory); ok {
			m.recorded(nodes)
		}
	}
}

// Forget closes the connection of a bot that is deleted.
func (p *Provider) Forget(bot int64) {
	if p.sockets != nil {
		p.sockets.Forget(bot)
	}
}

// memory is what is known of the response that a connection can go on from. The
// items before it are known by a digest, however many they are.
type memory struct {
	id     string   // of the response; "": there is none
	around [32]byte // the request's fields and what stood ahead of its items
	place  place    // after the response's items, once they are recorded
	nodes  int      // up to there
	ready  bool     // they are recorded
	items  int      // of the response, while they are not
}

func (m *memory) forget() { *m = memory{} }

func (m *memory) recorded(nodes []int64) {
	if m.id == "" || m.ready || len(nodes) != m.items {
		m.forget()
		return
	}
	for _, id := range nodes {
		m.place = m.place.then(id, 0)
	}
	m.nodes += len(nodes)
	m.ready = true
}

// place is a digest of the stored items up to somewhere, by their ids and the
// ways they are sent in.
type place [32]byte

func (p place) then(id int64, form uint64) place {
	var b [48]byte
	copy(b[:], p[:])
	binary.LittleEndian.PutUint64(b[32:], uint64(id))
	binary.LittleEndian.PutUint64(b[40:], form)
	return sha256.Sum256(b[:])
}

// talk is one call over a connection.
type talk struct {
	*decoder
	fields []byte // the request's, up to the first item

	memory    *memory // of the connection; nil until there is one
	continues bool    // the request goes on from what the memory says
	around    [32]byte
	place     place // of this request's items
	refused   bool  // an error event ended it
	unknown   bool  // and said that the response gone on from is not remembered
	over      bool  // a terminal event ended it
	headers   http.Header
}

const messageStart = `{"type":"response.create",`

// Request is the message over a connection, which what it remembers settles.
func (t *talk) Request(s *wire.Socket) ([]byte, error) {
	t.memory, _ = s.Memory.(*memory)
	if t.memory == nil {
		t.memory = &memory{}
		s.Memory = t.memory
	}
	items := t.req.Items
	b := []byte(messageStart)
	from := t.settle()
	if t.continues = from > 0; t.continues {
		items = t.req.Chain.After(from)
		b = append(b, `"previous_response_id":`...)
		b = append(model.AppendString(b, t.memory.id), ',')
	}
	whole := make([]byte, 0, len(b)+len(t.fields)+int(items.Bytes)+len(suffix))
	whole = append(append(whole, b...), t.fields[1:]...)
	whole, err := appendItems(whole, items)
	return append(whole, suffix...), err
}

// settle finds where the request stands, and how many of its items the server
// remembers; 0 when it has to be sent whole.
func (t *talk) settle() (from int) {
	c := t.req.Chain
	if c == nil {
		return 0
	}
	h := sha256.New()
	for _, part := range append([][]byte{t.fields}, c.Ahead...) {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	h.Sum(t.around[:0])
	m := t.memory
	t.place = place{}
	for i := range c.Nodes {
		if m.ready && i == m.nodes && t.place == m.place && t.around == m.around {
			from = i
		}
		t.place = t.place.then(c.Node(i))
	}
	return from
}

// appendItems reads all items, whose length must be what was said.
func appendItems(b []byte, items model.Items) ([]byte, error) {
	r, err := items.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	from := len(b)
	b = b[:from+int(items.Bytes)]
	if _, err := io.ReadFull(r, b[from:]); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = lengthDefect("fewer", items.Bytes)
		}
		return nil, err
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		if err == nil || err == io.EOF {
			err = lengthDefect("more", items.Bytes)
		}
		return nil, err
	}
	return b, nil
}

func lengthDefect(what string, want int64) error {
	return model.Errorf("store_row_invalid",
		"the conversation's items hold %s bytes than the %d that were recorded with them", what, want)
}

// remember keeps a response to go on from, if it is stored as it came. What was
// mended the server remembers otherwise.
func (t *talk) remember(c *model.Completion) {
	m := t.memory
	m.forget()
	if c == nil || t.altered || t.id == "" || len(t.id) > idLimit || t.req.Chain == nil {
		return
	}
	*m = memory{id: t.id, around: t.around, place: t.place, nodes: t.req.Chain.Nodes, items: len(c.Items)}
}

// idLimit bounds a response's id, which is sent back.
const idLimit = 512

// drop forgets what the connection remembers, unless the server refused the
// request or it was not sent: then the earlier response stands.
func (t *talk) drop(err error) {
	var fail *model.Error
	if t.memory != nil && !t.refused && errors.As(err, &fail) {
		t.memory.forget()
	}
}

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// past is what a running turn's tools may read of its bot's lineage.
type past struct{ t *task }

func failure(code protocol.Code, format string, args ...any) *tool.Failure {
	return &tool.Failure{Code: string(code), Detail: fmt.Sprintf(format, args...)}
}

// asFailure gives an error of the engine the form of a tool's.
func asFailure(err error) error {
	var f *tool.Failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	p := asError(err)
	return &tool.Failure{Code: string(p.Code), Detail: p.Detail}
}

// TurnView reads a page of a turn's items, a line each.
func (p *past) TurnView(ctx context.Context, ordinal, at int64, limit int) (tool.View, error) {
	var v tool.View
	err := p.t.e.read(ctx, "turn_view", func(c *store.Conn) error {
		v = tool.View{}
		nodes, err := turnNodes(c, p.t.head, ordinal)
		if err != nil {
			return err
		}
		if nodes == nil {
			return failure(protocol.TurnNotInHistory, "there is no turn %d before this point", ordinal)
		}
		var page []byte
		for i := len(nodes) - 1; i >= 0; i-- {
			item, _, err := store.ItemOf(c, nil, nodes[i])
			if err != nil {
				return err
			}
			line := append(readable(item), '\n')
			page = overlap(page, line, v.Total, at, limit)
			v.Total += int64(len(line))
			v.Items++
		}
		if at > v.Total {
			return failure(protocol.InvalidHistoryPage, "the turn takes %d bytes; offset %d is past its end", v.Total, at)
		}
		if len(page) > 0 && !utf8.RuneStart(page[0]) {
			return failure(protocol.InvalidHistoryPage, "offset %d lies inside a character", at)
		}
		v.Text = string(wholeCharacters(page))
		return nil
	})
	return v, asFailure(err)
}

// turnNodes are the nodes of the turn with an ordinal, newest first; nil when
// the lineage has none.
func turnNodes(c *store.Conn, head, ordinal int64) (nodes []int64, err error) {
	found := false
	err = store.Walk(c, head, func(n store.Node) bool {
		nodes = append(nodes, n.ID)
		if n.Turn == 0 {
			return true
		}
		if found = n.TurnSeq == ordinal; found || n.TurnSeq < ordinal {
			return false
		}
		nodes = nodes[:0]
		return true
	})
	if !found {
		return nil, err
	}
	return nodes, err
}

// overlap appends what a line, whose first byte is number from, has of the
// page of limit bytes that begins at byte number at.
func overlap(page, line []byte, from, at int64, limit int) []byte {
	lo := max(at-from, 0)
	hi := min(at+int64(limit)-from, int64(len(line)))
	if lo >= hi {
		return page
	}
	return append(page, line[lo:hi]...)
}

// wholeCharacters cuts a character off that the end of the page parts.
func wholeCharacters(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

// readable is an item on one line, without the encrypted part of a reasoning
// item, which says nothing to a reader.
func readable(item []byte) []byte {
	if bytes.Contains(item, []byte(`"encrypted_content"`)) && isReasoning(item) {
		item = withoutMember(item, "encrypted_content")
	}
	if bytes.IndexByte(item, '\n') < 0 {
		return bytes.Clone(item)
	}
	var out bytes.Buffer
	if json.Compact(&out, item) != nil {
		return bytes.ReplaceAll(item, []byte("\n"), []byte(" "))
	}
	return out.Bytes()
}

func isReasoning(item []byte) bool {
	var head struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(item, &head) == nil && head.Type == "reasoning"
}

// withoutMember leaves one top-level member of an object out; the others keep
// their bytes.
func withoutMember(item []byte, name string) []byte {
	dec := jsontext.NewDecoder(bytes.NewReader(item), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return item
	}
	out := []byte{'{'}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadValue()
		if err != nil {
			return item
		}
		key = bytes.Clone(key)
		value, err := dec.ReadValue()
		if err != nil {
			return item
		}
		if string(key) == `"`+name+`"` {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}')
}

// Artifact opens a retained stream that the bot produced.
func (p *past) Artifact(ctx context.Context, turn int64, callID, stream string) (io.ReadCloser, error) {
	ref, err := p.t.e.findArtifact(ctx, p.t.name, turn, callID, stream)
	if err != nil {
		return nil, asFailure(err)
	}
	return p.t.e.openArtifact(ctx, ref), nil
}

// findArtifact looks a retained stream up for a reader of a bot.
func (e *Engine) findArtifact(ctx context.Context, name string, turn int64, callID, stream string) (ref store.ArtifactRef, err error) {
	err = e.read(ctx, "artifact", func(c *store.Conn) error {
		call, err := e.keptCallOf(ctx, c, name, turn, callID)
		if err != nil {
			return err
		}
		found := false
		if ref, found, err = store.Artifact(c, turn, callID, stream); err != nil || found {
			return err
		}
		return e.noArtifact(c, call, stream)
	})
	return ref, err
}

// artifactReader reads a retained stream in pieces, from its row or its file.
type artifactReader struct {
	e     *Engine
	ctx   context.Context
	ref   store.ArtifactRef
	at    int64
	file  *os.File
	block store.Block
}

func (e *Engine) openArtifact(ctx context.Context, ref store.ArtifactRef) *artifactReader {
	return &artifactReader{e: e, ctx: ctx, ref: ref}
}

func (r *artifactReader) Read(p []byte) (int, error) {
	n, err := r.ReadAt(p, r.at)
	r.at += int64(n)
	return n, err
}

// ReadAt reads as io.ReaderAt does, within the stream's size.
func (r *artifactReader) ReadAt(p []byte, at int64) (int, error) {
	if at >= r.ref.Bytes {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.ref.Bytes-at)]
	if r.ref.File == "" {
		err := r.e.read(r.ctx, "artifact_page", func(c *store.Conn) error {
			return store.ArtifactAt(c, &r.ref, &r.block, at, p)
		})
		if err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if r.file == nil {
		if err := r.openFile(); err != nil {
			return 0, err
		}
	}
	return r.file.ReadAt(p, at)
}

// openFile opens a spilled stream. What stands in its place by now may be
// anything: only a file that is as long as the stream was is read.
func (r *artifactReader) openFile() error {
	path, err := r.e.store.SpillPath(r.ref.File)
	if err != nil {
		return err
	}
	gone := protocol.Fail(protocol.ArtifactNotFound, "the file of the stream is gone")
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return gone
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() < r.ref.Bytes {
		f.Close()
		return gone
	}
	r.file = f
	return nil
}

func (r *artifactReader) Close() error {
	if r.file != nil {
		return r.file.Close()
	}
	return nil
}

// ToolResult is the output of a tool result on the lineage.
func (p *past) ToolResult(ctx context.Context, node int64) (string, error) {
	t := p.t
	text := ""
	err := t.e.read(ctx, "tool_result", func(c *store.Conn) error {
		missing := failure(protocol.ResultNotFound, "node %d is no tool result of this conversation", node)
		if !t.onLineage[node] { // looked up once for a result and turn
			ok, err := store.InLineage(ctx, c, t.head, node)
			if err != nil {
				return err
			}
			if !ok {
				return missing
			}
			if t.onLineage == nil {
				t.onLineage = map[int64]bool{}
			}
			t.onLineage[node] = true
		}
		item, _, err := store.ItemOf(c, nil, node)
		if err != nil {
			return err
		}
		d, err := t.e.describe(string(t.family), node, item)
		if err != nil {
			return err
		}
		if d.Role != "tool" {
			return missing
		}
		text = d.Text
		return nil
	})
	return text, asFailure(err)
}

// NoteRoom is how many bytes a note may take beside the turn and what must go
// ahead of it.
func (p *past) NoteRoom(ctx context.Context) (int64, error) { return p.room(ctx, false) }

// HistoryRoom is half of what the envelope has left after the turn and what
// must go ahead of it.
func (p *past) HistoryRoom(ctx context.Context) (int64, error) {
	n, err := p.room(ctx, true)
	return n / 2, err
}

func (p *past) room(ctx context.Context, withNote bool) (int64, error) {
	var left int64
	err := p.t.e.read(ctx, "room", func(c *store.Conn) error {
		own, pinned, err := turnRoom(c, p.t, p.t.head)
		if err != nil {
			return err
		}
		left = p.t.limits().Bytes - own.Bytes - own.Items - pinned.Bytes - pinned.Items
		if withNote {
			return nil
		}
		bot, _, err := store.BotByID(c, p.t.bot)
		if err != nil {
			return err
		}
		note, err := p.t.notePinned(c, &bot)
		left += int64(len(note))
		return err
	})
	return max(left, 0), asFailure(err)
}

// Artifact answers the artifact op: a page of one stream, or all streams of a
// small call (protocol.md 9).
func (e *Engine) Artifact(ctx context.Context, r *protocol.ArtifactRequest) (any, *protocol.Error) {
	stream, named := r.Stream.Get()
	if !named {
		if _, ok := r.Offset.Get(); ok {
			return nil, protocol.Fail(protocol.ArtifactStreamRequired, "paging needs a stream")
		}
		if _, ok := r.Limit.Get(); ok {
			return nil, protocol.Fail(protocol.ArtifactStreamRequired, "paging needs a stream")
		}
		return e.artifactStreams(ctx, r)
	}
	offset, limit := r.Offset.Or(0), r.Limit.Or(protocol.MaxArtifactLimit)
	if limit < protocol.MinArtifactLimit || limit > protocol.MaxArtifactLimit || offset < 0 {
		return nil, protocol.Fail(protocol.InvalidArtifactPage, fmt.Sprintf("limit is %d to %d", protocol.MinArtifactLimit, protocol.MaxArtifactLimit))
	}
	ref, err := e.findArtifact(ctx, r.Bot, r.Turn, r.CallID, stream)
	if err != nil {
		return nil, asError(err)
	}
	reader := e.openArtifact(ctx, ref)
	defer reader.Close()
	page := make([]byte, limit)
	n, err := reader.ReadAt(page, offset)
	if err != nil && err != io.EOF {
		return nil, asError(err)
	}
	page = page[:n]
	if offset > ref.Bytes || n > 0 && !utf8.RuneStart(page[0]) {
		return nil, protocol.Fail(protocol.InvalidArtifactPage, fmt.Sprintf("offset %d is past the end or inside a character", offset))
	}
	page = wholeCharacters(page)
	next := offset + int64(len(page))
	return &protocol.ArtifactPage{Text: string(page), NextOffset: next, TotalBytes: ref.Bytes, Done: next >= ref.Bytes}, nil
}

func (e *Engine) artifactStreams(ctx context.Context, r *protocol.ArtifactRequest) (any, *protocol.Error) {
	out := &protocol.ArtifactStreams{Streams: map[string]string{}}
	total := int64(0)
	var names []string
	err := e.read(ctx, "artifacts", func(c *store.Conn) error {
		names, total = names[:0], 0
		call, err := e.keptCallOf(ctx, c, r.Bot, r.Turn, r.CallID)
		if err != nil {
			return err
		}
		err = store.ArtifactStreams(c, r.Turn, r.CallID, func(stream string, bytes int64) {
			names = append(names, stream)
			total += bytes
		})
		if err == nil && len(names) == 0 {
			err = e.noArtifact(c, call, "")
		}
		return err
	})
	switch {
	case err != nil:
		return nil, asError(err)
	case total > protocol.MaxLine:
		return nil, protocol.Fail(protocol.ResponseSizeLimit, fmt.Sprintf("the streams take %d bytes; name one and page it", total))
	}
	for _, name := range names {
		ref, err := e.findArtifact(ctx, r.Bot, r.Turn, r.CallID, name)
		if err != nil {
			return nil, asError(err)
		}
		reader := e.openArtifact(ctx, ref)
		text, err := io.ReadAll(reader)
		reader.Close()
		if err != nil {
			return nil, asError(err)
		}
		out.Streams[name] = string(text)
	}
	return out, nil
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agent/internal/model"
	"agent/internal/model/scripted"
	"agent/internal/secret"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/internal/window"
	"agent/protocol"
)

// TestLineages runs random bots, forks, prunes, deletions and restarts against
// a model in memory, and compares everything a client can see of histories.
func TestLineages(t *testing.T) {
	for name, value := range map[string]string{"checks": lineageChecks, "steps": "70", "nofailfile": "true", "shrinktime": "10s"} {
		if err := flag.Set("rapid."+name, value); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"": w.check, "create": w.create, "submit": w.submit, "submit more": w.submit, "submit again": w.submit,
			"retry": w.retry, "fork": w.fork, "fork at a node": w.forkAt, "fork at another": w.forkAt, "delete": w.delete, "delete and crash": w.deleteCrash,
			"prune": w.prune, "restart": w.restart,
		})
	})
}

// world is an engine and what the model holds to be true of it.
type world struct {
	t     *rapid.T
	path  string
	store *store.Store
	e     *Engine
	ends  chan int64
	bots  map[string]*knownBot
	fresh int

	topBot, topTurn, topNode int64 // the highest ids given so far
}

type knownBot struct {
	id    int64
	nodes []knownNode // oldest first
	turns []knownTurn
}

type knownNode struct {
	id         int64
	call, note bool // it has a call without a result; it is a note's version
}

type knownTurn struct {
	id              int64
	request, prompt string
	pruned          bool
}

func newWorld(t *rapid.T) *world {
	dir, err := os.MkdirTemp("", "lineage")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, path: filepath.Join(dir, "state.sqlite"), bots: map[string]*knownBot{}}
	w.open()
	t.Cleanup(func() { w.close(); os.RemoveAll(dir) })
	return w
}

func (w *world) open() {
	ends := make(chan int64, 64)
	w.ends = ends
	s, err := store.Open(store.Options{Path: w.path, Sink: endSink(ends)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = s
	w.e = New(Config{
		Store: s, Providers: map[string]model.Provider{"p": talker{}}, Codecs: map[model.Family]model.Codec{model.FamilyScripted: scripted.Codec{}},
		Tools: tool.All(), Redact: &secret.Values{}, Live: deaf{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), StorePath: w.path,
		Limits: Limits{Context: window.Bounds{Bytes: 8 << 20, Items: 4096}, NoteTurns: 48, CompactAt: 75, CompactKeep: 25, CacheTTL: "5m"},
	})
	if err := w.e.Recover(); err != nil {
		w.t.Fatal(err)
	}
	w.e.Run()
}

func (w *world) close() {
	w.e.Close()
	if err := w.store.Close(); err != nil {
		w.t.Errorf("the store was not closed: %v", err)
	}
}

// endSink hears of the turns that end.
type endSink chan int64

func (s endSink) Publish(b store.Batch) {
	for _, ev := range b.Events {
		if ev.Kind == protocol.KindTurnFinished {
			s <- ev.Turn
		}
	}
	for _, f := range b.After {
		f()
	}
}

// deaf follows nothing.
type deaf struct{}

func (deaf) Wants(string) bool                   { return false }
func (deaf) Delta(string, int64, string, string) {}
func (deaf) Notice(string, []byte)               {}
func (deaf) Deleted(int64, string, []byte)       {}

// talker answers "echo …" and "note …" with a call of that tool, whose id is
// always the same, and everything else with a text.
type talker struct{}

func (talker) Info() model.Info                              { return model.Info{Family: model.FamilyScripted} }
func (talker) Models(context.Context) ([]model.Model, error) { return nil, nil }
func (talker) Status() json.RawMessage                       { return nil }

func (talker) Complete(_ context.Context, req *model.Request, _ func(model.Event), _ *model.Report) (*model.Completion, error) {
	body, err := req.Items.Open()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	sent, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var items []struct{ Role, Text string }
	if err := json.Unmarshal(fmt.Appendf(nil, "[%s]", sent), &items); err != nil {
		return nil, err
	}
	last := items[len(items)-1]
	name, _, _ := strings.Cut(last.Text, " ")
	done := &model.Completion{Usage: &model.Usage{Input: 1, Output: 1}}
	if last.Role != "user" || name == "say" {
		done.Items = [][]byte{fmt.Appendf(nil, `{"role":"assistant","text":"answer to %s"}`, last.Text)}
		return done, nil
	}
	call, err := model.NewSafe(req).Call("same", name, fmt.Appendf(nil, `{"text":%q}`, last.Text), false)
	if err != nil {
		return nil, err
	}
	done.Calls = []model.Call{call}
	done.Items = [][]byte{fmt.Appendf(nil, `{"role":"assistant","text":"","calls":[{"id":%q,"tool":%q,"arguments":%s}]}`, call.ID, name, call.Arguments)}
	return done, nil
}

// names are the bots there are.
func (w *world) names() []string { return sortedKeys(w.bots) }

// pick chooses a bot.
func (w *world) pick(t *rapid.T) (string, *knownBot) {
	if len(w.bots) == 0 {
		t.Skip("no bot")
	}
	name := rapid.SampledFrom(w.names()).Draw(t, "bot")
	return name, w.bots[name]
}

// free is a name nobody has now; some had one before.
func (w *world) free(t *rapid.T) string {
	if len(w.bots) >= 4 {
		t.Skip("enough bots")
	}
	for i := 0; ; i++ {
		if name := fmt.Sprint("b", i); w.bots[name] == nil {
			return name
		}
	}
}

func (w *world) create(t *rapid.T) {
	name := w.free(t)
	done := make(chan error, 1)
	var id int64
	w.e.Create(nil, &protocol.Create{Bot: name, Model: "p/m", Tools: []string{"echo", "note"}, Workspace: filepath.Dir(w.path)},
		func(b *protocol.Bot, err *protocol.Error) {
			if err != nil {
				done <- err
				return
			}
			id = b.ID
			done <- nil
		})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.newBot(t, name, &knownBot{id: id})
}

func (w *world) newBot(t *rapid.T, name string, b *knownBot) {
	if b.id <= w.topBot {
		t.Fatalf("bot %d comes after %d", b.id, w.topBot)
	}
	w.topBot = b.id
	w.bots[name] = b
}

func (w *world) send(t *rapid.T, bot, request, prompt string) *protocol.Submitted {
	done := make(chan *protocol.Submitted, 1)
	var failed *protocol.Error
	w.e.Submit(nil, &protocol.Submit{Bot: bot, RequestID: request, Prompt: prompt, Workspace: filepath.Dir(w.path)},
		func(s *protocol.Submitted, err *protocol.Error) { failed = err; done <- s })
	s := <-done
	if failed != nil {
		t.Fatal(failed)
	}
	return s
}

func (w *world) submit(t *rapid.T) {
	name, b := w.pick(t)
	w.fresh++
	kind := rapid.SampledFrom([]string{"say", "echo", "note"}).Draw(t, "kind")
	turn := knownTurn{request: fmt.Sprint("r", w.fresh), prompt: fmt.Sprint(kind, " ", w.fresh)}
	s := w.send(t, name, turn.request, turn.prompt)
	turn.id = s.Turn
	if s.Duplicate || s.Turn <= w.topTurn {
		t.Fatalf("%+v after turn %d", s, w.topTurn)
	}
	w.topTurn = s.Turn
	for ended := int64(0); ended != s.Turn; ended = <-w.ends {
	}
	made := w.history(t, name)[len(b.nodes):]
	if want := map[bool]int{true: 2, false: 4}[kind == "say"]; len(made) != want {
		t.Fatalf("the turn made the nodes %v", made)
	}
	for i, id := range made {
		if id <= w.topNode {
			t.Fatalf("node %d comes after %d", id, w.topNode)
		}
		w.topNode = id
		b.nodes = append(b.nodes, knownNode{id: id, call: len(made) == 4 && i == 1, note: kind == "note" && i == 2})
	}
	b.turns = append(b.turns, turn)
}

func (w *world) retry(t *rapid.T) {
	name, b := w.pick(t)
	if len(b.turns) == 0 {
		t.Skip("no turn")
	}
	turn := rapid.SampledFrom(b.turns).Draw(t, "turn")
	if s := w.send(t, name, turn.request, turn.prompt); !s.Duplicate || s.Turn != turn.id {
		t.Fatalf("%+v, want turn %d again", s, turn.id)
	}
}

func (w *world) fork(t *rapid.T) {
	name, src := w.pick(t)
	w.forked(t, name, src, w.free(t), nil, len(src.nodes))
}

// forkAt forks at a node of any bot, which may be a point of this one or not.
func (w *world) forkAt(t *rapid.T) {
	name, src := w.pick(t)
	fork, other := w.free(t), src
	if rapid.IntRange(0, 3).Draw(t, "whose node") == 3 {
		_, other = w.pick(t)
	}
	if len(other.nodes) == 0 {
		t.Skip("no node")
	}
	node := rapid.SampledFrom(other.nodes).Draw(t, "node").id
	at := slices.IndexFunc(src.nodes, func(n knownNode) bool { return n.id == node })
	want := protocol.Code("")
	switch {
	case at < 0:
		want = protocol.NodeNotInSourceHistory
	case src.nodes[at].call:
		want = protocol.ForkPointHasOpenToolCalls
	}
	if want != "" {
		_, err := w.e.Fork(context.Background(), nil, &protocol.Fork{Source: name, Bot: fork, Checkpoint: protocol.Set(node)})
		if err == nil || err.Code != want {
			t.Fatalf("a fork of %s at %d: %v, want %s", name, node, err, want)
		}
		return
	}
	w.forked(t, name, src, fork, &node, at+1)
}

func (w *world) forked(t *rapid.T, name string, src *knownBot, fork string, node *int64, keep int) {
	req := &protocol.Fork{Source: name, Bot: fork}
	if node != nil {
		req.Checkpoint = protocol.Set(*node)
	}
	rec, err := w.e.Fork(context.Background(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	w.newBot(t, fork, &knownBot{id: rec.ID, nodes: slices.Clone(src.nodes[:keep])})
}

func (w *world) events(t *rapid.T, name string) (n int64) {
	for after := int64(0); ; {
		page, err := w.e.Events(context.Background(), name, after, protocol.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			return n
		}
		n += int64(len(page.Events))
		after = page.NextCursor
	}
}

// own counts a bot's nodes that no other bot has.
func (w *world) own(name string) (n int64) {
	others := map[int64]bool{}
	for other, b := range w.bots {
		for _, node := range b.nodes {
			if other != name {
				others[node.id] = true
			}
		}
	}
	for _, node := range w.bots[name].nodes {
		if !others[node.id] {
			n++
		}
	}
	return n
}

func (w *world) delete(t *rapid.T) {
	name, b := w.pick(t)
	want := protocol.Deleted{Turns: int64(len(b.turns)), Events: w.events(t, name), Nodes: w.own(name)}
	got, err := w.e.Delete(nil, &protocol.Delete{Bot: name})
	if err != nil {
		t.Fatal(err)
	}
	if got.Turns != want.Turns || got.Events != want.Events || got.Nodes != want.Nodes {
		t.Fatalf("%s: deleted %+v, want %+v", name, got, want)
	}
	delete(w.bots, name)
}

// deleteCrash begins a deletion, carries some pieces of it out and starts over.
func (w *world) deleteCrash(t *rapid.T) {
	name, b := w.pick(t)
	pieces := rapid.IntRange(0, 3).Draw(t, "pieces")
	err := w.store.Do("test", func(tx *store.Tx) error { return tx.BeginDelete(b.id) })
	for ; err == nil && pieces > 0; pieces-- {
		err = w.store.Do("test", func(tx *store.Tx) error {
			d, err := w.e.deletePiece(tx, b.id)
			if d.Gone {
				pieces = 0
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(w.bots, name)
	w.restart(t)
}

func (w *world) prune(t *rapid.T) {
	name, b := w.pick(t)
	keep := rapid.IntRange(0, 4).Draw(t, "keep")
	if _, err := w.e.Prune(nil, &protocol.Prune{Bot: name, KeepTurns: int64(keep)}); err != nil {
		t.Fatal(err)
	}
	for i := range len(b.turns) - keep {
		b.turns[i].pruned = true
	}
}

func (w *world) restart(*rapid.T) {
	w.close()
	w.open()
}

// history is a bot's lineage, oldest first.
func (w *world) history(t *rapid.T, name string) (ids []int64) {
	req := &protocol.HistoryNodes{Bot: name}
	for {
		page, err := w.e.HistoryNodes(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page.Nodes {
			ids = append(ids, n.Node)
		}
		if page.NextFrom == nil {
			slices.Reverse(ids)
			return ids
		}
		req.From = protocol.Set(*page.NextFrom)
	}
}

// oldestFirst is history read from its oldest page on.
func (w *world) oldestFirst(t *rapid.T, name string, limit int64) (ids []int64) {
	req := &protocol.HistoryNodes{Bot: name, OldestFirst: true, Limit: protocol.Set(limit)}
	for {
		page, err := w.e.HistoryNodes(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(page.Nodes)) > limit {
			t.Fatalf("a page of %d nodes, limit %d", len(page.Nodes), limit)
		}
		for i := range page.Nodes {
			n := page.Nodes[len(page.Nodes)-1-i]
			if ids = append(ids, n.Node); n.Turn == 0 {
				t.Fatalf("node %d of %s has no turn", n.Node, name)
			}
		}
		next, more := page.NextNewer.Get()
		if !more {
			return ids
		}
		req.MinNode = protocol.Set(next)
	}
}

// check compares all that can be seen with the model.
func (w *world) check(t *rapid.T) {
	page, err := w.e.Bots(context.Background(), "", protocol.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Bots) != len(w.bots) {
		t.Fatalf("%d bots, want %v", len(page.Bots), w.names())
	}
	nodes, calls, notes := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	for i := range page.Bots {
		rec := &page.Bots[i]
		b := w.bots[rec.Name]
		if b == nil || b.id != rec.ID {
			t.Fatalf("%s is bot %d", rec.Name, rec.ID)
		}
		w.checkBot(t, rec, b)
		for _, n := range b.nodes {
			nodes[n.id] = true
			if n.call {
				calls[n.id] = true
			}
			if n.note {
				notes[n.id] = true
			}
		}
	}
	got := w.tables(t)
	if got.Nodes != len(nodes) || got.Calls != len(calls) || got.Notes != len(notes) {
		t.Fatalf("the store has %+v, the bots %d nodes, %d calls, %d notes", got, len(nodes), len(calls), len(notes))
	}
}

func (w *world) checkBot(t *rapid.T, rec *protocol.Bot, b *knownBot) {
	var want []int64
	note := int64(0)
	for _, n := range b.nodes {
		want = append(want, n.id)
		if n.note {
			note = n.id
		}
	}
	if got := w.history(t, rec.Name); !slices.Equal(got, want) {
		t.Fatalf("%s has the nodes %v, want %v", rec.Name, got, want)
	}
	for _, limit := range []int64{2, 3, protocol.MaxHistoryNodes} {
		if got := w.oldestFirst(t, rec.Name, limit); !slices.Equal(got, want) {
			t.Fatalf("%s read oldest first by %d has the nodes %v, want %v", rec.Name, limit, got, want)
		}
	}
	w.checkMembers(t, rec.Name, want)
	if rec.Note == nil && note != 0 || rec.Note != nil && *rec.Note != note {
		t.Fatalf("%s: note %v, want %d", rec.Name, rec.Note, note)
	}
	w.checkItems(t, rec.Name, b, want)
	for _, turn := range b.turns {
		out, err := w.e.Result(context.Background(), rec.Name, turn.id)
		switch {
		case turn.pruned && (err == nil || err.Code != protocol.TurnResultPruned):
			t.Fatalf("turn %d: %+v, %v; it was pruned", turn.id, out, err)
		case !turn.pruned && (err != nil || out.Status != protocol.StatusCompleted || !strings.HasPrefix(out.Text, "answer to")):
			t.Fatalf("turn %d: %+v, %v", turn.id, out, err)
		}
	}
}

// checkMembers asks for some of the nodes that there are or were, and for one
// that never was.
func (w *world) checkMembers(t *rapid.T, name string, own []int64) {
	for range 4 {
		node := rapid.Int64Range(1, w.topNode+1).Draw(t, "node")
		_, err := w.e.Item(context.Background(), name, node)
		if mine := slices.Contains(own, node); mine != (err == nil) || !mine && err.Code != protocol.NodeNotInHistory {
			t.Fatalf("node %d asked of %s, who has %v: %v", node, name, own, err)
		}
	}
}

// checkItems reads a history and looks whether each call id is there once.
func (w *world) checkItems(t *rapid.T, name string, b *knownBot, nodes []int64) {
	if len(nodes) == 0 {
		return
	}
	tail := nodes[max(0, len(nodes)-protocol.MaxHistoryNodes):]
	page, err := w.e.HistoryItems(context.Background(), &protocol.HistoryItems{Bot: name, Nodes: tail})
	if err != nil || len(page.Items) != len(tail) {
		t.Fatalf("%s: %d of %d items, %v", name, len(page.Items), len(tail), err)
	}
	ids := map[string]bool{}
	prompts := 0
	for _, item := range page.Items {
		d, err := scripted.Codec{}.Describe(item.Item)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range d.Calls {
			if ids[call.ID] {
				t.Fatalf("%s has two calls %s", name, call.ID)
			}
			ids[call.ID] = true
		}
		if d.Role == "user" && prompts < len(b.turns) && d.Text == b.turns[prompts].prompt {
			prompts++
		}
	}
	if prompts != len(b.turns) {
		t.Fatalf("%s: %d of its %d prompts are in its history", name, prompts, len(b.turns))
	}
}

type tableCounts struct{ Nodes, Calls, Notes int }

// tables counts rows of the store.
func (w *world) tables(t *rapid.T) (n tableCounts) {
	err := w.store.Read(context.Background(), "test", func(r *store.Reader) error {
		n = tableCounts{}
		for table, to := range map[string]*int{"nodes": &n.Nodes, "call_ids": &n.Calls, "notes": &n.Notes} {
			s, err := r.Conn().Prepare("SELECT count(*) FROM " + table)
			if err != nil {
				return err
			}
			if ok, err := s.Step(); err != nil || !ok {
				return errors.Join(err, errors.New("no count"))
			}
			*to = s.ColumnInt(0)
			if err := s.Reset(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package lead

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent/client"
	"agent/client/worktree"
	"agent/internal/place"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/host/action"
	"agent/protocol"
)

// Shown is the start as it is shown for a verdict: what will happen, by its real
// names.
func (t *TaskStart) Shown() *action.Action {
	a := new(action.Action)
	if t.Setup != nil { // what runs unconfined is seen before all else
		a.Add("setup_runs", "in the worktree, unconfined, as the person, before the task is made")
		a.Add("setup_path", t.Setup.Path)
		a.Add("setup_digest", t.Setup.SHA256())
		a.Text("setup", strings.ToValidUTF8(string(t.Setup.Text), "\uFFFD"))
	}
	if t.Tree != nil {
		a.Add("base", t.Tree.Base)
		a.Add("worktree", t.Tree.Path)
		a.Add("branch", t.Tree.Branch)
		a.Add("source", t.Tree.Source)
	} else {
		a.Add("folder", t.Workspace)
	}
	a.Add("bot", t.Bot)
	action.Opt(a, "role", t.Role)
	a.Add("model", t.Model)
	action.Opt(a, "effort", t.Effort)
	action.Opt(a, "budget_tokens", t.BudgetTokens)
	a.Add("sandbox", t.Sandbox)
	a.Add("network", t.Network || t.Sandbox == protocol.SandboxFull)
	a.Text("brief", t.Brief) // the lead's own words: nothing of what happens stands behind them
	return a
}

// marker is what ~/.agent/sonny/starting/ keeps of a start under way, so that one which
// a crash cut short is undone, or brought to its end where its bot was made.
type marker struct {
	Store string            `json:"store"`
	Bot   string            `json:"bot"`
	Lead  int64             `json:"lead"` // its id
	Turn  int64             `json:"turn"` // 0: the person's
	By    string            `json:"by"`   // the lead's name
	Brief string            `json:"brief"`
	Key   string            `json:"key"` // the brief's request id
	Tree  worktree.Leftover `json:"tree"`
	Has   bool              `json:"has_tree"`
	Group place.Group       `json:"group"` // of the program that runs for the start

	// What the answer says besides.
	Setup       string `json:"setup"`
	Uncommitted int    `json:"uncommitted"`
}

// startingDir is where markers are.
func startingDir(sonny string) string { return filepath.Join(sonny, "starting") }

// markerPath is that of a bot's marker: one start of a name at a time, in each store.
func markerPath(sonny, store, bot string) string {
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(startingDir(sonny), hex.EncodeToString(sum[:4])+"-"+bot+".json")
}

// held is a marker that this process holds: nobody else starts or undoes its task.
type held struct {
	marker
	path string
	lock *place.OwnerLock
}

// errStarting is of a name that somebody else starts.
const errStarting = "task_starting"

// hold takes the name of a task that is to be started. What an earlier start of the name
// has left is undone first.
func (t *TaskStart) hold(ctx context.Context) (*held, error) {
	s := t.by
	if err := place.MakePrivateDir(startingDir(s.Sonny)); err != nil {
		return nil, err
	}
	path := markerPath(s.Sonny, s.Store, t.Bot)
	lock, err := place.Lock(path+".lock", errStarting)
	if lockedBy(err) {
		return nil, protocol.Fail(protocol.BotExists, t.Bot+" is being started already; take another name, or wait for it")
	}
	if err != nil {
		return nil, err
	}
	h := &held{path: path, lock: lock}
	if _, err := os.Lstat(path); err == nil {
		if _, err := settleMarker(ctx, s.Client, path); err != nil {
			h.release(false)
			return nil, err
		}
	}
	h.marker = marker{
		Store: s.Store, Bot: t.Bot, Lead: s.Lead.ID, By: s.Lead.Name, Turn: s.Turn, Brief: t.Brief,
		Key: "task_" + newKey(), Setup: "none", Uncommitted: t.Uncommitted,
	}
	if t.Setup != nil {
		h.Setup = "ran"
	}
	if t.Tree != nil {
		h.Has, h.Tree = true, t.Tree.Leftover()
	}
	err = h.write()
	if err == nil && t.Setup != nil {
		err = place.MakePrivateDir(scratchOf(path))
	}
	if err != nil {
		h.release(true)
		return nil, err
	}
	return h, nil
}

func lockedBy(err error) bool {
	var p *place.Error
	return errors.As(err, &p) && p.Code == errStarting
}

func (h *held) write() error {
	text, err := json.Marshal(&h.marker)
	if err != nil {
		return err
	}
	return place.WritePrivate(h.path, text)
}

// release gives the name up. done takes the marker away: nothing is left to be settled.
func (h *held) release(done bool) {
	os.RemoveAll(scratchOf(h.path))
	if done {
		os.Remove(h.path)
		os.Remove(h.path + ".lock")
	}
	h.lock.Close()
}

// request is the brief's submission. It has one request id for good, so that it makes
// one turn however often it is sent.
func (m *marker) request() *protocol.Submit {
	r := &protocol.Submit{Bot: m.Bot, RequestID: m.Key, Prompt: m.Brief, Delivery: protocol.Queue}
	if m.Turn != 0 {
		r.From = &protocol.From{Bot: m.By, BotID: m.Lead, Turn: m.Turn}
	}
	return r
}

// started is the answer to a start whose brief was taken.
func (m *marker) started(got *protocol.Submitted, workspace string) *TaskStarted {
	t := &TaskStarted{
		Bot: m.Bot, BotID: got.BotID, Turn: got.Turn, Handle: got.Handle, Workspace: workspace,
		Branch: m.Tree.Branch, Setup: m.Setup, Uncommitted: m.Uncommitted,
	}
	if m.Uncommitted > 0 {
		t.Note = fmt.Sprintf("%d uncommitted paths of %s are not in the worktree", m.Uncommitted, m.Tree.Source)
	}
	return t
}

// settleMarker brings a start that was cut short to an end. Where its bot is there the
// brief is sent, if it was not, and the start counts as done; otherwise the worktree and
// its branch are removed. nil, nil: it was undone. The marker's lock is held.
func settleMarker(ctx context.Context, c *client.Client, path string) (*TaskStarted, error) {
	text, _, err := place.ReadOwn(path, 1<<20)
	if err != nil {
		return nil, err
	}
	var m marker
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w; look at it, and remove it", path, err)
	}
	bot, err := c.Inspect(ctx, m.Bot)
	var done *TaskStarted
	switch {
	case err == nil && m.made(bot):
		done, err = m.finish(ctx, c, bot)
	case err == nil || errors.Is(err, protocol.BotNotFound):
		forgetTree(filepath.Dir(filepath.Dir(path)), m.Store, m.Bot)
		err = m.undo(ctx)
	}
	if err != nil {
		return nil, err
	}
	os.RemoveAll(scratchOf(path))
	return done, os.Remove(path)
}

// scratchOf is where a start keeps the copy of the setup that it runs.
func scratchOf(marker string) string { return marker + ".d" }

// made reports whether a bot of the name is the one that the start made.
func (m *marker) made(b *protocol.Bot) bool {
	return b.CreatedByID != nil && *b.CreatedByID == m.Lead && b.Workspace != nil &&
		(!m.Has || inside(place.Real(m.Tree.Path), *b.Workspace))
}

func (m *marker) finish(ctx context.Context, c *client.Client, b *protocol.Bot) (*TaskStarted, error) {
	got, err := c.Submit(ctx, m.request())
	if err != nil && protocol.CodeOf(err) != "" && !errors.Is(err, protocol.DaemonDisconnected) {
		return &TaskStarted{
			Bot: b.Name, BotID: b.ID, Workspace: *b.Workspace, Branch: m.Tree.Branch, Setup: m.Setup,
			Note: "its brief was not taken: " + fault.Verb.Words(err),
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return m.started(got, *b.Workspace), nil
}

func (m *marker) undo(ctx context.Context) error {
	if !m.Has {
		return nil
	}
	if err := m.Group.Kill(); err != nil {
		return err
	}
	tree, err := m.Tree.Tree()
	if err != nil {
		return err
	}
	return tree.Undo(ctx)
}

// Settled is what came of a start that was cut short.
type Settled struct {
	Bot     string
	Lead    int64
	Turn    int64
	Started *TaskStarted // nil: it was undone, and nothing is left of it
}

// SettleStarts brings to an end what starts of a store a crash has cut short. It leaves
// alone those that are under way. What cannot be settled stays, and is in the error,
// which names each.
func SettleStarts(ctx context.Context, c *client.Client, sonny, store string) ([]Settled, error) {
	entries, err := os.ReadDir(startingDir(sonny))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var out []Settled
	var failed []error
	for _, e := range entries {
		path := filepath.Join(startingDir(sonny), e.Name())
		s, err := settleOne(ctx, c, path, store)
		if err != nil {
			failed = append(failed, err)
		} else if s != nil {
			out = append(out, *s)
		}
	}
	return out, errors.Join(append(failed, err)...)
}

// settleOne settles one marker; nil for a file that is none, is another store's or is
// held by whoever starts.
func settleOne(ctx context.Context, c *client.Client, path, store string) (*Settled, error) {
	if filepath.Ext(path) != ".json" || strings.HasPrefix(filepath.Base(path), ".") {
		return nil, nil
	}
	lock, err := place.Lock(path+".lock", errStarting)
	if lockedBy(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	text, _, err := place.ReadOwn(path, 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var m marker
	if err != nil || json.Unmarshal(text, &m) == nil && m.Store != store {
		return nil, err
	}
	done, err := settleMarker(ctx, c, path)
	if err != nil {
		return nil, fmt.Errorf("the start of %s could not be settled: %w", m.Bot, err)
	}
	os.Remove(path + ".lock")
	return &Settled{Bot: m.Bot, Lead: m.Lead, Turn: m.Turn, Started: done}, nil
}

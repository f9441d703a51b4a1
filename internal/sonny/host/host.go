// Package host is Sonny's tool host (companions.md 1 to 3): the companion that answers
// the tools of the tag sonny from outside every sandbox, as the person.
//
// A call reaches the host unjudged. Whatever the host is about to do outside the
// calling bot's folder it shows as a step, by its resolved names, and does only once
// the step was allowed; then it does what was shown and resolves nothing again. Each
// tool is a file here with a function that takes the Call, and a line in the table
// below.
//
// What an agent sends is hostile: bounded, decoded strictly, never given to a shell
// but where the tool is a command that the person or the judge has seen.
//
// Questions to the person travel apart from verdicts, since they decide nothing:
// package questions says how. Panes are opened beside screens that said where they
// are: package panes.
package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agent/client"
	"agent/internal/place"
	"agent/internal/sonny/host/questions"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/memory"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/skill"
	"agent/protocol"
)

// Settings are what of the config the host goes by. Panes is false where the person
// took run_in_pane away.
type Settings struct {
	Lead        lead.Settings
	TaskUpdates bool
	Memory      bool
	Panes       bool
	PaneSplit   string // right or down
	Notify      Notify
	Texts       skill.Texts // of instructions
}

// Options say what a host serves.
type Options struct {
	Client *client.Client // of the daemon's own socket; it starts none
	Store  string         // the store's path
	Agent  string         // ~/.agent
	Home   string         // the person's

	// Settings gives what holds now for bots of a folder. It is asked at every call, and
	// at every event for "", without Lead, which costs nothing then. With an error, config_invalid, nothing is
	// done that the settings confine.
	Settings func(folder string) (Settings, error)

	Logf func(format string, args ...any)
	Now  func() time.Time // nil: time.Now
}

// toolDef is one tool: what runs it, and how long it may work, waits for verdicts and
// answers not counted. 0 is without a limit of the host's own.
type toolDef struct {
	run   func(*Call) (any, error)
	limit func(Settings) time.Duration
}

// workLimit is how long most tools may work.
const workLimit = 2 * time.Minute

func within(d time.Duration) func(Settings) time.Duration {
	return func(Settings) time.Duration { return d }
}

// toolTable is what the host answers, by name. A new tool is its file, its declaration
// in package tools, and a line here.
var toolTable = map[string]toolDef{
	"start_task":  {startTask, func(s Settings) time.Duration { return s.Lead.Tasks.SetupTimeout + workLimit }},
	"memory":      {memoryTool, within(workLimit)},
	"show_agent":  {showAgent, within(workLimit)},
	"ask_person":  {askPerson, within(0)},
	"plan":        {planTool, within(workLimit)},
	"pause":       {pauseTool, within(workLimit)},
	"run_in_pane": {runInPane, within(workLimit)},
}

// host is one host under way.
type host struct {
	Options
	sonny   string // ~/.agent/sonny
	ready   *protocol.Ready
	notes   *notes
	places  *places
	memory  *memory.Memory
	answers *questions.Box
	asked   openQuestions
	recalls recalls
	notices chan notify.Note // what calls tell the person of; the loop of follow takes them
	panes   paneBook
	changes factWatch
	began   int64
	steps   atomic.Int64
}

// lease is how long the tag is held without a renewal; it is renewed several times as
// often.
const lease = 30 * time.Second

// Serve answers calls until ctx ends or the daemon is gone, and returns why. What
// an earlier host left half done is settled first. Only one host serves a store: the
// caller holds the companion's lock.
func Serve(ctx context.Context, o Options) error {
	h, err := newHost(ctx, o)
	if err != nil {
		return err
	}
	defer h.answers.Close()
	if err := h.settle(ctx); err != nil {
		h.logf("what an earlier host left: %v", err)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var follows sync.WaitGroup
	follows.Go(func() {
		h.follow(ctx)
		end(errDaemonGone)
	})
	err = h.serve(ctx)
	end(err)
	follows.Wait()
	return err
}

var errDaemonGone = protocol.Fail(protocol.DaemonDisconnected, "the daemon is gone")

func newHost(ctx context.Context, o Options) (*host, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &host{
		Options: o, sonny: filepath.Join(o.Agent, "sonny"), places: newPlaces(maxCalls, maxEach),
		memory: memory.Open(o.Home, o.Now), began: o.Now().Unix(), notices: make(chan notify.Note, maxCalls),
	}
	var err error
	if h.ready, err = o.Client.Ready(ctx); err != nil {
		return nil, err
	}
	for _, dir := range []string{h.sonny, o.Store + ".companions", o.Store + ".plans"} {
		if err := place.MakePrivateDir(dir); err != nil {
			return nil, err
		}
	}
	if h.notes, err = openNotes(filepath.Join(o.Store+".companions", "calls")); err != nil {
		return nil, err
	}
	h.panes.path = filepath.Join(o.Store+".companions", "panes.json")
	h.answers, err = questions.OpenBox(h.sonny)
	return h, err
}

// serve holds the tag. Another host that has it is one that is about to end.
func (h *host) serve(ctx context.Context) error {
	for {
		err := h.Client.ServeTools(ctx, tools.Tag, client.ServeOptions{
			Lease: lease, Concurrency: manyCalls, Redelivered: true,
		}, h.handle)
		if !errors.Is(err, protocol.ToolsServed) {
			return err
		}
		h.logf("the tag %s is another program's; trying again", tools.Tag)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lease / 10):
		}
	}
}

// handle answers one call.
func (h *host) handle(ctx context.Context, tc *client.ToolCall) (client.ToolOutput, error) {
	def, ok := toolTable[tc.Name]
	if !ok {
		return client.ToolOutput{}, protocol.Fail(protocol.ToolNotServed, "this version of Sonny has no tool "+tc.Name)
	}
	key := noteKey(tc)
	if note, err := h.notes.read(key); err != nil || note != nil {
		return note.answer(err)
	}
	c, err := h.newCall(ctx, tc, def)
	if err != nil {
		return client.ToolOutput{}, err
	}
	defer c.end()
	out, err := c.run(def)
	if c.noted {
		h.notes.done(key, out, err)
	}
	return out, err
}

// settle brings to an end what an earlier host of this store left: starts of tasks,
// notes of calls that nobody waits for, plans and panes of what is gone.
func (h *host) settle(ctx context.Context) error {
	settled, err := lead.SettleStarts(ctx, h.Client, h.sonny, h.Store)
	for _, s := range settled {
		h.notes.settled(s)
		if s.Started == nil {
			h.logf("the start of %s was cut short, and is undone", s.Bot)
		} else {
			h.logf("the start of %s was cut short, and is done", s.Bot)
		}
	}
	pending := map[string]bool{}
	for call, err := range h.Client.ToolCalls(ctx, client.ApprovalFilter{Tag: tools.Tag}) {
		if err != nil {
			return err
		}
		pending[tools.CallKey(call)] = true
		if call.Name == "ask_person" {
			h.answers.Keep(questions.KeyOf(call))
		}
	}
	h.notes.keep(pending)
	h.answers.Sweep()
	return errors.Join(err, h.sweepPlans(ctx))
}

// bot is the record of a bot by name and identity: bot_not_found where it is gone.
func (h *host) bot(ctx context.Context, name string, id int64) (*protocol.Bot, error) {
	b, err := h.Client.Inspect(ctx, name)
	if err == nil && b.ID != id {
		err = protocol.Fail(protocol.BotNotFound, name+" is another bot by now")
	}
	return b, err
}

func (h *host) logf(format string, args ...any) {
	if h.Logf != nil {
		h.Logf(format, args...)
	}
}

// maxDepth bounds how far up makers are looked for.
const maxDepth = 32

// lead is the bot at the root of a bot's makers, and its project: "" outside any. A
// maker that is gone, or whose name is another's by now, ends the search.
func (h *host) lead(ctx context.Context, b *protocol.Bot) (*protocol.Bot, string, error) {
	page, broken, err := lead.BookIn(h.sonny).Read()
	if err != nil {
		return nil, "", err
	}
	if broken != nil {
		h.logf("sessions: %v", broken)
	}
	for range maxDepth {
		// A bot's name is its maker's choice, and what was kept of one that the person
		// opened goes by it.
		if s := page.Of(h.ready.Store.Identity, b.ID); s != nil && b.CreatedByID == nil {
			return b, s.Project, nil
		}
		if b.CreatedBy == nil || b.CreatedByID == nil {
			break
		}
		above, err := h.bot(ctx, *b.CreatedBy, *b.CreatedByID)
		if errors.Is(err, protocol.BotNotFound) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		b = above
	}
	project := lead.ProjectOf(b.Name)
	if b.CreatedByID != nil {
		project = "" // its maker is gone, and the name was that one's choice
	}
	if project == "" && b.Workspace != nil && lead.KindOf(b, place.Real(h.Home)) != lead.KindHome {
		if f, err := lead.Locate(ctx, *b.Workspace); err == nil {
			project, _ = f.ProjectName(page.Projects[f.Home])
		}
	}
	return b, project, nil
}

// session is what Sonny keeps about a bot; nil for nothing.
func (h *host) session(bot int64) *lead.Session {
	page, _, err := lead.BookIn(h.sonny).Read()
	if err != nil {
		return nil
	}
	return page.Of(h.ready.Store.Identity, bot)
}

// listDir are the regular files of a folder; none where it is not there.
func listDir(dir string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.Type().IsRegular() }), nil
}

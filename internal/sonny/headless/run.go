package headless

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"syscall"
	"time"

	"agent/client"
	"agent/client/instructions"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// Ground is what a run stands on: the daemon, the folder, and what the settings say.
type Ground struct {
	Link   *connect.Link // closed by the run
	Folder *lead.Folder
	Book   *lead.Book
	Store  string // the store's path

	// Project is what the folder says its project is called; "" where it says nothing.
	Project  string
	Settings lead.Settings
	// Model and Effort are for a bot that is made; Model "" takes the suggestion.
	Model, Effort string
	Models        []string // of the models file, for the suggestion; empty: the providers are asked
	Prices        usage.Prices

	// Compose gives the instructions of a bot that works in a folder, in a role.
	Compose func(folder *lead.Folder, project, role string) (*instructions.Composed, error)
	// Rules are the command rules of a session; 0: of one that is still to be made.
	Rules       func(bot int64) *protocol.Rules
	ClientTools []protocol.ClientTool

	NoSetup bool // a worktree's setup is not run: nothing of the folder's is used
	Notices []string
}

// Options say what is run.
type Options struct {
	Prompt   string
	Pictures []string // absolute paths
	Delivery protocol.Delivery
	Which    Which

	Role string   // of a new bot
	Only []string // its tools; nil: all that a lead has

	// UseModel and UseEffort are those that the line names, which go before a role's. A
	// session that is there has its turns of this run on UseModel.
	UseModel, UseEffort string

	Worktree *string // the commit that a new worktree begins at; nil: none is made
	Schema   *Fit    // nil: any reply will do
	Retries  int     // how often a reply that does not fit is asked for again

	Ephemeral    bool
	WaitTasks    bool
	FailOnDenied bool
	DetachOnEnd  bool // a closed stdout leaves the turn running
	Timeout      time.Duration
	Budget       int64  // tokens; 0: none
	Last         string // the file that gets the final reply; "" for none

	Version string
	Ground  func(context.Context) (*Ground, error)

	Signals <-chan os.Signal // SIGINT, SIGTERM, SIGHUP
	Gone    <-chan struct{}  // closed when the reader of stdout has gone
}

// Which says which bot works. Of Session, Continue and Fork at most one is set; the zero
// value makes a new one.
type Which struct {
	Session  string // a session that is there
	Continue bool   // the folder's newest
	Fork     string // a fork of a session
}

// fresh reports whether the bot is made from nothing.
func (w Which) fresh() bool { return w == Which{} }

// grace is how long the ending of an interrupted turn is waited for.
const grace = 10 * time.Second

// errLeft ends the work because the person does not wait for it any more.
var errLeft = errors.New("left")

// run is one run under way. It belongs to one goroutine.
type run struct {
	*Options
	*Ground
	out *Output
	c   *client.Client

	bot     *protocol.Bot
	made    bool // by this run
	kept    lead.Session
	suggest bool
	tree    *tree
	budget  *int64 // what the bot's own was, while this run's stands
	capped  bool

	turn   int64 // that is followed
	rounds int
	reply  string // the newest

	calls  map[string]*call
	files  []FileChange
	counts denials
	sum    usage.Sum
	model  string // of the turn, for its price
	family family
	begun  *turnStartedEvent // told when the turn begins

	why    reason
	left   bool // the turn goes on without the run
	done   bool // the turn completed
	events chan item
}

// Run runs a prompt to its end and gives the exit status. The result has been told.
func Run(ctx context.Context, o *Options, out *Output) int {
	r := &run{Options: o, out: out, calls: map[string]*call{}}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	begun := make(chan struct{})
	stopped := r.watch(begun, cancel)
	res, err := r.whole(ctx, begun)
	if signal := stopped(); signal != 0 && r.why.is == itself {
		r.why = reason{is: bySignal, signal: signal}
	}
	if err != nil {
		res = r.failed(err)
	}
	r.finish(context.WithoutCancel(ctx), res)
	return res.Exit
}

// watch ends the context at a signal that comes before there is a turn, and gives its
// number when asked. From begun on signals are the loop's.
func (r *run) watch(begun <-chan struct{}, cancel context.CancelCauseFunc) func() int {
	end, done := make(chan struct{}), make(chan int, 1)
	go func() {
		select {
		case s := <-r.Signals:
			cancel(errLeft)
			done <- number(s)
			return
		case <-begun:
		case <-end:
		}
		done <- 0
	}()
	return func() int {
		close(end)
		return <-done
	}
}

func number(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return int(syscall.SIGTERM)
}

// whole goes through a run: the ground, the bot, the turns.
func (r *run) whole(ctx context.Context, begun chan struct{}) (*Result, error) {
	if err := checkLast(r.Last); err != nil {
		return nil, err
	}
	g, err := r.Options.Ground(ctx)
	if err != nil {
		return nil, notSetUp(err)
	}
	defer g.Link.Close()
	r.Ground, r.c = g, g.Link.Client
	for _, n := range g.Notices {
		r.out.note("config", n)
	}
	if p := g.Link.Ready.Paused; p != nil && r.Delivery != protocol.Queue {
		return nil, paused(p)
	}
	if err := r.choose(ctx); err != nil {
		return nil, err
	}
	r.out.on(r.bot.Name, 0)
	r.tellSession()
	stats, err := r.c.Stats(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(ctx, stats); err != nil {
		return nil, err
	}
	r.family = newFamily(r.bot.ID)
	stop := r.follow(ctx, stats.Cursor)
	defer stop()
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	close(begun)
	return r.turns(ctx)
}

// notSetUp tells a home without a provider apart from one whose daemon fails.
func notSetUp(err error) error {
	if errors.Is(err, protocol.NoProviders) {
		return protocol.Fail(NotSetUp, "there is no model provider: sonny setup takes one, or write its key into ~/.agent/env")
	}
	return err
}

func paused(p *protocol.PauseInfo) error {
	return protocol.Fail(protocol.DaemonPaused, fault.PausedBy(p)+"; sonny unpause lifts it, --delivery queue waits for that")
}

// turns runs the prompt's turn, and further ones while the reply does not fit the
// schema.
func (r *run) turns(ctx context.Context) (*Result, error) {
	var timeout <-chan time.Time
	if r.Timeout > 0 {
		timer := time.NewTimer(r.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	prompt, delivery, pictures := r.prompt(), r.Delivery, r.Pictures
	for again := 0; ; again++ {
		if err := r.submit(ctx, prompt, delivery, pictures); err != nil {
			return nil, err
		}
		end, err := r.await(ctx, timeout)
		if err != nil {
			return nil, err
		}
		res := r.result(end)
		if res.Status != Completed || r.Schema == nil {
			return res, nil
		}
		data, fault := r.Schema.Check(res.Text)
		if fault == nil {
			res.Data = data
			return res, nil
		}
		if again >= r.Retries {
			res.Status, res.Exit = Unfit, exitUnfit
			res.Error = &Failure{Code: "schema", Detail: fault.Error()}
			return res, nil
		}
		r.out.note("schema", "asking again: "+fault.Error())
		prompt, delivery, pictures = r.Schema.Again(fault), protocol.Queue, nil
	}
}

// prompt is what is submitted first. A bot that this run made has been told of the
// schema in its instructions.
func (r *run) prompt() string {
	if r.Schema == nil || r.made && r.Which.fresh() {
		return r.Prompt
	}
	return r.Prompt + "\n\n" + r.Schema.Wanted()
}

func (r *run) submit(ctx context.Context, prompt string, delivery protocol.Delivery, pictures []string) error {
	req := &protocol.Submit{
		Bot: r.bot.Name, BotID: r.bot.ID, RequestID: "sonny_exec_" + rand.Text(), Prompt: prompt, Delivery: delivery, Pictures: pictures,
	}
	if !r.Which.fresh() {
		req.Model = r.UseModel
	}
	sub, err := client.Retry(ctx, func(ctx context.Context) (*protocol.Submitted, error) { return r.c.Submit(ctx, req) })
	if err != nil {
		return err
	}
	r.turn, r.rounds, r.reply = sub.Turn, 0, ""
	r.out.on(r.bot.Name, sub.Turn)
	r.begun = &turnStartedEvent{PromptBytes: len(prompt), Delivery: string(delivery)}
	return nil
}

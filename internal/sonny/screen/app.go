package screen

import (
	"context"
	"sync"
	"time"

	"agent/client"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/config"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/doctor"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/outbox"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/whereabouts"
	"agent/internal/sonny/snapshot"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// Terminal is what the screen draws on: term.Terminal, or a test's.
type Terminal interface {
	Events() <-chan term.Event
	Draw(*term.Frame)
	Print([]text.Line) // in the inline mode, for good
	Write(string)      // in the plain mode
	Redraw()
	Size() (w, h int, err error)
	Title(string)
	AskBackground()
	Bell()
	Send(string) bool
	Copy(string) bool
	Suspend()
	Resume() error
}

// Options are what the screen is opened with.
type Options struct {
	Term   Terminal
	Mode   Mode      // "": Full
	Why    string    // of the plain mode: what it was chosen by
	Kind   lead.Kind // of a bot that is made: a lead, or the home bot
	Link   *connect.Link
	Start  func(context.Context) error // starts the daemon again; nil: never
	Folder *lead.Folder
	Book   *lead.Book
	Kept   string // Sonny's folder, ~/.agent/sonny

	Settings lead.Settings
	Store    string // the store's path
	// NewLead resolves Settings, Model and Effort again. It runs beside the loop. nil: they
	// stay as they are.
	NewLead func() (NewLead, error)

	// Project is the name of the folder's project where no other folder has it.
	Project string
	// Model and Effort are for a lead that is made; "" for the one that is picked.
	Model, Effort string
	Models        []string           // those of the models file, for picking
	Suggest       string             // the model proposed where none is set; "": the screen's own choice
	Picked        func(model string) // keeps what was picked, for the next lead; may be nil
	// Compose gives the instructions of a lead, and says in a few words what is in them.
	Compose func(project string) (text, parts string, err error)
	// Rules is where command rules are read and written.
	Rules       allow.Place
	ClientTools []protocol.ClientTool
	// Questions are those that bots ask the person; nil: there are none.
	Questions Questions
	// PlanTask resolves a task under a lead that the person starts. It runs beside the
	// loop. nil: tasks cannot be started from here.
	PlanTask func(ctx context.Context, lead, name, brief string) (*TaskPlan, error)
	// Doctor makes all checks; it takes as long as the slowest, and runs beside the loop.
	// nil: there are none.
	Doctor func(context.Context) (*doctor.Report, error)
	// Self is the command of this program, for what has a screen or a dialogue of its own;
	// nil: it cannot be run.
	Self []string
	// ModelNotes are the notes of the models file, by model.
	ModelNotes map[string]string

	Taste
	// Tastes reads the settings again, beside the loop. take, called in the loop, gives the
	// Taste that they say now and what there is to tell of it; nil where none of it has
	// changed. Tastes may be nil.
	Tastes func() (take func() (Taste, []string), err error)

	Own bool // the folder's own files are left out
	// NoProject: its project.toml is left out. It is set with Own too.
	NoProject bool
	Fresh     bool   // a new lead even where the folder has one
	Bot       string // open this one; "" for the folder's newest lead
	Prompt    string // sent once the lead is open

	Snapshots *snapshot.Store // of the files before each message; nil: none are kept
	Home      string          // the person's home folder
	Config    string          // the settings file; "": none is changed
	Reads     config.Reader   // refuses settings that cannot be read; nil: none
	// Held gives the settings that hold by now, each with where it is from. It runs beside
	// the loop. With an error they can still be shown, where they are not nil. nil: none are.
	Held func() (*config.Config, error)
	// Themes are the names that can be chosen, and the one that is; Theme sets one.
	Themes func() (names []string, now string)
	Theme  func(name string) *protocol.Error

	Look    func(b term.Background, known bool) *protocol.Error // sets the terminal's theme anew; nil: it stays
	Notices []string                                            // said when the screen opens
	Heard   func(*protocol.Event)                               // hears each event, beside the loop; may be nil

	PaneSplit string // where a terminal pane comes: right, down or tab

	Version string
	Crashed func()           // deferred in every goroutine, where it may recover a panic; nil: none is recovered
	Over    time.Duration    // how often frames are drawn at most while text streams; 0: 16 ms
	Now     func() time.Time // what keys and notices go by; nil: time.Now
	Clock   func() time.Time // what is shown goes by; nil: Now
}

// frameEvery is how often streamed text is drawn at most (sonny.md 7.3).
const frameEvery = 16 * time.Millisecond

// resizeRest is how long a size must stand before all is laid out anew.
const resizeRest = 50 * time.Millisecond

// App is the screen under way. Its fields belong to the loop.
type App struct {
	o     Options
	front front
	ctx   context.Context
	world *live.World
	ready *protocol.Ready

	w, h    int
	session *session // nil on the start screen
	side    *session // beside it; nil for none
	inSide  bool     // the side has the keyboard
	start   *startScreen
	panel   panel // what takes the keyboard besides the composer; nil
	notes   notices
	lost    *live.Lost
	answers answers // the approvals' panel
	rail    rail
	kin     kin    // the tasks of the bot on screen
	branch  string // of the folder's checkout, with * when something is changed

	judging   judging
	spend     spending
	reading   bool // the open questions
	readAgain bool
	replied   map[string]bool // questions that were answered here

	forks       map[int64]int64 // bots that are forks, with whose
	awaited     []*waiting
	mouseState  mouse
	telling     telling
	where       *whereabouts.Record
	out         *outbox.Outbox
	menu        menu
	findable    findable
	custom      customCommands
	shell       *shell // the command of the person's that ran last
	leader      keys.Leader
	chord       string    // by which the action at hand was called
	escaped     time.Time // the first of two presses of Esc
	shut        time.Time // when something was closed or interrupted last
	lastKey     time.Time
	leaving     time.Time // ctrl+c asked once
	quit        bool
	again       Mode // the way to draw that was asked for, when the loop ends for it
	dirty       bool
	drawn       time.Time
	actions     map[string]func(*App)
	commands    []slashCommand
	hear        []func(*App, *live.Bot, *protocol.Event)
	greet       []func(*App, *session)
	sent        []func(*App, string)
	wake        chan struct{}
	calls       chan func() // what runs beside the loop, back with its answer
	running     sync.WaitGroup
	frameDue    *time.Timer
	clockDue    *time.Timer
	loadedAll   bool
	allKnown    bool // every bot of the store, since the connection was made
	plans       planStates
	sizes       taskSizes
	processes   processes
	laters      inOrder
	firsts      firsts
	tasteless   string // what kept the settings from being read; "" for nothing
	slack       slack
	askedModels bool
	commanded   *commandLine // the one at whose word things happen now; nil for none
}

// Run shows the screen until the person leaves it, the terminal goes away or ctx ends.
// Bots go on. An error is of what made the screen impossible.
func Run(ctx context.Context, o Options) (*Sitting, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Crashed == nil {
		o.Crashed = func() {}
	}
	if o.Keys == nil {
		o.Keys = keys.Default()
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	if o.Kind == "" {
		o.Kind = lead.KindLead
	}
	if o.Over == 0 {
		o.Over = frameEvery
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &App{o: o, front: frontOf(&o), forks: map[int64]int64{}, ctx: ctx, ready: o.Link.Ready, world: live.New(o.Link.Ready), wake: make(chan struct{}, 1), calls: make(chan func(), 256)}
	a.world.Now = o.Clock
	a.notes.now = o.Now
	a.out = newOutbox(a)
	a.where = whereabouts.In(o.Kept, desk{a}, o.Now)
	defer a.where.Close() // when nothing writes it any more
	defer a.out.Close()   // when nothing of it is on its way any more
	defer a.running.Wait()
	defer cancel()
	defer o.Crashed()
	var err error
	if a.w, a.h, err = o.Term.Size(); err != nil {
		return nil, err
	}
	notes := make(chan live.Note, 4096)
	feed := &live.Feed{Client: o.Link.Client, Start: o.Start, Wake: a.wake}
	a.running.Go(func() {
		defer o.Crashed()
		feed.Run(ctx, func(n live.Note) {
			if n.Event != nil && o.Heard != nil {
				o.Heard(n.Event)
			}
			select {
			case notes <- n:
			case <-ctx.Done():
			}
		})
	})
	a.assemble()
	for _, line := range o.Notices {
		a.notes.say(line)
	}
	a.begin()
	a.readBranch()
	a.out.CleanPictures()
	a.loop(notes)
	a.land()
	a.out.Last()
	_ = a.markSeen(a.session)() // nobody is there any more to be told
	a.showProgress(false)
	a.front.close(a)
	return a.sitting(), nil
}

// loop is the screen's life. A key is drawn as soon as it is handled; what streams, at
// most every 16 ms; a frame in which nothing changed is not made.
func (a *App) loop(notes <-chan live.Note) {
	a.frameDue, a.clockDue = stopped(), stopped()
	a.slack.due = stopped()
	a.slack.soon()
	var resized *time.Timer
	a.draw()
	for !a.quit {
		a.follow()
		a.where.Note(a.whereabouts())
		var sized <-chan time.Time
		if resized != nil {
			sized = resized.C
		}
		select {
		case <-a.ctx.Done():
			return
		case e, ok := <-a.o.Term.Events():
			if !ok {
				return
			}
			if size, is := e.(term.Resize); is {
				a.w, a.h = size.W, size.H
				resized = time.NewTimer(resizeRest)
				continue
			}
			if !a.front.input(a, e) {
				return
			}
			a.noteChanges()
			a.draw()
		case <-sized:
			resized = nil
			a.spend.widened(a)
			a.draw()
		case n := <-notes:
			a.note(n)
			a.drain(notes)
			a.soon()
		case call := <-a.calls:
			call()
			a.noteChanges()
			a.soon()
		case <-a.out.Due():
			a.out.Save()
		case <-a.slack.due.C:
			a.freeSlack()
		case <-a.frameDue.C:
			a.draw()
		case <-a.clockDue.C:
			a.draw()
		}
	}
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// noteChanges sees what was written. It is called after each event.
func (a *App) noteChanges() {
	a.out.ReadSent(a.writingIn())
	a.out.NoteChanges()
}

// drain takes what else the daemon has told, a frame's worth at most, so that many
// events are one frame.
func (a *App) drain(notes <-chan live.Note) {
	for range 1024 {
		select {
		case n := <-notes:
			a.note(n)
		default:
			return
		}
	}
}

// soon draws when the next frame is due.
func (a *App) soon() {
	if a.dirty {
		return
	}
	a.dirty = true
	a.frameDue.Reset(max(0, a.o.Over-time.Since(a.drawn)))
}

// do runs something that takes time beside the loop. done is called in the loop with
// what came of it.
func do[T any](a *App, work func(ctx context.Context) (T, error), done func(T, error)) {
	beside.Do(desk{a}, work, done)
}

// later calls a function in the loop; it is for what runs beside it.
func (a *App) later(call func()) {
	select {
	case a.calls <- call:
	case <-a.ctx.Done():
	}
}

// client is the daemon's.
func (a *App) client() *client.Client { return a.o.Link.Client }

// note takes what the daemon tells.
func (a *App) note(n live.Note) {
	switch {
	case n.Ready != nil:
		a.connected(n.Ready, n.Resumed)
	case n.Lost != nil:
		a.lost = n.Lost
	case n.Bots != nil || n.Last:
		a.world.Page(n.Bots)
		a.settled()
		if n.Last {
			a.world.Listed()
			a.allKnown = true
			a.seeGone()
		}
		if n.Last && !a.loadedAll {
			a.loadedAll = true
			a.choose()
		}
	case n.Waits != nil:
		a.world.Wait(n.Waits)
		for _, s := range []*session{a.session, a.side} {
			if s != nil && s.bot == n.Waits.Bot && s.story.IsLoaded() {
				s.waits(a)
			}
		}
		a.answers.refresh(a)
	case n.Event != nil:
		a.event(n.Event)
	}
}

// connected is the first word of a connection. Another store is another world.
func (a *App) connected(ready *protocol.Ready, resumed bool) {
	a.lost = nil
	a.readFirsts()
	a.processes.again()
	before := a.ready.Store.Identity
	a.ready = ready
	if resumed {
		a.world.Paused = ready.Paused
		a.world.Relist()
		return
	}
	if a.loadedAll && ready.Store.Identity != before {
		a.notes.say("the daemon has another store now; what was shown is not in it")
		a.out.Save()
		a.session, a.side, a.panel, a.o.Bot = nil, nil, nil, ""
		a.start, a.loadedAll = a.newStart(), false // what is opened is chosen again
		a.spend, a.firsts.titles, a.firsts.asked, a.processes.of = spending{}, map[int64]string{}, map[int64]bool{}, nil
	}
	a.allKnown = false
	a.world = live.New(ready)
	a.world.Now = a.o.Clock
}

// event takes one event of the daemon's.
func (a *App) event(e *protocol.Event) {
	a.out.Hear(e)
	b := a.world.Apply(e)
	if b != nil && b.Stale && e.Durable {
		a.reread(b.Record.Name)
	}
	for _, s := range []*session{a.session, a.side} {
		if s != nil && e.Bot == s.bot {
			s.event(e)
		}
	}
	for _, hear := range a.hear {
		hear(a, b, e)
	}
	switch e.Kind {
	case protocol.KindDeleted, protocol.KindCreated, protocol.KindForked:
		a.seeGone()
	case protocol.KindApprovalRequested, protocol.KindToolStarted, protocol.KindToolCompleted, protocol.KindStepDecided:
		a.answers.refresh(a)
	case protocol.KindTurnFinished:
		a.answers.refresh(a)
		a.readBranch()
		a.slack.soon()
	}
}

// reread asks for a bot's record again.
func (a *App) reread(name string) {
	b := a.world.Bot(name)
	if b == nil {
		return
	}
	b.Stale = false
	do(a, func(ctx context.Context) (*protocol.Bot, error) { return a.client().Inspect(ctx, name) },
		func(record *protocol.Bot, err error) {
			if err == nil {
				a.world.Put(*record)
			}
		})
}

// readBranch looks at the folder's checkout.
func (a *App) readBranch() {
	if !a.o.Folder.Repo.There() {
		return
	}
	do(a, a.o.Folder.Repo.Status, func(s *repo.Status, err error) {
		if err != nil {
			return
		}
		a.branch = s.Branch
		if s.Branch == "" && len(s.Commit) > 8 {
			a.branch = s.Commit[:8]
		}
		if s.Dirty() {
			a.branch += "*"
		}
	})
}

// draw shows what has changed.
func (a *App) draw() {
	a.dirty = false
	a.frameDue.Stop()
	a.drawn = time.Now()
	a.front.draw(a)
	a.tick()
}

// tick sees to it that what changes with time alone is drawn when it does.
func (a *App) tick() {
	a.clockDue.Stop()
	at := a.front.due(a)
	if next, waits := a.leader.Next(a.o.Now()); waits && (at.IsZero() || next.Before(at)) {
		at = next
	}
	if !at.IsZero() {
		a.clockDue.Reset(max(0, at.Sub(a.o.Now())))
	}
}

// moving reports whether something on screen changes with time alone.
func (a *App) moving() bool {
	if a.notes.standing() || !a.leaving.IsZero() {
		return true
	}
	b := a.bot()
	return b != nil && (b.Turn != 0 || a.processes.run())
}

// bot is the bot on screen; nil on the start screen.
func (a *App) bot() *live.Bot {
	if a.session == nil {
		return nil
	}
	return a.botAt(a.session)
}

// state is what the bot on screen is doing.
func (a *App) state() live.State {
	if b := a.bot(); b != nil {
		return b.State(a.world.Paused != nil)
	}
	if a.world.Paused != nil {
		return live.Paused
	}
	return live.Idle
}

func (a *App) title() string {
	if a.session == nil {
		return "sonny"
	}
	return "sonny: " + a.session.name() + " " + a.lookOf(a.session).Word
}

// Sitting is what is said when the screen is left (sonny.md 7.4).
type Sitting struct {
	Bot, Title string // "" where no lead was made
	Again      Mode   // the person asked for it to be drawn so; "": the screen was left
	Running    []string
	Waiting    []string  // for an answer of the person's
	Reply      string    // the newest on screen; "" for none
	Used       usage.Sum // while this Sonny ran, by every bot; priced as if by the model that each has now
	Stopped    error     // of a terminal that went away
}

func (a *App) sitting() *Sitting {
	s := &Sitting{Again: a.again}
	if a.session != nil {
		s.Bot, s.Title = a.session.bot, a.session.name()
		s.Reply = a.session.tr.Source()
	}
	for b := range a.world.Bots() {
		s.Used.Add(a.o.Usage.Prices, b.Record.ModelRef(), usage.Tokens{Input: b.Here.Input, Cached: b.Here.Cached, Output: b.Here.Output})
		switch b.State(false) {
		case live.Working, live.HeldUp, live.Waiting:
			s.Running = append(s.Running, b.Record.Name)
		case live.NeedsYou:
			s.Waiting = append(s.Waiting, b.Record.Name)
		}
	}
	return s
}

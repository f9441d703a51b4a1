package outbox

import (
	"context"
	"crypto/rand"
	"time"

	"agent/client"
	"agent/internal/sonny/live"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
	"agent/protocol"
)

// Screen is what an outbox needs of the screen that it is of. Its methods are called in
// the loop, but for Later.
type Screen interface {
	beside.Loop
	// Later calls a function in the loop. It is called beside it.
	Later(call func())
	// After calls a function in the loop when a while has gone by.
	After(d time.Duration, call func())

	Say(line string)
	Fail(err error)

	// Boxes are the composers on screen.
	Boxes() []*Box
	// World is the daemon's bots, and Store its store's identity, as they are now.
	World() *live.World
	Store() string
	// KeepFiles begins to keep the files of the folder that a message is for. What it gives
	// waits until they are kept, as far as that is quick; it is called beside the loop.
	KeepFiles(*protocol.Submit) func(context.Context)
}

// Recipient is the bot that a composer writes to, as the screen has it. Its methods are
// called in the loop, but for Prepare.
type Recipient interface {
	Name() string
	ID() int64
	// Bot is what is known of it now; nil for nothing, and where it is gone.
	Bot() *live.Bot
	// Gone is what is to be said where it was deleted; nil where it was not.
	Gone() error
	// Newest is its newest turn that is shown.
	Newest() int64
	// Workspace is the folder that it works in.
	Workspace() string
	// Posted hears that a message goes to it from here.
	Posted()
	// Prepare sees before a message to what that will meet. It is called beside the loop.
	Prepare(context.Context)
}

// Options are what an outbox is made of.
type Options struct {
	Screen Screen
	Client *client.Client
	Kept   string           // Sonny's folder, ~/.agent/sonny
	Now    func() time.Time // what pauses and what is kept go by
	// IsCommand reports whether a text does something in Sonny, and is no message.
	IsCommand func(text string) bool
}

// Outbox is what the person wrote and nobody has yet, for all composers of a screen, and
// the way from there to the daemon. It belongs to the loop.
type Outbox struct {
	screen    Screen
	daemon    *client.Client
	kept      string
	now       func() time.Time
	isCommand func(string) bool

	drafts   *pen.Drafts
	pictures *pen.Pictures
	history  *pen.History

	keeping  keeping
	sent     sentHistory
	flights  []*Flight           // in the order in which they were sent
	returned map[string]returned // by request
	over     map[string]bool     // requests of flights that have landed
}

// New is the outbox of a screen. Close ends it.
func New(o Options) *Outbox {
	return &Outbox{
		screen: o.Screen, daemon: o.Client, kept: o.Kept, now: o.Now, isCommand: o.IsCommand,
		drafts: pen.DraftsIn(o.Kept), pictures: pen.PicturesIn(o.Kept), history: pen.HistoryIn(o.Kept),
		keeping:  keeping{due: stopped(), kept: map[string]pen.Kept{}, failed: map[string]bool{}},
		returned: map[string]returned{}, over: map[string]bool{},
	}
}

// Close gives what is kept to the next Sonny. It is called when nothing of it is on its
// way any more.
func (o *Outbox) Close() { o.drafts.Unsign() }

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// NewRequest is the name of a message of the person's, which the daemon takes once.
func NewRequest() string { return persons + rand.Text() }

// persons begins the requests of what a person wrote in Sonny.
const persons = "sonny_"

func (o *Outbox) failing(err error) {
	if err != nil {
		o.screen.Fail(err)
	}
}

package outbox

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agent/client"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// bench is a screen that shows nothing, with its outbox. What runs beside the loop runs
// when the test says so.
type bench struct {
	*Outbox
	t      *testing.T
	box    *Box // the one on screen
	world  *live.World
	beside []func(context.Context) func()
	said   []string
	failed []error
	// handing is called when a message is about to be handed over; it may be nil.
	handing func()
}

func newBench(t *testing.T, daemon *client.Client) *bench {
	b := &bench{t: t, box: &Box{}, world: live.New(&protocol.Ready{})}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	b.Outbox = New(Options{
		Screen: b, Client: daemon, Kept: filepath.Join(t.TempDir(), "sonny"),
		Now: func() time.Time { return at }, IsCommand: func(text string) bool { return text == "/model" },
	})
	t.Cleanup(b.Close)
	return b
}

func (b *bench) Beside(work func(context.Context) func()) { b.beside = append(b.beside, work) }
func (b *bench) Later(call func())                        { b.Beside(func(context.Context) func() { return call }) }
func (b *bench) After(time.Duration, func())              {}
func (b *bench) Say(line string)                          { b.said = append(b.said, line) }
func (b *bench) Fail(err error)                           { b.failed = append(b.failed, err) }
func (b *bench) Boxes() []*Box                            { return []*Box{b.box} }
func (b *bench) World() *live.World                       { return b.world }
func (b *bench) Store() string                            { return "store" }

func (b *bench) KeepFiles(*protocol.Submit) func(context.Context) {
	return func(context.Context) {
		if b.handing != nil {
			b.handing()
		}
	}
}

// settle runs what is to run beside the loop, and what that gives, to the end.
func (b *bench) settle() {
	for len(b.beside) > 0 {
		work := b.beside[0]
		b.beside = slices.Delete(b.beside, 0, 1)
		work(b.t.Context())()
	}
}

// to is a bot that the composer writes to.
type to struct {
	b    *bench
	name string
	id   int64
	gone error
}

func (r to) Name() string            { return r.name }
func (r to) ID() int64               { return r.id }
func (r to) Bot() *live.Bot          { return r.b.world.Bot(r.name) }
func (r to) Gone() error             { return r.gone }
func (r to) Newest() int64           { return 0 }
func (r to) Workspace() string       { return r.b.t.TempDir() }
func (r to) Posted()                 {}
func (r to) Prepare(context.Context) {}

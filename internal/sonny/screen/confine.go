package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// Gates change at once. The sandbox, its folders and the network change on a bot at rest
// alone, so on a working one they wait for the turn's end (sonny.md 4).

// change gives the bot gates, which are nil to stay, and a place, which is nil to stay.
func (a *App) change(s *session, gates []protocol.Gate, place *protocol.Configure, to string) {
	now := &protocol.Configure{}
	switch {
	case place == nil:
	case s.working(a):
		a.wait(s, place, to)
	default:
		now = place
	}
	if gates != nil {
		now.Gates = protocol.Set(gates)
	}
	if gates != nil || now == place {
		a.configureNow(s, now, to)
	}
}

// wait keeps a change for the turn's end, in a file too: the tool host sends it where no
// screen is there then.
func (a *App) wait(s *session, place *protocol.Configure, to string) {
	s.after, s.afterWords = merged(s.after, place), to
	s.tr.Notice(0, to+": after this turn", "")
	change := *s.after
	change.Bot, change.BotID = s.bot, s.id
	later, keeps := lead.LaterOf(a.o.Store, to, &change), a.laters.next()
	do(a, func(context.Context) (struct{}, error) {
		return struct{}{}, keeps(func() error { return later.Keep(a.o.Kept) })
	},
		func(_ struct{}, err error) {
			if err != nil {
				a.notes.fail(fmt.Errorf("%s holds after this turn only while this screen is open: %w", to, err))
			}
		})
}

// inOrder has the newest of several writings hold, whichever comes to it first: they run
// beside the loop.
type inOrder struct {
	given int // the loop's

	mu   sync.Mutex
	last int // the newest that was done
}

// next is called in the loop. What it gives runs a writing, unless a newer one was done.
func (o *inOrder) next() func(write func() error) error {
	o.given++
	n := o.given
	return func(write func() error) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if n < o.last {
			return nil
		}
		o.last = n
		return write()
	}
}

// waited takes up what was to hold after a turn, when the bot is opened again.
func (a *App) waited(s *session) {
	do(a, func(context.Context) (*lead.Later, error) { return lead.ReadLater(a.o.Kept, a.o.Store, s.id) },
		func(l *lead.Later, err error) {
			switch {
			case err != nil:
				a.notes.fail(err)
			case l != nil && s.after == nil && s.working(a):
				s.after, s.afterWords = l.Change(), l.Words
			case l != nil && s.after == nil:
				a.configureNow(s, l.Change(), l.Words)
			}
		})
}

// configureNow sends a change, and says what holds when it does. Where a turn has begun
// meanwhile the place waits for its end and the gates go alone.
func (a *App) configureNow(s *session, change *protocol.Configure, to string) {
	change.Bot, change.BotID = s.bot, s.id
	s.confines.Next(func() { a.sendConfinement(s, change, to) })
}

func (a *App) sendConfinement(s *session, change *protocol.Configure, to string) {
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		record, err := a.client().Configure(ctx, change)
		if err == nil && lead.LaterOf(a.o.Store, to, change).Waits() {
			lead.DropLater(a.o.Kept, a.o.Store, s.id)
		}
		return record, err
	},
		func(record *protocol.Bot, err error) {
			if s.confines.Done(); !s.confines.Busy() {
				s.stepped = ""
			}
			switch gates, gated := change.Gates.Get(); {
			case errors.Is(err, protocol.BotBusy):
				place := *change
				place.Gates = protocol.Opt[[]protocol.Gate]{}
				a.wait(s, &place, to)
				if gated {
					a.change(s, gates, nil, to)
				}
			case err != nil:
				a.notes.fail(err)
			default:
				a.world.Put(*record)
				a.sayConfined(s)
			}
		})
}

// sayConfined puts what holds now into the transcript.
func (a *App) sayConfined(s *session) {
	if b := a.botAt(s); b != nil {
		words, _ := lead.Confined(&b.Record).Words()
		s.tr.Notice(0, "from here on: "+strings.Join(words, " · "), "")
	}
}

// merged is a change with a later one over it.
func merged(first, second *protocol.Configure) *protocol.Configure {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	out := *first
	if !second.Sandbox.IsZero() {
		out.Sandbox = second.Sandbox
	}
	if !second.WritableRoots.IsZero() {
		out.WritableRoots = second.WritableRoots
	}
	if !second.Network.IsZero() {
		out.Network = second.Network
	}
	return &out
}

// afterTurn sends what waited for the turn's end.
func (a *App) afterTurn(b *live.Bot, e *protocol.Event) {
	s := a.session
	if e.Kind != protocol.KindTurnFinished || s == nil || b == nil || b.Record.ID != s.id || s.after == nil || b.Turn != 0 {
		return
	}
	change, to := s.after, s.afterWords
	s.after, s.afterWords = nil, ""
	a.configureNow(s, change, to)
}

func (a *App) sandboxCommand(mode string) error {
	modes := []string{protocol.SandboxReadOnly, protocol.SandboxWorkspace, protocol.SandboxFull}
	if !slices.Contains(modes, mode) {
		return protocol.Fail(protocol.UsageError, fmt.Sprintf("%q is no sandbox: %s", mode, strings.Join(modes, ", ")))
	}
	set := func(a *App) {
		if a.session == nil {
			a.forNewLead(func(s *lead.Settings) { s.Sandbox = mode })
			return
		}
		place := &protocol.Configure{Sandbox: protocol.Set(mode)}
		if mode != protocol.SandboxWorkspace {
			place.WritableRoots = protocol.Set([]string{})
		}
		a.change(a.session, nil, place, "sandbox "+mode)
	}
	a.confirmed("", mode, set)
	return nil
}

func (a *App) networkCommand(word string) error {
	on := word == "on"
	if !on && word != "off" {
		return protocol.Fail(protocol.UsageError, "/network on, or /network off")
	}
	if a.session == nil {
		a.forNewLead(func(s *lead.Settings) { s.Network = on })
		return nil
	}
	a.change(a.session, nil, &protocol.Configure{Network: protocol.Set(on)}, "network "+word)
	return nil
}

// writableCommand lets the bot write one more folder.
func (a *App) writableCommand(path string) error {
	folder, err := realFolder(path, a.o.Folder.Path)
	if err != nil {
		return err
	}
	b := a.bot()
	if b == nil {
		a.alsoWritable(folder)
		return nil
	}
	if b.Record.Sandbox != protocol.SandboxWorkspace {
		return protocol.Fail(protocol.UsageError, "only the sandbox workspace-write has folders that may be written")
	}
	roots := b.Record.WritableRoots
	if after := a.session.after; after != nil {
		roots = after.WritableRoots.Or(roots)
	}
	if slices.Contains(roots, folder) {
		return nil
	}
	roots = append(slices.Clone(roots), folder)
	if err := a.o.Link.Covers(b.Record.Sandbox, folder, roots); err != nil {
		return err
	}
	a.change(a.session, nil, &protocol.Configure{WritableRoots: protocol.Set(roots)}, "may write "+folder)
	return nil
}

// realFolder is the real path of a folder that the person named; ~ is the home folder,
// and what is relative is below from.
func realFolder(path, from string) (string, error) {
	if path == "" {
		return "", protocol.Fail(protocol.UsageError, "/writable PATH")
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = home + rest
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	folder, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", protocol.Fail(protocol.UsageError, folder+" is no folder")
	}
	return folder, nil
}

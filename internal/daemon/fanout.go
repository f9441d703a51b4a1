package daemon

import (
	"context"
	"strings"
	"sync"

	"agent/internal/store"
	"agent/protocol"
)

// fanout takes committed events, in commit order, and what is only live to the
// sessions that follow a bot. Switching a follow from replay to live happens
// between two deliveries, so that nothing falls between and nothing comes
// twice (protocol.md 14). It is safe for concurrent use.
type fanout struct {
	mu        sync.RWMutex
	byBot     map[string]map[*follow]bool
	all       map[*follow]bool
	published int64 // the newest event delivered
}

// follow is one session's interest in one bot, or in all for "*".
type follow struct {
	s      *session
	name   string
	bot    int64 // whose events these are, whoever has the name later; 0: everybody's
	cursor int64 // the newest event given, once live
	live   bool  // guarded by the fanout
	gone   bool  // guarded by the fanout
	doomed bool  // its bot was deleted before it was live; guarded by the fanout
	ended  bool  // guarded by the session's output
	cancel context.CancelFunc
	script map[string]bool // bots whose scripted_model notice was given; "*" only
}

func newFanout() *fanout {
	return &fanout{byBot: map[string]map[*follow]bool{}, all: map[*follow]bool{}}
}

// Publish delivers one commit. It is called by the store's publisher alone.
func (f *fanout) Publish(b store.Batch) {
	f.mu.Lock()
	for i := range b.Events {
		ev := &b.Events[i]
		f.published = ev.Cursor
		for fl := range f.byBot[ev.Bot] {
			if fl.bot == ev.BotID {
				fl.give(ev)
			}
		}
		for fl := range f.all {
			fl.give(ev)
		}
	}
	f.mu.Unlock()
	for _, after := range b.After {
		after()
	}
}

func (fl *follow) give(ev *store.Event) {
	if !fl.live || ev.Cursor <= fl.cursor {
		return
	}
	fl.cursor = ev.Cursor
	if fl.name == "*" && ev.Kind == protocol.KindAccepted {
		fl.noteScript(ev)
	}
	fl.s.out.put(ev.Line)
}

// noteScript tells a follower of everything, once for each bot, that its model
// is a script.
func (fl *follow) noteScript(ev *store.Event) {
	if fl.script[ev.Bot] {
		return
	}
	var a protocol.Accepted
	e := protocol.Event{Data: ev.Data}
	if e.Decode(&a) != nil {
		return
	}
	provider, _, _ := strings.Cut(a.Model, "/")
	if fl.s.d.scripted[provider] {
		fl.script[ev.Bot] = true
		fl.s.live(protocol.KindScriptedModel, protocol.ScriptedModel{Bot: ev.Bot, Model: a.Model})
	}
}

// Wants reports whether anyone follows a bot now.
func (f *fanout) Wants(bot string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.byBot[bot])+len(f.all) > 0
}

// Delta gives streamed text to those already live.
func (f *fanout) Delta(bot string, turn int64, kind, text string) {
	f.eachLive(bot, func(s *session) { s.out.delta(kind, bot, turn, text) })
}

// Notice gives a whole notification to those already live.
func (f *fanout) Notice(bot string, line []byte) {
	f.eachLive(bot, func(s *session) { s.out.put(line) })
}

// Deleted tells followers that a bot is gone. Those of the bot itself are done:
// the next bot of its name is another. One that is not live yet learns it from
// its replay.
func (f *fanout) Deleted(bot int64, name string, line []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for fl := range f.all {
		if fl.live {
			fl.s.out.put(line)
		}
	}
	for fl := range f.byBot[name] {
		switch {
		case fl.bot != bot:
		case fl.live:
			fl.s.out.put(line)
			f.drop(fl)
		default:
			fl.doomed = true
		}
	}
}

func (f *fanout) eachLive(bot string, give func(*session)) {
	f.mu.RLock()
	var to [8]*session
	list := to[:0]
	for fl := range f.byBot[bot] {
		if fl.live {
			list = append(list, fl.s)
		}
	}
	for fl := range f.all {
		if fl.live {
			list = append(list, fl.s)
		}
	}
	f.mu.RUnlock()
	for _, s := range list {
		give(s)
	}
}

func (f *fanout) add(fl *follow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.name == "*" {
		f.all[fl] = true
		return
	}
	set := f.byBot[fl.name]
	if set == nil {
		set = map[*follow]bool{}
		f.byBot[fl.name] = set
	}
	set[fl] = true
}

func (f *fanout) remove(fl *follow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(fl)
}

// drop is remove with f.mu held.
func (f *fanout) drop(fl *follow) {
	fl.live, fl.gone = false, true
	delete(f.all, fl)
	if set := f.byBot[fl.name]; set != nil {
		if delete(set, fl); len(set) == 0 {
			delete(f.byBot, fl.name)
		}
	}
}

// goLive makes a follow live if nothing was published since its replay looked:
// seen is what was published before it did.
func (f *fanout) goLive(fl *follow, seen, cursor int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.gone {
		return true
	}
	if fl.doomed || f.published > seen && f.published > cursor {
		return false
	}
	fl.cursor = max(cursor, seen)
	fl.live = true
	line, _ := protocol.AppendLive(nil, protocol.KindFollowLive, protocol.FollowLive{Bot: fl.name, Cursor: cursor})
	fl.s.out.put(line)
	return true
}

func (f *fanout) last() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.published
}

// replayPage is how many events one look at the store brings, and replayedAtOnce how
// many looks of one session may be on their way out at once: what a session
// that follows thousands of bots and reads slowly takes in memory.
const (
	replayPage     = 256
	replayedAtOnce = 4
)

// replayer reads what is stored of a bot's events, or of all.
type replayer interface {
	Replay(ctx context.Context, name string, id, after int64, limit int) (lines [][]byte, last int64, gone bool, err error)
}

// replay sends what is stored after a cursor and then goes live. It ends early
// when the follow or the session does.
func (fl *follow) replay(ctx context.Context, from replayer, f *fanout) {
	cursor, over := fl.cursor, false
	for !over {
		select {
		case fl.s.replaying <- struct{}{}:
		case <-ctx.Done():
			return
		}
		cursor, over = fl.replayPage(ctx, from, f, cursor)
		<-fl.s.replaying
	}
}

// replayPage sends the events of one look. over says that the follow is live, or
// has ended.
func (fl *follow) replayPage(ctx context.Context, from replayer, f *fanout, cursor int64) (last int64, over bool) {
	wanted := func() bool { return !fl.ended }
	seen := f.last()
	lines, last, gone, err := from.Replay(ctx, fl.name, fl.bot, cursor, replayPage)
	if err != nil {
		if ctx.Err() == nil {
			fl.s.out.fail(err)
		}
		return cursor, true
	}
	if gone {
		f.remove(fl)
		line, _ := protocol.AppendLive(nil, protocol.KindDeleted, protocol.DeletedNotice{Bot: fl.name})
		fl.s.out.putWhen(line, wanted)
		return cursor, true
	}
	for _, line := range lines {
		if !fl.s.out.putWhen(line, wanted) {
			return cursor, true
		}
	}
	return last, len(lines) == 0 && f.goLive(fl, seen, last)
}

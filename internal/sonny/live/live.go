// Package live is what Sonny knows of the daemon's bots while it runs: their records
// and what their turns are doing, kept true by one follow of all events (sonny.md 30).
package live

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"agent/protocol"
)

// State is what a bot is doing, as the screen says it (sonny.md 7.2).
type State uint8

// The states, the most urgent last but for failed and paused.
const (
	Idle State = iota
	Queued
	Waiting
	Working
	HeldUp
	NeedsYou
	Done
	Failed
	Paused
)

// Bot is a bot as it is now.
type Bot struct {
	Record protocol.Bot
	Stale  bool // the record is to be read again

	Turn    int64     // the one that runs or is parked; 0: none
	Since   time.Time // when that began, as far as it was seen
	Origin  string    // who asked for it: "" for the person, a bot's or a service's name
	Handles []string  // what it waits for
	Until   time.Time // when a held up turn goes on; zero: not held up
	Retry   *protocol.Retry

	Waits map[string]protocol.RequestedCall // calls and steps that wait for a verdict, by call and step

	Queue     []Turn  // those in line, in order
	lined     bool    // Line was called: from then on events alone tell
	left      []int64 // turns that left the line before, the newest
	Questions int     // that it asks the person; whoever reads them sets it

	Usage    protocol.Usage         // of the newest call
	Here     Tokens                 // used while this Sonny ran
	Total    Tokens                 // used since the bot is there, as far as is known
	Ended    *protocol.TurnFinished // the newest end, nil when none was seen
	EndedOf  int64
	Seen     bool   // that end was on screen, or was not asked for here
	Activity string // the tool that it used last and what for; a model's words
	Plans    int    // how often its plan was changed, as far as was seen
	planning string // the call that changes it
	At       time.Time
}

// Tokens are counts of tokens.
type Tokens struct{ Input, Output, Cached int64 }

func (t *Tokens) add(u protocol.Usage) {
	t.Input, t.Output, t.Cached = t.Input+u.InputTokens, t.Output+u.OutputTokens, t.Cached+u.CachedInputTokens
}

// took takes what a record says was used: counts only grow, and events may have come
// that the record does not hold yet.
func (t *Tokens) took(r *protocol.Bot) {
	t.Input = max(t.Input, r.InputTokens)
	t.Output = max(t.Output, r.TokensUsed-r.InputTokens)
	t.Cached = max(t.Cached, r.CachedInputTokens)
}

// Turn is a turn in line.
type Turn struct {
	ID      int64
	Request string
	Steer   bool
	Prompt  string // as far as it is known
	Cut     bool   // the prompt is its beginning alone
	From    string // another bot's name, or an origin; "" for the person
}

// State is what the bot is doing. paused is the daemon's.
func (b *Bot) State(paused bool) State {
	switch {
	case paused:
		return Paused
	case b.ForPerson() > 0:
		return NeedsYou
	case b.Turn != 0 && (!b.Until.IsZero() || b.Retry != nil):
		return HeldUp
	case b.Turn != 0 && len(b.Handles) > 0:
		return Waiting
	case b.Turn != 0:
		return Working
	case len(b.Queue) > 0:
		return Queued
	case b.failed():
		return Failed
	case b.Ended != nil && b.Ended.Status == protocol.StatusCompleted && !b.Seen:
		return Done
	}
	return Idle
}

// judgeTag is the gate that the automatic approver answers: what waits there waits for
// nobody else.
const judgeTag = "auto"

// ForPerson is how many calls, steps and questions wait for the person.
func (b *Bot) ForPerson() int {
	n := b.Questions
	for _, c := range b.Waits {
		if slices.ContainsFunc(c.Gates, func(tag string) bool { return tag != judgeTag }) {
			n++
		}
	}
	return n
}

func (b *Bot) failed() bool {
	if b.Ended != nil {
		return b.Ended.Status == protocol.StatusFailed
	}
	return b.Record.Status == protocol.StatusFailed
}

// World is all bots. It belongs to one goroutine.
type World struct {
	Paused *protocol.PauseInfo

	// Now is the clock; nil: time.Now.
	Now func() time.Time

	// Kin counts the changes of who there is and who made whom, so that what is derived
	// of that need not be derived again for each frame.
	Kin int

	byName map[string]*Bot
	told   map[string]bool // bots that events spoke of before their record was read
	gone   map[int64]bool
}

// New is a world of which nothing is known yet.
func New(ready *protocol.Ready) *World {
	return &World{Paused: ready.Paused, byName: map[string]*Bot{}, told: map[string]bool{}, gone: map[int64]bool{}}
}

func (w *World) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}

// Bot is a bot by its name; nil for none.
func (w *World) Bot(name string) *Bot { return w.byName[name] }

// ByID is a bot by its identity; nil for none.
func (w *World) ByID(id int64) *Bot {
	for _, b := range w.byName {
		if b.Record.ID == id {
			return b
		}
	}
	return nil
}

// Unanswered reports whether an approval of a bot's still waits for its verdict.
func (w *World) Unanswered(bot string, request int64) bool {
	b := w.byName[bot]
	if b == nil {
		return false
	}
	for _, c := range b.Waits {
		if c.Request == request {
			return true
		}
	}
	return false
}

// Bots yields them by name.
func (w *World) Bots() iter.Seq[*Bot] {
	return func(yield func(*Bot) bool) {
		for _, name := range slices.Sorted(maps.Keys(w.byName)) {
			if !yield(w.byName[name]) {
				return
			}
		}
	}
}

// Records are the bots' records by name, for what works on those.
func (w *World) Records() []protocol.Bot {
	out := make([]protocol.Bot, 0, len(w.byName))
	for b := range w.Bots() {
		out = append(out, b.Record)
	}
	return out
}

// Put takes a record that was asked for after the newest event of its bot.
func (w *World) Put(record protocol.Bot) *Bot {
	b := w.place(record)
	if b == nil {
		return nil
	}
	b.Record, b.Stale = record, false
	b.Total.took(&record)
	if !w.told[record.Name] {
		b.runs(record.RunningTurn, w.now())
	}
	return b
}

// Page takes records of a listing, which may be older than events that came meanwhile:
// a bot that events have spoken of keeps what they said, and one that was deleted
// stays deleted.
func (w *World) Page(records []protocol.Bot) {
	for _, record := range records {
		b := w.place(record)
		if b == nil {
			continue
		}
		b.Record = record
		b.Total.took(&record)
		if !w.told[record.Name] {
			b.Stale = false
			b.runs(record.RunningTurn, w.now())
		}
	}
}

// place is where a record belongs; nil for a bot that is gone.
func (w *World) place(record protocol.Bot) *Bot {
	if w.gone[record.ID] {
		return nil
	}
	b := w.byName[record.Name]
	if b == nil || b.Record.ID != record.ID && b.Record.ID != 0 {
		b = &Bot{Seen: true, At: w.now()}
		w.byName[record.Name] = b
	}
	w.Kin++
	return b
}

func (b *Bot) runs(turn *int64, now time.Time) {
	switch {
	case turn == nil:
		b.Turn = 0
	case b.Turn != *turn:
		b.Turn, b.Since = *turn, now
	}
}

// Line takes a bot's turns as they were listed, which may be older than events that came
// meanwhile: what left the line by those stays out of it. The first call tells what is in
// line; every call, what the messages say.
func (w *World) Line(bot string, turns []protocol.Turn) {
	b := w.byName[bot]
	if b == nil {
		return
	}
	for _, t := range turns {
		q := Turn{ID: t.Turn, Request: t.RequestID, Prompt: t.Prompt, Cut: t.PromptTruncated, From: sender(t.From, t.Origin), Steer: t.Delivery == protocol.Steer}
		waits := t.Status == protocol.StatusQueued || t.Status == protocol.StatusReady
		if i := slices.IndexFunc(b.Queue, func(q Turn) bool { return q.ID == t.Turn }); i >= 0 {
			b.Queue[i] = q
		} else if waits && !b.lined && !slices.Contains(b.left, t.Turn) {
			b.Queue = append(b.Queue, q)
		}
	}
	slices.SortFunc(b.Queue, func(x, y Turn) int { return cmp.Compare(x.ID, y.ID) })
	b.lined, b.left = true, nil
}

// Wait takes a call that is listed as waiting.
func (w *World) Wait(a *protocol.Approval) {
	if b := w.byName[a.Bot]; b != nil {
		b.wait(protocol.RequestedCall{
			CallID: a.CallID, Request: a.Request, AnnouncedMS: a.AnnouncedMS, ExpiresMS: a.ExpiresMS,
			Gates: a.Gates, Name: a.Name, Node: a.Node, Cause: a.Cause, Escalated: a.Escalated, Step: a.Step,
		})
	}
}

func (b *Bot) wait(c protocol.RequestedCall) {
	if b.Waits == nil {
		b.Waits = map[string]protocol.RequestedCall{}
	}
	b.Waits[waitKey(c.CallID, c.Step)] = c
}

func waitKey(call, step string) string { return call + "\x00" + step }

// settled drops what waited of a call.
func (b *Bot) settled(call string) {
	for key := range b.Waits {
		if strings.HasPrefix(key, call+"\x00") {
			delete(b.Waits, key)
		}
	}
}

func sender(from *protocol.From, origin string) string {
	if from != nil {
		return from.Bot
	}
	return origin
}

// Prompted tells what a message in line says: events do not.
func (b *Bot) Prompted(request, prompt string) {
	for i := range b.Queue {
		if b.Queue[i].Request == request {
			b.Queue[i].Prompt = prompt
		}
	}
}

// CutOff reports whether the newest turn ended before it was done: by an interrupt, a
// pause, a failure or the daemon's end.
func (b *Bot) CutOff() bool {
	status := b.Record.Status
	if b.Ended != nil {
		status = b.Ended.Status
	}
	return status == protocol.StatusInterrupted || status == protocol.StatusFailed
}

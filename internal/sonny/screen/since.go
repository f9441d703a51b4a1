package screen

import (
	"context"
	"strings"
	"time"

	"agent/client"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/human"
	"agent/protocol"
)

// sinceWatch says once, as a session opens, what ended or began to wait while it was on
// no screen (sonny.md 3.2).
var sinceWatch = feature{opened: func(a *App, s *session) { s.tellSince(a) }}

// seen is how far a session was on screen before it was opened now.
type seen struct {
	at   time.Time // zero: never
	turn int64     // all turns of its bot up to it were over then
	now  time.Time // when it was opened now
	told bool
}

// happened is what did.
type happened struct {
	turns                 int
	done, failed, stopped int // tasks, by their newest turn's end
	waits                 int
}

// tellSince shows the line, when both the transcript and what the book has are here.
func (s *session) tellSince(a *App) {
	if s.seen == nil || s.seen.told || !s.story.IsLoaded() {
		return
	}
	s.seen.told = true
	if s.seen.at.IsZero() {
		return
	}
	kin := []string{s.bot}
	for _, t := range a.tasks() {
		kin = append(kin, t.Record.Name)
	}
	before, questions := *s.seen, a.o.Questions
	do(a, func(ctx context.Context) (*happened, error) {
		return whatHappened(ctx, a.client(), questions, kin, before)
	}, func(h *happened, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		if words := h.words(); words != "" && a.shows(s) {
			s.tr.Notice(0, "since "+human.When(before.now, before.at)+": "+words, "")
		}
	})
}

// whatHappened reads what ended since, of a bot and its tasks, and what waits since.
func whatHappened(ctx context.Context, c *client.Client, questions Questions, kin []string, before seen) (*happened, error) {
	h := &happened{}
	after := before.turn
	for i, bot := range kin {
		newest := ""
		for t, err := range c.Turns(ctx, bot, after) {
			if err != nil && i > 0 && protocol.CodeOf(err) == protocol.BotNotFound {
				break // a task that was removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			if !before.missed(t) {
				continue
			}
			newest = t.Status
			if i == 0 {
				h.turns++
			}
		}
		if i > 0 {
			h.task(newest)
		}
		after = 0
	}
	return h, h.waiting(ctx, c, questions, kin, before.at)
}

// missed reports whether a turn ended between then and now.
func (s *seen) missed(t *protocol.Turn) bool {
	if t.FinishedMS == nil || t.Status == protocol.StatusSteered {
		return false
	}
	ended := time.UnixMilli(*t.FinishedMS)
	return ended.After(s.at) && ended.Before(s.now)
}

// task counts a task by how its newest turn ended, "" for none.
func (h *happened) task(end string) {
	switch end {
	case protocol.StatusCompleted:
		h.done++
	case protocol.StatusFailed:
		h.failed++
	case protocol.StatusInterrupted:
		h.stopped++
	}
}

// waiting counts the calls and questions that wait for the person since.
func (h *happened) waiting(ctx context.Context, c *client.Client, questions Questions, kin []string, at time.Time) error {
	of := map[string]bool{}
	for _, bot := range kin {
		of[bot] = true
	}
	for w, err := range c.Approvals(ctx, client.ApprovalFilter{}) {
		if err != nil {
			return err
		}
		if of[w.Bot] && decide.ForPerson(w.Gates) && time.UnixMilli(w.AnnouncedMS).After(at) {
			h.waits++
		}
	}
	if questions == nil {
		return nil
	}
	list, err := questions(ctx)
	for _, q := range list {
		if of[q.Bot] && q.Announced.After(at) {
			h.waits++
		}
	}
	return err
}

// words say it; "" where nothing happened.
func (h *happened) words() string {
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, human.Count(n, one, many))
		}
	}
	add(h.turns, "turn", "turns")
	add(h.done, "task done", "tasks done")
	add(h.failed, "task failed", "tasks failed")
	add(h.stopped, "task stopped", "tasks stopped")
	add(h.waits, "waits for you", "wait for you")
	return strings.Join(parts, ", ")
}

// overUpTo is the newest turn of a session's bot up to which all are over.
func (a *App) overUpTo(s *session) int64 {
	b := a.botAt(s)
	if b == nil {
		return 0
	}
	upTo := max(s.story.Newest(), b.EndedOf)
	if b.Turn != 0 {
		upTo = min(upTo, b.Turn-1)
	}
	for _, t := range b.Queue {
		upTo = min(upTo, t.ID-1)
	}
	return upTo
}

// markSeen notes in the book that a session was on screen until now. It waits for the
// book, and is for the screen's end and for what runs beside the loop.
func (a *App) markSeen(s *session) func() error {
	if s == nil || !s.story.IsLoaded() || s.seen == nil {
		return func() error { return nil }
	}
	now, upTo, store := a.o.Now(), a.overUpTo(s), a.ready.Store.Identity
	return func() error {
		return a.o.Book.Change(func(p *lead.Page) error {
			if kept := p.Of(store, s.id); kept != nil {
				kept.SeenAt, kept.Seen = now, max(kept.Seen, upTo)
			}
			return nil
		})
	}
}

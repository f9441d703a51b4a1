package screen

import (
	"cmp"
	"context"
	"errors"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// firsts are titles made of the bots' first messages, by which sessions without a title of
// their own are shown (sonny.md 26). One is read when it is to be shown, beside the loop,
// and kept.
type firsts struct {
	titles  map[int64]string // "": nothing was said yet, or it cannot be had
	asked   map[int64]bool   // those that are known, or on their way
	waits   []wanted
	reading bool
}

// wanted is a bot whose first message is to be read.
type wanted struct {
	id  int64
	bot string
}

// firstsAtOnce bounds how many first messages are read before they are shown.
const firstsAtOnce = 50

// firstMessages notes that a bot of which nothing was said yet has a message now.
var firstMessages = feature{event: func(a *App, b *live.Bot, e *protocol.Event) {
	if b != nil && e.Kind == protocol.KindAccepted && a.firsts.titles[b.Record.ID] == "" {
		delete(a.firsts.titles, b.Record.ID)
		delete(a.firsts.asked, b.Record.ID)
	}
}}

// titleOf is how a session is shown (sonny.md 26): by the title that it was given, else by
// one made of its first message; "" while neither is known. shown is what is to be done
// whenever that is drawn, since the message is read then; nil for nothing.
func (a *App) titleOf(given string, record *protocol.Bot) (title string, shown func()) {
	if given != "" || record == nil || record.ID == 0 {
		return given, nil
	}
	title, known := a.firsts.titles[record.ID]
	if known {
		return title, nil
	}
	want := wanted{record.ID, record.Name}
	return "", func() { a.askFirst(want) }
}

// called is how a session on screen is shown: as titleOf says, else by its bot's name. A
// task is its name.
func (a *App) called(s *session) string {
	if s.kept.BotID == 0 || s.kept.Kind == lead.KindTask || s.gone {
		return s.name()
	}
	title, shown := a.titleOf(s.kept.Title, a.recordOf(s.bot))
	if shown != nil {
		shown()
	}
	return cmp.Or(title, s.bot)
}

// foundCalled is the same of a session that is found in the book.
func (a *App) foundCalled(f lead.Found) string {
	title, _ := a.titleOf(f.Title, f.Record)
	return cmp.Or(title, f.Bot)
}

// askFirst has a first message read, once.
func (a *App) askFirst(want wanted) {
	p := &a.firsts
	if p.asked[want.id] {
		return
	}
	if p.asked == nil {
		p.titles, p.asked = map[int64]string{}, map[int64]bool{}
	}
	p.asked[want.id] = true
	p.waits = append(p.waits, want)
	a.readFirsts()
}

// readFirsts reads what is wanted, some at a time.
func (a *App) readFirsts() {
	p := &a.firsts
	if p.reading || len(p.waits) == 0 {
		return
	}
	n := min(len(p.waits), firstsAtOnce)
	list := p.waits[:n:n]
	p.waits, p.reading = p.waits[n:], true
	do(a, func(ctx context.Context) (map[int64]string, error) {
		titles := map[int64]string{}
		for _, w := range list {
			title, err := lead.FirstTitle(ctx, a.client(), w.bot)
			if err != nil && !errors.Is(err, protocol.BotNotFound) {
				return titles, err
			}
			titles[w.id] = title
		}
		return titles, nil
	}, func(titles map[int64]string, err error) {
		p.reading = false
		for id, title := range titles {
			p.titles[id] = title
		}
		a.rail.Retitled()
		if err != nil { // the connection is away: what is missing is asked for when it is back
			p.missing(list, titles)
			return
		}
		a.readFirsts()
	})
}

// missing notes which were not read.
func (p *firsts) missing(list []wanted, got map[int64]string) {
	for _, w := range list {
		if _, is := got[w.id]; !is {
			p.waits = append(p.waits, w)
		}
	}
}

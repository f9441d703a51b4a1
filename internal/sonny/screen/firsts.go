package screen

import (
	"context"
	"errors"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// firsts are titles made of the bots' first messages, by which sessions without a title of
// their own are called in lists (sonny.md 26). One is read when its row is shown, beside
// the loop, and kept.
type firsts struct {
	titles  map[int64]string // "": nothing was said yet, or it cannot be had
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
	}
}}

// first is the title made of a bot's first message, as far as it is known, and what a row
// that shows it does when it is drawn.
func (a *App) first(record *protocol.Bot) (title string, shown func()) {
	if record == nil || record.ID == 0 {
		return "", nil
	}
	title, known := a.firsts.titles[record.ID]
	if known {
		return title, nil
	}
	want := wanted{record.ID, record.Name}
	return "", func() {
		if a.firsts.titles == nil {
			a.firsts.titles = map[int64]string{}
		}
		a.firsts.titles[want.id] = "" // it is asked for once
		a.firsts.waits = append(a.firsts.waits, want)
		a.readFirsts()
	}
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

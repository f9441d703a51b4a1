package screen

import (
	"context"

	"agent/internal/place"
	"agent/internal/rules"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/story"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// session is a bot on screen: its transcript, and where the person is in it.
type session struct {
	bot    string
	id     int64
	kept   lead.Session
	tr     *cells.Transcript
	story  *story.Story // what fills it
	look   cells.Look
	up     int // rows that the view is above the end; 0: the end is followed
	left   int // rows there were when the person scrolled up; 0: the end is followed
	topRow int // the row at the top of the view then
	// Where the view stood on the screen in the newest frame, and how wide.
	left0, top0, width, gutter int

	height int // rows of the view in the newest frame
	mark   pointer
	top    held // what the newest frame began with
	gone   bool // its bot was deleted
	looked bool // whether its folder is there
	// deleting: its bot is being deleted from here.
	deleting bool

	compose composer
	first   *firstMessage // of a lead that was made just now

	confines   beside.Line         // changes of its confinement, one after another
	stepped    lead.Row            // the newest row that was stepped to and is on its way; "" for none
	used       []usage.Turn        // what its newest turns used, as it was read last
	seen       *seen               // before it was opened now; nil: not read yet
	after      *protocol.Configure // what is sent when the turn is over; nil: nothing
	afterWords string
	overturned map[string]bool // denials that the person has dealt with
	rules      *rules.Set      // as they were last sent; nil: not known
}

// openSession shows a bot.
func (a *App) openSession(name string, id int64) { a.openWith(name, id, a.startFor(name)) }

// openWith shows a bot, to which goes what was written on a start screen.
func (a *App) openWith(name string, id int64, start string) {
	var typed edit.Draft
	switch {
	case a.session != nil:
		a.session.leave(a)
	case a.start != nil:
		typed = a.out.HandOver(&a.start.compose.Box, start)
	}
	if a.side != nil && a.side.id == id {
		a.closeSide()
	}
	s := newSession(a, name, id)
	a.session, a.start, a.inSide = s, nil, false
	s.keep(a)
	s.load(a, start)
	if !typed.Empty() {
		s.compose.Editor().SetDraft(typed.After(s.compose.Editor().Draft()))
	}
	a.answers.show(a)
}

func newSession(a *App, name string, id int64) *session {
	s := &session{bot: name, id: id, tr: cells.New(a.o.Markdown), look: a.o.look()}
	s.tr.Now, s.tr.Card, s.tr.Process = a.o.Clock, a.card, a.process
	s.tr.Rule = func(script string) (string, bool) { return s.ruleOf(a, script) }
	s.story = story.New(teller{a, s}, story.Of(a.client(), name), s.tr)
	a.out.Address(&s.compose.Box, recipient{a, s})
	return s
}

// leave notes what was on screen.
func (s *session) leave(a *App) {
	a.out.Leave(&s.compose.Box)
	if b := a.botAt(s); b != nil {
		b.Seen = true
	}
	mark := a.markSeen(s)
	do(a, func(context.Context) (struct{}, error) { return struct{}{}, mark() }, func(_ struct{}, err error) { a.failing(err) })
}

// name is the session's title, or its bot's name: what it is called where none of its
// messages is to be told, as in the terminal's title and in notifications. On screen it is
// as called says.
func (s *session) name() string {
	if s.kept.Title != "" {
		return s.kept.Title
	}
	return s.bot
}

// keep notes in the book that the session was opened, and is seen from now on.
func (s *session) keep(a *App) {
	now, seenAt := a.o.Clock(), a.o.Now()
	store := a.ready.Store.Identity
	before, made := &seen{now: seenAt}, a.unkept(s)
	do(a, func(context.Context) (lead.Session, error) {
		var kept lead.Session
		err := a.o.Book.Change(func(p *lead.Page) error {
			if old := p.Of(store, s.id); old != nil {
				before.at, before.turn = old.SeenAt, old.Seen
				old.Opened, old.SeenAt = now, seenAt
				kept = *old
				return nil
			}
			kept = made
			kept.Opened, kept.SeenAt = now, seenAt
			p.Put(kept)
			return nil
		})
		return kept, err
	}, func(kept lead.Session, err error) {
		if err != nil {
			a.notes.fail(err)
			if kept.BotID == 0 {
				kept = made // as far as it is known
			}
			s.kept = kept
			return
		}
		s.kept, s.seen = kept, before
		s.tellLost(a)
		if s == a.session {
			a.keepRail()
		}
		s.tellSince(a)
	})
}

// unkept is what is known of a session of which nothing was kept: by its bot's record,
// since it may be another folder's, or a task.
func (a *App) unkept(s *session) lead.Session {
	kept := lead.Session{
		Store: a.ready.Store.Identity, BotID: s.id, Bot: s.bot, Folder: a.workspace(s), Project: lead.ProjectOf(s.bot), Kind: a.o.Kind,
	}
	if kept.Folder == a.o.Folder.Path {
		kept.Repo = a.o.Folder.Repo
	}
	if record := a.recordOf(s.bot); record != nil {
		kept.Kind = lead.KindOf(record, place.Real(a.o.Home))
	}
	return kept
}

// load reads the newest part of the history, and what was written for the bot: before
// there was one too, under the key of a start screen, "" for none.
func (s *session) load(a *App, start string) {
	a.out.Load(&s.compose.Box, start)
	s.story.Load()
}

// event takes an event of the bot on screen.
func (s *session) event(e *protocol.Event) {
	if !s.gone {
		s.story.Event(e)
	}
}

// waits shows at their calls' lines what waits for a verdict, of which no event may come
// any more.
func (s *session) waits(a *App) {
	if b := a.botAt(s); b != nil {
		for _, r := range b.Waits {
			s.tr.Ask(r)
		}
	}
}

// ruleOf names the rule that let a script run outside the sandbox without a verdict, and
// reports whether one did: a bot without a sandbox needs none.
func (s *session) ruleOf(a *App, script string) (string, bool) {
	b := a.botAt(s)
	if b == nil || lead.Confined(&b.Record).Open() {
		return "", false
	}
	return allow.By(s.rules, script), true
}

// working reports whether the bot works.
func (s *session) working(a *App) bool {
	b := a.botAt(s)
	return b != nil && b.Turn != 0
}

// sessionLoaded goes on with what waited for the transcript.
func (a *App) sessionLoaded(s *session) {
	for _, greet := range a.greet {
		greet(a, s)
	}
	if prompt := a.o.Prompt; prompt != "" && s == a.session {
		a.o.Prompt = ""
		s.compose.Set(prompt)
		a.send(delivery{})
	}
}

// turnWords say how many turns the bot has had; of a long history the part that is
// loaded counts.
func (s *session) turnWords() string { return turnWords(s.story.Turns(), s.story.IsWhole()) }

func turnWords(n int, all bool) string {
	words := human.Count(n, "turn", "turns")
	if !all {
		words = "at least " + words
	}
	return words
}

package screen

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"agent/internal/place"
	"agent/internal/rules"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/inturn"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// How many items are loaded at a time. The first ones are few, so that the screen is full
// soon; what is missing of the usual number follows at once.
const (
	loadNodes  = 400
	firstNodes = 48
)

// session is a bot on screen: its transcript, and where the person is in it.
type session struct {
	bot    string
	id     int64
	kept   lead.Session
	tr     *cells.Transcript
	look   cells.Look
	up     int // rows that the view is above the end; 0: the end is followed
	left   int // rows there were when the person scrolled up; 0: the end is followed
	topRow int // the row at the top of the view then
	// Where the view stood on the screen in the newest frame, and how wide.
	left0, top0, width, gutter int

	height int    // rows of the view in the newest frame
	next   int64  // the node at which what is not loaded ends; 0 for none
	oldest int64  // the turn of the oldest item that is here
	grew   func() // called once when older items are loaded; nil for nothing
	mark   pointer
	top    held // what the newest frame began with
	whole  bool // the oldest item is loaded
	older  bool // older ones are on their way
	loaded bool
	failed error // of loading
	gone   bool  // its bot was deleted
	// deleting: its bot is being deleted from here.
	deleting bool

	about   map[int64]cells.About
	nodes   map[int64]bool    // items that the transcript holds
	pending []*protocol.Event // events of which the items are on their way, in order
	asking  bool

	compose composer
	first   *firstMessage // of a lead that was made just now

	confines   inturn.Line         // changes of its confinement, one after another
	stepped    lead.Row            // the newest row that was stepped to and is on its way; "" for none
	newest     int64               // the newest turn that is shown
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
	s := &session{bot: name, id: id, tr: cells.New(a.o.Markdown), look: a.o.look(), about: map[int64]cells.About{}, nodes: map[int64]bool{}}
	s.tr.Now, s.tr.Card = a.o.Clock, a.card
	s.tr.Rule = func(script string) (string, bool) { return s.ruleOf(a, script) }
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

// name is the session's title, or its bot's name.
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
			return
		}
		s.kept, s.seen = kept, before
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

// loadedPart is a part of a history as it was read.
type loadedPart struct {
	nodes []protocol.Node
	items map[int64]json.RawMessage
	next  *int64
	turns []protocol.Turn             // those of the nodes; of the newest part, all up to the newest
	ends  map[int64]*protocol.Outcome // of turns that came to no good end
}

// maxEnds bounds how many turns' ends are asked for with a part.
const maxEnds = 16

// load reads the newest part of the history, and what was written for the bot: before
// there was one too, under the key of a start screen, "" for none.
func (s *session) load(a *App, start string) {
	a.out.Load(&s.compose.Box, start)
	do(a, func(ctx context.Context) (*loadedPart, error) { return readPart(ctx, a, s.bot, 0, firstNodes) },
		func(p *loadedPart, err error) {
			if !a.shows(s) {
				return
			}
			s.loaded = true
			if err != nil {
				s.failed = err
				a.notes.fail(err)
				return
			}
			s.fill(s.tr, p)
			a.tellUsed(s.tr, usedIn(p))
			a.world.Line(s.bot, p.turns)
			s.began(p)
			s.waits(a)
			s.step(a)
			a.waited(s)
			a.sessionLoaded(s)
			s.loadOlder(a)
		})
}

// began notes where the part before the one that was loaded ends.
func (s *session) began(p *loadedPart) {
	s.whole = p.next == nil || len(p.nodes) == 0
	s.next = 0
	if p.next != nil {
		s.next = *p.next
	}
}

// readPart reads up to so many items that end at a node, 0 for the head, and the turns
// that they are of.
func readPart(ctx context.Context, a *App, bot string, from int64, most int) (*loadedPart, error) {
	ask := &protocol.HistoryNodes{Bot: bot, Limit: protocol.Set(int64(most))}
	if from > 0 {
		ask.From = protocol.Set(from)
	}
	var page protocol.NodePage
	if err := a.client().Do(ctx, protocol.OpHistoryNodes, ask, &page); err != nil {
		if errors.Is(err, protocol.BotNotFound) || from == 0 {
			return nil, err
		}
		return &loadedPart{}, nil
	}
	p := &loadedPart{nodes: page.Nodes, next: page.NextFrom}
	slices.Reverse(p.nodes)
	ids := make([]int64, 0, len(p.nodes))
	first, last := int64(1<<52), int64(0)
	for _, n := range p.nodes {
		ids = append(ids, n.Node)
		first, last = min(first, n.Turn), max(last, n.Turn)
	}
	var err error
	if p.items, err = readItems(ctx, a, bot, ids); err != nil {
		return nil, err
	}
	for t, err := range a.client().Turns(ctx, bot, first-1) {
		if err != nil {
			return nil, err
		}
		if from > 0 && t.Turn > last {
			break
		}
		p.turns = append(p.turns, *t)
	}
	return p, p.readEnds(ctx, a, bot)
}

// readEnds asks how the newest turns ended that failed or were interrupted.
func (p *loadedPart) readEnds(ctx context.Context, a *App, bot string) error {
	p.ends = map[int64]*protocol.Outcome{}
	for i := len(p.turns) - 1; i >= 0 && len(p.ends) < maxEnds; i-- {
		t := p.turns[i]
		if t.Status != protocol.StatusFailed && t.Status != protocol.StatusInterrupted {
			continue
		}
		end, err := a.client().Result(ctx, bot, t.Turn)
		if errors.Is(err, protocol.TurnResultPruned) {
			continue
		}
		if err != nil {
			return err
		}
		p.ends[t.Turn] = end
	}
	return nil
}

// readItems reads items by their nodes. What is too large for a line is left out.
func readItems(ctx context.Context, a *App, bot string, ids []int64) (map[int64]json.RawMessage, error) {
	items := map[int64]json.RawMessage{}
	for len(ids) > 0 {
		var page protocol.ItemPage
		ask := &protocol.HistoryItems{Bot: bot, Nodes: ids[:min(len(ids), loadNodes)]}
		if err := a.client().Do(ctx, protocol.OpHistoryItems, ask, &page); err != nil {
			return nil, err
		}
		if len(page.Items) == 0 {
			return items, nil
		}
		for _, it := range page.Items {
			items[it.Node] = it.Item
		}
		ids = ids[len(page.Items):]
	}
	return items, nil
}

// hears reports whether a turn's end is among the events that are still to be shown.
func (s *session) hears(turn int64) bool {
	return slices.ContainsFunc(s.pending, func(e *protocol.Event) bool { return e.Kind == protocol.KindTurnFinished && e.Turn == turn })
}

// said is what a pointer to a text holds; "" for nil.
func said[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

// event takes an event of the bot on screen. Those that come while items are on their
// way wait for them, so that all is shown in order.
func (s *session) event(a *App, e *protocol.Event) {
	if s.gone || !e.Durable && !e.IsDelta() && e.Kind != protocol.KindRetry {
		return
	}
	s.pending = append(s.pending, e)
	s.step(a)
}

// step shows what can be shown, and asks for the items that are missing.
func (s *session) step(a *App) {
	if s.asking || !s.loaded {
		return
	}
	var missing []int64
	for _, e := range s.pending {
		if n := nodeOf(e); n != 0 && !s.nodes[n] && !slices.Contains(missing, n) && len(missing) < loadNodes {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		s.show(a, nil)
		return
	}
	s.asking = true
	do(a, func(ctx context.Context) (map[int64]json.RawMessage, error) { return readItems(ctx, a, s.bot, missing) },
		func(items map[int64]json.RawMessage, err error) {
			s.asking = false
			if !a.shows(s) {
				return
			}
			if err != nil {
				if a.lost == nil {
					a.notes.fail(err)
				}
				items = map[int64]json.RawMessage{}
				for _, n := range missing {
					items[n] = nil
				}
			}
			s.show(a, items)
			s.step(a)
		})
}

// nodeOf is the item that an event is of; 0 for none.
func nodeOf(e *protocol.Event) int64 {
	switch e.Kind {
	case protocol.KindAccepted, protocol.KindMessage, protocol.KindToolCompleted, protocol.KindSteered:
		var d struct {
			Node int64 `json:"node"`
		}
		if json.Unmarshal(e.Data, &d) == nil {
			return d.Node
		}
	}
	return 0
}

// show takes the pending events in order, up to the first whose item is not here.
func (s *session) show(a *App, items map[int64]json.RawMessage) {
	for len(s.pending) > 0 {
		e := s.pending[0]
		n := nodeOf(e)
		item, here := items[n]
		if n != 0 && !here && !s.nodes[n] {
			return
		}
		s.pending = s.pending[1:]
		if n != 0 && s.nodes[n] {
			item = nil // it was loaded with the history
		}
		s.take(a, e, n, item)
	}
	s.pending = nil
}

// take shows one event.
func (s *session) take(a *App, e *protocol.Event, node int64, item json.RawMessage) {
	switch e.Kind {
	case protocol.KindTextDelta, protocol.KindThinkingDelta:
		s.tr.Delta(e.Turn, e.Kind == protocol.KindThinkingDelta, e.Text())
		return
	case protocol.KindRetry:
		s.tr.Void()
		return
	case protocol.KindAccepted:
		var d protocol.Accepted
		if e.Decode(&d) == nil {
			about := cells.About{Origin: d.Origin}
			if d.From != nil {
				about.From = d.From.Bot
			}
			s.about[e.Turn] = about
		}
		s.newest = max(s.newest, e.Turn)
	case protocol.KindTurnFinished:
		s.ended(a, e)
	}
	if item != nil {
		turn := e.Turn
		if e.Kind == protocol.KindSteered {
			var d protocol.Steered
			if e.Decode(&d) == nil {
				turn = d.From
			}
		}
		s.tr.Item(node, e.Turn, item, s.about[turn], e.Kind == protocol.KindSteered)
		a.tellUsed(s.tr, s.used)
	}
	if node != 0 {
		s.nodes[node] = true
	}
	s.tr.Event(e)
	if e.Kind == protocol.KindToolCompleted && item != nil {
		s.exposes(a, e)
	}
}

// exposes tells of protected paths that a call's result says were open to it.
func (s *session) exposes(a *App, e *protocol.Event) {
	var d protocol.ToolCompleted
	if e.Decode(&d) != nil {
		return
	}
	if c := s.tr.Call(d.CallID); c != nil {
		a.exposes(s, c)
	}
}

// ended shows how a turn ended, where that needs a word.
func (s *session) ended(a *App, e *protocol.Event) {
	var d protocol.TurnFinished
	if e.Decode(&d) != nil || d.Status == protocol.StatusSteered || d.Missed() {
		return
	}
	s.tr.Ended(e.Turn, d.Status, said(d.Error), said(d.Detail))
	if s.first != nil && d.Status == protocol.StatusFailed {
		s.first.refused(a, s, said(d.Error), said(d.Detail))
	}
	s.first = nil
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
func (s *session) turnWords() string {
	words := human.Count(len(s.about), "turn", "turns")
	if !s.whole {
		words = "at least " + words
	}
	return words
}

package approver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"agent/client"
	"agent/client/items"
	"agent/protocol"
)

// What the transcript may hold, in tokens and entries (approvals.md 11).
const (
	messageCap    = 2_000
	toolCap       = 1_000
	messageBudget = 10_000
	toolBudget    = 10_000
	maxOthers     = 40 // entries that are not the person's
)

// How far back a history is read for it.
const (
	maxPromptPages  = 16      // of 256 KiB
	maxTurnsLooked  = 256     // for the first that the person began
	maxNameTokens   = 32      // of a tool's name
	maxHistoryBytes = 8 << 20 // of items
)

const kindPerson = "person"

// entry is one thing that was said, called or returned.
type entry struct {
	node    int64 // its place in the history
	sub     int   // among those of one node
	kind    string
	to      string // the bot that the person said it to, when it was another
	text    string
	message bool // counts among messages; else among tools
	whole   bool // it must be shown whole
	cut     bool // and cannot be
	chosen  bool
	shown   string
}

// shownEntry is an entry as the judge reads it. N is its place in the history.
type shownEntry struct {
	N    int64  `json:"n"`
	Kind string `json:"kind"`
	To   string `json:"said_to_agent,omitempty"`
	Text string `json:"text"`
}

func (e *entry) isPerson() bool { return e.kind == kindPerson }

// older reports which of two entries comes first.
func older(x, y *entry) int {
	return cmp.Or(cmp.Compare(x.node, y.node), cmp.Compare(x.sub, y.sub))
}

// transcript puts the chosen entries into the document. toolRoom is what the
// calls of this turn have left of the tools' budget.
func (a *collecting) transcript(d *document, toolRoom int) error {
	said, more, err := a.said()
	if err != nil {
		return err
	}
	if more && !slices.ContainsFunc(said, (*entry).isPerson) {
		return fmt.Errorf("%w: the person's words lie too far back", errTooMuch)
	}
	others, unread, err := a.history()
	if err != nil {
		return err
	}
	all := append(said, others...)
	slices.SortStableFunc(all, older)
	c := picker{a: a, messages: messageBudget, tools: toolRoom}
	if err := c.choose(all); err != nil {
		return err
	}
	d.Transcript = []shownEntry{}
	for _, e := range all {
		if e.chosen {
			d.Transcript = append(d.Transcript, shownEntry{N: e.node, Kind: e.kind, To: visible(e.to), Text: e.shown})
		}
	}
	d.LeftOut = leftOut(len(all)-len(d.Transcript), more || unread)
	return nil
}

// leftOut is the line that says what is missing, empty when nothing is.
func leftOut(entries int, unread bool) string {
	switch {
	case unread:
		return fmt.Sprintf("%d entries, and older ones that were not read, are left out for want of room", entries)
	case entries > 0:
		return fmt.Sprintf("%d entries are left out for want of room", entries)
	}
	return ""
}

// said is everybody's prompts to the bot, in no order, with what the person said
// to those who wrote some of them. more says that older ones were not read.
func (a *collecting) said() (list []*entry, more bool, err error) {
	own := a.prompts.Prompts
	if len(own) > maxOwnSteers {
		return nil, false, fmt.Errorf("%w: %d prompts in one turn", errTooMuch, len(own))
	}
	s := &speech{a: a, nodes: map[int64]bool{}, following: &following{a: a, seen: map[int64]bool{}}}
	for i := len(own) - 1; i >= 0; i-- { // the newest first: it is what counts
		if err := s.add(&own[i], true); err != nil {
			return nil, false, err
		}
		s.list[s.last].whole = i > 0 // a steer
	}
	if more, err = s.earlier(); err != nil {
		return nil, false, err
	}
	if more {
		err = s.first()
	}
	return s.list, more, err
}

// speech is the prompts that were said to a bot, while they are collected.
type speech struct {
	a         *collecting
	list      []*entry
	last      int            // the place of the prompt that was added last
	nodes     map[int64]bool // of the prompts in the list
	person    int            // tokens of the person's entries in it
	following *following     // nil once earlier senders are too far away
}

// add takes in a prompt and what the person said to its sender.
func (s *speech) add(p *protocol.Prompt, running bool) error {
	if p.Node != 0 && s.nodes[p.Node] {
		return nil
	}
	e, err := s.a.prompt(p, running)
	if err != nil {
		return err
	}
	s.nodes[p.Node] = true
	s.last = len(s.list)
	s.put(e)
	if p.From == nil || s.following == nil {
		return nil
	}
	above, err := s.following.said(p.From, 1)
	if !running && errors.Is(err, errTooMuch) {
		s.following = nil // what was said to others long ago need not be shown
		return nil
	}
	for i, e := range above {
		e.node, e.sub = p.Node, i-len(above)
		s.put(e)
	}
	return err
}

func (s *speech) put(e *entry) {
	s.list = append(s.list, e)
	if e.isPerson() {
		s.person += min(tokens(e.text), messageCap)
	}
}

// earlier adds the prompts of earlier turns, newest first, page by page until
// the person's own fill the budget. more says that there are others.
func (s *speech) earlier() (more bool, err error) {
	page := s.a.prompts
	for pages := 1; ; pages++ {
		before := len(s.nodes)
		for i := range page.Earlier {
			p := &page.Earlier[i]
			if p.Truncated && page.More && pages < maxPromptPages {
				continue // the next page has it whole
			}
			if err := s.add(p, false); err != nil {
				return false, err
			}
		}
		n := len(page.Earlier)
		if !page.More || n == 0 || s.person >= messageBudget || pages == maxPromptPages || pages > 1 && len(s.nodes) == before {
			return page.More, nil
		}
		next, err := s.a.client.Prompts(s.a.ctx, s.a.r.bot, page.Earlier[n-1].Turn, protocol.MaxPromptsBytes)
		if isGone(err) { // inherited from another bot
			return true, nil
		}
		if err != nil {
			return false, err
		}
		for i := range next.Prompts {
			if err := s.add(&next.Prompts[i], false); err != nil {
				return false, err
			}
		}
		page = next
	}
}

// first adds the first prompt that the person wrote to the bot, where that lies
// further back than was read.
func (s *speech) first() error {
	looked := 0
	for turn, err := range s.a.client.Turns(s.a.ctx, s.a.r.bot, 0) {
		if err != nil {
			return err
		}
		if looked++; looked > maxTurnsLooked {
			return nil
		}
		if turn.From != nil || turn.Origin != "" {
			continue
		}
		p, err := s.a.client.Prompts(s.a.ctx, s.a.r.bot, turn.Turn, 1)
		if err != nil && !isGone(err) {
			return err
		}
		if err == nil && len(p.Prompts) > 0 && p.Prompts[0].Node != 0 {
			return s.add(&p.Prompts[0], false)
		}
	}
	return nil
}

// prompt is a prompt's entry. Its kind comes from the daemon's records.
func (a *collecting) prompt(p *protocol.Prompt, running bool) (*entry, error) {
	e := &entry{node: p.Node, message: true, kind: kindOf(p)}
	text, err := a.whole(a.r.bot, p)
	switch {
	case err == nil:
		e.text = text
	case running || !errors.Is(err, errTooMuch):
		return nil, err
	default: // a part of it might end within a secret
		e.text, e.cut = omission(int(p.Bytes)), true
	}
	return e, nil
}

func kindOf(p *protocol.Prompt) string {
	switch {
	case p.From != nil:
		return visible("agent " + p.From.Bot)
	case p.Origin != "":
		return visible("event " + p.Origin)
	}
	return kindPerson
}

// history is what the bot said, called and got back, as much as can be chosen at
// all: it is read backwards. Of prompts it takes nothing: who wrote one is not in
// the history. unread says that there is more.
func (a *collecting) history() (list []*entry, unread bool, err error) {
	h := past{a: a, unnamed: map[string][]*entry{}, ofTurn: map[callKey]bool{}}
	for i := range a.r.calls {
		h.ofTurn[callKey{a.r.calls[i].Node, a.r.calls[i].CallID}] = true
	}
	for i := range a.prompts.Calls {
		h.ofTurn[callKey{a.prompts.Calls[i].Node, a.prompts.Calls[i].CallID}] = true
	}
	size := 0
	for item, err := range a.client.History(a.ctx, a.r.bot, client.HistoryOptions{}) {
		if err != nil {
			return nil, false, err
		}
		if size += len(item.Item); len(h.list) >= maxOthers || size > maxHistoryBytes {
			return h.list, true, nil
		}
		h.add(item)
	}
	return h.list, h.unread, nil
}

type callKey struct {
	node int64
	id   string
}

// past is a history while it is read, newest first.
type past struct {
	a       *collecting
	list    []*entry
	unnamed map[string][]*entry // results by their calls, which come later
	ofTurn  map[callKey]bool    // calls that the document has elsewhere
	unread  bool
}

func (h *past) add(item *protocol.Item) {
	if item.Error != "" {
		h.unread = true
		return
	}
	for i, p := range items.Parts(item.Item) {
		e := &entry{node: item.Node, sub: i + 1, text: p.Text}
		switch {
		case p.Kind == items.Assistant && p.Text != "":
			e.kind, e.message = "assistant", true
		case p.Kind == items.Result:
			e.kind = "tool result"
			h.unnamed[p.CallID] = append(h.unnamed[p.CallID], e)
		case p.Kind == items.Call:
			name := h.a.text(clipped(p.Name, maxNameTokens))
			for _, result := range h.unnamed[p.CallID] {
				result.kind = "tool " + name + " result"
			}
			delete(h.unnamed, p.CallID)
			if h.ofTurn[callKey{item.Node, p.CallID}] {
				continue
			}
			e.kind = "tool " + name + " call"
		default:
			continue
		}
		h.list = append(h.list, e)
	}
}

// picker chooses what of the entries is shown.
type picker struct {
	a               *collecting
	messages, tools int // what is left of the budgets, in tokens
}

// choose marks the entries that are shown: the person's latest and the running
// turn's steers, which must be whole; the first of the person's; then the others
// of the person's, and then the rest, newest first.
func (c *picker) choose(all []*entry) error {
	var person []*entry
	for _, e := range all {
		if e.isPerson() {
			person = append(person, e)
		}
	}
	if len(person) > 0 {
		person[len(person)-1].whole = true
	}
	for _, e := range all {
		if e.whole && !c.take(e, messageBudget) {
			return fmt.Errorf("%w: the latest prompts", errTooMuch)
		}
	}
	if len(person) > 0 && !person[0].chosen {
		c.messages = max(c.messages, messageCap)
		c.take(person[0], messageCap)
	}
	for i := len(person) - 1; i > 0; i-- {
		if !person[i].chosen && !c.take(person[i], messageCap) {
			break
		}
	}
	c.others(all)
	return nil
}

// others chooses among the entries that are not the person's.
func (c *picker) others(all []*entry) {
	left := maxOthers
	messages, tools := true, true
	for i := len(all) - 1; i >= 0 && left > 0; i-- {
		e := all[i]
		switch {
		case e.isPerson() || e.chosen:
			continue
		case e.message:
			messages = messages && c.take(e, messageCap)
		default:
			tools = tools && c.take(e, toolCap)
		}
		if e.chosen {
			left--
		}
	}
}

// take chooses an entry when it fits: of one that must be whole, all.
func (c *picker) take(e *entry, limit int) bool {
	room := &c.tools
	text := ""
	if e.message {
		room, text = &c.messages, c.a.text(e.text)
	} else {
		text = c.a.readable(e.text)
	}
	if e.whole && (e.cut || tokens(text) > limit) {
		return false
	}
	text = clipped(text, limit)
	if tokens(text) > *room {
		return false
	}
	*room -= tokens(text)
	e.chosen, e.shown = true, text
	return true
}

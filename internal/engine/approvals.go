package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/store"
	"agent/protocol"
)

// storedApprovals are the announced calls of a turn found parked at start. Where
// a row cannot be read there are none: such a call fails the turn when it comes
// up.
func (e *Engine) storedApprovals(c *store.Conn, bot int64, name string, turn int64) (list []*announced) {
	calls, err := openApprovals(c, turn)
	if err != nil {
		e.cfg.Log.Error("the announced calls of a turn cannot be read", "turn", turn, "error", err)
		return nil
	}
	for _, one := range calls {
		list = append(list, &announced{asked: one.of(turn), bot: bot, name: name, tool: one.call.Name, seq: one.call.Seq, row: one.row})
	}
	return list
}

// restoreApprovals enters announced calls in the order of their announcement.
func (e *Engine) restoreApprovals(list []*announced) {
	slices.SortStableFunc(list, func(a, b *announced) int { return cmp.Compare(a.row.Cursor, b.row.Cursor) })
	for _, a := range list {
		e.enter(a)
	}
}

// restoreVerdict has a turn found parked on a verdict go on, or wait again. A
// deadline that passed while no daemon ran denies the call before anything runs.
func (e *Engine) restoreVerdict(p *parkedTurn) error {
	of := asked{turn: p.turn, callID: p.callID}
	a := e.verdicts.find(of)
	if a == nil {
		e.wake(p)
		return nil
	}
	row, due := e.verdicts.now(a)
	if row.standing() != undecided {
		e.wake(p)
		return nil
	}
	if !due.IsZero() && !time.Now().Before(due) {
		if err := e.expireTurn(p.bot, of, true); err != nil {
			return err
		}
	}
	e.parkOn(p.turn, p.callID, true)
	return nil
}

// stats are the tags served now, sorted, and the number of unanswered gates.
func (v *verdicts) stats() (tags []string, open int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, calls := range v.turns {
		for _, a := range calls {
			if !a.late() {
				open += int64(len(a.row.open()))
			}
		}
	}
	return append([]string{}, sortedKeys(v.tags.byTag)...), open
}

// late reports that a deadline of the call has passed, so that no verdict is
// wanted any more. verdicts.mu is held.
func (a *announced) late() bool {
	at := a.nearest()
	return !at.IsZero() && !time.Now().Before(at)
}

// shownCall is a call as it is listed or pushed.
type shownCall struct {
	*announced
	order int64
	row   *approvalRow
	open  []string
}

// waiting are the calls that wait for a verdict and that a filter lets through,
// in the order of their announcement. v.mu is held.
func (v *verdicts) waiting(bot, tag string, after, through int64) (list []shownCall) {
	for _, calls := range v.turns {
		for _, a := range calls {
			open := a.row.open()
			if len(open) == 0 || a.late() || bot != "" && a.name != bot || tag != "" && !contains(open, tag) || a.order <= after || a.order > through {
				continue
			}
			list = append(list, shownCall{a, a.order, a.row, open})
		}
	}
	slices.SortFunc(list, func(a, b shownCall) int { return cmp.Compare(a.order, b.order) })
	return list
}

func badApprover() *protocol.Error {
	return protocol.Fail(protocol.InvalidApprover, fmt.Sprintf("a tag is 1 to %d bytes of letters, digits, - _ and .", protocol.MaxName))
}

func approvalPageLimit(limit protocol.Opt[int64], after int64) (int, *protocol.Error) {
	n, ok := protocol.PageLimit(limit, protocol.DefaultPage, protocol.MaxPage)
	if !ok || after < 0 {
		return 0, protocol.Fail(protocol.InvalidApprovalPage, fmt.Sprintf("limit is 1 to %d, after 0 or above", protocol.MaxPage))
	}
	return n, nil
}

// Approvals is a page of the calls that wait for verdicts.
func (e *Engine) Approvals(ctx context.Context, r *protocol.ApprovalsRequest) (*protocol.ApprovalPage, *protocol.Error) {
	limit, err := approvalPageLimit(r.Limit, r.After)
	if err != nil {
		return nil, err
	}
	if r.Tag != "" && !protocol.ValidName(r.Tag) {
		return nil, badApprover()
	}
	if r.Bot != "" {
		if _, err := e.Bot(ctx, r.Bot); err != nil {
			return nil, err
		}
	}
	v := &e.verdicts
	v.mu.Lock()
	calls := v.waiting(r.Bot, r.Tag, r.After, r.Through.Or(protocol.MaxInteger))
	v.mu.Unlock()
	page, next, err := e.approvalPage(ctx, calls, limit)
	if err != nil {
		return nil, err
	}
	return &protocol.ApprovalPage{Approvals: page, NextAfter: next}, nil
}

// ServeApprovals makes a session the one server of a tag and gives it the calls
// that wait. queued is to be called once the answer is queued: the lease's period
// begins then.
func (e *Engine) ServeApprovals(ctx context.Context, srv Server, r *protocol.ServeApprovals) (ans *protocol.ApprovalsServing, queued func(), err *protocol.Error) {
	if !protocol.ValidName(r.Tag) {
		return nil, nil, badApprover()
	}
	if r.LeaseMS < protocol.MinLeaseMS || r.LeaseMS > protocol.MaxLeaseMS {
		return nil, nil, protocol.Fail(protocol.InvalidLease, fmt.Sprintf("lease_ms is %d to %d", protocol.MinLeaseMS, protocol.MaxLeaseMS))
	}
	limit, err := approvalPageLimit(r.Limit, 0)
	if err != nil {
		return nil, nil, err
	}
	v := &e.verdicts
	v.mu.Lock()
	l, err := v.tags.serve(r.Tag, srv, time.Duration(r.LeaseMS)*time.Millisecond)
	if err != nil {
		v.mu.Unlock()
		return nil, nil, err
	}
	l.through = v.newest
	calls := v.waiting("", r.Tag, 0, l.through)
	v.mu.Unlock()
	page, next, err := e.approvalPage(ctx, calls, limit)
	if err != nil {
		v.mu.Lock()
		v.tags.free(l)
		v.mu.Unlock()
		return nil, nil, err
	}
	queued = func() {
		v.mu.Lock()
		l.extend()
		v.mu.Unlock()
	}
	return &protocol.ApprovalsServing{Tag: l.tag, Lease: l.n, LeaseMS: r.LeaseMS, Approvals: page, NextAfter: next, Through: l.through}, queued, nil
}

// RenewApprovals begins a new period of a lease.
func (e *Engine) RenewApprovals(srv Server, r *protocol.RenewApprovals) (*protocol.Lease, *protocol.Error) {
	if !protocol.ValidName(r.Tag) {
		return nil, badApprover()
	}
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	l, err := v.tags.renew(r.Tag, srv, r.Lease)
	if err != nil {
		return nil, err
	}
	return &protocol.Lease{Tag: l.tag, Lease: l.n, LeaseMS: l.period.Milliseconds()}, nil
}

// approvalPage is the entries of the first of some calls, at most limit and 256
// KiB, and where the next page begins.
func (e *Engine) approvalPage(ctx context.Context, calls []shownCall, limit int) ([]protocol.Approval, *int64, *protocol.Error) {
	entries := []protocol.Approval{}
	var next *int64
	err := e.read(ctx, "approvals", func(c *store.Conn) error {
		size, last := 0, int64(0)
		for i := range calls {
			entry, ok, err := e.approval(c, &calls[i])
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			line, _ := protocol.Append(nil, entry)
			if size += len(line); len(entries) == limit || size > protocol.MaxApprovalPage && len(entries) > 0 {
				next = &last
				return nil
			}
			entries, last = append(entries, entry), calls[i].order
		}
		return nil
	})
	if err != nil {
		return nil, nil, readError(err)
	}
	return entries, next, nil
}

// approval is the entry of a call; ok is false when its bot is gone.
func (e *Engine) approval(c *store.Conn, s *shownCall) (entry protocol.Approval, ok bool, err error) {
	bot, ok, err := store.BotByID(c, s.bot)
	if err != nil || !ok {
		return entry, false, err
	}
	item, ok, err := store.ItemOf(c, nil, s.row.Node)
	if err != nil || !ok {
		return entry, false, err
	}
	d, err := e.describe(bot.Family, s.row.Node, item)
	if err != nil {
		return entry, false, err
	}
	counts, err := countsIn(&bot, s.turn)
	if err != nil {
		return entry, false, err
	}
	row := s.row
	entry = protocol.Approval{
		Bot: bot.Name, BotID: bot.ID, Turn: s.turn, CallID: s.callID, Request: row.Request, Name: s.tool, Node: row.Node, Gates: s.open,
		AnnouncedMS: row.AnnouncedMS, ExpiresMS: ptr(row.expiresMS()), Cause: row.Cause, Escalated: row.Escalated,
		Denials: map[string]protocol.Denials{}, Justification: row.Justification, Failed: row.Failed,
		Arguments: json.RawMessage("{}"), ArgumentsCut: []string{},
	}
	for _, tag := range s.open {
		entry.Denials[tag] = counts.of(tag)
	}
	if s.ask != nil { // no node has the rest of a step, so it is shown whole
		entry.Step, entry.Arguments = s.step, s.ask.args
		return entry, true, nil
	}
	for i := range d.Calls {
		if d.Calls[i].ID == s.callID {
			entry.Arguments, entry.ArgumentsCut, entry.ArgumentsOmitted = previewed(d.Calls[i].Arguments)
		}
	}
	// What is left out of these lists is no less a part of the call.
	var left int
	entry.Target, left = fitting(row.Target, func(path string) int { return len(path) })
	entry.ArgumentsOmitted += int64(left)
	entry.Rules, left = fitting(row.Rules, func(r protocol.RuleMatch) int {
		return len(r.Justification) + len(strings.Join(r.Prefix, "   "))
	})
	entry.ArgumentsOmitted += int64(left)
	return entry, true, nil
}

// fitting are the first of a list that there is room for, and how many are left
// out. size is an entry's bytes.
func fitting[T any](list []T, size func(T) int) (fit []T, left int) {
	room := shownMembers
	for i, one := range list {
		if room -= size(one) + 8; room < 0 {
			return list[:i], len(list) - i
		}
	}
	return list, 0
}

// How much of a call's arguments an entry shows: a text's characters, and the
// bytes of all members together.
const (
	shownText    = 2048
	shownMembers = 48 << 10
)

// previewed is arguments as an entry shows them: texts cut, their keys named, and
// members that there is no room for counted. What cannot be taken apart counts as
// left out.
func previewed(args json.RawMessage) (shown json.RawMessage, cut []string, omitted int64) {
	cut = []string{}
	d := jsontext.NewDecoder(bytes.NewReader(args), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return json.RawMessage("{}"), cut, 1
	}
	o, room := newObject(), shownMembers
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return o.done(), cut, omitted + 1
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return o.done(), cut, omitted + 1
		}
		part, was := json.RawMessage(slices.Clone(value)), false
		if value.Kind() == '"' {
			if text, uerr := jsontext.AppendUnquote(nil, value); uerr == nil && utf8.RuneCount(text) > shownText {
				less, _ := cutCharacters(string(text), shownText)
				quoted, _ := jsontext.AppendQuote(nil, less)
				part, was = quoted, true
			}
		}
		if room -= len(part) + len(key) + 4; room < 0 {
			omitted++
			continue
		}
		if was {
			cut = append(cut, key)
		}
		o.member(key, part)
	}
	return o.done(), cut, omitted
}

// pushSoon has what a commit announced pushed to who serves its tags, if anybody
// does.
func (e *Engine) pushSoon(turn, cursor int64) {
	v := &e.verdicts
	v.mu.Lock()
	served := len(v.tags.byTag) > 0
	v.mu.Unlock()
	if served {
		go e.pushRound(turn, cursor)
	}
}

// pushRound pushes the calls that one event announced, to the holder of each of
// their tags. A holder whose calls cannot be read loses its tag: it finds them
// listed when it serves the tag again.
func (e *Engine) pushRound(turn, cursor int64) {
	v := &e.verdicts
	v.mu.Lock()
	byTag := map[string][]shownCall{}
	for _, a := range v.turns[turn] {
		if a.row.Cursor != cursor {
			continue
		}
		open := a.row.open()
		for _, tag := range open {
			if l := v.tags.due(tag); l != nil && a.order > l.through {
				byTag[tag] = append(byTag[tag], shownCall{a, a.order, a.row, open})
			}
		}
	}
	v.mu.Unlock()
	for _, tag := range sortedKeys(byTag) {
		calls := byTag[tag]
		var entries []protocol.Approval
		err := e.read(context.Background(), "approvals", func(c *store.Conn) error {
			entries = entries[:0]
			for i := range calls {
				entry, ok, err := e.approval(c, &calls[i])
				if err != nil {
					return err
				}
				if ok {
					entry.Bot, entry.Turn = "", 0
					entries = append(entries, entry)
				}
			}
			return nil
		})
		if err != nil {
			e.cfg.Log.Error("calls that wait cannot be read for who serves their tag", "turn", turn, "error", err)
		}
		e.pushTo(tag, calls, entries, cursor, err == nil)
	}
}

// pushTo pushes entries in numbered parts under the lease that the tag has now,
// unless its holder found them listed.
func (e *Engine) pushTo(tag string, calls []shownCall, entries []protocol.Approval, cursor int64, whole bool) {
	v := &e.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.tags.due(tag)
	if l == nil || calls[0].order <= l.through {
		return
	}
	if !whole {
		v.tags.lose(l)
		return
	}
	parts := partsOf(entries)
	for i, part := range parts {
		line, _ := protocol.AppendLive(nil, protocol.KindApprovalRequested, protocol.ApprovalPush{
			Bot: calls[0].name, Turn: calls[0].turn, Cursor: cursor, Tag: tag, Lease: l.n,
			Data: protocol.ApprovalRound{Part: int64(i + 1), Parts: int64(len(parts)), Calls: part},
		})
		l.server.Push(line, l.stands)
	}
}

// partsOf are entries in parts of at most 256 KiB.
func partsOf(entries []protocol.Approval) (parts [][]protocol.Approval) {
	size := 0
	for _, entry := range entries {
		line, _ := protocol.Append(nil, entry)
		if size += len(line); len(parts) == 0 || size > protocol.MaxApprovalPage {
			parts, size = append(parts, nil), len(line)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], entry)
	}
	return parts
}

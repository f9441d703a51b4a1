package engine

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// handedOver reports whether a served call had been handed to anyone, so that
// it may have had effects.
func handedOver(call *store.ToolCall) bool {
	if call.Served == nil {
		return false
	}
	row, err := servedRowOf(call)
	return err != nil || row.Delivered
}

// stats are the tags served now, sorted, and the number of calls that wait.
func (s *served) stats() ([]string, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, sortedKeys(s.tags.byTag)...), int64(len(s.calls))
}

// waiting are the calls a filter lets through, in the order of their
// announcement. s.mu is held.
func (s *served) waiting(bot, tag string, after, through int64) (list []*servedCall) {
	for _, sc := range s.calls {
		if (bot == "" || sc.name == bot) && (tag == "" || sc.tag == tag) && sc.cursor > after && sc.cursor <= through {
			list = append(list, sc)
		}
	}
	slices.SortFunc(list, func(a, b *servedCall) int { return int(a.cursor - b.cursor) })
	return list
}

func badTag() *protocol.Error {
	return protocol.Fail(protocol.InvalidTag, fmt.Sprintf("a tag is 1 to %d bytes of letters, digits, - _ and .", protocol.MaxName))
}

func callPageLimit(limit protocol.Opt[int64], after int64) (int, *protocol.Error) {
	n, ok := protocol.PageLimit(limit, protocol.DefaultPage, protocol.MaxPage)
	if !ok || after < 0 {
		return 0, protocol.Fail(protocol.InvalidCallPage, fmt.Sprintf("limit is 1 to %d, after 0 or above", protocol.MaxPage))
	}
	return n, nil
}

// ServeTools makes a session the one server of a tag and gives it the calls
// that wait. queued is to be called once the answer is queued: the lease's
// period begins then.
func (e *Engine) ServeTools(ctx context.Context, srv Server, r *protocol.ServeTools) (ans *protocol.ToolsServing, queued func(), err *protocol.Error) {
	if !protocol.ValidName(r.Tag) {
		return nil, nil, badTag()
	}
	if r.LeaseMS < protocol.MinLeaseMS || r.LeaseMS > protocol.MaxLeaseMS {
		return nil, nil, protocol.Fail(protocol.InvalidLease, fmt.Sprintf("lease_ms is %d to %d", protocol.MinLeaseMS, protocol.MaxLeaseMS))
	}
	limit, err := callPageLimit(r.Limit, 0)
	if err != nil {
		return nil, nil, err
	}
	s := &e.served
	s.mu.Lock()
	l, err := s.tags.serve(r.Tag, srv, time.Duration(r.LeaseMS)*time.Millisecond)
	if err != nil {
		s.mu.Unlock()
		return nil, nil, err
	}
	l.through = s.newest
	calls := s.waiting("", r.Tag, 0, l.through)
	s.mu.Unlock()
	page, next, err := e.callPage(ctx, srv, calls, limit)
	if err != nil {
		s.mu.Lock()
		s.tags.free(l)
		s.mu.Unlock()
		return nil, nil, err
	}
	queued = func() {
		s.mu.Lock()
		l.extend()
		s.mu.Unlock()
	}
	return &protocol.ToolsServing{Tag: l.tag, Lease: l.n, LeaseMS: r.LeaseMS, Calls: page, NextAfter: next, Through: l.through}, queued, nil
}

// RenewTools begins a new period of a lease.
func (e *Engine) RenewTools(srv Server, r *protocol.RenewTools) (*protocol.Lease, *protocol.Error) {
	if !protocol.ValidName(r.Tag) {
		return nil, badTag()
	}
	s := &e.served
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.tags.renew(r.Tag, srv, r.Lease)
	if err != nil {
		return nil, err
	}
	return &protocol.Lease{Tag: l.tag, Lease: l.n, LeaseMS: l.period.Milliseconds()}, nil
}

// Unserve frees every tag of a session that is closed.
func (e *Engine) Unserve(srv Server) {
	e.served.mu.Lock()
	e.served.tags.drop(srv)
	e.served.mu.Unlock()
	e.verdicts.mu.Lock()
	e.verdicts.tags.drop(srv)
	e.verdicts.mu.Unlock()
}

// ToolCalls is a page of the calls that wait for a result. What the session
// that asks serves is handed to it with the page.
func (e *Engine) ToolCalls(ctx context.Context, srv Server, r *protocol.ToolCallsRequest) (*protocol.ToolCallPage, *protocol.Error) {
	limit, err := callPageLimit(r.Limit, r.After)
	if err != nil {
		return nil, err
	}
	if r.Tag != "" && !protocol.ValidName(r.Tag) {
		return nil, badTag()
	}
	if r.Bot != "" {
		if _, err := e.Bot(ctx, r.Bot); err != nil {
			return nil, err
		}
	}
	s := &e.served
	s.mu.Lock()
	calls := s.waiting(r.Bot, r.Tag, r.After, r.Through.Or(protocol.MaxInteger))
	s.mu.Unlock()
	page, next, err := e.callPage(ctx, srv, calls, limit)
	if err != nil {
		return nil, err
	}
	return &protocol.ToolCallPage{Calls: page, NextAfter: next}, nil
}

// callPage is the entries of the first of some calls, at most limit and 256
// KiB, and where the next page begins.
func (e *Engine) callPage(ctx context.Context, srv Server, calls []*servedCall, limit int) ([]protocol.ToolCall, *int64, *protocol.Error) {
	entries := []protocol.ToolCall{}
	var shown []*servedCall
	var next *int64
	err := e.read(ctx, "tool_calls", func(c *store.Conn) error {
		size := 0
		for _, sc := range calls {
			if len(entries) == limit {
				next = &shown[len(shown)-1].cursor
				return nil
			}
			entry, ok, err := e.toolCall(c, sc)
			if err != nil {
				return err
			}
			if !ok {
				continue // answered meanwhile
			}
			line, _ := protocol.Append(nil, entry)
			if size += len(line); size > protocol.MaxApprovalPage && len(entries) > 0 {
				next = &shown[len(shown)-1].cursor
				return nil
			}
			entries, shown = append(entries, entry), append(shown, sc)
		}
		return nil
	})
	if err == nil {
		err = e.handPage(srv, shown, entries)
	}
	if err != nil {
		return nil, nil, readError(err)
	}
	return entries, next, nil
}

// handPage hands to a session what of a page it serves. A parked call goes out
// only behind a commit that marks it.
func (e *Engine) handPage(srv Server, shown []*servedCall, entries []protocol.ToolCall) error {
	s := &e.served
	var mark, handed []*servedCall
	s.mu.Lock()
	for i, sc := range shown {
		entries[i].Delivered = sc.delivered
		l := s.tags.byTag[sc.tag]
		if l == nil || l.server != srv || l.lapsed() || sc.over {
			continue
		}
		if sc.lease != l.n {
			if handed = append(handed, sc); !sc.live && !sc.delivered {
				mark = append(mark, sc)
			}
			sc.hand(l)
		}
		entries[i].Delivered = sc.before
	}
	s.mu.Unlock()
	if len(mark) == 0 {
		return nil
	}
	err := e.store.Do("hand_over", func(tx *store.Tx) error {
		for _, sc := range mark {
			if err := markDelivered(tx, sc); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.mu.Lock()
		for _, sc := range handed {
			sc.delivered, sc.lease = sc.before, 0
		}
		s.mu.Unlock()
	}
	return err
}

func markDelivered(tx *store.Tx, sc *servedCall) error {
	call, ok, err := store.CallByID(tx.Conn(), sc.turn, sc.callID)
	if err != nil || !ok || call.Status != "executing" {
		return err
	}
	row, err := servedRowOf(&call)
	if err != nil {
		return err
	}
	row.Delivered = true
	return setServed(tx, sc.turn, sc.callID, &row)
}

// The arguments of an entry: what they hold at most, and what they take at most
// as a JSON text, so that an entry fits a line.
const (
	maxEntryArguments = 512 << 10
	maxEntryEncoded   = 960 << 10
)

// toolCall is the entry of a call that waits, as it stands in the store; ok is
// false when it waits no more.
func (e *Engine) toolCall(c *store.Conn, sc *servedCall) (entry protocol.ToolCall, ok bool, err error) {
	bot, ok, err := store.BotByID(c, sc.bot)
	if err != nil || !ok {
		return entry, false, err
	}
	turn, ok, err := store.TurnByID(c, sc.turn)
	if err != nil || !ok {
		return entry, false, err
	}
	call, ok, err := store.CallByID(c, sc.turn, sc.callID)
	if err != nil || !ok || call.Status != "executing" {
		return entry, false, err
	}
	row, err := servedRowOf(&call)
	if err != nil {
		return entry, false, err
	}
	item, _, err := store.ItemOf(c, nil, row.Node)
	if err != nil {
		return entry, false, err
	}
	d, err := e.describe(bot.Family, row.Node, item)
	if err != nil {
		return entry, false, err
	}
	verdicts, err := verdictsOf(&call)
	if err != nil {
		return entry, false, err
	}
	entry = protocol.ToolCall{
		Bot: bot.Name, Turn: sc.turn, Tag: row.Tag, CallID: sc.callID, Request: row.Request, Name: call.Name, Node: row.Node,
		Workspace: effective(turn.Workspace, bot.Workspace), BotID: bot.ID, Sandbox: protocol.SandboxFull, WritableRoots: []string{},
		Network: true, Approvals: verdicts, AnnouncedMS: row.AnnouncedMS, ExpiresMS: row.due(e.nowMS()),
	}
	for i := range d.Calls {
		if d.Calls[i].ID == sc.callID {
			entry.Arguments, entry.ArgumentsTruncated = entryArguments(string(d.Calls[i].Arguments))
		}
	}
	return entry, true, nil
}

func entryArguments(text string) (shown string, cut bool) {
	for most := maxEntryArguments; ; most /= 2 {
		shown = cutBytes(text, most)
		if quoted, _ := protocol.Append(nil, shown); len(quoted) <= maxEntryEncoded {
			return shown, len(shown) < len(text)
		}
	}
}

// cutBytes is at most n bytes of s, whole characters.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// ToolResult ends a served call with its server's result. It returns once the
// call's finish is committed; the first result wins.
func (e *Engine) ToolResult(srv Server, r *protocol.ToolResult) (*protocol.ToolAccepted, *protocol.Error) {
	if err := checkToolResult(r); err != nil {
		return nil, err
	}
	l, err := e.served.answering(srv, r.Tag, r.Lease)
	if err != nil {
		return nil, err
	}
	pictures, err := e.resultPictures(r)
	if err != nil {
		e.served.answered(l, false)
		return nil, err
	}
	res := e.servedResult(r)
	res.Pictures = pictures
	failed := e.store.Do("call_finish", func(tx *store.Tx) error {
		bot, err := findBot(tx.Conn(), r.Bot, 0)
		if err != nil {
			return err
		}
		call, err := answeredCall(tx.Conn(), &bot, addressOf(r))
		if err != nil {
			return err
		}
		return e.endServed(tx, &bot, call, res, false)
	})
	e.served.answered(l, failed == nil)
	if failed != nil {
		e.dropPictures(pictures)
		return nil, asError(failed)
	}
	return &protocol.ToolAccepted{Accepted: true}, nil
}

// resultPictures keeps the pictures of a result. A result that is not wanted
// has none looked at.
func (e *Engine) resultPictures(r *protocol.ToolResult) ([]tool.PictureData, *protocol.Error) {
	if len(r.Pictures) == 0 {
		return nil, nil
	}
	err := e.read(e.looks.ctx, "answered_call", func(c *store.Conn) error {
		bot, err := findBot(c, r.Bot, 0)
		if err != nil {
			return err
		}
		_, err = answeredCall(c, &bot, addressOf(r))
		return err
	})
	if err != nil {
		return nil, asError(err)
	}
	return e.takePictures(r.Pictures)
}

func addressOf(r *protocol.ToolResult) address {
	return address{r.Bot, r.Turn, r.CallID, r.Request, r.Tag}
}

func checkToolResult(r *protocol.ToolResult) *protocol.Error {
	output, has := r.Output.Get()
	bad := func(detail string) *protocol.Error { return protocol.Fail(protocol.InvalidToolResult, detail) }
	switch {
	case !protocol.ValidName(r.Tag):
		return badTag()
	case r.CallID == "":
		return protocol.Fail(protocol.InvalidCallID, "call_id is empty")
	case has == (r.Error != nil):
		return bad("a result has either output or error")
	case r.Error != nil && !validErrorCode(r.Error.Code):
		return bad(fmt.Sprintf("an error's code is 1 to %d bytes of a-z, 0-9 and _", protocol.MaxToolErrorCode))
	case len(output) > protocol.MaxToolResult:
		return protocol.Fail(protocol.ToolResultLimit, fmt.Sprintf("the output has %d bytes of at most %d", len(output), protocol.MaxToolResult))
	case r.Error != nil && len(r.Error.Detail) > protocol.MaxToolResult:
		return protocol.Fail(protocol.ToolResultLimit, fmt.Sprintf("the detail has %d bytes of at most %d", len(r.Error.Detail), protocol.MaxToolResult))
	case r.Error != nil && len(r.Pictures) > 0:
		return bad("pictures come with an output, not with an error")
	}
	return checkPictures(r.Pictures)
}

func validErrorCode(code string) bool {
	for i := range len(code) {
		if c := code[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return code != "" && len(code) <= protocol.MaxToolErrorCode
}

// answering begins an answer: under its session's lease, whose clock stands
// meanwhile, or without one where nobody serves the tag.
func (s *served) answering(srv Server, tag string, lease int64) (*lease, *protocol.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease == 0 && s.tags.byTag[tag] == nil {
		return nil, nil
	}
	if lease == 0 {
		return nil, protocol.Fail(s.tags.lost, "a session serves "+tag+"; a result comes under its lease")
	}
	l, err := s.tags.held(tag, srv, lease)
	if err != nil {
		return nil, err
	}
	l.enter()
	return l, nil
}

func (s *served) answered(l *lease, counted bool) {
	if l == nil {
		return
	}
	s.mu.Lock()
	l.leave(counted)
	s.mu.Unlock()
}

// address names a served call as its server does.
type address struct {
	bot     string
	turn    int64
	callID  string
	request int64
	tag     string
}

// answeredCall is the call that a result, or a step, is for, if it still waits.
func answeredCall(c *store.Conn, bot *store.Bot, r address) (*store.ToolCall, error) {
	if bot.RunningTurn != r.turn {
		turn, ok, err := store.TurnByID(c, r.turn)
		if err != nil {
			return nil, err
		}
		if ok && turn.Bot == bot.Name && protocol.Finished(turn.Status) {
			return nil, protocol.Fail(protocol.StaleTurn, fmt.Sprintf("turn %d is over", r.turn))
		}
		return nil, protocol.Fail(protocol.NoPendingCall, fmt.Sprintf("%s has no turn %d under way", bot.Name, r.turn))
	}
	none := protocol.Fail(protocol.NoPendingCall, fmt.Sprintf("turn %d waits for no call %s of %s", r.turn, r.callID, r.tag))
	call, ok, err := store.CallByID(c, r.turn, r.callID)
	if err != nil {
		return nil, err
	}
	if !ok || call.Served == nil {
		return nil, none
	}
	row, err := servedRowOf(&call)
	switch {
	case err != nil:
		return nil, err
	case row.Tag != r.tag || r.request > row.Request:
		return nil, none
	case r.request < row.Request:
		return nil, protocol.Fail(protocol.CallSuperseded, fmt.Sprintf("the call's request is %d", row.Request))
	case call.Status != "executing":
		return nil, protocol.Fail(protocol.CallAlreadyAnswered, "the call has its result")
	}
	return &call, nil
}

// servedResult is a server's result as other tools' are: redacted, and where it
// is long shown by its ends with the whole kept.
func (e *Engine) servedResult(r *protocol.ToolResult) *tool.Result {
	text := r.Output.Or("")
	if r.Error != nil {
		text = r.Error.Detail
	}
	text = string(e.cfg.Redact.Bytes([]byte(text)))
	shown, kept := preview(text, fmt.Sprintf("%d/%s/%s", r.Turn, r.CallID, outputStream))
	res := &tool.Result{Output: shown, External: r.External}
	if r.Error != nil {
		*res = tool.Fail(r.Error.Code, shown)
		res.External = r.External
	}
	if kept {
		res.Artifacts = []tool.Artifact{{Stream: outputStream, Data: []byte(text), Bytes: int64(len(text))}}
		packArtifacts(res)
	}
	return res
}

// outputStream is the artifact that keeps a long output whole.
const outputStream = "output"

// How much of an output is shown (runtime.md 12), in bytes.
const (
	shownWhole = 64 << 10
	shownEnd   = 32 << 10
)

// preview is an output as the model gets it; cut says that it is to be kept
// whole, under reference.
func preview(text, reference string) (shown string, cut bool) {
	if len(text) <= shownWhole {
		return text, false
	}
	head, tail := cutBytes(text, shownEnd), text[len(text)-shownEnd:]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	newline := "\n"
	if head[len(head)-1] == '\n' {
		newline = ""
	}
	return fmt.Sprintf("%s%s[%d bytes omitted here; to read what is kept, call read with artifact %s]\n%s",
		head, newline, len(text)-len(head)-len(tail), reference, tail), true
}

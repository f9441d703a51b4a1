package daemon

import (
	"fmt"
	"time"

	"agent/protocol"
)

// capabilities are what this build announces. An op that is not built yet is
// absent here and answers as an unknown one does (protocol.md 4).
var capabilities = []string{
	"create", "resume", "context_window", "submit", "bot_identity", "delivery", "interrupt", "events", "item",
	"history_nodes", "history_items", "artifact", "follow", "follow_all", "bots", "wait", "wait_any", "stats", "turns", "result",
	"budgets", "prune", "shutdown_grace", "inspect", "client_tools",
	"fork_any_node", "allow", "settings", "delete", "configure", "prompts", "pictures",
}

// handle answers one request. Admissions are only begun; every other request
// waits for the admissions sent before it.
func (s *session) handle(req protocol.Request) {
	e, id := s.d.engine, req.ID
	switch p := req.Params.(type) {
	case *protocol.Create:
		s.admit(id, func(done func(any, *protocol.Error)) {
			e.Create(p, func(b *protocol.Bot, err *protocol.Error) { done(b, err) })
		})
		return
	case *protocol.Submit:
		s.admit(id, func(done func(any, *protocol.Error)) {
			e.Submit(p, func(r *protocol.Submitted, err *protocol.Error) { done(r, err) })
		})
		return
	}
	s.waitAdmitted()
	switch p := req.Params.(type) {
	case *protocol.Follow:
		s.follow(id, p)
	case *protocol.Unfollow:
		s.unfollow(id, p)
	case *protocol.Shutdown:
		s.shutdown(req, p)
	case *protocol.Wait:
		s.wait(id, p)
	case *protocol.ServeTools:
		s.serveTools(id, p)
	case *protocol.Prune:
		s.later(id, func() (any, *protocol.Error) { return some(e.Prune(p)) })
	case *protocol.Delete:
		s.later(id, func() (any, *protocol.Error) { return some(e.Delete(p)) })
	default:
		result, err := s.ask(req)
		if err == errUnbuilt {
			s.refuse(unbuilt(req.Op))
			return
		}
		s.settle(id, result, err)
	}
}

// ask carries out the requests that are answered at once.
func (s *session) ask(req protocol.Request) (any, *protocol.Error) {
	e, ctx := s.d.engine, s.ctx
	switch p := req.Params.(type) {
	case *protocol.Resume:
		name, ok := p.Bot.Get()
		if !ok {
			return nil, errUnbuilt
		}
		return some(e.Bot(ctx, name))
	case *protocol.Inspect:
		return some(e.Bot(ctx, p.Bot))
	case *protocol.Bots:
		limit, ok := protocol.PageLimit(p.Limit, protocol.DefaultPage, protocol.MaxPage)
		if !ok {
			return nil, protocol.Fail(protocol.InvalidBotPage, fmt.Sprintf("limit is 1 to %d", protocol.MaxPage))
		}
		return some(e.Bots(ctx, p.After, limit))
	case *protocol.Turns:
		limit, ok := protocol.PageLimit(p.Limit, protocol.DefaultPage, protocol.MaxPage)
		if !ok || p.After < 0 {
			return nil, protocol.Fail(protocol.InvalidTurnPage, fmt.Sprintf("limit is 1 to %d, after 0 or above", protocol.MaxPage))
		}
		return some(e.Turns(ctx, p.Bot, p.After, limit))
	case *protocol.Result:
		return some(e.Result(ctx, p.Bot, p.Turn))
	case *protocol.Interrupt:
		return some(e.Interrupt(p))
	case *protocol.EventsRequest:
		if p.After < 0 || p.Limit < 1 || p.Limit > protocol.MaxPage {
			return nil, protocol.Fail(protocol.InvalidEventPage, fmt.Sprintf("limit is 1 to %d, after 0 or above", protocol.MaxPage))
		}
		return some(e.Events(ctx, p.Bot, p.After, p.Limit))
	case *protocol.HistoryNodes:
		return some(e.HistoryNodes(ctx, p))
	case *protocol.HistoryItems:
		return some(e.HistoryItems(ctx, p))
	case *protocol.ItemRequest:
		return some(e.Item(ctx, p.Bot, p.Node))
	case *protocol.ArtifactRequest:
		return e.Artifact(ctx, p)
	case *protocol.PromptsRequest:
		return some(e.Prompts(ctx, p))
	case *protocol.Fork:
		return some(e.Fork(ctx, p))
	case *protocol.Configure:
		return some(e.Configure(p))
	case *protocol.RenewTools:
		return some(e.RenewTools(s, p))
	case *protocol.ToolCallsRequest:
		return some(e.ToolCalls(ctx, s, p))
	case *protocol.ToolResult:
		return some(e.ToolResult(s, p))
	case *protocol.StatsRequest:
		return s.d.stats(), nil
	}
	return nil, errUnbuilt
}

// errUnbuilt marks an op of the protocol that this build lacks. It answers as
// an op that nobody knows.
var errUnbuilt = protocol.Fail(protocol.InvalidJSON, "")

// some makes an answer of a typed result.
func some[T any](v T, err *protocol.Error) (any, *protocol.Error) { return v, err }

func unbuilt(op string) *protocol.Error {
	return protocol.Fail(protocol.InvalidJSON, op+" is not an op of this daemon; its ready line lists what it can")
}

// shutdown answers before anything stops.
func (s *session) shutdown(req protocol.Request, p *protocol.Shutdown) {
	grace := p.GraceMS
	if grace < 0 || grace > protocol.MaxWaitMS {
		s.settle(req.ID, nil, protocol.Fail(protocol.InvalidTimeout, fmt.Sprintf("grace_ms is 0 to %d", protocol.MaxWaitMS)))
		return
	}
	s.answer(req.ID, protocol.ShuttingDown{ShuttingDown: true})
	s.d.Shutdown(time.Duration(grace) * time.Millisecond)
}

// emptyText refuses optional texts that were given as "": only null is the same
// as leaving a field out (protocol.md 1).
func emptyText(req *protocol.Request) *protocol.Error {
	given := func(name, value string) bool { return value == "" && req.Has(name) }
	empty := func(code protocol.Code, name string) *protocol.Error {
		return protocol.Fail(code, name+" is empty; leave it out or give it a value")
	}
	switch p := req.Params.(type) {
	case *protocol.Create:
		switch {
		case given("workspace", p.Workspace):
			return empty(protocol.WorkspaceMustExistAndBeAbsolute, "workspace")
		case given("reasoning", p.Reasoning):
			return empty(protocol.InvalidReasoningLevel, "reasoning")
		case given("sandbox", p.Sandbox):
			return empty(protocol.InvalidSandbox, "sandbox")
		case given("approver", p.Approver):
			return empty(protocol.InvalidApprover, "approver")
		case given("created_by", p.CreatedBy):
			return empty(protocol.InvalidCreator, "created_by")
		case given("compaction_model", p.CompactionModel):
			return empty(protocol.InvalidModel, "compaction_model")
		}
	case *protocol.Fork:
		switch {
		case given("workspace", p.Workspace):
			return empty(protocol.WorkspaceMustExistAndBeAbsolute, "workspace")
		case given("sandbox", p.Sandbox):
			return empty(protocol.InvalidSandbox, "sandbox")
		case given("approver", p.Approver):
			return empty(protocol.InvalidApprover, "approver")
		case given("created_by", p.CreatedBy):
			return empty(protocol.InvalidCreator, "created_by")
		}
	case *protocol.Submit:
		switch {
		case given("workspace", p.Workspace):
			return empty(protocol.WorkspaceMustExistAndBeAbsolute, "workspace")
		case given("model", p.Model):
			return empty(protocol.InvalidModel, "model")
		case given("delivery", string(p.Delivery)):
			return empty(protocol.InvalidDelivery, "delivery")
		case given("origin", p.Origin):
			return empty(protocol.InvalidOrigin, "origin")
		}
	}
	return nil
}

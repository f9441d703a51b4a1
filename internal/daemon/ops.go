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
	"fork_any_node", "allow", "settings", "delete", "configure", "prompts", "pictures", "sandbox",
	"provider_models", "closed", "bot_sockets", "pause", "companions", "approvals", "serve_approvals", "steps",
}

// handle answers one request. Admissions are only begun; every other request
// waits for the admissions sent before it.
func (s *session) handle(req protocol.Request) {
	e, id := s.d.engine, req.ID
	if err := s.refusal(req.Op); err != nil {
		s.waitAdmitted()
		s.settle(id, nil, err)
		return
	}
	switch p := req.Params.(type) {
	case *protocol.Create:
		s.admit(id, func(done func(any, *protocol.Error)) {
			e.Create(s.owner, p, func(b *protocol.Bot, err *protocol.Error) {
				if err != nil || b.Sandbox == protocol.SandboxFull {
					done(b, err)
					return
				}
				at := s.d.bots.now()
				go func() { // the store's goroutine waits for no file system
					s.d.bots.settle(at, b)
					done(b, nil)
				}()
			})
		})
		return
	case *protocol.Submit:
		s.admit(id, func(done func(any, *protocol.Error)) {
			e.Submit(s.owner, p, func(r *protocol.Submitted, err *protocol.Error) { done(r, err) })
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
	case *protocol.ServeApprovals:
		s.serveApprovals(id, p)
	case *protocol.Step:
		s.approveStep(id, p)
	case *protocol.Prune:
		s.later(id, func() (any, *protocol.Error) { return some(e.Prune(s.owner, p)) })
	case *protocol.ProviderModelsRequest:
		s.aside(id, func() (any, *protocol.Error) { return some(s.d.providerModels(s.ctx)) })
	case *protocol.PauseRequest:
		s.aside(id, func() (any, *protocol.Error) { return some(e.Pause(p, s.owner.BotID())) })
	case *protocol.Delete:
		s.later(id, func() (any, *protocol.Error) { return some(e.Delete(s.owner, p)) })
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
			return some(e.Lift())
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
		return some(e.Interrupt(s.owner, p))
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
		return s.withSocket(e.Fork(ctx, s.owner, p))
	case *protocol.Configure:
		return s.withSocket(e.Configure(p))
	case *protocol.RenewTools:
		return some(e.RenewTools(s, p))
	case *protocol.ToolCallsRequest:
		return some(e.ToolCalls(ctx, s, p))
	case *protocol.ToolResult:
		return some(e.ToolResult(s, p))
	case *protocol.StepResult:
		return some(e.StepResult(s, p))
	case *protocol.RenewApprovals:
		return some(e.RenewApprovals(s, p))
	case *protocol.ApprovalsRequest:
		return some(e.Approvals(ctx, p))
	case *protocol.Answer:
		return some(e.Answer(s, p))
	case *protocol.StatsRequest:
		return s.d.stats(), nil
	case *protocol.CompanionsRequest:
		if s.d.companions == nil {
			return nil, protocol.Fail(protocol.CompanionsUnavailable, "a daemon on standard input and output runs none; start one on a socket")
		}
		return some(s.d.companions.change(p))
	}
	return nil, errUnbuilt
}

// errUnbuilt marks an op of the protocol that this build lacks. It answers as
// an op that nobody knows.
var errUnbuilt = protocol.Fail(protocol.InvalidJSON, "")

// withSocket answers with a bot whose socket is there, or gone, by then.
func (s *session) withSocket(b *protocol.Bot, err *protocol.Error) (any, *protocol.Error) {
	if err == nil {
		s.d.bots.settle(s.d.bots.now(), b)
	}
	return b, err
}

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

// optionalText is a field that a request may leave out, and the code of a bad
// value.
type optionalText struct {
	name, value string
	code        protocol.Code
}

// optionalTexts are those of a request whose value has a code of its own.
func optionalTexts(params any) []optionalText {
	switch p := params.(type) {
	case *protocol.Create:
		return []optionalText{
			{"workspace", p.Workspace, protocol.WorkspaceMustExistAndBeAbsolute},
			{"reasoning", p.Reasoning, protocol.InvalidReasoningLevel},
			{"sandbox", p.Sandbox, protocol.InvalidSandbox},
			{"approver", p.Approver, protocol.InvalidApprover},
			{"created_by", p.CreatedBy, protocol.InvalidCreator},
			{"compaction_model", p.CompactionModel, protocol.InvalidModel},
		}
	case *protocol.Fork:
		return []optionalText{
			{"workspace", p.Workspace, protocol.WorkspaceMustExistAndBeAbsolute},
			{"sandbox", p.Sandbox, protocol.InvalidSandbox},
			{"approver", p.Approver, protocol.InvalidApprover},
			{"created_by", p.CreatedBy, protocol.InvalidCreator},
		}
	case *protocol.Submit:
		return []optionalText{
			{"workspace", p.Workspace, protocol.WorkspaceMustExistAndBeAbsolute},
			{"model", p.Model, protocol.InvalidModel},
			{"delivery", string(p.Delivery), protocol.InvalidDelivery},
			{"origin", p.Origin, protocol.InvalidOrigin},
		}
	case *protocol.PauseRequest:
		return []optionalText{{"by", p.By, protocol.InvalidBy}}
	case *protocol.Answer:
		return []optionalText{{"tag", p.Tag, protocol.InvalidApprover}, {"by", p.By, protocol.InvalidBy}, {"step", p.Step, protocol.InvalidName}}
	}
	return nil
}

// emptyText refuses optional texts that were given as "": only null is the same
// as leaving a field out (protocol.md 1).
func emptyText(req *protocol.Request) *protocol.Error {
	for _, text := range optionalTexts(req.Params) {
		if text.value == "" && req.Has(text.name) {
			return protocol.Fail(text.code, text.name+" is empty; leave it out or give it a value")
		}
	}
	return nil
}

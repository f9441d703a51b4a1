package protocol

import (
	"maps"
	"slices"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The operations (section 6).
const (
	OpCreate         = "create"
	OpFork           = "fork"
	OpResume         = "resume"
	OpInspect        = "inspect"
	OpBots           = "bots"
	OpConfigure      = "configure"
	OpDelete         = "delete"
	OpPrune          = "prune"
	OpSubmit         = "submit"
	OpInterrupt      = "interrupt"
	OpTurns          = "turns"
	OpResult         = "result"
	OpWait           = "wait"
	OpEvents         = "events"
	OpFollow         = "follow"
	OpUnfollow       = "unfollow"
	OpHistoryNodes   = "history_nodes"
	OpHistoryItems   = "history_items"
	OpItem           = "item"
	OpPrompts        = "prompts"
	OpArtifact       = "artifact"
	OpApprovals      = "approvals"
	OpAnswer         = "answer"
	OpServeApprovals = "serve_approvals"
	OpRenewApprovals = "renew_approvals"
	OpToolCalls      = "tool_calls"
	OpServeTools     = "serve_tools"
	OpRenewTools     = "renew_tools"
	OpToolResult     = "tool_result"
	OpApproveStep    = "approve_step"
	OpStepResult     = "step_result"
	OpStats          = "stats"
	OpProviderModels = "provider_models"
	OpCompanions     = "companions"
	OpPause          = "pause"
	OpShutdown       = "shutdown"
)

// Operations are the names of all ops, sorted. The slice is the caller's.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }

// Deferred reports that an op's answer comes when its work is done, out of
// request order (section 1).
func Deferred(op string) bool {
	switch op {
	case OpWait, OpDelete, OpPrune, OpPause, OpProviderModels, OpApproveStep:
		return true
	}
	return false
}

// operation is how the request of one op is read.
type operation struct {
	required fieldSet
	names    []string // those of required, in the order of their mention
	decode   func(line []byte, given fieldSet) (any, error)
}

// envelope is a request line: params' fields beside id and op.
type envelope[P any] struct {
	ID     jsontext.Value `json:"id"`
	Op     jsontext.Value `json:"op"`
	Params P              `json:",embed"`
}

// op makes an operation. required are the fields whose absence is
// invalid_json: those that have no error code of their own.
func op[P any](required ...string) operation { return opWith[P](nil, required...) }

// opWith has besides a function that completes the params with what only the
// line can tell: which fields were given.
func opWith[P any](complete func(*P, fieldSet) error, required ...string) operation {
	o := operation{names: required}
	for _, name := range required {
		o.required.add(name)
	}
	o.decode = func(line []byte, given fieldSet) (any, error) {
		var e envelope[P]
		if err := json.Unmarshal(line, &e, strict()); err != nil {
			return nil, err
		}
		if complete != nil {
			if err := complete(&e.Params, given); err != nil {
				return nil, err
			}
		}
		return &e.Params, nil
	}
	return o
}

// operations is by name. Pages and handles that have a code for a bad value
// are not required here: a missing one is such a value.
var operations = map[string]operation{
	OpCreate: opWith(func(c *Create, given fieldSet) error {
		c.Absent.Model = !given.has("model")
		c.Absent.Instructions = !given.has("instructions")
		c.Absent.Tools = !given.has("tools")
		c.Given.Closed = given.has("closed")
		keepZero(&c.CreatedByID, given.has("created_by_id"))
		return nil
	}, "bot"),
	OpFork: opWith(func(f *Fork, given fieldSet) error {
		keepZero(&f.CreatedByID, given.has("created_by_id"))
		return nil
	}, "source", "bot"),
	OpResume:  op[Resume](),
	OpInspect: op[Inspect]("bot"),
	OpBots:    op[Bots](),
	OpConfigure: opWith(func(c *Configure, given fieldSet) error {
		keepZero(&c.BotID, given.has("bot_id"))
		return nil
	}, "bot"),
	OpDelete: op[Delete]("bot"),
	OpPrune: opWith(func(p *Prune, _ fieldSet) error {
		if p.KeepTurns < 0 {
			return badField("keep_turns", "must not be negative")
		}
		return nil
	}, "bot", "keep_turns"),
	OpSubmit: opWith(func(s *Submit, given fieldSet) error {
		keepZero(&s.BotID, given.has("bot_id"))
		keepZero(&s.ExpectedTurn, given.has("expected_turn"))
		return nil
	}, "bot", "request_id", "prompt"),
	OpInterrupt:    op[Interrupt]("bot", "turn"),
	OpTurns:        op[Turns]("bot"),
	OpResult:       op[Result]("bot", "turn"),
	OpWait:         op[Wait](),
	OpEvents:       op[EventsRequest]("bot", "after", "limit"),
	OpFollow:       op[Follow]("bot"),
	OpUnfollow:     op[Unfollow]("bot"),
	OpHistoryNodes: op[HistoryNodes]("bot"),
	OpHistoryItems: op[HistoryItems]("bot"),
	OpItem:         op[ItemRequest]("bot", "node"),
	OpPrompts:      op[PromptsRequest]("bot", "turn"),
	OpArtifact:     op[ArtifactRequest]("bot", "turn", "call_id"),
	OpApprovals:    op[ApprovalsRequest](),
	OpAnswer: opWith(func(a *Answer, given fieldSet) error {
		keepZero(&a.Lease, given.has("lease"))
		return nil
	}, "bot", "turn", "call_id", "request"),
	OpServeApprovals: op[ServeApprovals](),
	OpRenewApprovals: op[RenewApprovals](),
	OpToolCalls:      op[ToolCallsRequest](),
	OpServeTools:     op[ServeTools](),
	OpRenewTools:     op[RenewTools](),
	OpToolResult: opWith(func(r *ToolResult, given fieldSet) error {
		keepZero(&r.Lease, given.has("lease"))
		return nil
	}, "bot", "turn", "call_id", "request", "tag"),
	OpApproveStep: opWith(func(s *Step, given fieldSet) error {
		keepZero(&s.Lease, given.has("lease"))
		if jsontext.Value(s.Arguments).Kind() != '{' {
			return badField("arguments", "must be an object")
		}
		return nil
	}, "bot", "turn", "call_id", "request", "tag", "step", "name", "arguments"),
	OpStepResult: opWith(func(s *StepResult, given fieldSet) error {
		keepZero(&s.Lease, given.has("lease"))
		return nil
	}, "bot", "turn", "call_id", "request", "tag", "step", "ok"),
	OpStats:          op[StatsRequest](),
	OpProviderModels: op[ProviderModelsRequest](),
	OpCompanions:     op[CompanionsRequest](),
	OpPause:          op[PauseRequest](),
	OpShutdown:       op[Shutdown](),
}

// keepZero keeps an id or a lease of 0 that was written from passing for one
// that was left out: no such id exists, and -1 never matches one.
func keepZero(n *int64, given bool) {
	if given && *n == 0 {
		*n = -1
	}
}

// fieldSet is a set of top-level field names: those that some op requires, or
// whose presence matters.
type fieldSet uint64

var fieldBits = func() map[string]fieldSet {
	names := []string{
		"bot", "model", "instructions", "tools", "source", "keep_turns", "request_id", "prompt",
		"turn", "after", "limit", "node", "call_id", "request", "tag", "step", "name", "arguments", "ok",
		"bot_id", "created_by_id", "closed", "expected_turn", "lease",
		"workspace", "delivery", "origin", "reasoning", "sandbox", "created_by", "approver", "compaction_model",
		"by", "reason", "stream",
	}
	bits := make(map[string]fieldSet, len(names))
	for i, name := range names {
		bits[name] = 1 << i
	}
	return bits
}()

func (s *fieldSet) add(name string) {
	bit, ok := fieldBits[name]
	if !ok {
		panic("protocol: " + name + " has no bit")
	}
	*s |= bit
}

func (s fieldSet) has(name string) bool { return s&fieldBits[name] != 0 }

package daemon

import (
	"agent/protocol"
)

// treatment is what a bot's own socket does with an op. The zero value, that of
// every op that the table does not name, refuses it.
type treatment int

const (
	refused treatment = iota
	allowed
	// narrowed: the op is asked in the name of the owner, and who carries it out
	// judges what the owner may (engine.Owner).
	narrowed
)

// onBotSocket is the table of protocol.md 15.
var onBotSocket = map[string]treatment{
	protocol.OpCreate:    narrowed,
	protocol.OpFork:      narrowed,
	protocol.OpSubmit:    narrowed,
	protocol.OpInterrupt: narrowed,
	protocol.OpDelete:    narrowed,
	protocol.OpPrune:     narrowed,
	protocol.OpWait:      narrowed,
	protocol.OpPause:     narrowed,

	protocol.OpInspect:        allowed,
	protocol.OpBots:           allowed,
	protocol.OpTurns:          allowed,
	protocol.OpResult:         allowed,
	protocol.OpEvents:         allowed,
	protocol.OpFollow:         allowed,
	protocol.OpUnfollow:       allowed,
	protocol.OpHistoryNodes:   allowed,
	protocol.OpHistoryItems:   allowed,
	protocol.OpItem:           allowed,
	protocol.OpPrompts:        allowed,
	protocol.OpArtifact:       allowed,
	protocol.OpApprovals:      allowed,
	protocol.OpToolCalls:      allowed,
	protocol.OpStats:          allowed,
	protocol.OpProviderModels: allowed,

	protocol.OpConfigure:      refused,
	protocol.OpAnswer:         refused,
	protocol.OpToolResult:     refused,
	protocol.OpApproveStep:    refused,
	protocol.OpStepResult:     refused,
	protocol.OpServeApprovals: refused,
	protocol.OpRenewApprovals: refused,
	protocol.OpServeTools:     refused,
	protocol.OpRenewTools:     refused,
	protocol.OpCompanions:     refused,
	protocol.OpResume:         refused,
	protocol.OpShutdown:       refused,
}

// refusal is why the session may not make a request, nil when it may.
func (s *session) refusal(op string) *protocol.Error {
	if s.owner == nil || onBotSocket[op] != refused {
		return nil
	}
	return s.owner.Refuse(op, op+" takes the daemon's own socket")
}

// scope is the owner as the ready line gives it, nil on the daemon's own socket.
func (s *session) scope() *protocol.Scope {
	if s.owner == nil {
		return nil
	}
	return &protocol.Scope{Bot: s.owner.Name, BotID: s.owner.ID}
}

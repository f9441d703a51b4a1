package engine

import (
	"agent/protocol"
)

// Stats is the engine's part of stats. The rest is zero.
func (e *Engine) Stats() *protocol.Stats {
	turns, bytes := e.pending.get()
	l := e.cfg.Limits
	running, lined := e.procs.counts()
	served, requests := e.served.stats()
	approvers, gates := e.verdicts.stats()
	e.mu.Lock()
	defer e.mu.Unlock()
	tokens := e.totals
	tokens.CacheHit = cacheHit(tokens.CachedInputTokens, tokens.InputTokens)
	waiting, paced := e.parkedCounts()
	return &protocol.Stats{
		RunningProcesses: running, QueuedProcesses: lined,
		WaitingTurns: waiting, PacedTurns: paced, Handles: protocol.HandleStats{Waiters: e.waits.waiters()},
		ActiveTurns: int64(len(e.live)), ActiveLimit: l.Active, QueuedTurns: turns, PendingBytes: bytes,
		PendingLimit: l.Pending, PendingBytesLimit: l.PendingBytes, ProcessLimit: l.Processes,
		ApprovalRequests: gates, Approvers: approvers, ServedTools: served, ToolRequests: requests, Companions: []protocol.Companion{},
		Tokens: tokens, Draining: e.draining || e.closing, Paused: e.pause,
	}
}

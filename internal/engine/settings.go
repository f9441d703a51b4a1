package engine

import (
	"fmt"
	"time"

	"agent/internal/store"
	"agent/protocol"
)

// most is the largest integer of the wire.
const most = 1<<53 - 1

// limitsFor are the daemon's limits with what was set for one bot over them
// (runtime.md 3).
func (e *Engine) limitsFor(bot *store.Bot) Limits {
	l, s := e.cfg.Limits, &bot.Settings
	l.Context.Bytes = s.ContextBytes.Or(l.Context.Bytes)
	l.Context.Items = s.ContextItems.Or(l.Context.Items)
	l.NoteTurns = s.NoteTurns.Or(l.NoteTurns)
	l.RetainTurns = s.RetainTurns.Or(l.RetainTurns)
	l.MaxOutput = s.MaxOutputTokens.Or(l.MaxOutput)
	if seconds, ok := s.StallTimeoutSeconds.Get(); ok {
		l.Stall = time.Duration(seconds) * time.Second
	}
	l.CompactAt, l.CompactKeep = s.CompactAt.Or(l.CompactAt), s.CompactKeep.Or(l.CompactKeep)
	if seconds, ok := s.KeepWarmSeconds.Get(); ok {
		l.KeepWarm = time.Duration(seconds) * time.Second
	}
	if ms, ok := s.ApprovalHoldMS.Get(); ok {
		l.Hold = time.Duration(ms) * time.Millisecond
	}
	l.CacheTTL = s.CacheTTL.Or(l.CacheTTL)
	return l
}

// mergeSettings puts the keys of given over those of a bot. A null one goes back
// to the daemon's value.
func mergeSettings(have protocol.Settings, given *protocol.Settings) protocol.Settings {
	if given == nil {
		return have
	}
	merge(&have.ApprovalHoldMS, given.ApprovalHoldMS)
	merge(&have.ContextBytes, given.ContextBytes)
	merge(&have.ContextItems, given.ContextItems)
	merge(&have.NoteTurns, given.NoteTurns)
	merge(&have.CompactAt, given.CompactAt)
	merge(&have.CompactKeep, given.CompactKeep)
	merge(&have.RetainTurns, given.RetainTurns)
	merge(&have.MaxOutputTokens, given.MaxOutputTokens)
	merge(&have.StallTimeoutSeconds, given.StallTimeoutSeconds)
	merge(&have.KeepWarmSeconds, given.KeepWarmSeconds)
	merge(&have.CacheTTL, given.CacheTTL)
	merge(&have.WebSearch, given.WebSearch)
	return have
}

func merge[T any](have *protocol.Opt[T], given protocol.Opt[T]) {
	switch {
	case given.IsNull():
		*have = protocol.Opt[T]{}
	case !given.IsZero():
		*have = given
	}
}

// givenSettings checks what was given for a bot and what it has then.
func (e *Engine) givenSettings(given, merged *protocol.Settings) *protocol.Error {
	if given == nil {
		return nil
	}
	for key := range given.Extra {
		return badSetting(key, "is no setting, or its value is of the wrong type")
	}
	return e.checkSettings(merged)
}

// checkSettings checks the settings that a bot would have: what was given for
// it, over what it had. Each value's range is that of the daemon's flag
// (protocol.md 7).
func (e *Engine) checkSettings(s *protocol.Settings) *protocol.Error {
	for _, r := range []struct {
		key         string
		value       protocol.Opt[int64]
		least, most int64
	}{
		{"approval_hold_ms", s.ApprovalHoldMS, 0, 600_000},
		{"context_bytes", s.ContextBytes, 1024, most},
		{"context_items", s.ContextItems, 2, most},
		{"note_turns", s.NoteTurns, 0, most},
		{"compact_at", s.CompactAt, 1, 100},
		{"compact_keep", s.CompactKeep, 1, 100},
		{"retain_turns", s.RetainTurns, 1, most},
		{"max_output_tokens", s.MaxOutputTokens, 1, 1<<32 - 1},
		{"stall_timeout_seconds", s.StallTimeoutSeconds, 1, 86_400},
		{"keep_warm_seconds", s.KeepWarmSeconds, 0, 299},
	} {
		if n, ok := r.value.Get(); ok && (n < r.least || n > r.most) {
			return badSetting(r.key, fmt.Sprintf("is %d to %d", r.least, r.most))
		}
	}
	if t, ok := s.CacheTTL.Get(); ok && t != "5m" && t != "1h" {
		return badSetting("cache_ttl", "is 5m or 1h")
	}
	if t, ok := s.WebSearch.Get(); ok && t != "live" && t != "cached" {
		return badSetting("web_search", "is live or cached")
	}
	own := !s.CompactAt.IsZero() || !s.CompactKeep.IsZero()
	at, keep := s.CompactAt.Or(e.cfg.Limits.CompactAt), s.CompactKeep.Or(e.cfg.Limits.CompactKeep)
	if own && keep >= at {
		return badSetting("compact_keep", fmt.Sprintf("is less than compact_at; here they are %d and %d", keep, at))
	}
	return nil
}

func badSetting(key, why string) *protocol.Error {
	return protocol.Fail(protocol.InvalidSetting, key+" "+why)
}

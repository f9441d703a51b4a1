package protocol

import (
	"bytes"
	stdjson "encoding/json"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of durable events (section 13).
const (
	KindCreated           = "created"
	KindForked            = "forked"
	KindConfigured        = "configured"
	KindQueued            = "queued"
	KindAccepted          = "accepted"
	KindMessage           = "message"
	KindUsage             = "usage"
	KindApprovalRequested = "approval_requested" // also a push to the tag's server
	KindToolStarted       = "tool_started"
	KindToolRequested     = "tool_requested" // also a push to the tag's server
	KindStepDecided       = "step_decided"
	KindStepCompleted     = "step_completed"
	KindToolCompleted     = "tool_completed"
	KindTurnWaiting       = "turn_waiting"
	KindTurnPaced         = "turn_paced"
	KindTurnResumed       = "turn_resumed"
	KindSteered           = "steered"
	KindElided            = "elided"
	KindCompacted         = "compacted"
	KindTurnFinished      = "turn_finished"
)

// The kinds of live notifications (section 13). KindReconnected is made by the
// client and never comes from a daemon.
const (
	KindReady                   = "ready"
	KindFollowLive              = "follow_live"
	KindPruned                  = "pruned"
	KindDeleted                 = "deleted"
	KindTextDelta               = "text_delta"
	KindThinkingDelta           = "thinking_delta"
	KindCompactionTextDelta     = "compaction_text_delta"
	KindCompactionThinkingDelta = "compaction_thinking_delta"
	KindRetry                   = "retry"
	KindWebSearch               = "web_search"
	KindScriptedModel           = "scripted_model"
	KindModelFallback           = "model_fallback"
	KindKeepWarmFailed          = "keep_warm_failed"
	KindThinkingDropped         = "thinking_dropped"
	KindCompactionFailed        = "compaction_failed"
	KindApprovalsLost           = "approvals_lost"
	KindToolCancelled           = "tool_cancelled"
	KindToolsLost               = "tools_lost"
	KindPaused                  = "paused"
	KindResumed                 = "resumed"

	KindReconnected = "reconnected"
)

// Event is one notification. Durable events carry a Cursor; live ones have 0.
// Data is a durable event's data, or a live one's whole object. Line is what
// was received, without its newline; Data may point into it.
type Event struct {
	Kind    string
	Bot     string
	Turn    int64 // 0: none
	Cursor  int64
	Durable bool
	Data    stdjson.RawMessage
	Line    stdjson.RawMessage
}

// Decode unmarshals Data into v, usually one of this package's event types.
func (e *Event) Decode(v any) error {
	return json.Unmarshal(e.Data, v, jsontext.AllowDuplicateNames(true))
}

// IsDelta reports whether the event is streamed text, which may be lost.
func (e *Event) IsDelta() bool {
	switch e.Kind {
	case KindTextDelta, KindThinkingDelta, KindCompactionTextDelta, KindCompactionThinkingDelta:
		return true
	}
	return false
}

// Text is the text of a delta event, or "".
func (e *Event) Text() string {
	if !e.IsDelta() {
		return ""
	}
	var d Delta
	if e.Decode(&d) != nil {
		return ""
	}
	return d.Text
}

type eventLine struct {
	Event   string             `json:"event"`
	Bot     string             `json:"bot"`
	Turn    *int64             `json:"turn"`
	Cursor  int64              `json:"cursor"`
	Durable *bool              `json:"durable"`
	Data    stdjson.RawMessage `json:"data"`
}

// ParseEvent reads a notification line, or an entry of an EventPage. The event
// has its own copy of the bytes.
func ParseEvent(line []byte) (*Event, error) {
	return parseEvent(bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))))
}

func parseEvent(line []byte) (*Event, error) {
	var l eventLine
	if err := json.Unmarshal(line, &l, jsontext.AllowDuplicateNames(true)); err != nil {
		return oddEvent(line, err)
	}
	if l.Event == "" {
		return nil, Fail(InvalidJSON, "a notification without an event")
	}
	e := &Event{Kind: l.Event, Bot: l.Bot, Line: line, Data: line}
	if l.Turn != nil {
		e.Turn = *l.Turn
	}
	if l.Cursor > 0 && l.Data != nil && (l.Durable == nil || *l.Durable) {
		e.Durable, e.Cursor, e.Data = true, l.Cursor, l.Data
	}
	return e, nil
}

// oddEvent is a notification one of whose members is of another type than those of
// this build's kinds, for which err was said. A live one, of a kind that is to come,
// is kept without what it names; one with a cursor is refused, since whoever missed
// it would not know.
func oddEvent(line []byte, err error) (*Event, error) {
	var l struct {
		Event  string             `json:"event"`
		Cursor stdjson.RawMessage `json:"cursor"`
	}
	if json.Unmarshal(line, &l, jsontext.AllowDuplicateNames(true)) != nil || l.Event == "" || l.Cursor != nil {
		return nil, Fail(InvalidJSON, err.Error())
	}
	return &Event{Kind: l.Event, Line: line, Data: line}, nil
}

// Created is the data of created and, with Source, Checkpoint and Node, of
// forked.
type Created struct {
	ID          int64   `json:"id"`
	Provider    string  `json:"provider"`
	Model       string  `json:"model"`
	Workspace   *string `json:"workspace"`
	Status      string  `json:"status"`
	RunningTurn *int64  `json:"running_turn"`
	CreatedBy   *string `json:"created_by"`
	CreatedByID *int64  `json:"created_by_id"`
	Gates       []Gate  `json:"gates"`
	Extra       Extra   `json:",embed"`
}

// Forked is the data of forked. Checkpoint and Node are nil for a fork of a bot
// without history.
type Forked struct {
	ID          int64   `json:"id"`
	Provider    string  `json:"provider"`
	Model       string  `json:"model"`
	Workspace   *string `json:"workspace"`
	Status      string  `json:"status"`
	RunningTurn *int64  `json:"running_turn"`
	CreatedBy   *string `json:"created_by"`
	CreatedByID *int64  `json:"created_by_id"`
	Gates       []Gate  `json:"gates"`
	Source      string  `json:"source"`
	Checkpoint  *int64  `json:"checkpoint"`
	Node        *int64  `json:"node"`
	Extra       Extra   `json:",embed"`
}

// Configured is the data of configured. Gates is nil unless they changed.
type Configured struct {
	Changed []string `json:"changed"`
	Gates   *[]Gate  `json:"gates,omitzero"`
	Extra   Extra    `json:",embed"`
}

// Queued is the data of queued.
type Queued struct {
	RequestID string   `json:"request_id"`
	Status    string   `json:"status"` // queued or ready
	Delivery  Delivery `json:"delivery"`
	Workspace *string  `json:"workspace"`
	Model     string   `json:"model"`
	Extra     Extra    `json:",embed"`
}

// Accepted is the data of accepted; Node is the prompt's.
type Accepted struct {
	RequestID string  `json:"request_id"`
	Node      int64   `json:"node"`
	Workspace *string `json:"workspace"`
	Model     string  `json:"model"`
	From      *From   `json:"from,omitzero"`
	Origin    string  `json:"origin,omitzero"`
	Extra     Extra   `json:",embed"`
}

// Message is the data of message: one item of the model's response.
type Message struct {
	Node  int64 `json:"node"`
	Extra Extra `json:",embed"`
}

// Usage is the data of usage.
type Usage struct {
	InputTokens        int64        `json:"input_tokens"`
	OutputTokens       int64        `json:"output_tokens"`
	CachedInputTokens  int64        `json:"cached_input_tokens"`
	SentMS             int64        `json:"sent_ms"`
	CacheWriteTokens   int64        `json:"cache_write_tokens,omitzero"`
	CacheWrite1hTokens int64        `json:"cache_write_1h_tokens,omitzero"`
	ReasoningTokens    int64        `json:"reasoning_tokens,omitzero"`
	WebSearchRequests  int64        `json:"web_search_requests,omitzero"`
	Estimated          bool         `json:"estimated,omitzero"`
	Models             []ModelUsage `json:"models,omitzero"`
	Purpose            string       `json:"purpose,omitzero"` // compaction, keep_warm
	Extra              Extra        `json:",embed"`
}

// ModelUsage is one model's part of a usage that several models served.
type ModelUsage struct {
	Provider          string `json:"provider,omitzero"`
	Model             string `json:"model"`
	InputTokens       int64  `json:"input_tokens"`
	OutputTokens      int64  `json:"output_tokens"`
	CachedInputTokens int64  `json:"cached_input_tokens"`
	CacheWriteTokens  int64  `json:"cache_write_tokens,omitzero"`
}

// ApprovalRequested is the data of the durable approval_requested. It holds no
// arguments.
type ApprovalRequested struct {
	Calls  []RequestedCall `json:"calls"`
	Failed string          `json:"failed,omitzero"` // the call that made these wait again
	Extra  Extra           `json:",embed"`
}

// RequestedCall is one announced call.
type RequestedCall struct {
	CallID      string   `json:"call_id"`
	Request     int64    `json:"request"`
	AnnouncedMS int64    `json:"announced_ms"`
	ExpiresMS   *int64   `json:"expires_ms"`
	Gates       []string `json:"gates"`
	Name        string   `json:"name"`
	Node        int64    `json:"node"`
	Cause       string   `json:"cause"`
	Escalated   bool     `json:"escalated"`
	Step        string   `json:"step,omitzero"`
	Extra       Extra    `json:",embed"`
}

// ToolStarted is the data of tool_started. Arguments is text, cut at 2,048
// characters.
type ToolStarted struct {
	CallID             string    `json:"call_id"`
	Name               string    `json:"name"`
	Arguments          string    `json:"arguments"`
	ArgumentsTruncated bool      `json:"arguments_truncated"`
	Approvals          []Verdict `json:"approvals,omitzero"`
	OverturnedBy       *string   `json:"overturned_by,omitzero"`
	Sandboxed          bool      `json:"sandboxed"`
	Extra              Extra     `json:",embed"`
}

// ToolRequested is the data of the durable tool_requested.
type ToolRequested struct {
	CallID  string `json:"call_id"`
	Request int64  `json:"request"`
	Name    string `json:"name"`
	Node    int64  `json:"node"`
	Tag     string `json:"tag"`
	Extra   Extra  `json:",embed"`
}

// StepDecided is the data of step_decided.
type StepDecided struct {
	CallID       string    `json:"call_id"`
	Step         string    `json:"step"`
	Name         string    `json:"name"`
	Decision     string    `json:"decision"` // Allow, Deny, Expired
	Approvals    []Verdict `json:"approvals"`
	OverturnedBy *string   `json:"overturned_by,omitzero"`
	Extra        Extra     `json:",embed"`
}

// StepCompleted is the data of step_completed.
type StepCompleted struct {
	CallID string `json:"call_id"`
	Step   string `json:"step"`
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitzero"`
	Extra  Extra  `json:",embed"`
}

// ToolCompleted is the data of tool_completed.
type ToolCompleted struct {
	CallID         string    `json:"call_id"`
	Node           int64     `json:"node"`
	Artifacts      []string  `json:"artifacts"`
	Note           *int64    `json:"note"`
	Cancelled      bool      `json:"cancelled,omitzero"`
	OutcomeUnknown bool      `json:"outcome_unknown,omitzero"`
	Denied         bool      `json:"denied,omitzero"`
	Expired        bool      `json:"expired,omitzero"`
	Approvals      []Verdict `json:"approvals,omitzero"`
	External       bool      `json:"external,omitzero"`
	Extra          Extra     `json:",embed"`
}

// TurnWaiting is the data of turn_waiting: on handles, on a verdict (Approval)
// or on a served call (Served). AppendJSON writes what belongs to each.
type TurnWaiting struct {
	CallID     string   `json:"call_id"`
	Handles    []string `json:"handles,omitzero"`
	Approval   bool     `json:"approval,omitzero"`
	Served     bool     `json:"served,omitzero"`
	DeadlineMS *int64   `json:"deadline_ms"`
	Any        *bool    `json:"any,omitzero"` // with Handles
	Extra      Extra    `json:",embed"`
}

// TurnPaced is the data of turn_paced.
type TurnPaced struct {
	ResumeAtMS int64 `json:"resume_at_ms"`
	Extra      Extra `json:",embed"`
}

// TurnResumed is the data of turn_resumed; CallID is empty after a pace.
type TurnResumed struct {
	CallID string `json:"call_id"`
	Extra  Extra  `json:",embed"`
}

// Steered is the data of steered: the steer's turn, and its prompt's node.
type Steered struct {
	From  int64 `json:"from"`
	Node  int64 `json:"node"`
	Extra Extra `json:",embed"`
}

// Elided is the data of elided.
type Elided struct {
	Version    int64  `json:"version"`
	Previous   *int64 `json:"previous"`
	Through    int64  `json:"through"`
	Results    int64  `json:"results"`
	SavedBytes int64  `json:"saved_bytes"`
	Extra      Extra  `json:",embed"`
}

// Compacted is the data of compacted.
type Compacted struct {
	Version        int64       `json:"version"`
	Cut            int64       `json:"cut"`
	Pinned         Raw         `json:"pinned"`
	Previous       *int64      `json:"previous"`
	CoveredTurns   []int64     `json:"covered_turns"` // first, last
	SpanTurns      []int64     `json:"span_turns"`
	Items          int64       `json:"items"`
	Bytes          int64       `json:"bytes"`
	SummaryBytes   int64       `json:"summary_bytes"`
	PromptBytes    int64       `json:"prompt_bytes"`
	CatchUp        bool        `json:"catch_up"`
	ContextBefore  ContextSize `json:"context_before"`
	ContextAfter   ContextSize `json:"context_after"`
	InputLimit     ContextSize `json:"input_limit"`
	HeadroomBytes  int64       `json:"headroom_bytes"`
	HeadroomItems  int64       `json:"headroom_items"`
	ReclaimedBytes int64       `json:"reclaimed_bytes"`
	ReclaimedItems int64       `json:"reclaimed_items"`
	Extra          Extra       `json:",embed"`
}

// ContextSize is what a model is shown, measured.
type ContextSize struct {
	Bytes int64 `json:"bytes"`
	Items int64 `json:"items"`
}

// TurnFinished is the data of turn_finished. A steered turn has Into and Node
// and none of Checkpoint, Error and Detail. Extra holds the error's facts.
type TurnFinished struct {
	Status     string  `json:"status"`
	Checkpoint *int64  `json:"checkpoint"` // only when completed
	Error      *Code   `json:"error"`
	Detail     *string `json:"detail"`
	Into       int64   `json:"into,omitzero"`
	Node       int64   `json:"node,omitzero"`
	Extra      Extra   `json:",embed"`
}

// Missed reports whether it is the end of a strict steer whose turn was over before the
// steer was taken in: its text ran nowhere (runtime.md 6).
func (f *TurnFinished) Missed() bool {
	return f.Status == StatusFailed && f.Error != nil && *f.Error == StaleTurn
}

// AppendJSON leaves the three nullable fields out of a steered turn's data.
func (f TurnFinished) AppendJSON(dst []byte) ([]byte, error) {
	type plain TurnFinished
	if f.Status != StatusSteered {
		return Append(dst, plain(f))
	}
	return Append(dst, struct {
		Status string `json:"status"`
		Into   int64  `json:"into"`
		Node   int64  `json:"node"`
		Extra  Extra  `json:",embed"`
	}{f.Status, f.Into, f.Node, f.Extra})
}

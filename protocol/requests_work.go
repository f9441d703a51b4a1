package protocol

import "encoding/json"

// The requests about work and reading (sections 8 and 9).

// Submit gives a bot a prompt; the answer is Submitted. RequestID makes it safe
// to repeat: the same contents again give the first answer with Duplicate set.
type Submit struct {
	Bot          string   `json:"bot"`
	BotID        int64    `json:"bot_id,omitzero"` // the identity meant; a request that says 0 arrives as -1
	RequestID    string   `json:"request_id"`
	Prompt       string   `json:"prompt"`
	Workspace    string   `json:"workspace,omitzero"`
	Model        string   `json:"model,omitzero"`
	Delivery     Delivery `json:"delivery,omitzero"`      // "": Reject
	ExpectedTurn int64    `json:"expected_turn,omitzero"` // a request that says 0 arrives as -1
	From         *From    `json:"from,omitzero"`
	Origin       string   `json:"origin,omitzero"`
	// Pictures are absolute paths, at most MaxPictures, of PNG, JPEG, GIF or WebP
	// files of at most MaxPictureBytes. The daemon reads them before it answers; a
	// request that it knows already reads and compares none.
	Pictures []string `json:"pictures,omitzero"`
}

// Interrupt ends a turn; the answer is Interrupted. With Queued it ends one that is
// still in line alone: a turn that has begun goes on, and the answer is stale_turn.
type Interrupt struct {
	Bot    string `json:"bot"`
	Turn   int64  `json:"turn"`
	Reason string `json:"reason,omitzero"`
	Queued bool   `json:"queued,omitzero"`
}

// Turns asks for a page of a bot's turns after one; the answer is a TurnPage.
type Turns struct {
	Bot   string     `json:"bot"`
	After int64      `json:"after,omitzero"`
	Limit Opt[int64] `json:"limit,omitzero"`
}

// Result asks for a turn's Outcome.
type Result struct {
	Bot  string `json:"bot"`
	Turn int64  `json:"turn"`
}

// Wait waits for handles; the answer is Waited. Without TimeoutMS it waits as
// long as it takes, with 0 it polls.
type Wait struct {
	Handles   []string   `json:"handles"`
	TimeoutMS Opt[int64] `json:"timeout_ms,omitzero"`
	Any       bool       `json:"any,omitzero"`
}

// EventsRequest asks for a page of a bot's durable events; the answer is an
// EventPage.
type EventsRequest struct {
	Bot   string `json:"bot"`
	After int64  `json:"after"` // exclusive
	Limit int64  `json:"limit"`
}

// Follow starts replay and live delivery of a bot's events, or of every bot's
// when Bot is "*"; the answer is Following.
type Follow struct {
	Bot   string `json:"bot"`
	After int64  `json:"after,omitzero"` // exclusive
}

// Unfollow stops a follow; the answer is Following with a null name.
type Unfollow struct {
	Bot string `json:"bot"`
}

// HistoryNodes asks for a page of a bot's nodes, newest first; the answer is a
// NodePage.
type HistoryNodes struct {
	Bot         string     `json:"bot"`
	From        Opt[int64] `json:"from,omitzero"` // inclusive; absent: the head
	Limit       Opt[int64] `json:"limit,omitzero"`
	MinNode     Opt[int64] `json:"min_node,omitzero"`
	OldestFirst bool       `json:"oldest_first,omitzero"`
}

// HistoryItems asks for stored items by node; the answer is an ItemPage.
type HistoryItems struct {
	Bot   string  `json:"bot"`
	Nodes []int64 `json:"nodes"`
}

// ItemRequest asks for one stored item, which is the answer itself.
type ItemRequest struct {
	Bot  string `json:"bot"`
	Node int64  `json:"node"`
}

// PromptsRequest asks who wrote what a turn was asked; the answer is Prompts.
type PromptsRequest struct {
	Bot   string     `json:"bot"`
	Turn  int64      `json:"turn"`
	Bytes Opt[int64] `json:"bytes,omitzero"`
}

// ArtifactRequest asks for kept output of a call: a page of one stream
// (ArtifactPage), or without a stream all of them (ArtifactStreams).
type ArtifactRequest struct {
	Bot    string      `json:"bot"`
	Turn   int64       `json:"turn"`
	CallID string      `json:"call_id"`
	Stream Opt[string] `json:"stream,omitzero"`
	Offset Opt[int64]  `json:"offset,omitzero"`
	Limit  Opt[int64]  `json:"limit,omitzero"`
}

// The requests about waiting calls (sections 10 and 11).

// ApprovalsRequest asks for a page of waiting calls; the answer is an
// ApprovalPage. After and Through are opaque.
type ApprovalsRequest struct {
	Bot     string     `json:"bot,omitzero"`
	Tag     string     `json:"tag,omitzero"`
	After   int64      `json:"after,omitzero"`
	Through Opt[int64] `json:"through,omitzero"`
	Limit   Opt[int64] `json:"limit,omitzero"`
}

// ToolCallsRequest asks for a page of served calls; the answer is a
// ToolCallPage.
type ToolCallsRequest struct {
	Bot     string     `json:"bot,omitzero"`
	Tag     string     `json:"tag,omitzero"`
	After   int64      `json:"after,omitzero"`
	Through Opt[int64] `json:"through,omitzero"`
	Limit   Opt[int64] `json:"limit,omitzero"`
}

// The two decisions of an answer; a step may besides end expired.
const (
	Allow   = "allow"
	Deny    = "deny"
	Expired = "expired"
)

// Answer gives a verdict on a waiting call; the answer is Answered.
type Answer struct {
	Bot      string `json:"bot"`
	Turn     int64  `json:"turn"`
	CallID   string `json:"call_id"`
	Request  int64  `json:"request"`
	Decision string `json:"decision"` // Allow or Deny
	Tag      string `json:"tag,omitzero"`
	Reason   string `json:"reason,omitzero"`
	By       string `json:"by,omitzero"`
	Lease    int64  `json:"lease,omitzero"` // a request that says 0 arrives as -1
	Step     string `json:"step,omitzero"`
	Overturn bool   `json:"overturn,omitzero"`
}

// ServeApprovals makes the session the one server of a tag; the answer is
// ApprovalsServing.
type ServeApprovals struct {
	Tag     string     `json:"tag"`
	LeaseMS int64      `json:"lease_ms"`
	Limit   Opt[int64] `json:"limit,omitzero"`
}

// RenewApprovals renews a lease; the answer is Lease.
type RenewApprovals struct {
	Tag   string `json:"tag"`
	Lease int64  `json:"lease"`
}

// ServeTools makes the session the one server of a tools' tag; the answer is
// ToolsServing.
type ServeTools struct {
	Tag     string     `json:"tag"`
	LeaseMS int64      `json:"lease_ms"`
	Limit   Opt[int64] `json:"limit,omitzero"`
}

// RenewTools renews a lease; the answer is Lease.
type RenewTools struct {
	Tag   string `json:"tag"`
	Lease int64  `json:"lease"`
}

// ToolResult is the result of a served call: Output or Error, never both.
type ToolResult struct {
	Bot      string      `json:"bot"`
	Turn     int64       `json:"turn"`
	CallID   string      `json:"call_id"`
	Request  int64       `json:"request"`
	Tag      string      `json:"tag"`
	Output   Opt[string] `json:"output,omitzero"`
	Error    *ToolError  `json:"error,omitzero"`
	Pictures []string    `json:"pictures,omitzero"` // with Output; as in Submit
	External bool        `json:"external,omitzero"`
	Lease    int64       `json:"lease,omitzero"` // a request that says 0 arrives as -1
}

// ToolError is the error of a served call. The code is the server's own.
type ToolError struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitzero"`
}

// Step asks for a verdict on one step of a served call; the answer is a
// StepVerdict. Arguments is an object and keeps its bytes.
type Step struct {
	Bot       string          `json:"bot"`
	Turn      int64           `json:"turn"`
	CallID    string          `json:"call_id"`
	Request   int64           `json:"request"`
	Tag       string          `json:"tag"`
	Lease     int64           `json:"lease,omitzero"` // a request that says 0 arrives as -1
	Step      string          `json:"step"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Reason    string          `json:"reason,omitzero"`
}

// StepResult records what an allowed step did; the answer is empty.
type StepResult struct {
	Bot     string `json:"bot"`
	Turn    int64  `json:"turn"`
	CallID  string `json:"call_id"`
	Request int64  `json:"request"`
	Tag     string `json:"tag"`
	Lease   int64  `json:"lease,omitzero"` // a request that says 0 arrives as -1
	Step    string `json:"step"`
	OK      bool   `json:"ok"`
	Detail  string `json:"detail,omitzero"`
}

// The requests about the daemon (section 12).

// StatsRequest asks for Stats.
type StatsRequest struct{}

// ProviderModelsRequest asks for ProviderModels.
type ProviderModelsRequest struct{}

// CompanionsRequest lists the companions, and before that replaces the set
// when Set is not nil and restarts those named. The answer is Companions.
type CompanionsRequest struct {
	Set     []CompanionSpec `json:"set,omitzero"`
	Restart []string        `json:"restart,omitzero"`
}

// CompanionSpec is a helper program for the daemon to keep running.
type CompanionSpec struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
}

// PauseRequest stops all work until Resume; the answer is Pause.
type PauseRequest struct {
	By     string `json:"by,omitzero"`
	From   *From  `json:"from,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// Shutdown ends the daemon, after at most GraceMS for running turns.
type Shutdown struct {
	GraceMS int64 `json:"grace_ms,omitzero"`
}

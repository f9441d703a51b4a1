package protocol

// The live notifications (section 13), as AppendLive writes and Event.Decode
// reads them.

// FollowLive says that a replay has reached Cursor and that what follows is
// live.
type FollowLive struct {
	Bot    string `json:"bot"`
	Cursor int64  `json:"cursor"`
}

// PrunedNotice says that events before a cursor are gone, though asked for.
type PrunedNotice struct {
	Bot    string `json:"bot"`
	Before int64  `json:"before"`
}

// DeletedNotice says that a bot is gone.
type DeletedNotice struct {
	Bot string `json:"bot"`
}

// Delta is streamed text of a turn. The durable message is the truth.
type Delta struct {
	Bot  string `json:"bot"`
	Turn int64  `json:"turn"`
	Text string `json:"text"`
}

// Retry says that a model call is tried again.
type Retry struct {
	Bot     string `json:"bot"`
	Turn    int64  `json:"turn"`
	Attempt int64  `json:"attempt"`
	Error   Code   `json:"error"`
	Detail  string `json:"detail"`
	DelayMS int64  `json:"delay_ms"`
	Parked  bool   `json:"parked"`
}

// WebSearch tells of a search the provider runs.
type WebSearch struct {
	Bot    string `json:"bot"`
	Turn   int64  `json:"turn"`
	Status string `json:"status"`
	Query  string `json:"query,omitzero"`
	URL    string `json:"url,omitzero"`
}

// ScriptedModel says that a bot's model is a script.
type ScriptedModel struct {
	Bot   string `json:"bot"`
	Model string `json:"model"`
}

// ModelFallback says that another model answered.
type ModelFallback struct {
	Bot  string `json:"bot"`
	Turn int64  `json:"turn"`
	From string `json:"from"`
	To   string `json:"to"`
}

// TurnNotice is keep_warm_failed and compaction_failed.
type TurnNotice struct {
	Bot    string `json:"bot"`
	Turn   int64  `json:"turn"`
	Error  Code   `json:"error"`
	Detail string `json:"detail"`
}

// ThinkingDropped says how many thinking blocks a request left out.
type ThinkingDropped struct {
	Bot   string `json:"bot"`
	Turn  int64  `json:"turn"`
	Count int64  `json:"count"`
}

// ApprovalPush is approval_requested as the tag's server gets it. A large
// round comes in parts.
type ApprovalPush struct {
	Bot    string        `json:"bot"`
	Turn   int64         `json:"turn"`
	Cursor int64         `json:"cursor"`
	Tag    string        `json:"tag"`
	Lease  int64         `json:"lease"`
	Data   ApprovalRound `json:"data"`
}

// ApprovalRound is what one model response planned and a gate must judge.
type ApprovalRound struct {
	Part  int64      `json:"part"`
	Parts int64      `json:"parts"`
	Calls []Approval `json:"calls"`
	Extra Extra      `json:",embed"`
}

// ToolPush is tool_requested as the tag's server gets it.
type ToolPush struct {
	Bot    string   `json:"bot"`
	Turn   int64    `json:"turn"`
	Cursor int64    `json:"cursor"`
	Tag    string   `json:"tag"`
	Lease  int64    `json:"lease"`
	Data   ToolCall `json:"data"`
}

// TagLost is approvals_lost and tools_lost.
type TagLost struct {
	Tag   string `json:"tag"`
	Lease int64  `json:"lease"`
}

// ToolCancelled tells a server that a call is not wanted any more.
type ToolCancelled struct {
	Bot     string `json:"bot"`
	Turn    int64  `json:"turn"`
	CallID  string `json:"call_id"`
	Request int64  `json:"request"`
	Tag     string `json:"tag"`
	Lease   int64  `json:"lease"`
}

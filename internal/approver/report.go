package approver

// The lines that the approver prints (approvals.md 10). They hold names, ids,
// codes and the reasons that the record holds too, never what the judge was
// shown.

// Serving says that the tag is held.
type Serving struct {
	Event string `json:"event"` // serving
	Tag   string `json:"tag"`
	Lease int64  `json:"lease"`
	PID   int    `json:"pid"`
}

// Judged is a round that was answered.
type Judged struct {
	Event        string       `json:"event"` // judged
	Bot          string       `json:"bot"`
	Turn         int64        `json:"turn"`
	Calls        []JudgedCall `json:"calls"`
	JudgeMS      int64        `json:"judge_ms"`
	InputTokens  int64        `json:"input_tokens"`
	CachedTokens int64        `json:"cached_tokens"`
	OutputTokens int64        `json:"output_tokens"`
}

// JudgedCall is one call of it. Error is the code with which the daemon refused
// the answer, which then changed nothing.
type JudgedCall struct {
	CallID   string  `json:"call_id"`
	Step     string  `json:"step,omitzero"`
	Request  int64   `json:"request"`
	Decision string  `json:"decision"`
	Reason   *string `json:"reason"`
	Error    *string `json:"error"`
}

// JudgeFailed is a round, denied, for which no judge's word counted.
type JudgeFailed struct {
	Event  string `json:"event"` // judge_failed
	Bot    string `json:"bot"`
	Turn   int64  `json:"turn"`
	Detail string `json:"detail"`
}

// Broken is a turn that the breaker stopped.
type Broken struct {
	Event  string `json:"event"` // breaker
	Bot    string `json:"bot"`
	Turn   int64  `json:"turn"`
	InRow  int64  `json:"in_row"`
	Recent int64  `json:"recent"`
}

// Ended is why the approver stopped serving.
type Ended struct {
	Event string `json:"event"` // approvals_lost, lagged, daemon_gone
	Tag   string `json:"tag"`
}

package headless

import (
	_ "embed"
	"encoding/json"

	"agent/protocol"
)

// Version is the version of the events: within it fields and types are added, and none
// changes its meaning.
const Version = 1

//go:embed events.schema.json
var schemaText []byte

// Schema is the JSON Schema of the lines that --json prints.
func Schema() []byte { return schemaText }

// Head is what every line begins with.
type Head struct {
	V    int     `json:"v"`
	Type string  `json:"type"`
	At   string  `json:"at"`   // RFC 3339, UTC
	Bot  *string `json:"bot"`  // null before there is one
	Turn *int64  `json:"turn"` // null before there is one
}

func (h *Head) head() *Head { return h }

// event is one line.
type event interface {
	head() *Head
	kind() string
}

// sessionEvent says which bot works, and how confined.
type sessionEvent struct {
	Head
	BotID     int64  `json:"bot_id"`
	Session   string `json:"session"` // its title, or its bot's name
	Workspace string `json:"workspace"`
	Branch    string `json:"branch,omitempty"` // of a worktree that this run made
	Model     string `json:"model"`
	Suggested bool   `json:"suggested,omitempty"` // no model was set: this is the suggestion
	Effort    string `json:"effort"`
	Row       string `json:"row"` // custom: parts set apart
	Sandbox   string `json:"sandbox"`
	Network   bool   `json:"network"`
	Created   bool   `json:"created"` // this run made the bot
	Version   string `json:"version"` // of sonny
}

type turnStartedEvent struct {
	Head
	PromptBytes int    `json:"prompt_bytes"`
	Delivery    string `json:"delivery"`
}

// deltaEvent is text as it streams.
type deltaEvent struct {
	Head
	thinking bool
	Delta    string `json:"delta"`
}

type messageEvent struct {
	Head
	Text  string `json:"text"`
	Round int    `json:"round"` // the model's response in this turn, from 1
}

type toolStartedEvent struct {
	Head
	Call      string `json:"call"`
	Tool      string `json:"tool"`
	Summary   string `json:"summary"`
	Arguments string `json:"arguments"` // JSON text, its first 2 KiB
	Truncated bool   `json:"truncated"`
}

type toolFinishedEvent struct {
	Head
	Call      string       `json:"call"`
	Tool      string       `json:"tool"`
	Status    string       `json:"status"`
	Error     string       `json:"error,omitempty"` // its code
	Exit      *int64       `json:"exit,omitempty"`
	MS        int64        `json:"ms"`
	Output    string       `json:"output"` // its first 4 KiB
	Artifacts []string     `json:"artifacts"`
	Files     []FileChange `json:"files"`
}

// FileChange is what was done to a file, in lines.
type FileChange struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// The states of a call.
const (
	callOK        = "ok"
	callError     = "error"
	callDenied    = "denied" // by a verdict, or refused for want of a gate
	callExpired   = "expired"
	callCancelled = "cancelled"
	callUnknown   = "unknown"
)

type approvalEvent struct {
	Head
	Call   string `json:"call"`
	Step   string `json:"step,omitempty"`
	State  string `json:"state"`
	By     string `json:"by"` // a gate's tag while it waits, then who answered
	Reason string `json:"reason,omitempty"`
}

// The states of an approval.
const (
	waiting = "waiting"
	allowed = "allowed"
	denied  = "denied"
	expired = "expired"
)

// waitEvent is steered, queued, paced or waiting.
type waitEvent struct {
	Head
	what     string
	Into     int64    `json:"into,omitempty"` // of steered: the turn that took it in
	Handles  []string `json:"handles,omitempty"`
	ResumeAt string   `json:"resume_at,omitempty"` // RFC 3339, UTC
}

type taskEvent struct {
	Head
	finished bool
	Task     string `json:"task"` // its bot
	Status   string `json:"status"`
	Branch   string `json:"branch,omitempty"`
	Text     string `json:"text,omitempty"` // its last reply, at most 16 KiB
}

type usageEvent struct {
	Head
	Usage
}

// Usage is what this run has used so far.
type Usage struct {
	Input     int64    `json:"input"`
	Cached    int64    `json:"cached"`
	Write     int64    `json:"cache_write"`
	Output    int64    `json:"output"`
	Reasoning int64    `json:"reasoning"`
	CostUSD   *float64 `json:"cost_usd,omitempty"` // absent where a price is not known, or a plan pays
}

// noteEvent is notice or error.
type noteEvent struct {
	Head
	fault  bool
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Result is the last line.
type Result struct {
	Head
	Status   string          `json:"status"`
	Text     string          `json:"text"`
	Data     json.RawMessage `json:"data,omitempty"` // with --schema: the reply's value
	Usage    Usage           `json:"usage"`
	Files    []FileChange    `json:"files"`
	Error    *Failure        `json:"error"`
	Session  string          `json:"session"` // "" where no bot was made
	Worktree *Worktree       `json:"worktree,omitempty"`
	Exit     int             `json:"exit"`
}

// Failure is why a run did not complete.
type Failure struct {
	Code   protocol.Code `json:"code"`
	Detail string        `json:"detail"`
}

// Worktree is the worktree that was made for the run.
type Worktree struct {
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Kept   bool   `json:"kept"`
}

// The statuses of a result.
const (
	Completed   = "completed"
	Failed      = "failed"
	Interrupted = "interrupted"
	TimedOut    = "timeout"
	Denied      = "denied"
	OverBudget  = "budget"
	Unfit       = "schema"
)

func (*sessionEvent) kind() string      { return "session" }
func (*turnStartedEvent) kind() string  { return "turn_started" }
func (*messageEvent) kind() string      { return "message" }
func (*toolStartedEvent) kind() string  { return "tool_started" }
func (*toolFinishedEvent) kind() string { return "tool_finished" }
func (*approvalEvent) kind() string     { return "approval" }
func (e *waitEvent) kind() string       { return e.what }
func (*usageEvent) kind() string        { return "usage" }
func (*Result) kind() string            { return "result" }

func (e *deltaEvent) kind() string { return either(e.thinking, "thinking", "text") }
func (e *taskEvent) kind() string  { return either(e.finished, "task_finished", "task_started") }
func (e *noteEvent) kind() string  { return either(e.fault, "error", "notice") }

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

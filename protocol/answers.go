package protocol

import (
	"encoding/json"
	"errors"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Deleted is the answer of delete: how many rows went.
type Deleted struct {
	Turns  int64 `json:"turns"`
	Events int64 `json:"events"`
	Nodes  int64 `json:"nodes"`
	Extra  Extra `json:",embed"`
}

// Pruned is the answer of prune.
type Pruned struct {
	Events       int64 `json:"events"`
	PrunedCursor int64 `json:"pruned_cursor"`
	Extra        Extra `json:",embed"`
}

// Submitted is the answer of submit. Cursor is that of the accepted or queued
// event, nil for a duplicate.
type Submitted struct {
	Bot       string `json:"bot"`
	BotID     int64  `json:"bot_id"`
	Turn      int64  `json:"turn"`
	RequestID string `json:"request_id"`
	Duplicate bool   `json:"duplicate"`
	Status    string `json:"status"`
	Cursor    *int64 `json:"cursor"`
	Handle    string `json:"handle"`
	Extra     Extra  `json:",embed"`
}

// Interrupted is the answer of interrupt.
type Interrupted struct {
	InterruptRequested bool  `json:"interrupt_requested"`
	Turn               int64 `json:"turn"`
	Queued             bool  `json:"queued,omitzero"`
	Parked             bool  `json:"parked,omitzero"`
	Extra              Extra `json:",embed"`
}

// Turn is a turn as turns lists it.
type Turn struct {
	Turn              int64    `json:"turn"`
	RequestID         string   `json:"request_id"`
	Status            string   `json:"status"`
	Delivery          Delivery `json:"delivery"`
	Workspace         *string  `json:"workspace"`
	Model             string   `json:"model"`  // PROVIDER/MODEL
	Prompt            string   `json:"prompt"` // its first 256 characters
	PromptTruncated   bool     `json:"prompt_truncated"`
	InputTokens       int64    `json:"input_tokens"`
	OutputTokens      int64    `json:"output_tokens"`
	CachedInputTokens int64    `json:"cached_input_tokens"`
	CacheHit          float64  `json:"cache_hit"`
	ModelRounds       int64    `json:"model_rounds"`
	Retries           int64    `json:"retries"`
	PacedMS           int64    `json:"paced_ms"`
	StartedMS         *int64   `json:"started_ms"`
	FinishedMS        *int64   `json:"finished_ms"`
	External          []string `json:"external"`
	From              *From    `json:"from,omitzero"`
	Origin            string   `json:"origin,omitzero"`
	Extra             Extra    `json:",embed"`
}

// TurnPage is one page of turns, by id.
type TurnPage struct {
	Turns     []Turn `json:"turns"`
	NextAfter *int64 `json:"next_after"`
	Extra     Extra  `json:",embed"`
}

// Outcome is how a turn ended (section 8). Finished is false, and nothing but
// Turn and Status set, for one that has not. Extra holds the facts of the
// error, such as tokens_used. Into and Node are set when it was steered.
type Outcome struct {
	Turn          int64   `json:"turn"`
	Status        string  `json:"status"`
	Finished      bool    `json:"-"`
	Checkpoint    *int64  `json:"checkpoint"` // only when completed
	Error         *Code   `json:"error"`
	Detail        *string `json:"detail"`
	Text          string  `json:"text"` // the last assistant text, at most 16,384 characters
	TextTruncated bool    `json:"text_truncated"`
	Into          int64   `json:"into,omitzero"`
	Node          int64   `json:"node,omitzero"`
	Extra         Extra   `json:",embed"`
}

// plainOutcome is an Outcome without its methods.
type plainOutcome Outcome

// Fact decodes one of the error's facts into v and reports whether it is there.
func (o *Outcome) Fact(name string, v any) (bool, error) {
	raw, ok := o.Extra[name]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal(raw, v)
}

// AppendJSON writes the outcome object, or the short form of an unfinished
// turn.
func (o Outcome) AppendJSON(dst []byte) ([]byte, error) {
	if o.Finished {
		return Append(dst, plainOutcome(o))
	}
	return Append(dst, struct {
		Turn     int64  `json:"turn"`
		Status   string `json:"status"`
		Finished bool   `json:"finished"`
	}{o.Turn, o.Status, false})
}

// UnmarshalJSON reads either form.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	var p plainOutcome
	if err := v2.Unmarshal(b, &p, jsontext.AllowDuplicateNames(true)); err != nil {
		return err
	}
	p.Finished = string(p.Extra["finished"]) != "false"
	delete(p.Extra, "finished")
	*o = Outcome(p)
	return nil
}

// Process is how a background command ended. The streams are the handed ones;
// Artifacts names what was kept whole.
type Process struct {
	Stdout           string   `json:"stdout"`
	Stderr           string   `json:"stderr"`
	ExitCode         *int64   `json:"exit_code"` // nil: ended by a signal
	Success          bool     `json:"success"`
	TimedOut         bool     `json:"timed_out,omitzero"`
	Signal           Raw      `json:"signal,omitzero"`
	LeftRunning      bool     `json:"left_running,omitzero"`
	SandboxHint      string   `json:"sandbox_hint,omitzero"`
	ProtectedChanged []string `json:"protected_changed,omitzero"`
	Artifacts        Raw      `json:"artifacts,omitzero"`
	Files            Raw      `json:"files,omitzero"`
	Extra            Extra    `json:",embed"`
}

// Waited is the answer of wait. Pending names the handles not resolved; they
// stay valid.
type Waited struct {
	Results map[string]Resolved `json:"results"`
	Pending []string            `json:"pending"`
	Extra   Extra               `json:",embed"`
}

// Resolved is what one handle came to; exactly one of its fields is set. Raw,
// when the daemon has a stored process outcome, is written in Process's place.
type Resolved struct {
	Turn    *Outcome
	Process *Process
	Err     *Error
	Pending bool
	Raw     json.RawMessage
}

// AppendJSON writes the one that is set.
func (r Resolved) AppendJSON(dst []byte) ([]byte, error) {
	switch {
	case r.Turn != nil:
		return r.Turn.AppendJSON(dst)
	case r.Process != nil:
		return Append(dst, r.Process)
	case r.Err != nil:
		return append(appendErrorMembers(append(dst, '{'), r.Err), '}'), nil
	case r.Pending:
		return append(dst, `{"pending":true}`...), nil
	case r.Raw != nil:
		return Append(dst, r.Raw)
	}
	return dst, errors.New("protocol: a handle resolved to nothing")
}

// UnmarshalJSON tells the forms apart by their members.
func (r *Resolved) UnmarshalJSON(b []byte) error {
	var members map[string]jsontext.Value
	if err := v2.Unmarshal(b, &members); err != nil {
		return err
	}
	*r = Resolved{}
	switch {
	case string(members["pending"]) == "true":
		r.Pending = true
	case members["turn"] != nil:
		r.Turn = &Outcome{}
		return r.Turn.UnmarshalJSON(b)
	case members["error"].Kind() == '"' && members["stdout"] == nil:
		r.Err = errorOf(members)
	default:
		r.Process = &Process{}
		return v2.Unmarshal(b, r.Process)
	}
	return nil
}

// EventPage is one page of durable events. PrunedBefore is set when events
// before that cursor, which were asked for, are gone. Its entries are whole
// notification lines: read them with ParseEvent.
type EventPage struct {
	Events       []json.RawMessage `json:"events"`
	NextCursor   int64             `json:"next_cursor"`
	PrunedBefore *int64            `json:"pruned_before,omitzero"`
	Extra        Extra             `json:",embed"`
}

// All parses the page's entries.
func (p *EventPage) All() ([]*Event, error) {
	events := make([]*Event, len(p.Events))
	for i, line := range p.Events {
		e, err := ParseEvent(line)
		if err != nil {
			return nil, err
		}
		events[i] = e
	}
	return events, nil
}

// Following is the answer of follow, and, with a nil name, of unfollow.
type Following struct {
	Following *string `json:"following"`
	After     *int64  `json:"after,omitzero"`
	Extra     Extra   `json:",embed"`
}

// Node is one stored item's place: its id and its turn.
type Node struct {
	Node int64 `json:"node"`
	Turn int64 `json:"turn"`
}

// NodePage is one page of nodes, newest first. NextNewer is there only with
// oldest_first: use NextNewer as Set or Null then.
type NodePage struct {
	Nodes     []Node     `json:"nodes"`
	NextFrom  *int64     `json:"next_from"`
	NextNewer Opt[int64] `json:"next_newer,omitzero"`
	Extra     Extra      `json:",embed"`
}

// Item is one stored item, in its provider family's own encoding, or the code
// item_too_large. Turn is filled in by the client's History.
type Item struct {
	Node  int64           `json:"node"`
	Item  json.RawMessage `json:"item,omitzero"`
	Error Code            `json:"error,omitzero"`
	Turn  int64           `json:"-"`
}

// ItemPage is a prefix of the items asked for.
type ItemPage struct {
	Items []Item `json:"items"`
	Extra Extra  `json:",embed"`
}

// Prompts says who wrote what a turn was asked, and what it called.
type Prompts struct {
	Status    string       `json:"status"` // finished, or the live status
	Workspace *string      `json:"workspace"`
	External  []string     `json:"external"`
	Prompts   []Prompt     `json:"prompts"` // oldest first
	Earlier   []Prompt     `json:"earlier"` // newest first
	More      bool         `json:"more"`
	Calls     []PromptCall `json:"calls"`
	Extra     Extra        `json:",embed"`
}

// Prompt is one text and who wrote it: a bot's turn (From), some program
// (Origin), or, with neither, the person.
type Prompt struct {
	Turn      int64  `json:"turn"`
	Node      int64  `json:"node"`
	Text      string `json:"text"`
	Bytes     int64  `json:"bytes"` // of the whole text
	Truncated bool   `json:"truncated"`
	From      *From  `json:"from,omitzero"`
	Origin    string `json:"origin,omitzero"`
	Extra     Extra  `json:",embed"`
}

// PromptCall is a call of the turn, or with Step set a step of the served call
// before it; then Done, OK and Detail are what it has besides its names.
type PromptCall struct {
	CallID             string
	Step               string
	Name               string
	Node               int64
	Arguments          string // JSON text
	ArgumentsBytes     int64
	ArgumentsTruncated bool
	Done               bool
	Failed             bool
	OK                 bool
	Detail             string
}

type promptCallWire struct {
	CallID             string `json:"call_id"`
	Name               string `json:"name"`
	Node               int64  `json:"node"`
	Arguments          string `json:"arguments"`
	ArgumentsBytes     int64  `json:"arguments_bytes"`
	ArgumentsTruncated bool   `json:"arguments_truncated"`
	Done               bool   `json:"done"`
	Failed             bool   `json:"failed"`
}

type promptStepWire struct {
	CallID string `json:"call_id"`
	Step   string `json:"step"`
	Name   string `json:"name"`
	Done   bool   `json:"done"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitzero"`
}

// AppendJSON writes the form of a call or of a step.
func (c PromptCall) AppendJSON(dst []byte) ([]byte, error) {
	if c.Step != "" {
		return Append(dst, promptStepWire{c.CallID, c.Step, c.Name, c.Done, c.OK, c.Detail})
	}
	return Append(dst, promptCallWire{c.CallID, c.Name, c.Node, c.Arguments, c.ArgumentsBytes, c.ArgumentsTruncated, c.Done, c.Failed})
}

// UnmarshalJSON reads either form.
func (c *PromptCall) UnmarshalJSON(b []byte) error {
	var w promptCallWire
	var s promptStepWire
	if err := v2.Unmarshal(b, &w); err != nil {
		return err
	}
	if err := v2.Unmarshal(b, &s); err != nil {
		return err
	}
	*c = PromptCall{w.CallID, s.Step, w.Name, w.Node, w.Arguments, w.ArgumentsBytes, w.ArgumentsTruncated, w.Done, w.Failed, s.OK, s.Detail}
	return nil
}

// ArtifactPage is one page of a kept stream. Offsets are bytes of UTF-8.
type ArtifactPage struct {
	Text       string `json:"text"`
	NextOffset int64  `json:"next_offset"`
	TotalBytes int64  `json:"total_bytes"`
	Done       bool   `json:"done"`
	Extra      Extra  `json:",embed"`
}

// ArtifactStreams is all kept streams of a call by name.
type ArtifactStreams struct {
	Streams map[string]string `json:"streams"`
	Extra   Extra             `json:",embed"`
}

// ApprovalPage is one page of waiting calls in announcement order.
type ApprovalPage struct {
	Approvals []Approval `json:"approvals"`
	NextAfter *int64     `json:"next_after"`
	Extra     Extra      `json:",embed"`
}

// ApprovalsServing is the answer of serve_approvals: a lease and the first
// page. Later pages come from approvals with Through.
type ApprovalsServing struct {
	Tag       string     `json:"tag"`
	Lease     int64      `json:"lease"`
	LeaseMS   int64      `json:"lease_ms"`
	Approvals []Approval `json:"approvals"`
	NextAfter *int64     `json:"next_after"`
	Through   int64      `json:"through"`
	Extra     Extra      `json:",embed"`
}

// Lease is the answer of renew_approvals and renew_tools.
type Lease struct {
	Tag     string `json:"tag"`
	Lease   int64  `json:"lease"`
	LeaseMS int64  `json:"lease_ms"`
	Extra   Extra  `json:",embed"`
}

// Answered is the answer of answer. Pending are the tags still unanswered.
type Answered struct {
	Bot      string   `json:"bot"`
	Turn     int64    `json:"turn"`
	CallID   string   `json:"call_id"`
	Request  int64    `json:"request"`
	Tag      string   `json:"tag"`
	Decision string   `json:"decision"`
	Pending  []string `json:"pending"`
	Extra    Extra    `json:",embed"`
}

// ToolCallPage is one page of served calls.
type ToolCallPage struct {
	Calls     []ToolCall `json:"calls"`
	NextAfter *int64     `json:"next_after"`
	Extra     Extra      `json:",embed"`
}

// ToolsServing is the answer of serve_tools.
type ToolsServing struct {
	Tag       string     `json:"tag"`
	Lease     int64      `json:"lease"`
	LeaseMS   int64      `json:"lease_ms"`
	Calls     []ToolCall `json:"calls"`
	NextAfter *int64     `json:"next_after"`
	Through   int64      `json:"through"`
	Extra     Extra      `json:",embed"`
}

// ToolAccepted is the answer of tool_result.
type ToolAccepted struct {
	Accepted bool  `json:"accepted"`
	Extra    Extra `json:",embed"`
}

// StepVerdict is the answer of approve_step. Expired is a denial.
type StepVerdict struct {
	Step      string    `json:"step"`
	Decision  string    `json:"decision"` // Allow, Deny, Expired
	Reason    string    `json:"reason,omitzero"`
	Approvals []Verdict `json:"approvals"`
	Extra     Extra     `json:",embed"`
}

// Empty is an answer without members.
type Empty struct {
	Extra Extra `json:",embed"`
}

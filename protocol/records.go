package protocol

import (
	"encoding/json"
	"reflect"
)

// Bot is a bot's record (section 5). In a BotPage Instructions and
// CompactionInstructions are left out.
type Bot struct {
	Name                   string             `json:"name"`
	ID                     int64              `json:"id"`
	Status                 string             `json:"status"`
	RunningTurn            *int64             `json:"running_turn"` // set while running or parked
	Head                   *int64             `json:"head"`
	Workspace              *string            `json:"workspace"`
	Provider               string             `json:"provider"`
	Family                 string             `json:"family"`
	Model                  string             `json:"model"` // without the provider
	Instructions           string             `json:"instructions"`
	Reasoning              *string            `json:"reasoning"`
	Tools                  []string           `json:"tools"`
	Allowed                *[]string          `json:"allowed"` // nil: all of Tools
	UnavailableTools       []string           `json:"unavailable_tools"`
	BudgetTokens           *int64             `json:"budget_tokens"`
	TokensUsed             int64              `json:"tokens_used"`
	InputTokens            int64              `json:"input_tokens"`
	CachedInputTokens      int64              `json:"cached_input_tokens"`
	CacheHit               float64            `json:"cache_hit"` // cached ÷ input, three places
	CreatedBy              *string            `json:"created_by"`
	CreatedByID            *int64             `json:"created_by_id"`
	Note                   *int64             `json:"note"`
	Compaction             *int64             `json:"compaction"`
	Elision                *int64             `json:"elision"`
	CompactionInstructions *string            `json:"compaction_instructions"`
	CompactionModel        *string            `json:"compaction_model"`
	CacheBot               *int64             `json:"cache_bot"`
	Fallbacks              bool               `json:"fallbacks"`
	Closed                 bool               `json:"closed"`
	BotMade                bool               `json:"bot_made"` // a bot made it, or one that it was forked from
	Gates                  []Gate             `json:"gates"`
	Denials                map[string]Denials `json:"denials"` // by tag
	Settings               Settings           `json:"settings"`
	Sandbox                string             `json:"sandbox"`
	WritableRoots          []string           `json:"writable_roots"`
	UnixSockets            []string           `json:"unix_sockets"`
	Network                bool               `json:"network"`
	ExcludeSlashTmp        bool               `json:"exclude_slash_tmp"`
	ExcludeTmpdirEnvVar    bool               `json:"exclude_tmpdir_env_var"`
	Rules                  *RulesInfo         `json:"rules"`
	ClientTools            []ClientTool       `json:"client_tools"`
	Extra                  Extra              `json:",embed"`
}

// ModelRef is PROVIDER/MODEL, as create takes it.
func (b *Bot) ModelRef() string { return b.Provider + "/" + b.Model }

// AppendListed appends the record as bots lists it: without the instructions.
func (b *Bot) AppendListed(dst []byte) ([]byte, error) {
	a := appender{dst: append(dst, '{')}
	a.fields(reflect.ValueOf(b).Elem(), []string{"instructions", "compaction_instructions"})
	return append(a.dst, '}'), a.err
}

// BotPage is one page of records, by name.
type BotPage struct {
	Bots      []Bot   `json:"bots"`
	NextAfter *string `json:"next_after"`
	Extra     Extra   `json:",embed"`
}

// AppendJSON writes each record as AppendListed does.
func (p BotPage) AppendJSON(dst []byte) ([]byte, error) {
	var failed error
	dst = append(dst, `{"bots":[`...)
	for i := range p.Bots {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = p.Bots[i].AppendListed(dst); err != nil {
			failed = err
		}
	}
	dst = append(dst, `],"next_after":`...)
	dst, err := Append(dst, p.NextAfter)
	if err != nil {
		failed = err
	}
	return append(dst, '}'), failed
}

// Denials counts one tag's verdicts in a bot's newest turn (section 10). Turn
// is only in a bot's record.
type Denials struct {
	InRow   int64 `json:"in_row"`
	InTurn  int64 `json:"in_turn"`
	Recent  int64 `json:"recent"`
	Window  int64 `json:"window"`
	Expired int64 `json:"expired"`
	Turn    int64 `json:"turn,omitzero"`
	Extra   Extra `json:",embed"`
}

// RulesInfo says what command rules a bot has, not their text.
type RulesInfo struct {
	Files      int64  `json:"files"`
	Rules      int64  `json:"rules"`
	Digest     string `json:"digest"`
	Unreadable bool   `json:"unreadable"`
	Reason     string `json:"reason,omitzero"`
	Extra      Extra  `json:",embed"`
}

// Ready is the ready line, the first of every session (section 4).
type Ready struct {
	Event              string                  `json:"event"` // "ready"
	Protocol           int                     `json:"protocol"`
	PID                int                     `json:"pid"`
	Store              Store                   `json:"store"`
	Schema             int                     `json:"schema"`
	Capabilities       []string                `json:"capabilities"`
	Limits             Limits                  `json:"limits"`
	Tools              []string                `json:"tools"`
	Providers          map[string]ProviderInfo `json:"providers"`
	Durability         string                  `json:"durability"` // "sqlite_full"
	PartialTextDurable bool                    `json:"partial_text_durable"`
	Version            string                  `json:"version"`
	Sandbox            SandboxInfo             `json:"sandbox"`
	Walls              []string                `json:"walls"`
	Protected          []string                `json:"protected"`
	BotSockets         *string                 `json:"bot_sockets"` // nil in stdio mode
	Scope              *Scope                  `json:"scope,omitzero"`
	Paused             *PauseInfo              `json:"paused"`
	Extra              Extra                   `json:",embed"`

	Line json.RawMessage `json:"-"` // as received, by ParseMessage
}

// Has reports whether the daemon announces a capability. A client checks
// these, not versions.
func (r *Ready) Has(capability string) bool {
	for _, c := range r.Capabilities {
		if c == capability {
			return true
		}
	}
	return false
}

// Capabilities are what a daemon of this version announces (section 4), in
// order. The slice is the caller's.
func Capabilities() []string {
	return []string{
		"create", "resume", "fork_any_node", "context_window", "submit", "bot_identity",
		"delivery", "interrupt", "events", "item", "history_nodes", "history_items", "artifact", "follow",
		"follow_all", "bots", "wait", "wait_any", "stats", "turns", "result", "budgets", "delete", "prune",
		"shutdown_grace", "approvals", "serve_approvals", "provider_models", "inspect", "prompts", "settings",
		"configure", "allow", "closed", "client_tools", "steps", "companions", "pause", "sandbox",
		"bot_sockets", "pictures",
	}
}

// Store says which store a daemon has.
type Store struct {
	Identity string `json:"identity"` // 32 hex: this physical file
	Lineage  string `json:"lineage"`  // 16 hex: survives a copy
	Extra    Extra  `json:",embed"`
}

// Limits are a daemon's bounds (section 4). 0 means unbounded unless said, nil
// unset.
type Limits struct {
	Processes           int64  `json:"processes"`
	Detached            int64  `json:"detached"`
	Active              int64  `json:"active"`
	Connecting          int64  `json:"connecting"`
	Pending             int64  `json:"pending"`
	PendingBytes        int64  `json:"pending_bytes"`
	Connections         int64  `json:"connections"`
	StallTimeoutSeconds int64  `json:"stall_timeout_seconds"`
	KeepWarmSeconds     int64  `json:"keep_warm_seconds"` // 0: off
	ContextBytes        int64  `json:"context_bytes"`
	ContextItems        int64  `json:"context_items"`
	NoteTurns           int64  `json:"note_turns"`
	CompactAt           int64  `json:"compact_at"`   // percent
	CompactKeep         int64  `json:"compact_keep"` // percent
	RetainTurns         *int64 `json:"retain_turns"`
	OutputTokens        *int64 `json:"output_tokens"`
	IdleExitSeconds     *int64 `json:"idle_exit_seconds"`
	ApprovalHoldMS      int64  `json:"approval_hold_ms"`
	CacheTTL            string `json:"cache_ttl"` // "5m" or "1h"
	Extra               Extra  `json:",embed"`
}

// ProviderInfo describes a provider, without its key.
type ProviderInfo struct {
	Family      string      `json:"family"`    // anthropic, responses, chat, scripted
	URL         string      `json:"url"`       // for scripted: the file, or ""
	Transport   string      `json:"transport"` // http, websocket, local
	Plaintext   bool        `json:"plaintext,omitzero"`
	Auth        string      `json:"auth"`                 // key, none, chatgpt, sigv4
	KeyEnv      string      `json:"key_env,omitzero"`     // the variable's name
	Region      string      `json:"region,omitzero"`      // sigv4
	Credentials string      `json:"credentials,omitzero"` // environment, aws-cli
	Proxy       string      `json:"proxy,omitzero"`       // scheme and host, when requests go through one
	Unresolved  *Unresolved `json:"unresolved,omitzero"`
	Extra       Extra       `json:",embed"`
}

// Unresolved says why a provider's credentials could not be had.
type Unresolved struct {
	Error  Code   `json:"error"`
	Detail string `json:"detail"` // at most 200 bytes
}

// SandboxInfo says what confinement the daemon has. Available nil: not tried.
type SandboxInfo struct {
	Available *bool   `json:"available"`
	Kind      *string `json:"kind"` // bubblewrap, seatbelt
	Detail    string  `json:"detail,omitzero"`
	Extra     Extra   `json:",embed"`
}

// Scope says which bot a bot-socket session is.
type Scope struct {
	Bot   string `json:"bot"`
	BotID int64  `json:"bot_id"`
}

// PauseInfo is the pause that stands, as ready, stats and the notices give it.
type PauseInfo struct {
	By      string  `json:"by"`
	ByID    *int64  `json:"by_id"`
	Turn    *int64  `json:"turn"`
	Reason  *string `json:"reason"`
	SinceMS int64   `json:"since_ms"`
	Extra   Extra   `json:",embed"`
}

// Approval is a call, or a step, that waits for verdicts (section 10).
type Approval struct {
	Bot              string             `json:"bot,omitzero"` // not in a push's calls
	BotID            int64              `json:"bot_id,omitzero"`
	Turn             int64              `json:"turn,omitzero"`
	CallID           string             `json:"call_id"`
	Request          int64              `json:"request"`
	Name             string             `json:"name"`
	Node             int64              `json:"node"`
	Gates            []string           `json:"gates"` // tags still unanswered
	AnnouncedMS      int64              `json:"announced_ms"`
	ExpiresMS        *int64             `json:"expires_ms"`
	Cause            string             `json:"cause"` // tool, escalation, outside_write, rule_prompt, served, step
	Escalated        bool               `json:"escalated"`
	Arguments        json.RawMessage    `json:"arguments"`
	ArgumentsCut     []string           `json:"arguments_cut"`
	ArgumentsOmitted int64              `json:"arguments_omitted"`
	Denials          map[string]Denials `json:"denials"`
	Justification    string             `json:"justification,omitzero"`
	Target           []string           `json:"target,omitzero"`
	Rules            []RuleMatch        `json:"rules,omitzero"`
	Step             string             `json:"step,omitzero"`
	Failed           string             `json:"failed,omitzero"`
	Extra            Extra              `json:",embed"`
}

// Decode unmarshals the arguments into v. See Whole.
func (a *Approval) Decode(v any) error { return json.Unmarshal(a.Arguments, v) }

// Whole reports that no argument was cut or left out. A call must not be
// judged by a part of it: read its node for the rest.
func (a *Approval) Whole() bool { return len(a.ArgumentsCut) == 0 && a.ArgumentsOmitted == 0 }

// RuleMatch is a command rule that made a call wait.
type RuleMatch struct {
	Prefix        []string `json:"prefix"`
	Decision      string   `json:"decision"`
	Justification string   `json:"justification,omitzero"`
}

// Verdict is one verdict that was given. By is nil for an expiry; Decision and
// Reason stand only where a call was completed, or a step was denied. A step that
// no gate covers has one of the tag "", by nobody.
type Verdict struct {
	Tag      string  `json:"tag"`
	By       *string `json:"by"`
	Decision string  `json:"decision,omitzero"`
	Reason   string  `json:"reason,omitzero"`
	WaitedMS int64   `json:"waited_ms"`
}

// ToolCall is a call of a client-declared tool, listed or pushed (section 11).
type ToolCall struct {
	Bot                string    `json:"bot,omitzero"` // not in a push's data
	Turn               int64     `json:"turn,omitzero"`
	Tag                string    `json:"tag,omitzero"`
	CallID             string    `json:"call_id"`
	Request            int64     `json:"request"`
	Name               string    `json:"name"`
	Node               int64     `json:"node"`
	Arguments          string    `json:"arguments"` // JSON text
	ArgumentsTruncated bool      `json:"arguments_truncated,omitzero"`
	Workspace          string    `json:"workspace"`
	BotID              int64     `json:"bot_id"`
	Sandbox            string    `json:"sandbox"`
	WritableRoots      []string  `json:"writable_roots"`
	Network            bool      `json:"network"`
	Approvals          []Verdict `json:"approvals"`
	AnnouncedMS        int64     `json:"announced_ms"`
	ExpiresMS          int64     `json:"expires_ms"`
	Delivered          bool      `json:"delivered"`
	Extra              Extra     `json:",embed"`
}

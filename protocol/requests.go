package protocol

import "encoding/json"

// The requests about bots (section 7). Fields are named as on the wire. A
// field that is required there is always sent, also when empty; the others are
// left out when zero.

// Create makes a bot; the answer is its Bot record. It is not idempotent.
type Create struct {
	Bot                    string       `json:"bot"`
	Model                  string       `json:"model"`
	Instructions           string       `json:"instructions"`
	Tools                  []string     `json:"tools"` // nil is sent as []
	Workspace              string       `json:"workspace,omitzero"`
	Reasoning              string       `json:"reasoning,omitzero"`
	BudgetTokens           Opt[int64]   `json:"budget_tokens,omitzero"`
	CreatedBy              string       `json:"created_by,omitzero"`
	CreatedByID            int64        `json:"created_by_id,omitzero"`
	CompactionInstructions string       `json:"compaction_instructions,omitzero"`
	CompactionModel        string       `json:"compaction_model,omitzero"`
	Fallbacks              bool         `json:"fallbacks,omitzero"`
	Closed                 bool         `json:"closed,omitzero"`
	Approve                []string     `json:"approve,omitzero"` // nil: no gate; an empty one is refused
	Approver               string       `json:"approver,omitzero"`
	ApproveExpireMS        Opt[int64]   `json:"approve_expire_ms,omitzero"`
	Settings               *Settings    `json:"settings,omitzero"`
	Sandbox                string       `json:"sandbox,omitzero"`
	WritableRoots          []string     `json:"writable_roots,omitzero"`
	Network                Opt[bool]    `json:"network,omitzero"`
	UnixSockets            []string     `json:"unix_sockets,omitzero"`
	ExcludeSlashTmp        Opt[bool]    `json:"exclude_slash_tmp,omitzero"`
	ExcludeTmpdirEnvVar    Opt[bool]    `json:"exclude_tmpdir_env_var,omitzero"`
	Rules                  *Rules       `json:"rules,omitzero"`
	ClientTools            []ClientTool `json:"client_tools,omitzero"`
	From                   *From        `json:"from,omitzero"`

	// Absent is set by ParseRequest: which of the fields with a code of their
	// own were left out or null. No client sets it.
	Absent struct{ Model, Instructions, Tools bool } `json:"-"`

	// Given is set by ParseRequest: which of the fields that a bot's socket
	// refuses by their presence had a value, also their zero one. No client sets
	// it.
	Given struct{ Closed bool } `json:"-"`
}

// Fork makes a bot that goes on from a point of another's history; the answer
// is its Bot record. It is not idempotent.
type Fork struct {
	Source              string     `json:"source"`
	Bot                 string     `json:"bot"`
	Checkpoint          Opt[int64] `json:"checkpoint,omitzero"`
	Allow               []string   `json:"allow,omitzero"` // nil: the source's; empty: nothing
	Workspace           string     `json:"workspace,omitzero"`
	BudgetTokens        Opt[int64] `json:"budget_tokens,omitzero"`
	CreatedBy           string     `json:"created_by,omitzero"`
	CreatedByID         int64      `json:"created_by_id,omitzero"`
	Closed              Opt[bool]  `json:"closed,omitzero"`
	Approve             []string   `json:"approve,omitzero"`
	Approver            string     `json:"approver,omitzero"`
	ApproveExpireMS     Opt[int64] `json:"approve_expire_ms,omitzero"`
	Settings            *Settings  `json:"settings,omitzero"`
	Sandbox             string     `json:"sandbox,omitzero"`
	WritableRoots       []string   `json:"writable_roots,omitzero"`
	Network             Opt[bool]  `json:"network,omitzero"`
	UnixSockets         []string   `json:"unix_sockets,omitzero"`
	ExcludeSlashTmp     Opt[bool]  `json:"exclude_slash_tmp,omitzero"`
	ExcludeTmpdirEnvVar Opt[bool]  `json:"exclude_tmpdir_env_var,omitzero"`
	From                *From      `json:"from,omitzero"`
}

// Resume reads a bot's record, or, without a bot, lifts a pause (section 12).
type Resume struct {
	Bot Opt[string] `json:"bot,omitzero"`
}

// Inspect reads a bot's record.
type Inspect struct {
	Bot string `json:"bot"`
}

// Bots asks for one page of records, ordered by name; the answer is a BotPage.
type Bots struct {
	After string     `json:"after,omitzero"` // exclusive; "": from the start
	Limit Opt[int64] `json:"limit,omitzero"`
}

// Configure replaces the named parts of a bot; absent fields stay, null ones
// are cleared. The answer is the Bot record.
type Configure struct {
	Bot                 string            `json:"bot"`
	BotID               int64             `json:"bot_id,omitzero"`
	Gates               Opt[[]Gate]       `json:"gates,omitzero"`
	Rules               Opt[Rules]        `json:"rules,omitzero"`
	Settings            Opt[Settings]     `json:"settings,omitzero"` // merged by key; a null key goes back to the daemon's
	Workspace           Opt[string]       `json:"workspace,omitzero"`
	BudgetTokens        Opt[int64]        `json:"budget_tokens,omitzero"`
	Reasoning           Opt[string]       `json:"reasoning,omitzero"`
	Model               Opt[string]       `json:"model,omitzero"`
	Sandbox             Opt[string]       `json:"sandbox,omitzero"`
	WritableRoots       Opt[[]string]     `json:"writable_roots,omitzero"`
	Network             Opt[bool]         `json:"network,omitzero"`
	UnixSockets         Opt[[]string]     `json:"unix_sockets,omitzero"`
	ExcludeSlashTmp     Opt[bool]         `json:"exclude_slash_tmp,omitzero"`
	ExcludeTmpdirEnvVar Opt[bool]         `json:"exclude_tmpdir_env_var,omitzero"`
	ClientTools         Opt[[]ClientTool] `json:"client_tools,omitzero"`
}

// Delete removes a bot; the answer, Deleted, comes when all of it is gone.
type Delete struct {
	Bot string `json:"bot"`
}

// Prune removes a bot's older events, tool records and artifacts and keeps
// those of its newest finished turns; the answer is Pruned.
type Prune struct {
	Bot       string `json:"bot"`
	KeepTurns int64  `json:"keep_turns"`
}

// Rules is the text of command rules (sandbox.md 8), which the daemon parses.
// Unreadable, with a Reason, is what a client sends that could not read its
// rules: then every shell command is refused.
type Rules struct {
	Files      []RuleFile `json:"files,omitzero"`
	Unreadable bool       `json:"unreadable,omitzero"`
	Reason     string     `json:"reason,omitzero"`
}

// RuleFile is one file of rules. Its name, 1 to 255 bytes, stands in errors.
type RuleFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// ClientTool is a tool that a client answers itself (section 11). Parameters
// is a JSON Schema and keeps its bytes.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters"`
	Tag         string          `json:"tag"`
	Gated       *bool           `json:"gated,omitzero"`     // nil: true
	ExpireMS    *int64          `json:"expire_ms,omitzero"` // nil: ClientExpireMS
}

// Gate is a list of tools whose calls wait for a verdict under Tag.
type Gate struct {
	Tag      string   `json:"tag"`
	Tools    []string `json:"tools"`
	ExpireMS *int64   `json:"expire_ms,omitzero"` // nil: no deadline
}

// From says which bot's turn asked for something. BotID is optional in
// requests and always there in records and events.
type From struct {
	Bot   string `json:"bot"`
	BotID int64  `json:"bot_id,omitzero"`
	Turn  int64  `json:"turn"`
}

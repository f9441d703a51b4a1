package protocol

import (
	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The answers about the daemon (section 12).

// Stats is the answer of stats.
type Stats struct {
	Sessions          int64                    `json:"sessions"`
	ActiveTurns       int64                    `json:"active_turns"`
	ActiveLimit       int64                    `json:"active_limit"`
	WaitingTurns      int64                    `json:"waiting_turns"`
	PacedTurns        int64                    `json:"paced_turns"`
	QueuedTurns       int64                    `json:"queued_turns"`
	PendingBytes      int64                    `json:"pending_bytes"`
	PendingLimit      int64                    `json:"pending_limit"`
	PendingBytesLimit int64                    `json:"pending_bytes_limit"`
	ApprovalRequests  int64                    `json:"approval_requests"`
	Approvers         []string                 `json:"approvers"` // tags served now
	RunningProcesses  int64                    `json:"running_processes"`
	QueuedProcesses   int64                    `json:"queued_processes"`
	ProcessLimit      int64                    `json:"process_limit"`
	Transport         TransportStats           `json:"transport"`
	Providers         map[string]ProviderStats `json:"providers"`
	Store             StoreStats               `json:"store"`
	Tokens            TokenStats               `json:"tokens"`
	Handles           HandleStats              `json:"handles"`
	Draining          bool                     `json:"draining"`
	ServedTools       []string                 `json:"served_tools"`
	ToolRequests      int64                    `json:"tool_requests"`
	Paused            *PauseInfo               `json:"paused"`
	Companions        []Companion              `json:"companions"`
	Cursor            int64                    `json:"cursor"` // of the newest event published; follow from here to see what comes
	Extra             Extra                    `json:",embed"`
}

// TransportStats counts the requests under way of each shared HTTP client.
type TransportStats struct {
	InFlightByShard []int64 `json:"in_flight_by_shard"`
	Extra           Extra   `json:",embed"`
}

// ProviderStats is what one provider allows and uses.
type ProviderStats struct {
	Pools   map[string]PoolStats `json:"pools"`
	Sockets int64                `json:"sockets"` // WebSocket connections open
	Plan    Raw                  `json:"plan,omitzero"`
	Extra   Extra                `json:",embed"`
}

// PoolStats is one pool of a provider's rate limits; nil until learned.
type PoolStats struct {
	RequestsPerMinute     *int64 `json:"requests_per_minute"`
	RequestsAvailable     *int64 `json:"requests_available"`
	TokensPerMinute       *int64 `json:"tokens_per_minute"`
	TokensAvailable       *int64 `json:"tokens_available"`
	InputTokensPerMinute  *int64 `json:"input_tokens_per_minute"`
	InputTokensAvailable  *int64 `json:"input_tokens_available"`
	OutputTokensPerMinute *int64 `json:"output_tokens_per_minute"`
	OutputTokensAvailable *int64 `json:"output_tokens_available"`
	ReservedRequests      int64  `json:"reserved_requests"`
	ReservedTokens        int64  `json:"reserved_tokens"`
	BlockedMS             int64  `json:"blocked_ms"`
	Extra                 Extra  `json:",embed"`
}

// StoreStats is the store's size and its writer's work. Times are
// milliseconds; BucketsUS are the histograms' 13 upper bounds in microseconds.
type StoreStats struct {
	Bytes         int64                     `json:"bytes"`
	WALBytes      int64                     `json:"wal_bytes"`
	Jobs          int64                     `json:"jobs"`
	QueuedMS      float64                   `json:"queued_ms"`
	RanMS         float64                   `json:"ran_ms"`
	AnsweredMS    float64                   `json:"answered_ms"`
	StorageErrors int64                     `json:"storage_errors"`
	BucketsUS     []int64                   `json:"buckets_us"`
	Operations    map[string]OperationStats `json:"operations"`
	Groups        GroupStats                `json:"groups"`
	Extra         Extra                     `json:",embed"`
}

// OperationStats is one kind of store job. Each histogram has 14 slots that
// sum to Count.
type OperationStats struct {
	Count             int64   `json:"count"`
	QueuedMS          float64 `json:"queued_ms"`
	RanMS             float64 `json:"ran_ms"`
	AnsweredMS        float64 `json:"answered_ms"`
	SlowestMS         float64 `json:"slowest_ms"`
	SlowestAnsweredMS float64 `json:"slowest_answered_ms"`
	StorageErrors     int64   `json:"storage_errors"`
	Ran               []int64 `json:"ran"`
	Queued            []int64 `json:"queued"`
	Answered          []int64 `json:"answered"`
	Extra             Extra   `json:",embed"`
}

// GroupStats is how jobs share commits.
type GroupStats struct {
	Count           int64   `json:"count"`
	Jobs            int64   `json:"jobs"`
	SizeBounds      []int64 `json:"size_bounds"`
	Sizes           []int64 `json:"sizes"`
	Oldest          []int64 `json:"oldest"`
	SlowestOldestMS float64 `json:"slowest_oldest_ms"`
	Extra           Extra   `json:",embed"`
}

// TokenStats counts tokens since this daemon started.
type TokenStats struct {
	InputTokens       int64   `json:"input_tokens"`
	CachedInputTokens int64   `json:"cached_input_tokens"`
	OutputTokens      int64   `json:"output_tokens"`
	CacheHit          float64 `json:"cache_hit"`
	Extra             Extra   `json:",embed"`
}

// HandleStats counts what waits use.
type HandleStats struct {
	Waiters  int64 `json:"waiters"`
	Retained int64 `json:"retained"`
	Extra    Extra `json:",embed"`
}

// ProviderModels is the answer of provider_models, by provider.
type ProviderModels struct {
	Providers map[string]ModelList `json:"providers"`
	Extra     Extra                `json:",embed"`
}

// ModelList is one provider's models, or, when Error is not "", why not.
type ModelList struct {
	Models []ModelInfo
	Error  Code
	Detail string
}

type modelListWire struct {
	Models []ModelInfo `json:"models"`
	Error  Code        `json:"error"`
	Detail string      `json:"detail"`
}

// AppendJSON writes {"models":…} or {"error":…,"detail":…}.
func (l ModelList) AppendJSON(dst []byte) ([]byte, error) {
	if l.Error == "" {
		return Append(dst, struct {
			Models []ModelInfo `json:"models"`
		}{l.Models})
	}
	return Append(dst, struct {
		Error  Code   `json:"error"`
		Detail string `json:"detail"`
	}{l.Error, l.Detail})
}

// UnmarshalJSONFrom reads either form.
func (l *ModelList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var w modelListWire
	if err := v2.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	*l = ModelList(w)
	return nil
}

// ModelInfo is one model of a provider's own list.
type ModelInfo struct {
	ID            string `json:"id"`
	Name          string `json:"name,omitzero"`
	ContextTokens int64  `json:"context_tokens,omitzero"`
	OutputTokens  int64  `json:"output_tokens,omitzero"`
	Extra         Extra  `json:",embed"`
}

// Companions is the answer of companions.
type Companions struct {
	Companions []Companion `json:"companions"`
	Extra      Extra       `json:",embed"`
}

// Companion is a helper program that the daemon keeps running.
type Companion struct {
	Name     string   `json:"name"`
	Command  []string `json:"command"`
	PID      *int64   `json:"pid"`
	SinceMS  int64    `json:"since_ms"`
	Restarts int64    `json:"restarts"`
	LastExit Raw      `json:"last_exit"`
	Log      string   `json:"log"`
	Extra    Extra    `json:",embed"`
}

// Pause is the answer of pause.
type Pause struct {
	Paused           bool    `json:"paused"`
	By               string  `json:"by"`
	ByID             *int64  `json:"by_id"`
	Turn             *int64  `json:"turn"`
	Reason           *string `json:"reason"`
	SinceMS          int64   `json:"since_ms"`
	InterruptedTurns int64   `json:"interrupted_turns"`
	EndedProcesses   int64   `json:"ended_processes"`
	Already          bool    `json:"already,omitzero"`
	Extra            Extra   `json:",embed"`
}

// Resumed is the answer of resume without a bot.
type Resumed struct {
	Paused bool       `json:"paused"`
	Was    *PauseInfo `json:"was"`
	Extra  Extra      `json:",embed"`
}

// ShuttingDown is the answer of shutdown.
type ShuttingDown struct {
	ShuttingDown bool  `json:"shutting_down"`
	Extra        Extra `json:",embed"`
}

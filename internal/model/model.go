// Package model says what a call of a language model is: the request, the
// stream it answers with, and the ways it fails. One folder below it for each
// wire family turns these into bytes and back (providers.md).
//
// The daemon keeps a conversation as items in the family's own JSON. An item
// is written once, stored byte for byte and sent again byte for byte; nothing
// here decodes and re-encodes one.
package model

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Family names a wire encoding. A bot is bound to one for life.
type Family string

const (
	FamilyAnthropic Family = "anthropic"
	FamilyResponses Family = "responses"
	FamilyChat      Family = "chat"
	FamilyScripted  Family = "scripted"
)

// Request is one model call. A Provider only reads it, and may read Items
// more than once.
type Request struct {
	Bot          string
	BotID        int64
	Turn         int64
	Round        int64           // rounds of the turn already counted
	Skipped      int64           // items of the lineage that the window leaves out
	Workspace    string          // the turn's folder; only the scripted family reads it
	Model        string          // id without the provider prefix
	Instructions string          // "" omits the system field
	Reasoning    string          // "", low, medium, high, xhigh, max
	Tools        json.RawMessage // encoded for the family by Codec.Tools; nil when none
	ToolNames    []string        // the same, by name
	AllowTools   bool            // false: schemas are sent, new calls are disabled
	WebSearch    string          // "", live, cached
	Fallbacks    bool            // Anthropic's server-side fallback
	CacheKey     string          // responses: prompt_cache_key
	CacheTTL     string          // anthropic: "5m" or "1h"
	MaxOutput    int64           // output-token cap; 0: the model's own
	Attempt      int             // 0-based
	Stall        time.Duration   // the stall bound (runtime.md 18)
	Items        Items
	Chain        *Chain  // its place in the bot's history; nil for a call aside from it
	TurnState    *string // sticky-routing token of this turn

	// IDTaken reports whether a call id is already used on the bot's lineage;
	// NewID makes one of ours for the call at index of this response
	// (providers.md 5, "Calls made safe"). Both are never nil.
	IDTaken func(id string) (bool, error)
	NewID   func(index int) string
}

// Items is the input envelope: stored items joined by commas, streamed from
// the store and never assembled.
type Items struct {
	Bytes int64 // exact length of what a reader yields
	Count int
	// Open starts a reading at the first byte. Each reading yields the same
	// bytes, and its failure each time. A Read of no bytes makes the next ones
	// ready. The caller closes it; its buffers are free only then.
	Open func() (io.ReadCloser, error)
}

// Chain is where a request stands in its bot's history, for a server that
// remembers what it was sent last (providers.md 8).
type Chain struct {
	Ahead [][]byte // what the input holds ahead of the stored items
	Nodes int      // how many stored items it holds
	// Node is the i-th of them: its id, and a number that tells the ways apart
	// in which it can be sent, 0 for it whole.
	Node func(i int) (id int64, form uint64)
	// After is the input behind the first n of them.
	After func(n int) Items
}

// Rememberer is a Provider that may send less than a bot's whole history where
// the server has the rest. Bots go by their ids, which are never used again.
type Rememberer interface {
	// Recorded is told that the items of the bot's last completion are stored,
	// each as it came, as these nodes. Only then does a request go on from it.
	// The bot's own turn calls it, between two calls of Complete.
	Recorded(bot int64, nodes []int64)
	// Forget is told that a bot is deleted.
	Forget(bot int64)
}

// Event is a live piece of a stream. It is never durable.
type Event struct {
	Kind   string // "text", "thinking", "web_search"
	Text   string
	Status string // web_search only, as Query and URL
	Query  string
	URL    string
}

const (
	EventText      = "text"
	EventThinking  = "thinking"
	EventWebSearch = "web_search"
)

// Call is one tool call of a response, made safe: ID is unused on the lineage
// and Arguments is a JSON object.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage
	// Invalid says what was wrong with the arguments the model sent, quoting
	// at most 1 KiB of them; the call is answered invalid_tool_arguments with
	// it and does not run. "" for a good call.
	Invalid string
	// ProviderID is the provider's own id, at most 256 bytes of it, where ID is
	// one of ours.
	ProviderID string
	// ProviderName is the name that the model wrote, at most 256 bytes of it,
	// where Name only stands for one that no provider would take back. No tool
	// has such a name; the call is answered tool_not_available. "" otherwise.
	ProviderName string
}

// Completion is what a finished stream holds.
type Completion struct {
	Items           [][]byte // native items to append, byte for byte, in order
	Calls           []Call
	Usage           *Usage
	Continue        bool // the provider paused: call again at once
	ThinkingDropped int
	Fallbacks       []Switch
	External        bool // the provider brought in outside content
}

// Switch is a server-side change of model.
type Switch struct{ From, To string }

// Usage is what a provider reports of one call (providers.md 20).
type Usage struct {
	Input, Output, Cached    int64 // Input includes Cached and the writes
	CacheWrite, CacheWrite1h int64
	Reasoning, WebSearches   int64
	Estimated                bool
	Models                   []ModelUsage
	HasCacheWrite            bool
	HasReasoning             bool
}

// ModelUsage is one model's part of a split bill.
type ModelUsage struct {
	Provider                          string
	Model                             string
	Input, Output, Cached, CacheWrite int64
}

// Report is filled while a call runs, on failure too.
type Report struct {
	Usage      *Usage
	Dispatched bool          // the request reached the wire
	SentMS     int64         // when, Unix milliseconds
	ParkFor    time.Duration // >0 with an error nil completion: the pool is closed this long; nothing was sent
	RequestID  string        // the provider's, for the log
	PacedMS    int64         // spent in the pool's gate before dispatch; counts for no clock
}

// Model is an entry of a provider's list.
type Model struct {
	ID            string `json:"id"`
	Name          string `json:"name,omitempty"`
	ContextTokens int64  `json:"context_tokens,omitempty"`
	OutputTokens  int64  `json:"output_tokens,omitempty"`
}

// Info is how a provider appears in the ready line. It never holds a key.
type Info struct {
	Family    Family `json:"family"`
	URL       string `json:"url"`
	Transport string `json:"transport"` // http, websocket, local
	Plaintext bool   `json:"plaintext,omitempty"`
	Auth      string `json:"auth"` // key, none, chatgpt, sigv4
	KeyEnv    string `json:"key_env,omitempty"`
	Region    string `json:"region,omitempty"`
}

// Provider is a named binding. It is safe for concurrent use.
type Provider interface {
	Info() Info
	// Complete makes one attempt and never retries. It returns an *Error, or
	// the error of ctx's cause when ctx ended. sink gets live pieces in order
	// and may block; that time counts for no clock.
	//
	// When the pool is closed for 250 ms or more it returns ErrPaced at once
	// with rep.ParkFor set.
	Complete(ctx context.Context, req *Request, sink func(Event), rep *Report) (*Completion, error)
	// Models lists what the provider says it serves.
	Models(ctx context.Context) ([]Model, error)
	// Status is the provider's part of stats, as JSON.
	Status() json.RawMessage
}

// Codec turns neutral facts into a family's items and back. It is stateless.
type Codec interface {
	Family() Family
	// User encodes a user message.
	User(text string, pictures []Picture) []byte
	// UserMarked is User with the family's cache mark on its last block, for
	// the pinned note and summary. ttl is "5m" or "1h".
	UserMarked(text, ttl string) []byte
	// Result encodes one tool result.
	Result(r Result) []byte
	// Tools encodes definitions as the family's JSON array.
	Tools(defs []ToolDef) []byte
	// Describe reads what people and programs need from a stored item.
	Describe(item []byte) (Described, error)
	// ThinkingBytes is by how much WithoutThinking is shorter than item; the
	// whole length when nothing would be left, and then the item is left out
	// with its comma. 0 for families that do not bind thinking.
	ThinkingBytes(item []byte) int
	// WithoutThinking appends item without its thinking blocks.
	WithoutThinking(dst, item []byte) []byte
}

// Result is a tool's answer to one call.
type Result struct {
	CallID   string
	Output   string
	Failed   bool
	Pictures []Picture
}

// Picture stands in an item as a placeholder that names its content; its
// base64 is put in as the request is sent (PicturePlaceholder).
type Picture struct {
	Hash      [32]byte
	MediaType string
	Bytes     int64 // raw length
}

// ToolDef is what the model is told of a tool.
type ToolDef struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Described is what an item says.
type Described struct {
	Role   string // user, assistant, tool, reasoning, other
	Text   string // user's or assistant's text; a tool result's output
	CallID string // of a tool result
	Calls  []Call // of an assistant item
}

// Placed is a Codec whose family sends some things by their place in the
// conversation (providers.md 9). Thinking goes with the answers behind the last
// user message of a request, and with no others. A tool's result is text alone:
// the pictures of a round's results follow the last of them in one user message.
type Placed interface {
	Codec
	// RoleOf is who wrote an item: user, assistant or tool, by its first
	// PlacedHead bytes.
	RoleOf(head []byte) string
}

// PlacedHead is how many of an item's bytes tell a Placed codec who wrote it.
const PlacedHead = 14

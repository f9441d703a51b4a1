// Package protocol is the wire between the agent daemon and whoever drives it,
// as Go types: requests, answers, records, events, error codes, limits and the
// line codec. It does no I/O of its own and starts no goroutine.
//
// # The wire
//
// The daemon listens on a Unix stream socket. Each message is one JSON object
// on one line of at most [MaxLine] bytes. The daemon speaks first: its ready
// line ([Ready]) says what it can do. Then the client sends requests,
//
//	{"id":1,"op":"submit","bot":"Ada","request_id":"r1","prompt":"Hello"}
//
// each answered by a line with the same id that holds a result or an error,
//
//	{"id":1,"result":{"bot":"Ada","bot_id":12,"turn":40,…}}
//	{"id":1,"error":"bot_busy","detail":"turn 39 runs"}
//
// and between the answers come notifications, which have an event and no id:
//
//	{"cursor":102,"bot":"Ada","turn":40,"event":"accepted","data":{…}}
//
// # Which type is which
//
// A request is a struct named after its operation: [Create], [Submit], [Wait].
// Where an answer carries the plain name the request ends in Request:
// [PromptsRequest] asks for [Prompts]. An optional request field that may also
// be zero or null is an [Opt]; a nullable answer field is a pointer. An answer's
// Extra holds the members this build does not know. JSON values that are only
// handed on (a tool's parameters, a step's arguments, stored items) are
// json.RawMessage and keep their bytes in both directions.
//
// A refusal is an [*Error] with a [Code]; test it with errors.Is:
//
//	if errors.Is(err, protocol.BudgetExhausted) { … }
//
// # Speaking it
//
// Most programs use package client. One with a transport of its own reads
// lines with [Reader] and writes them with [AppendRequest]. The daemon's side
// is [LineReader], [ParseRequest], [AppendResult], [AppendError],
// [AppendEvent] and [AppendLive].
//
// Section numbers in this package's comments are those of the protocol
// document, unless another one is named.
package protocol

import "encoding/json"

// Version is the protocol's number, as the ready line gives it.
const Version = 3

// Raw is a JSON value handed on byte for byte.
type Raw = json.RawMessage

// Extra holds an answer's members that this build does not know.
type Extra = map[string]json.RawMessage

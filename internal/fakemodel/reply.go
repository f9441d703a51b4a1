package fakemodel

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agent/internal/model"
)

// Reply is what the server does with one request. The zero value is an answer
// without content. Times are waited for in this order: Delay, Headers, then
// the head of the stream, KeepAliveFor, Start, the blocks with Gap between
// their deltas, Finish, the end.
type Reply struct {
	// Status other than 0 and 200 is an HTTP error with Header and Body; an
	// empty Body is the family's own for that status, saying Message.
	Status  int
	Header  http.Header
	Body    string
	Message string

	Blocks    []Block
	DeltaSize int           // bytes of text in a delta, 0: a block in one
	Gap       time.Duration // between two deltas
	Usage     *Usage        // nil: bytes by four
	// Stop is the reason at the end: Anthropic's stop_reason, or for Responses
	// the reason of response.incomplete. "" is the family's own for a good end.
	Stop string
	// Fail ends the stream with the family's error event after the blocks.
	Fail *Failure

	// Raw replaces the whole body of the stream.
	Raw []byte
	// ContentType replaces text/event-stream; "-" sends none.
	ContentType string
	// Stored are the items the client has to send back. nil: worked out from
	// Blocks. A Raw reply has none unless they are named here.
	Stored [][]byte

	Delay   time.Duration // before the headers
	Headers *Gate         // holds the headers back
	Start   *Gate         // holds the first block back
	Finish  *Gate         // holds the end back

	// KeepAlive sends keep-alives at this interval for KeepAliveFor before the
	// first block, and without end when Stall is set. Comments makes them
	// comment lines in place of the family's ping.
	KeepAlive    time.Duration
	KeepAliveFor time.Duration
	Comments     bool

	// Stall sends nothing after the blocks (but keep-alives, if KeepAlive is
	// set) until the client leaves.
	Stall bool
	// NoEnd leaves out the last event. MidFrame stops in the middle of it.
	NoEnd    bool
	MidFrame bool
	// CutAt stops after this many bytes of the body; 0 is never. Abort breaks
	// the connection there in place of ending the body.
	CutAt int64
	Abort bool

	Chat ChatQuirks
}

// ChatQuirks are what servers of the Chat Completions family differ in.
type ChatQuirks struct {
	WholeCalls bool // all calls in one chunk, each whole
	NoIndex    bool // calls without their index
	NoUsage    bool
	NoDone     bool // the stream ends without [DONE]
	AtOnce     bool // one chat.completion as application/json
	Reasoning  bool // thinking is named reasoning, not reasoning_content
}

// Usage are the numbers a reply reports, in the families' sense: Input is
// everything processed.
type Usage struct {
	Input, Output, Cached, CacheWrite, CacheWrite1h, Reasoning int64
}

// Failure is an error inside a stream.
type Failure struct{ Type, Message string }

// Block is a part of an answer.
type Block struct {
	kind      string
	text      string // what is said; a call's arguments
	signature string
	id        string
	ownID     bool // id is stated, "" included
	name      string
}

// Text is a part of the answer proper.
func Text(s string) Block { return Block{kind: "text", text: s} }

// Thinking is thinking with a signature of the server's making (Responses: a
// reasoning item with encrypted content).
func Thinking(s string) Block { return Block{kind: "thinking", text: s} }

// Redacted is thinking nobody can read; Responses has no such thing and sends
// a reasoning item without a summary.
func Redacted() Block { return Block{kind: "redacted"} }

// Call is a tool call with an id of the server's making. arguments are sent as
// they are, broken ones too.
func Call(tool, arguments string) Block { return Block{kind: "call", name: tool, text: arguments} }

// CallID is Call with a stated id, "" and repeated ones included.
func CallID(id, tool, arguments string) Block {
	return Block{kind: "call", id: id, ownID: true, name: tool, text: arguments}
}

// Raw is a content block (Anthropic) or an output item (Responses) as it is.
func Raw(json string) Block { return Block{kind: "raw", text: json} }

// Say is a reply of one text and the calls after it.
func Say(text string, more ...Block) Reply {
	blocks := more
	if text != "" {
		blocks = append([]Block{Text(text)}, more...)
	}
	return Reply{Blocks: blocks}
}

// Deltas is a reply of n deltas of size bytes with a gap between them.
func Deltas(n, size int, gap time.Duration) Reply {
	word := strings.Repeat("x", max(size-1, 0)) + " "
	return Reply{Blocks: []Block{Text(strings.Repeat(word, n))}, DeltaSize: size, Gap: gap}
}

// HTTPError is a reply with a status and the family's body for it.
func HTTPError(status int, message string, header ...string) Reply {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return Reply{Status: status, Message: message, Header: h}
}

// Gate holds replies until a test lets them go. It is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	open    chan struct{}
	waiting int
	arrived chan struct{} // closed and replaced when one more waits
}

// NewGate makes a closed gate.
func NewGate() *Gate {
	return &Gate{open: make(chan struct{}), arrived: make(chan struct{})}
}

// Release opens the gate for good.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// Waiting is how many replies have come to the gate so far.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// Await waits until n replies have come to the gate or done is closed, and
// reports which.
func (g *Gate) Await(done <-chan struct{}, n int) bool {
	for {
		g.mu.Lock()
		count, arrived := g.waiting, g.arrived
		g.mu.Unlock()
		if count >= n {
			return true
		}
		select {
		case <-arrived:
		case <-done:
			return false
		}
	}
}

// pass waits at the gate.
func (g *Gate) pass(done <-chan struct{}) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	g.waiting++
	close(g.arrived)
	g.arrived = make(chan struct{})
	g.mu.Unlock()
	select {
	case <-g.open:
		return true
	case <-done:
		return false
	}
}

// built is a block as it is sent and as it must come back.
type built struct {
	Block
	mended  bool // the client must put something else in place
	sentID  string
	storeID string
	tool    string // the name as it comes back
	stored  string // arguments as they come back
}

// build gives every block its ids and secrets. They depend on the conversation
// alone, so that two runs are the same.
func build(req *Request, blocks []Block) []built {
	out := make([]built, len(blocks))
	seed := req.prefix
	for i, b := range blocks {
		seed = chain(seed, sum([]byte(b.kind+b.name+b.text)))
		x := built{Block: b}
		switch b.kind {
		case "thinking", "redacted":
			x.signature = base64.StdEncoding.EncodeToString(seed[:]) // may hold + and /
		case "call":
			x.sentID = b.id
			if !b.ownID {
				x.sentID = callID(req, seed)
			}
			x.storeID, x.tool, x.stored = x.sentID, b.name, b.text
			if !toolForm.MatchString(b.name) {
				x.tool, x.mended = model.SafeName(b.name), true
			}
			if !idForm.MatchString(x.sentID) || req.ids[x.sentID] {
				x.storeID, x.mended = "call_000000000000", true
			}
			req.ids[x.sentID] = true
			if !isObject(b.text) || !utf8.ValidString(b.text) || !isStrict([]byte(b.text)) {
				x.stored, x.mended = "{}", true
			}
		}
		out[i] = x
	}
	return out
}

const hexDigits = "0123456789abcdef"

// callID makes an id that is none of the form clients make.
func callID(req *Request, seed key) string {
	b := []byte("call_f")
	if req.Family == model.FamilyAnthropic {
		b = []byte("toolu_")
	}
	for _, c := range seed[:8] {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return string(b)
}

// splitDeltas cuts text into pieces of about size bytes, between characters.
func splitDeltas(s string, size int) []string {
	if s == "" {
		return nil
	}
	if size <= 0 {
		return []string{s}
	}
	var out []string
	for len(s) > size {
		end := size
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		if end == 0 {
			_, end = utf8.DecodeRuneInString(s)
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return append(out, s)
}

// appendString quotes s for JSON. Unlike an encoder it lets bytes that are no
// UTF-8 pass, which is what a broken model server does.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// Package tool holds the tools a bot may call: their contracts, the texts a
// model reads (one .md file beside each), and their work. A tool knows nothing
// of turns, stores or sockets; what it may use of them comes in Env.
package tool

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
)

// Tool is one tool. It is stateless and safe for concurrent use.
type Tool interface {
	// Def is what the model is told.
	Def() model.ToolDef
	// Check says what is wrong with arguments, a JSON object, or returns nil.
	// Unknown fields, wrong types and values out of range are wrong. It touches
	// nothing, so that it can be asked when a call is planned. What it returns
	// is a *Failure: invalid_tool_arguments, or the code that the tool's section
	// gives for one value (invalid_path, tool_input_limit, tool_output_limit).
	Check(args json.RawMessage) error
	// Run does the work of checked arguments. It blocks until the work is done
	// or ctx ends, and always returns a result: failing is a result, too.
	Run(ctx context.Context, env *Env, args json.RawMessage) Result
}

// Env is what one call runs in. Fields are read only.
type Env struct {
	Bot       string
	BotID     int64
	Turn      int64
	CallID    string
	Workspace string   // absolute; relative paths start here
	Environ   []string // of a shell command, complete
	Shell     string   // the shell's path, FindShell
	// Confinement holds the call's commands and changes; nil for a call that
	// runs outside every sandbox.
	Confinement *Confinement
	// Outside are the real paths that somebody allowed a confined call to change,
	// though they leave the sandbox: those and no others. Nil: none.
	Outside []string
	// FilesDir is the bot's folder for spilled output, made when first needed,
	// 0700 (runtime.md 12).
	FilesDir string
	// Redact masks secrets. Never nil.
	Redact Redactor
	// Processes bounds children daemon-wide. Never nil.
	Processes *Slots
	// Captures bounds the memory of running captures daemon-wide. Never nil.
	Captures *Budget
	// IsStoreFile reports whether a file is one of the store's own, which the
	// daemon itself must never open (runtime.md 10): the helper child reads it.
	IsStoreFile func(os.FileInfo) bool
	// SelfExe is the daemon's own program, for its helper children.
	SelfExe string
	// Pictures keeps pictures. Never nil where any are looked at.
	Pictures PictureKeeper
	// TextOnly says that the bot's model is known to take no pictures.
	TextOnly bool
	// Seen remembers files as the bot last read or wrote them.
	Seen SeenFiles
	// Past reads the bot's lineage and retained output.
	Past Past
	// Beyond keeps what outlives the call. Nil: nothing may.
	Beyond Beyond
	// Cause tells why ctx ended, for the way a running command is ended.
	// Nil means an interrupt.
	Cause func() StopCause
}

// StopCause says how gently a foreground command ends when its call's context
// does: an interrupt gives it SIGTERM and 500 ms, the others kill at once.
type StopCause int

const (
	StopInterrupt StopCause = iota
	StopShutdown
	StopPause
)

// Redactor masks secrets in text that leaves a tool (approvals.md 20).
type Redactor interface {
	// Bytes returns b with secrets masked, b itself when there are none.
	Bytes(b []byte) []byte
	// Stream masks what is written through it, secrets across write borders
	// included. Close releases what is held back; it does not close w.
	Stream(w io.Writer) io.WriteCloser
}

// Result is what a call came to.
type Result struct {
	// Output is the text the model reads, redacted and bounded; for most tools
	// one JSON object.
	Output string
	// Failed marks an error result ({"error":CODE,"detail":...}) and a
	// command that ended non-zero or was killed.
	Failed    bool
	Artifacts []Artifact
	Seen      []SeenFile
	Note      *string // the note tool's new text
	Pictures  []PictureData
	External  bool // outside content came in
}

// Artifact is a retained stream: either Data (at most 1 MiB) or File, an
// absolute path of a complete, synced file in Env.FilesDir.
type Artifact struct {
	Stream    string
	Data      []byte
	File      string
	Bytes     int64
	Truncated bool // the disk filled: the stream is cut where it stopped
}

// SeenFile is a file as a bot last read or wrote it (runtime.md 11).
type SeenFile struct {
	Path    string // real, absolute
	Size    int64
	MtimeNS int64
	Inode   uint64
	Hash    [32]byte // SHA-256 of the content
}

// SeenFiles looks up what a bot has seen.
type SeenFiles interface {
	Seen(ctx context.Context, path string) (SeenFile, bool, error)
}

// Past is a bot's lineage and what its calls kept. Errors with a code for the
// model are *Failure.
type Past interface {
	// TurnView is a turn's reading view (runtime.md 11, history): the items of
	// the turn with this ordinal, a line each. at and limit are bytes.
	TurnView(ctx context.Context, ordinal, at int64, limit int) (View, error)
	// Artifact opens a retained stream, already redacted.
	Artifact(ctx context.Context, turn int64, callID, stream string) (io.ReadCloser, error)
	// ToolResult is the output of the tool result at a node of the lineage.
	ToolResult(ctx context.Context, node int64) (string, error)
	// NoteRoom is how many bytes a note may take beside the mandatory prefix
	// and the current turn; HistoryRoom how many an encoded history result may.
	NoteRoom(ctx context.Context) (int64, error)
	HistoryRoom(ctx context.Context) (int64, error)
}

// View is a page of a turn's reading view.
type View struct {
	Text  string // from the asked byte on, whole characters
	Items int64  // items of the turn
	Total int64  // bytes of the whole view
}

// Failure is a failed call with its code (protocol.md 18, results of tools).
type Failure struct {
	Code   string
	Detail string
}

func (f *Failure) Error() string { return f.Code + ": " + f.Detail }

// Fail is the result of a failed call. detail passes no redaction here.
func Fail(code, detail string) Result {
	return Result{Output: FailureText(code, detail), Failed: true}
}

// FailureText is the text of an error result; an empty detail is null. Bytes of
// detail that are not UTF-8 become U+FFFD; nothing is escaped for HTML.
func FailureText(code, detail string) string {
	b := appendQuoted([]byte(`{"error":`), code)
	b = append(b, `,"detail":`...)
	if detail == "" {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, detail)
	}
	return string(append(b, '}'))
}

// appendQuoted appends text as a JSON string, with only what must be escaped
// escaped.
func appendQuoted(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // its error only says that U+FFFD was put in
	return b
}

// quote is text as a JSON string.
func quote(text string) []byte { return appendQuoted(nil, text) }

package cells

import (
	"strings"

	"agent/internal/sonny/screen/diff"
	"agent/protocol"
)

// NewCall is a call that stands in no transcript: what is told without a screen takes
// it apart by the same rules.
func NewCall(id, name, arguments string) *ToolCall { return newCall(id, name, arguments) }

// Finish takes what the call came to.
func (c *ToolCall) Finish(result string) { c.finish(result) }

// Failed is the code of a result that is an error, and what it says; "" for none.
func (c *ToolCall) Failed() (code protocol.Code, why string) { return protocol.Code(c.failed), c.why }

// OK reports whether the call came to what it was made for.
func (c *ToolCall) OK() bool { return c.ok() }

// ExitCode is that of a command that ended by itself.
func (c *ToolCall) ExitCode() (code int64, ok bool) {
	if c.shell == nil || c.shell.ExitCode == nil {
		return 0, false
	}
	return *c.shell.ExitCode, true
}

// Output is the result as text: a command's two streams, an error's code and detail, or
// what the tool said.
func (c *ToolCall) Output() string {
	switch {
	case c.shell != nil:
		return *c.shell.Stdout + c.shell.Stderr
	case c.failed != "":
		return strings.TrimSuffix(c.failed+": "+c.why, ": ")
	}
	return c.Result
}

// Files are what the call does to each file, by its own record.
func (c *ToolCall) Files() []*diff.File { return c.files() }

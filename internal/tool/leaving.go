package tool

import "encoding/json"

// Confined reports whether a tool's calls are held by the bot's sandbox: what
// starts commands, feeds them, or changes files (sandbox.md 1).
func Confined(name string) bool {
	switch name {
	case "shell", "write_stdin", "write", "edit", "apply_patch":
		return true
	}
	return false
}

// Script is what a checked shell call runs, and whether it asks to run outside
// the sandbox.
func Script(args json.RawMessage) (script string, escalated bool) {
	var a shellArgs
	if decode(args, &a) != nil {
		return "", false
	}
	return a.Command.value, a.Sandbox.or("use_default") == "require_escalated"
}

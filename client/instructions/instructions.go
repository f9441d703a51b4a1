// Package instructions holds the built-in texts that a new bot's instructions
// begin with (section 17 of the command-line document).
package instructions

import _ "embed"

//go:embed preamble.md
var preamble string

//go:embed compaction.md
var compaction string

// Preamble is what a new bot is told when nothing else is given: how to
// delegate, pick a model, continue, fork and collect with the agent command,
// and what its environment means. It names no role and no way of working.
func Preamble() string { return preamble }

// Compaction is the text by which a new bot's history is summarized when its
// context is nearly full.
func Compaction() string { return compaction }

// Package instructions puts a bot's instructions together (section 17 of the
// command-line document). The daemon adds no word to what a client sends, so that
// what a bot is told is the client's to say; whoever uses Compose tells it the
// same, byte for byte, for the same files.
//
// Preamble is the text of a bot of which nothing is asked; Compose gives the whole
// for a workspace: the AGENTS.md files, the indexes of skills, roles and memory,
// the commons, a role.
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

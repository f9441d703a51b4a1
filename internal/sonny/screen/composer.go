package screen

import "agent/internal/sonny/screen/edit"

// composer is a message that is being written. The zero value is empty.
type composer struct {
	edit.Field

	stash   edit.Stash
	of      *session // nil on the start screen
	keptAs  string   // the key of what is kept
	file    string   // the same; "" until that was read
	mark    string   // of what is kept
	took    []string // the marks of what came here from elsewhere, while that has it too
	seen    [4]int   // the version that was looked at last
	unsaved bool
	then    func() // once, when what is kept is here; nil for nothing
	running bool   // it holds a command that runs now
	reading int    // pictures that are on their way into it
	offer   *shell // whose output goes with the next message, if the person wants it
}

package screen

import "agent/internal/sonny/screen/edit"

// composer is a message that is being written. The zero value is empty.
type composer struct {
	edit.Field

	stash   edit.Stash
	out     func() []edit.Draft // messages that were taken out of line
	file    string              // the key of what is kept; "" until that was read
	seen    [3]int              // the version that was looked at last
	unsaved bool
	running bool   // it holds a command that runs now
	reading int    // pictures that are on their way into it
	offer   *shell // whose output goes with the next message, if the person wants it
}

package screen

import "agent/internal/sonny/screen/outbox"

// composer is where a message is being written. The zero value is empty.
type composer struct {
	outbox.Box
	offer *shell // whose output goes with the next message, if the person wants it
}

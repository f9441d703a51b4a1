package screen

import (
	"time"

	"agent/internal/sonny/screen/term"
)

// inlineFront is a placeholder of the slice that follows.
type inlineFront struct{ fullFront }

var _ = time.Time{}
var _ term.Event

package sandbox

import "time"

// endStrays has nothing to do: sandbox-exec becomes the command.
func endStrays(string, time.Time) (ended int, left []int) { return 0, nil }

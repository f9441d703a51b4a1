//go:build !testhooks

package outbox

// Instant is a place on a message's way at which a test can end Sonny.
func Instant(string) {}

package client

import (
	"context"
	"math/rand/v2"
	"time"

	"agent/protocol"
)

// Retry calls f until it returns something else than daemon_disconnected,
// daemon_unavailable or daemon_connect_timeout, waiting between tries as
// Follow does, until ctx ends. f must be safe to repeat: a Submit with its
// RequestID and BotID set, an Inspect, a read.
func Retry[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		v, err := f(ctx)
		switch protocol.CodeOf(err) {
		case protocol.DaemonDisconnected, protocol.DaemonUnavailable, protocol.DaemonConnectTimeout:
		default:
			return v, err
		}
		if !pause(ctx, backoff(attempt)) {
			return v, contextError(ctx, "retry after "+err.Error())
		}
	}
}

// longestBackoff is the longest wait between two tries, give or take 20 %.
const longestBackoff = 5 * time.Second

// backoff is the wait before the given try, from 1: 100 ms doubling to 5 s,
// ±20 %.
func backoff(attempt int) time.Duration {
	d := longestBackoff
	if attempt < 7 {
		d = 100 * time.Millisecond << (attempt - 1)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// pause waits and reports whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

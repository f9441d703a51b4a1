package cli

import (
	"context"
	"errors"
	"time"

	"agent/protocol"
)

var shutdownVerb = verb{
	name:  "shutdown",
	short: "stop the daemon",
	long: "Asks the daemon to end and returns when its process is gone: then the store is\n" +
		"closed and may be copied. Turns that run are interrupted, after --grace.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		var grace *int64
		t.statedTime(&grace, "grace", time.Second, 0, 86_400, "seconds that running turns may go on; default 0")
		return func(ctx context.Context, _ []string) error {
			if inside() && c.store == "" && c.socket == "" {
				return protocol.Fail(protocol.InsideABot, "it would stop this bot's own daemon; name another with --store or --socket")
			}
			return a.shutdown(ctx, c, time.Duration(or(grace, 0))*time.Second)
		}
	},
}

func (a *app) shutdown(ctx context.Context, c *common, grace time.Duration) error {
	l, err := a.connect(ctx, c, nil, startNever)
	if err != nil && !errors.Is(err, protocol.DaemonProtocolMismatch) {
		return err
	}
	defer l.Close()
	pid, err := l.ShutdownPID(ctx, grace) // it knows what to do with an older daemon
	if err != nil {
		return err
	}
	answer, err := protocol.Append(nil, struct {
		Stopped bool `json:"stopped"`
		PID     int  `json:"pid"`
	}{true, pid})
	if err != nil {
		return err
	}
	return a.printObject(answer)
}

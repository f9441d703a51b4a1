package cli

import (
	"context"
	"encoding/json"
	"time"

	"agent/protocol"
)

var waitVerb = verb{
	name: "wait", operands: "HANDLE…", most: protocol.MaxHandles, short: "block for handles",
	long: "Waits for turns (turn:BOT/N, as run --detach prints them) and background commands\n" +
		"(proc:N), and prints what they came to, also when the time ran out. The exit is 0 when\n" +
		"every handle is resolved without an error; with --any one is enough.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		w := &waiting{app: a}
		t.toggle(&w.any, "any", "the first handle that is resolved is enough")
		timeout := t.statedTime(&w.timeout, "timeout-ms", time.Millisecond, 0, protocol.MaxWaitMS, "how long, in milliseconds; 0 only looks, absent: as long as it takes")
		t.alias(timeout, "timeout", unitRequired("timeout", timeout.set))
		return func(ctx context.Context, handles []string) error {
			if len(handles) == 0 {
				return usagef("wait needs a handle, turn:BOT/N or proc:N")
			}
			for _, h := range handles {
				if _, err := protocol.ParseHandle(h); err != nil {
					return usagef("%s is neither turn:BOT/N nor proc:N", h)
				}
			}
			if err := refuseBlocking("wait"); err != nil {
				return err
			}
			l, err := a.connect(ctx, c, nil, startNever)
			if err != nil {
				return err
			}
			defer l.Close()
			return w.run(ctx, l, handles)
		}
	},
}

type waiting struct {
	app     *app
	any     bool
	timeout *int64
}

func (w *waiting) run(ctx context.Context, l *link, handles []string) error {
	r := &protocol.Wait{Handles: handles, Any: w.any}
	if w.timeout != nil {
		r.TimeoutMS = protocol.Set(*w.timeout)
	}
	object, err := l.raw(ctx, protocol.OpWait, r)
	if err != nil {
		return err
	}
	var out struct {
		Results map[string]struct {
			Error   json.RawMessage `json:"error"`
			Pending bool            `json:"pending"`
		} `json:"results"`
		Pending []string `json:"pending"`
	}
	if err := json.Unmarshal(object, &out); err != nil {
		return err
	}
	if err := w.app.printObject(object); err != nil {
		return err
	}
	resolved := 0
	for _, v := range out.Results {
		switch {
		case v.Pending:
		case v.Error != nil && string(v.Error) != "null":
			return exit(1)
		default:
			resolved++
		}
	}
	if len(out.Pending) > 0 && (!w.any || resolved == 0) {
		return exit(1)
	}
	return nil
}

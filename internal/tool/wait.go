package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"agent/protocol"
)

var (
	//go:embed wait.md
	waitText string
	//go:embed wait.json
	waitParameters string
)

// waitTool is the contract of wait. The engine does its work, since a turn that
// waits has no task (runtime.md 8).
var waitTool = &builtin[waitArgs]{
	name: "wait", description: waitText, parameters: waitParameters, check: checkWait,
	run: func(_ context.Context, env *Env, _ *waitArgs) Result {
		return env.refuse(failuref(protocol.ToolSchedulerClosed, "a wait cannot run here"))
	},
}

type waitArgs struct {
	Handles   arg[[]string] `json:"handles"`
	TimeoutMS arg[int64]    `json:"timeout_ms"`
	Any       arg[bool]     `json:"any"`
}

// maxHandle bounds one handle, in bytes.
const maxHandle = 256

func checkWait(a *waitArgs) *Failure {
	if f := first(required("handles", a.Handles), within("timeout_ms", a.TimeoutMS, 0, protocol.MaxWaitMS)); f != nil {
		return f
	}
	if n := len(a.Handles.value); n == 0 || n > protocol.MaxHandles {
		return invalidf("handles names %d; a wait takes 1 to %d", n, protocol.MaxHandles)
	}
	for _, h := range a.Handles.value {
		if len(h) > maxHandle {
			return invalidf("a handle is %d bytes; at most %d are taken", len(h), maxHandle)
		}
	}
	return nil
}

// Wait is what a wait call asks for. Timeout is negative when it has none.
type Wait struct {
	Handles []string
	Timeout time.Duration
	Any     bool
}

// ParseWait reads the arguments of a wait call. The error is a *Failure.
func ParseWait(args json.RawMessage) (Wait, error) {
	a, f := waitTool.decode(args)
	if f != nil {
		return Wait{}, f
	}
	w := Wait{Handles: a.Handles.value, Timeout: -1, Any: a.Any.value}
	if a.TimeoutMS.given {
		w.Timeout = time.Duration(a.TimeoutMS.value) * time.Millisecond
	}
	return w, nil
}
